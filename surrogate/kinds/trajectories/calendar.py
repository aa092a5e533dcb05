"""Calendars: dates as even steps, and steps as dates.

A formula counts steps k = 0, 1, 2, ... of a unit, and people write dates. Dates d_k that lie a step
apart, up to leap days and months of other lengths, have the times k * length in weeks, days or
another unit that fits. *Trading days* are dates of five or six days a week without holidays: the
step after Friday is Monday. *Rows* are dates whose distances do not count.

A time axis of dates names its unit in the attribute `step_unit`; `step_times` leads back to k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from constraints.ast.dates import date_text, moment
from constraints.errors import FormulaError, Setting
from surrogate.errors import ModelError

UNIT_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}
CALENDAR_UNITS = {"months": 30.44, "years": 365.24}  # mean days
TRADING_DAYS = "trading days"
ROWS = "rows"
SINCE_START = "since the start of each sample"  # what times of windows are
STEP_UNIT = "step_unit"  # attribute of a time axis of dates
DATES = "datetime64[us]"

MIN_TRADING_SPAN = 14  # days, so that every weekday occurs twice
MAX_HOLIDAY_SHARE = 0.1  # of the weekdays; exchanges close on 3 to 7 % of them
MAX_HOLIDAYS_IN_ROW = 10  # weekdays: the longest holidays of an exchange are eight


@dataclass(frozen=True)
class Clock:
    """What times are: numbers as they are, or dates as steps of a unit."""

    column: str | None
    unit: str = "1"
    length: float = 0.0  # of a step, in the unit; 0 for numbers
    note: str = ""  # what was assumed about dates

    @property
    def attrs(self) -> dict[str, str]:
        """Of an axis of times from the start of each sample."""
        name = f"{self.unit} {SINCE_START}" if self.length else self.column or "step"
        return {"long_name": name, "axis": "T", "units": "1" if self.unit == ROWS else self.unit}

    @property
    def dated_attrs(self) -> dict[str, str]:
        """Of an axis of dates; their units are those of the file."""
        return {"long_name": self.column or "date", "axis": "T", STEP_UNIT: self.unit}


@dataclass(frozen=True)
class TradingDays:
    """Dates of a few days a week, without holidays."""

    days: np.ndarray  # of all runs, sorted, datetime64[D]
    weekdays: int  # that are traded on
    holidays: int

    @property
    def note(self) -> str:
        left = f", {self.holidays:,} holiday{'s' * (self.holidays != 1)} left out"
        return f"{self.weekdays} days a week{left * bool(self.holidays)}: steps are {TRADING_DAYS}"

    def places(self, dates: np.ndarray) -> np.ndarray:
        """Numbers of the trading days, from the first of them."""
        found = np.searchsorted(self.days, dates.astype("datetime64[D]"))
        return np.asarray(found - found[0], np.float64)


def trading_days(dates: Sequence[np.ndarray]) -> TradingDays | None:
    """The calendar of the runs' dates if they are trading days; else None."""
    every = np.unique(np.concatenate(dates))
    days = every.astype("datetime64[D]")
    if len(np.unique(every - days)) > 1 or days[-1] - days[0] < np.timedelta64(
        MIN_TRADING_SPAN, "D"
    ):
        return None
    weekday = (days.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday; 0 is Monday
    open_days = np.isin(np.arange(7), weekday)
    if open_days.sum() not in (5, 6):
        return None
    mask = open_days.tolist()
    closed = np.busday_count(days[:-1], days[1:], weekmask=mask) - 1
    expected = len(days) + int(closed.sum())
    if closed.max() > MAX_HOLIDAYS_IN_ROW or closed.sum() > MAX_HOLIDAY_SHARE * expected:
        return None
    return TradingDays(days, int(open_days.sum()), int(closed.sum()))


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit of a step, and its length in this unit."""
    days = seconds / UNIT_SECONDS["days"]
    if 28 <= days <= 31 and days != 28:
        return "months", 1.0
    if 89 <= days <= 92:
        return "months", 3.0
    if 365 <= days <= 366:
        return "years", 1.0
    for unit, length in UNIT_SECONDS.items():
        if seconds % length == 0:
            return unit, seconds / length
    return "seconds", seconds


# --- a grid of dates ------------------------------------------------------------------------------


def step_times(dates: np.ndarray, unit: str) -> np.ndarray:
    """The times (T,) of a grid of dates (T,), in its unit, from 0."""
    count = np.arange(len(dates), dtype=np.float64)
    if unit not in (*UNIT_SECONDS, *CALENDAR_UNITS) or len(dates) < 2:
        return count
    gaps = np.diff(dates) / np.timedelta64(1, "s")
    usual = float(np.median(gaps))
    if unit in UNIT_SECONDS:
        length = usual / UNIT_SECONDS[unit]
    else:
        length = max(1.0, round(usual / UNIT_SECONDS["days"] / CALENDAR_UNITS[unit]))
    return np.concatenate([[0.0], np.cumsum(np.rint(gaps / usual))]) * length


def dates_from(start: Any, times: Sequence[float], unit: str) -> np.ndarray:
    """The dates (T,) of steps at these times of a unit, the first of which is on `start`.

    Trading days are Monday to Friday: the holidays to come are not known.
    """
    try:
        first = moment(start)
    except FormulaError:
        raise ModelError(
            f"start is a date, not {start!r}", value=start, remedy="write one such as 1948-01-31"
        ) from None
    offsets = np.asarray(times, np.float64) - times[0]
    if unit in UNIT_SECONDS:
        micro = np.rint(offsets * UNIT_SECONDS[unit] * 1e6).astype(np.int64)
        return np.asarray(np.datetime64(first, "us") + micro.astype("timedelta64[us]"), DATES)
    if unit in CALENDAR_UNITS:
        made = [pd.Timestamp(first) + pd.DateOffset(**{unit: round(k)}) for k in offsets.tolist()]
        return np.array([np.datetime64(each.to_pydatetime(), "us") for each in made], DATES)
    if unit == TRADING_DAYS:
        day = np.datetime64(first, "D")
        if not np.is_busday(day):
            near = [str(np.busday_offset(day, 0, roll=roll)) for roll in ("backward", "forward")]
            raise ModelError(
                f"start {date_text(first)} is a {first:%A}, and steps are trading days",
                value=str(start),
                remedy=f"nearby are {near[0]} and {near[1]}",
            )
        return np.asarray(np.busday_offset(day, np.rint(offsets).astype(np.int64)), DATES)
    raise ModelError(
        "the steps of this model are not days, weeks or another unit of the calendar, so they have "
        "no dates",
        value=unit,
        allowed=[*UNIT_SECONDS, *CALENDAR_UNITS, TRADING_DAYS],
        remedy=("leave out ", Setting("start"), ", or train on a table with dates"),
    )
