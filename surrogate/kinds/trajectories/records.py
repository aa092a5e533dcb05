"""Columns of a table as runs: their times and their values.

A run has times t_0 < t_1 < ... and a value of each variable at each of them, some of which may be
missing. Dates are brought to even steps of a unit that fits them (see `calendar`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.kinds.trajectories.calendar import ROWS, TRADING_DAYS, Clock, trading_days, unit_of
from surrogate.kinds.trajectories.date_formats import read_dates, utc_dates

MAX_INTEGER = 2**63 - 1
DECIMAL_COMMA = r"\s*[-+]?\d+,\d+([eE][-+]?\d+)?\s*"  # -0,5
GRID_TOLERANCE = 0.25  # of a step, by which dates may lie off an even grid: leap days, months


@dataclass(frozen=True)
class Run:
    """One record: labels of its rows for messages, times, and a column for each variable."""

    name: str
    labels: np.ndarray
    times: np.ndarray
    values: pd.DataFrame
    dates: np.ndarray | None = None  # of its rows, where times were dates


# --- times ----------------------------------------------------------------------------------------


def runs_of(
    table: pd.DataFrame,
    time: str | None,
    id: str | None,
    columns: Sequence[str],
    irregular: str = "refuse",
) -> tuple[list[Run], Clock]:
    """The runs of a long table or the only one of a series, sorted by time.

    `irregular`: "refuse" times that are not evenly spaced, or take rows as "steps".
    """
    values = pd.DataFrame({name: values_of(table[name]) for name in columns})
    if id is not None and table[id].isna().any():
        row = int(table[id].isna().to_numpy().argmax())
        raise ModelError(f"{id} is missing in row {row}", remedy="drop or repair it")
    places = {"": np.arange(len(table))}
    if id is not None:
        places = {str(k): np.asarray(v) for k, v in table.groupby(id, sort=False).indices.items()}
    if time is None:
        counted = {name: np.arange(len(rows), dtype=float) for name, rows in places.items()}
        runs = [Run(n, counted[n], counted[n], values.iloc[rows]) for n, rows in places.items()]
        return runs, Clock(None)
    numbers, dates, note = _times(table, time)
    zoned = isinstance(table[time].dtype, pd.DatetimeTZDtype)
    labels = np.asarray(table[time].astype(str) if zoned else table[time])
    runs = []
    for name, rows in places.items():
        order = rows[np.argsort(numbers[rows], kind="stable")]
        when = None if dates is None else dates[order]
        run = Run(name, labels[order], numbers[order], values.iloc[order], when)
        again = np.flatnonzero(np.diff(run.times) == 0)
        if again.size:
            which = f"run {name} has" if id else "there are"
            raise ModelError(
                f"{which} two rows for the time {run.labels[again[0]]}",
                remedy="drop one of them"
                if id
                else ("drop one, or name the column that identifies runs (", Setting("id"), ")"),
            )
        runs.append(run)
    counted_runs, clock = as_steps(runs, time, irregular)
    return counted_runs, replace(clock, note="; ".join(filter(None, (note, clock.note))))


def as_steps(runs: Sequence[Run], time: str, irregular: str) -> tuple[list[Run], Clock]:
    """The runs with times in a unit from the start of each, if they are dates; and this unit."""
    gaps = np.concatenate([np.diff(run.times) for run in runs])
    dated = [run.dates for run in runs if run.dates is not None]
    even = not gaps.size or bool((np.abs(gaps / usual_step(gaps) - 1) <= GRID_TOLERANCE).all())
    if irregular == "steps" and not even:
        note = "the times are not even: rows are steps"
        rows = [replace(r, times=np.arange(len(r.times), dtype=np.float64)) for r in runs]
        return rows, Clock(time, ROWS, 1.0, note) if dated else Clock(None, note=note)
    if not dated:
        return list(runs), Clock(time)
    seconds = usual_step(gaps)
    trading = None if even else trading_days(dated)
    if trading is not None:
        places = [trading.places(dates) for dates in dated]
        counted = [replace(run, times=at) for run, at in zip(runs, places, strict=True)]
        return counted, Clock(time, TRADING_DAYS, 1.0, trading.note)
    unit, length = unit_of(seconds)
    return [replace(r, times=positions(r, seconds) * length) for r in runs], Clock(
        time, unit, length
    )


def _times(table: pd.DataFrame, time: str) -> tuple[np.ndarray, np.ndarray | None, str]:
    """The times as numbers, in seconds if they are dates; the dates; what was assumed of them."""
    column = table[time]
    if column.isna().any():
        row = int(column.isna().to_numpy().argmax())
        raise ModelError(f"{time} is missing in row {row}", remedy="drop or repair it")
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(np.float64)
        if not np.isfinite(numbers).all():
            row = int((~np.isfinite(numbers)).argmax())
            raise ModelError(
                f"{time} is infinite in row {row}",
                value=float(numbers[row]),
                remedy="drop or repair it",
            )
        return numbers, None, ""
    if pd.api.types.is_datetime64_any_dtype(column):
        dates, note = utc_dates(column), ""
    else:
        dates, note = read_dates(column, time)
    return (dates - dates.min()) / np.timedelta64(1, "s"), dates, note


def single_step_runs() -> ModelError:
    """The refusal of runs without a second step."""
    return ModelError("every run has a single step", remedy="give runs of two steps or more")


def usual_step(gaps: np.ndarray) -> float:
    if not gaps.size:
        raise single_step_runs()
    return float(np.median(gaps))


def positions(run: Run, step: float) -> np.ndarray:
    """Indices of the run's times on an even grid that begins with it."""
    gaps = np.diff(run.times) / step
    jumps = np.rint(gaps)
    odd = np.flatnonzero((np.abs(gaps - jumps) > GRID_TOLERANCE) | (jumps < 1))
    if odd.size:
        raise ModelError(
            f"the times are not evenly spaced: {run.labels[odd[0]]} and {run.labels[odd[0] + 1]} "
            f"are {gaps[odd[0]]:.3g} steps apart",
            value=str(run.labels[odd[0] + 1]),
            remedy=(
                "bring them to even steps first, or take rows as steps (",
                Setting("irregular", "steps"),
                ")",
            ),
        )
    return np.concatenate([[0.0], np.cumsum(jumps)])


