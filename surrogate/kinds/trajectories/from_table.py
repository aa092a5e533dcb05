"""Tables of time series as trajectories over (sample, time).

Three shapes are recognised. A *long* table has a row for each step of each run, and a column `id`
that identifies runs. A *series* has a row for each step of one long record; windows of it are the
samples. A *wide* table has one run in each row and its steps in columns: 0, 1, 2 or t0, t1, t2;
with S0, S1, I0, I1 there are two variables. Dates become even steps, in the unit that fits them;
where all samples have the same dates, these are kept on the time axis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Setting, nearest
from surrogate.errors import ModelError
from surrogate.io.attributes import CALENDAR, OVERLAP
from surrogate.io.tables import iso
from surrogate.kinds.trajectories.calendar import Clock
from surrogate.kinds.trajectories.from_wide import dates_in, from_wide, steps_in
from surrogate.kinds.trajectories.records import (
    Run,
    array_of,
    positions,
    runs_of,
    single_step_runs,
    usual_step,
)
from surrogate.kinds.trajectories.table_samples import (
    TIME_COLUMNS,
    TableSamples,
    integer_variables,
    to_dataset,
)

MISSING_POLICIES = ("refuse", "drop")
IRREGULAR_POLICIES = ("refuse", "steps")


def trajectories_from_table(
    frame: pd.DataFrame,
    *,
    time: str | None = None,
    id: str | None = None,
    columns: Sequence[str] | None = None,
    window: int | None = None,
    stride: int | None = None,
    missing: str = "refuse",
    pool: str | None = None,
    irregular: str = "refuse",
    calendar: str | None = None,
) -> tuple[xr.Dataset, str]:
    """Trajectories (sample, time), and a summary of how the table was read.

    `columns`: the variables; all others if not given. `window`, `stride`: cut every run into
    windows of that many steps, one every `stride` steps (a window's length if not given).
    `missing`: "refuse" values and steps that are missing, or "drop" the runs or windows that have
    some. `pool`: treat each column as a run of its own of one variable with this name, so that
    seven cities are samples of "cases". `irregular`: "refuse" times that are not evenly spaced, or
    take rows as "steps" all the same. Trading days, without weekends and holidays, are even.
    `calendar`: cycles that are learned beside windows, "year,day" or "none" (see `cycle_trial`).
    """
    table = _checked(frame, time, id, columns, window, stride, missing, pool, irregular, calendar)
    used = {id, *(columns or ())}
    column = time or next(
        (c for c in table.columns if c.lower() in TIME_COLUMNS and c not in used), None
    )
    if id is None and column is None and window is None and pool is None:
        names = list(table.columns) if columns is None else list(columns)
        days = dates_in(names)
        if days:
            return from_wide(table, days, columns, missing, irregular)
        steps = steps_in(names)
        if steps:
            return from_wide(table, steps, columns, missing)
    chosen = _variables(table, {column, id}, columns)
    runs, clock = runs_of(table, column, id, chosen, irregular)
    many = f"{len(runs):,} run" + "s" * (len(runs) != 1)
    summary = f"long table: {many}" if id else f"one series of {len(table):,} steps"
    if pool is not None:
        runs = _pooled(runs, pool)
        summary += f", each of {len(chosen)} columns ({', '.join(chosen)}) a run of {pool}"
    if window is not None:
        made, note = _windows(runs, clock, window, stride or window, missing)
    elif len(runs) > 1:
        made, note = _whole_runs(runs, clock, missing)
    else:
        raise ModelError(
            f"the table holds {many if id else summary}, which is a single sample",
            remedy=(
                "cut it into windows (",
                Setting("window", 52),
                f"), or name {'another' if id else 'the'} column that identifies runs (",
                Setting("id"),
                ")",
            ),
        )
    summary += f"{note}; {'time from ' + column if column else 'rows are steps 0, 1, 2, ...'}"
    summary += f" ({clock.note})" if clock.note else ""
    summary += "" if pool else f"; columns {', '.join(chosen)}"
    data, understood = to_dataset(made, summary)
    if window is not None and stride is not None and stride < window:
        data.attrs[OVERLAP] = math.ceil(window / stride) - 1
    if calendar is not None:
        data.attrs[CALENDAR] = calendar
    return data, understood


def _checked(
    frame: pd.DataFrame,
    time: str | None,
    id: str | None,
    columns: Sequence[str] | None,
    window: int | None,
    stride: int | None,
    missing: str,
    pool: str | None,
    irregular: str,
    calendar: str | None,
) -> pd.DataFrame:
    if not isinstance(frame, pd.DataFrame) or frame.empty:
        raise ModelError("the table is empty", remedy="give one with a header and rows")
    table = frame.rename(columns=str).reset_index(drop=True)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ModelError(f"the table has two columns named {twice!r}", remedy="rename one of them")
    for name in (time, id, *(columns or ())):
        if name is not None and name not in table.columns:
            near = nearest(name, table.columns)
            raise ModelError(
                f"there is no column {name!r}",
                value=name,
                allowed=table.columns,
                remedy=() if near is None else f"did you mean {near!r}?",
            )
    if columns is not None and (not columns or len(set(columns)) < len(columns)):
        raise ModelError(
            f"columns are different names, at least one, not {list(columns)}",
            value=list(columns),
            remedy="leave them out for all columns",
        )
    for what, value in (("window", window), ("stride", stride)):
        least = 2 if what == "window" else 1
        if value is not None and value < least:
            raise ModelError(f"{what} is a number of steps >= {least}, not {value}", value=value)
    if stride is not None and window is None:
        raise ModelError(
            "stride is the distance between the starts of windows",
            remedy=("give the length of windows as well (", Setting("window"), ")"),
        )
    if calendar is not None and window is None:
        raise ModelError(
            "calendar is about windows, which begin on different dates",
            value=calendar,
            remedy=("give the length of windows (", Setting("window"), "), or leave it out"),
        )
    if pool is not None and not pool.strip():
        raise ModelError(f"pool is a name for the variable, not {pool!r}", value=pool)
    policies = (
        ("missing", missing, MISSING_POLICIES),
        ("irregular", irregular, IRREGULAR_POLICIES),
    )
    for what, policy, known in policies:
        if policy not in known:
            raise ModelError(
                f"{what} is not {policy!r} in a table of trajectories", value=policy, allowed=known
            )
    return table


def _variables(
    table: pd.DataFrame, taken: set[str | None], columns: Sequence[str] | None
) -> list[str]:
    """Columns that hold variables; an index that was saved with the table is left out."""
    if columns is None:
        columns = [c for c in table.columns if c not in taken and not c.startswith("Unnamed:")]
    both = [c for c in columns if c in taken]
    if both or not columns:
        raise ModelError(
            f"{both[0]!r} cannot be a variable and the time or id of the table"
            if both
            else "the table has no columns besides time and id",
            remedy=("name other ", Setting("columns")) if both else "add a column of values",
        )
    return list(columns)


# --- samples --------------------------------------------------------------------------------------


def _pooled(runs: Sequence[Run], name: str) -> list[Run]:
    made = []
    for run in runs:
        for column in run.values.columns:
            if run.values[column].dtype == object:
                raise ModelError(
                    f"{column} holds words, which cannot be pooled",
                    value=column,
                    remedy=("name columns of numbers (", Setting("columns"), ")"),
                )
            own = f"{run.name}, {column}" if run.name else str(column)
            values = run.values[[column]].rename(columns={column: name})
            made.append(replace(run, name=own, values=values))
    return made


def _whole_runs(runs: Sequence[Run], clock: Clock, missing: str) -> tuple[TableSamples, str]:
    """Every run as a sample, on the grid that most of them have."""
    grids = _without_rounding([run.times for run in runs])
    common = max(dict.fromkeys(grids), key=grids.count)
    if len(common) < 2:
        raise single_step_runs()
    kept: list[Run] = []
    odd = [run for run, grid in zip(runs, grids, strict=True) if grid != common]
    for run, grid in zip(runs, grids, strict=True):
        shorter = set(grid) < set(common)
        if grid != common and not (missing == "drop" and shorter):
            raise _other_grid(run, grid, common, [each.name for each in odd])
        gaps = run.values.isna().to_numpy()
        if gaps.any() and missing == "refuse":
            raise _gap(run, gaps)
        if grid == common and not gaps.any():
            kept.append(run)
    dropped = len(runs) - len(kept)
    if not kept:
        raise ModelError("every run has missing values: nothing is left", remedy="repair them")
    values = {
        str(name): np.stack([array_of(run.values[name]) for run in kept])
        for name in kept[0].values.columns
    }
    coords = {"run": np.array([run.name for run in kept], dtype=object)}
    note = f" of {len(common)} steps" + (f", {dropped} dropped for gaps" if dropped else "")
    whole = integer_variables(kept)
    dates = _shared_dates(kept)
    if dates is not None:
        note += f", from {iso(dates[:1])[0]} to {iso(dates[-1:])[0]}"
        return TableSamples(values, dates, clock.dated_attrs, coords, whole), note
    return TableSamples(values, np.array(common), clock.attrs, coords, whole), note


def _shared_dates(runs: Sequence[Run]) -> np.ndarray | None:
    """The dates of the grid, if all runs have the same."""
    first = runs[0].dates
    if first is None or not all(
        run.dates is not None and np.array_equal(run.dates, first) for run in runs
    ):
        return None
    return first


def _without_rounding(times: Sequence[np.ndarray]) -> list[tuple[float, ...]]:
    """Grids, those that differ by less than a millionth of a step made equal: 0.1 * 3 is 0.3."""
    every = np.unique(np.concatenate(times))
    steps = np.diff(every)
    gaps = [np.diff(each) for each in times if len(each) > 1]
    usual = float(np.median(np.concatenate(gaps))) if gaps else 1.0
    starts = np.concatenate([[True], steps > 1e-6 * usual])
    shared = every[starts][np.cumsum(starts) - 1]
    return [tuple(shared[np.searchsorted(every, each)].tolist()) for each in times]


def _other_grid(
    run: Run, grid: Sequence[float], common: Sequence[float], odd: Sequence[str]
) -> ModelError:
    at = next((i for i, (a, b) in enumerate(zip(grid, common, strict=False)) if a != b), None)
    if at is None:
        what = f"it has {len(grid)} steps where most have {len(common)}"
    else:
        what = f"step {at} is at {grid[at]:g} where most have {common[at]:g}"
    every = f" ({len(odd)} runs have: {_listed(odd)})" if len(odd) > 1 else ""
    drop = (", or drop the runs that lack steps (", Setting("missing", "drop"), ")")
    return ModelError(
        f"run {run.name} has other times than most: {what}{every}",
        remedy=(
            "bring the runs to one grid, or cut windows (",
            Setting("window", 52),
            ")",
            *(drop if set(grid) < set(common) else ()),
        ),
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _gap(run: Run, gaps: np.ndarray) -> ModelError:
    row, column = (int(i) for i in np.argwhere(gaps)[0])
    where = f" of run {run.name}" if run.name else ""
    return ModelError(
        f"{run.values.columns[column]} is missing at {run.labels[row]}{where} ({int(gaps.sum())} "
        "values are missing there in all)",
        remedy=("repair them, or drop what has gaps (", Setting("missing", "drop"), ")"),
    )


def _windows(
    runs: Sequence[Run], clock: Clock, window: int, stride: int, missing: str
) -> tuple[TableSamples, str]:
    """Windows of `window` steps, one every `stride` steps of each run."""
    length = clock.length or usual_step(np.concatenate([np.diff(run.times) for run in runs]))
    parts: dict[str, list[np.ndarray]] = {str(name): [] for name in runs[0].values}
    names: list[str] = []
    starts: list[Any] = []
    dropped = 0
    for run in runs:
        places = positions(run, length).astype(np.int64)
        row_of = np.full(int(places[-1]) + 1, -1)
        row_of[places] = np.arange(len(places))
        if missing == "refuse":
            _refuse_gaps(run, row_of)
        bad = row_of < 0
        bad[places] |= run.values.isna().to_numpy().any(1)
        columns = {name: array_of(run.values[name]) for name in parts}
        for start in range(0, len(row_of) - window + 1, stride):
            if bad[start : start + window].any():
                dropped += 1
                continue
            rows = row_of[start : start + window]
            for name, values in columns.items():
                parts[name].append(values[rows])
            names.append(run.name)
            starts.append(run.labels[rows[0]])
    if not names:
        longest = max(len(run.times) for run in runs)
        raise ModelError(
            f"no window of {window} steps is free of gaps ({dropped} have some)"
            if dropped
            else f"windows of {window} steps do not fit into {longest} steps",
            value=window,
            remedy=("choose a shorter ", Setting("window")),
        )
    coords = {"start": np.array(starts)}
    if len(runs) > 1:
        coords["run"] = np.array(names, dtype=object)
    made = {name: np.stack(rows) for name, rows in parts.items()}
    note = f": {len(names):,} windows of {window} steps, one every {stride}"
    note += f" ({dropped} more dropped for gaps)" if dropped else ""
    times, whole = length * np.arange(window), integer_variables(runs)
    return TableSamples(made, times, clock.attrs, coords, whole), note


def _refuse_gaps(run: Run, row_of: np.ndarray) -> None:
    absent = np.flatnonzero(row_of < 0)
    if absent.size:
        before = run.labels[row_of[absent[0] - 1]]
        where = f" of run {run.name}" if run.name else ""
        raise ModelError(
            f"{absent.size} steps{where} are missing, first after {before}",
            value=str(before),
            remedy=(
                "repair them, drop windows around gaps (",
                Setting("missing", "drop"),
                "), or take rows as steps (",
                Setting("irregular", "steps"),
                ")",
            ),
        )
    gaps = run.values.isna().to_numpy()
    if gaps.any():
        raise _gap(run, gaps)
