"""Wide tables as trajectories: a run in each row, its steps in columns.

Columns are named after a variable and a step, S0, S1, S2, or a date, cases 1948-01-10; without a
variable's name they are the steps of `value`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.ast.dates import is_date
from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.io.tables import iso
from surrogate.kinds.trajectories.calendar import DATES, Clock
from surrogate.kinds.trajectories.records import Run, array_of, as_steps, positions, values_of
from surrogate.kinds.trajectories.table_samples import TIME_COLUMNS, TableSamples, to_dataset

_STEP = re.compile(r"(.*?)[ _:.\-]?(\d+(?:\.\d+)?)")
_DATE = re.compile(r"(.*?)[ _:]?(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2})?)?)")


def dates_in(names: Sequence[str]) -> dict[str, dict[np.datetime64, str]]:
    """variable -> date -> column, from names that end in dates; empty below three dates."""
    groups: dict[str, dict[np.datetime64, str]] = {}
    for name in names:
        found = _DATE.fullmatch(name.strip())
        if found is not None and is_date(found[2]):
            groups.setdefault(found[1] or "value", {})[np.datetime64(found[2], "us")] = name
    longest = max(groups.values(), key=len, default={})
    if len(longest) < 3:
        return {}
    return {name: days for name, days in groups.items() if set(days) == set(longest)}


def steps_in(names: Sequence[str]) -> dict[str, dict[float, str]]:
    """variable -> step -> column, from names such as S0, S1, S2; empty below three steps."""
    groups: dict[str, dict[float, str]] = {}
    for name in names:
        found = _STEP.fullmatch(name.strip())
        if found is not None:
            steps = groups.setdefault(found[1], {})
            if float(found[2]) in steps:
                raise ModelError(
                    f"{steps[float(found[2])]!r} and {name!r} are the same step",
                    value=name,
                    remedy="rename one of them",
                )
            steps[float(found[2])] = name
    longest = max(groups.values(), key=len, default={})
    alike = {name: steps for name, steps in groups.items() if set(steps) == set(longest)}
    if len(longest) < 3:
        return {}
    if len(alike) == 1 and next(iter(alike)).lower() in ("", *TIME_COLUMNS):
        return {"value": longest}
    return alike


def from_wide(
    table: pd.DataFrame,
    steps: Mapping[str, Mapping[Any, str]],
    columns: Sequence[str] | None,
    missing: str,
    irregular: str = "refuse",
) -> tuple[xr.Dataset, str]:
    """Trajectories of a table with the column of each variable and step, and a summary.

    Steps are numbers, or dates: these are kept on the time axis.
    """
    grid = sorted(next(iter(steps.values())))
    times, clock = np.array(grid), Clock(None)
    dated = times.dtype.kind == "M"
    if dated:
        days = np.array([pd.Timestamp(day).to_datetime64() for day in grid], DATES)
        seconds = (days - days[0]) / np.timedelta64(1, "s")
        run = Run("", np.array(iso(days)), seconds, table.iloc[:0], days)
        (run,), clock = as_steps([run], "date", irregular)
        _refuse_absent(run, clock)
        times = days
    taken = {name for each in steps.values() for name in each.values()}
    others = [c for c in (columns or table.columns) if c not in taken and c[:8] != "Unnamed:"]
    read = {name: values_of(table[name]) for name in (*taken, *others)}
    unique = [n for n in others if read[n].dtype == object and read[n].nunique() == len(table) > 2]
    others = [name for name in others if name not in unique]
    gaps = np.stack([read[name].isna() for name in (*sorted(taken), *others)], 1)
    bad = gaps.any(1)
    if bad.any() and missing == "refuse":
        row, column = (int(i) for i in np.argwhere(gaps)[0])
        raise ModelError(
            f"{(*sorted(taken), *others)[column]} is missing in row {row} ({int(bad.sum())} rows "
            "have gaps)",
            remedy=("repair them, or drop such rows (", Setting("missing", "drop"), ")"),
        )
    if bad.all():
        raise ModelError("every row has missing values: nothing is left", remedy="repair them")
    values: dict[str, np.ndarray] = {}
    whole: set[str] = set()
    for name, places in {**steps, **{name: {grid[0]: name} for name in others}}.items():
        series = [read[places[step]] for step in sorted(places)]
        values[name] = np.stack([array_of(each)[~bad] for each in series], 1)
        whole |= {name} if all(str(each.dtype) == "Int64" for each in series) else set()
    values |= {name: values[name][:, 0] for name in others}
    summary = f"a run in each row: {len(table):,} runs of {len(grid)} steps, {', '.join(steps)}"
    summary += f"; {int(bad.sum())} dropped for gaps" if bad.any() else ""
    summary += f"; one value for each run: {', '.join(others)}" if others else ""
    summary += f"; left out, a different word in each row: {', '.join(unique)}" if unique else ""
    summary += f"; from {iso(times[:1])[0]} to {iso(times[-1:])[0]}" if dated else ""
    summary += f" ({clock.note})" if clock.note else ""
    attrs = clock.dated_attrs if dated else clock.attrs
    return to_dataset(TableSamples(values, times, attrs, {}, whole), summary)


def _refuse_absent(run: Run, clock: Clock) -> None:
    """Refuse a date that no column has."""
    jumps = np.diff(positions(run, clock.length))
    if (jumps > 1).any():
        raise ModelError(
            f"there is no column for the step after {run.labels[int(np.argmax(jumps > 1))]}",
            remedy=("add it, or take columns as steps (", Setting("irregular", "steps"), ")"),
        )
