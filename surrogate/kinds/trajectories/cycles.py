"""Cycles of the calendar: where in the day, the week or the year a window of a series begins.

Windows of a long series begin anywhere, and what happens in them depends on the date d of the
first step: measles spreads in school terms, loads follow the hour. For a cycle of period P (day,
week, year) d has a *place* k in 0, ..., K - 1, an hour or a week of the year, and step t the phase

    φ(t) = k/K + τ(t)/P,      τ(t) the time since the first step.

The place is a variable of the window, drawn before its series, whose decoder sees sin and cos of
2πhφ(t) for h = 1, 2, 3 (harmonic regression). A date fixes it: p(x | d) is then drawn, and every
probability is one given d. Which cycles are learned is decided by a trial (`cycle_trial`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from torch import Tensor

from surrogate.errors import ModelError
from surrogate.kinds.trajectories.date_formats import read_dates

START = "start"  # the coordinate of the dates on which windows begin
CYCLE, PERIOD, PLACES = "surrogate_cycle", "surrogate_period", "surrogate_places"  # attributes
HARMONICS = 3
DAY = 86_400.0
SECONDS = {"day": DAY, "week": 7 * DAY, "year": 365.2425 * DAY}


@dataclass(frozen=True)
class Cycle:
    """A cycle of the calendar; its period in units of the time axis, the places it is cut into."""

    name: str  # "day", "week", "year"
    period: float
    places: int

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Cycle | None:
        """The cycle whose place a variable with these attributes holds."""
        name, period, places = (attrs.get(key) for key in (CYCLE, PERIOD, PLACES))
        if name not in SECONDS or not isinstance(period, (int, float, np.number)) or period <= 0:
            return None
        if not isinstance(places, (int, np.integer)) or places < 2:
            return None
        return cls(str(name), float(period), int(places))

    @property
    def variable(self) -> str:
        """The name of the variable that holds the place, as people count it."""
        year = {4: "quarter_of_year", 12: "month_of_year"}.get(self.places, "week_of_year")
        return {"day": "hour_of_day", "week": "day_of_week", "year": year}[self.name]

    @property
    def attrs(self) -> dict[str, Any]:
        """Of this variable."""
        words = f"{self.variable.replace('_', ' ')} at the first step"
        return {"long_name": words, CYCLE: self.name, PERIOD: self.period, PLACES: self.places}

    @property
    def _origin(self) -> tuple[float, float]:
        """The value of place 0, and how far values go on in a period."""
        return {"day": (0.0, 24.0), "week": (0.0, 7.0), "year": (1.0, self.places)}[self.name]

    @property
    def values(self) -> tuple[float, ...]:
        """What the variable may be, ascending: hours from 0, days from Monday = 0, weeks, months
        and quarters from 1."""
        first, length = self._origin
        return tuple(first + k * length / self.places for k in range(self.places))

    def begins(self, dates: np.ndarray) -> np.ndarray:
        """The variable (n,) for windows that begin on these dates (n,)."""
        found: np.ndarray = np.array(self.values)[self._places(pd.DatetimeIndex(dates))]
        return found

    def _places(self, dates: pd.DatetimeIndex) -> np.ndarray:
        if self.name == "year" and self.places in (4, 12):
            return np.asarray((dates.month - 1) * self.places // 12)
        hours = np.asarray(dates.hour + dates.minute / 60 + dates.second / 3600)
        share = {
            "day": hours / 24,
            "week": (dates.day_of_week + hours / 24) / 7,
            "year": (dates.day_of_year - 1 + hours / 24) / 366,
        }[self.name]
        places = np.floor(np.asarray(share) * self.places + 1e-6).astype(np.int64)
        return np.minimum(places, self.places - 1)

    def harmonics(self, values: Tensor, times: Tensor) -> list[Tensor]:
        """sin and cos of 2πhφ at times after the first step, for values of the variable; float32,
        both broadcast together."""
        first, length = self._origin
        phase = 2 * math.pi * ((values - first) / length + times / self.period)
        found = []
        for h in range(1, HARMONICS + 1):
            found += [(h * phase).sin().float(), (h * phase).cos().float()]
        return found


def dates_of(data: xr.Dataset) -> np.ndarray | None:
    """The dates on which the samples begin, (n,); None where they are not known."""
    if START not in data.coords or data[START].dims != ("sample",):
        return None
    starts = np.asarray(data[START].values)
    if starts.dtype.kind in "OUT":
        try:
            starts = read_dates(pd.Series(starts), START)[0]
        except ModelError:  # words
            return None
    return None if starts.dtype.kind != "M" or np.isnat(starts).any() else starts


def completed(data: xr.Dataset, cycles: Sequence[Cycle]) -> xr.Dataset:
    """The dataset with the variables of these cycles, where it lacks them and has dates."""
    lacking = [cycle for cycle in cycles if cycle.variable not in data.variables]
    starts = dates_of(data) if lacking else None
    if starts is None:
        return data
    made = {each.variable: ("sample", each.begins(starts), each.attrs) for each in lacking}
    return data.assign(made)


def without_cycles(data: xr.Dataset) -> xr.Dataset:
    """The dataset without such variables: what is compared are the series."""
    named = [name for name, array in data.data_vars.items() if Cycle.of(array.attrs) is not None]
    return data.drop_vars(named)
