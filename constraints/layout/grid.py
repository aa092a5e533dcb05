"""Steps of a grid by their model time, and by their calendar date."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from constraints.ast.dates import moment
from constraints.errors import FormulaError, Setting


def step_at_time(times: Sequence[float], time: float, dates: Sequence[str] = ()) -> int:
    """The step whose model time is `time`; off the grid, the error shows its neighbours.

    `dates`: those of the grid, for the remedy of a date that lacks its quotation marks.
    """
    if not times:
        raise FormulaError(
            f"@{time:g}: these signals have no time grid",
            value=time,
            remedy="leave out the time",
        )
    after = min(bisect_left(times, time), len(times) - 1)
    near = min((max(after - 1, 0), after), key=lambda i: abs(times[i] - time))
    close = slice(max(near - 1, 0), near + 2)
    gaps = [b - a for a, b in pairwise(times[close])] or [1.0]
    if abs(times[near] - time) <= 1e-6 * min(gaps):
        return near
    around = ", ".join(f"{times[i]:.6g} (step {i})" for i in range(len(times))[close])
    around += f'; a date is written in quotation marks, @"{dates[near]}"' if dates else ""
    raise FormulaError(
        f"the time {time:g} is not on the grid", value=time, remedy=f"nearby are {around}"
    )


def step_on_date(dates: Sequence[str], day: str) -> int:
    """The step of a date; `dates` are those of the grid, each in its one spelling.

    Off the grid, the error shows the dates around it; without dates, how a model gets them.
    """
    if not dates:
        raise FormulaError(
            f'@"{day}": these steps have no calendar dates, they count from the start of each '
            "sample",
            value=day,
            remedy=(
                "give samples of a model the date of their first step (",
                Setting("start", day),
                "), or count steps, as in X(8)",
            ),
        )
    after = bisect_left(dates, day)
    if after < len(dates) and dates[after] == day:
        return after
    around = [i for i in (after - 1, after) if 0 <= i < len(dates)]
    shown = " and ".join(f'"{dates[i]}" (step {i})' for i in around)
    outside = "" if len(around) == 2 else f", which ends at {dates[-1]}"
    outside = f", which begins at {dates[0]}" if after == 0 else outside
    raise FormulaError(
        f'the date "{day}" is not on the grid{outside}',
        value=day,
        remedy=f"{'nearby are' if len(around) == 2 else 'the nearest is'} {shown}",
    )


def check_dates(dates: Sequence[str], steps: int) -> None:
    """FormulaError unless there is a date for each step, and they increase."""
    if dates and len(dates) != steps:
        raise FormulaError(
            f"{len(dates)} dates for {steps} steps", value=len(dates), remedy="give one for each"
        )
    for at, (a, b) in enumerate(pairwise(dates)):
        if not moment(a) < moment(b):
            raise FormulaError(f"the dates of a grid increase: {b} at step {at + 1}", value=b)