# --- values ---------------------------------------------------------------------------------------


def values_of(column: pd.Series[Any]) -> pd.Series[Any]:
    """Counts as Int64, real numbers as float64, truth values as bool, words as objects.

    Counts with gaps are read from files as real numbers, which are all whole.
    """
    name = column.name
    if pd.api.types.is_bool_dtype(column) and not column.isna().any():
        return column.astype(bool)
    if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
        if pd.api.types.is_integer_dtype(column):
            if column.max() > MAX_INTEGER:
                raise ModelError(
                    f"{name} holds whole numbers beyond 2^63, such as {column.max()}",
                    value=int(column.max()),
                    remedy="convert them to another unit",
                )
            return column.astype("Int64")
        numbers = column.to_numpy(np.float64, na_value=np.nan)
        known = numbers[~np.isnan(numbers)]
        whole = np.isfinite(known).all() and np.array_equal(known, np.rint(known))
        counts = 0 < known.size < numbers.size and whole
        made = pd.Series(numbers, column.index, name=name)
        return made.astype("Int64") if counts else made
    if pd.api.types.is_datetime64_any_dtype(column) or pd.api.types.is_timedelta64_dtype(column):
        raise ModelError(
            f"{name} holds dates", remedy=("name the variables to learn (", Setting("columns"), ")")
        )
    words = column.astype(object)
    words = words.where(words.notna() & (words.astype(str).str.strip() != ""), None)
    known = words.notna().to_numpy()
    read = pd.to_numeric(words, errors="coerce")
    odd = known & read.isna().to_numpy()
    row = int(odd.argmax())
    if odd.any() and words[odd].astype(str).str.fullmatch(DECIMAL_COMMA).all():
        raise ModelError(
            f"{name} is {words.iloc[row]!r} in row {row}, with a decimal comma",
            value=words.iloc[row],
            remedy="write numbers with a point",
        )
    if not known.any() or odd.sum() > known.sum() / 2:
        return words
    if odd.any():
        raise ModelError(
            f"{name} is {words.iloc[row]!r} in row {row}, where most are numbers ({int(odd.sum())} "
            "are not)",
            value=words.iloc[row],
            remedy="repair them, or leave them empty",
        )
    return values_of(read)


def array_of(column: pd.Series[Any]) -> np.ndarray:
    """float64 with NaN for gaps, bool, or objects."""
    if column.dtype == object or column.dtype == bool:
        return column.to_numpy()
    return column.to_numpy(np.float64, na_value=np.nan)
