"""Hints for tables whose rows look like time steps although no option says so."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pandas as pd

from constraints.errors import Action, Setting

Hint = tuple[str | Setting | Action, ...]

TIME_NAMES = ("time", "date", "datetime", "timestamp", "t", "step", "day", "week", "month")
RUN_NAMES = (
    "id",
    "run",
    "sample",
    "trajectory",
    "subject",
    "patient",
    "replicate",
    "series",
    "unit",
)
MIN_STEP_SHARE = 0.9  # of the columns of a wide table
_DATED_NAME = re.compile(r"(.*?)[ _:]?(\d{4}-\d{2}-\d{2})")
_NUMBERED_NAME = re.compile(r"(.*?)[ _:.\-]?(\d+)")


def hint(table: pd.DataFrame) -> Hint:
    """The options that read rows as time steps, if they look like that; else empty."""
    time = next((name for name in table.columns if name.lower() in TIME_NAMES), None)
    if time is not None:
        for name in table.columns:
            if name != time and _names_runs(name) and _is_grid(table, name, time):
                said = Action(
                    f"id={name!r}, time={time!r}",
                    f"--id {shlex.quote(name)} --time {shlex.quote(time)}",
                )
                return ("if these are runs with a row for each step: ", said)
        if _is_series(table[time]):
            said = Action(f"time={time!r}, window=52", f"--time {shlex.quote(time)} --window 52")
            return ("if these are the steps of one long series, cut it into windows: ", said)
    names = [str(name) for name in table.columns]
    dated = [name for name in names if _DATED_NAME.fullmatch(name.strip())]
    steps = dated if len(dated) > 2 else _numbered(names) if has_step_columns(names) else []
    if steps and len(steps) >= MIN_STEP_SHARE * len(names):
        return ("if there is a run in each row, its steps in columns: ", Setting("wide", True))
    return ()


def _names_runs(name: str) -> bool:
    return name.lower() in RUN_NAMES or name.lower().endswith(("_id", " id"))


def _is_grid(table: pd.DataFrame, run: str, time: str) -> bool:
    """Whether each run has several times, and each (run, time) occurs once."""
    runs, times = table[run].nunique(), table[time].nunique()
    several = 1 < runs < len(table) and 1 < times < len(table)
    return several and not table.duplicated([run, time]).any()


def _is_series(times: pd.Series[Any]) -> bool:
    """Whether times are unique and monotonic."""
    return bool(
        times.is_unique and (times.is_monotonic_increasing or times.is_monotonic_decreasing)
    )


def _numbered(names: list[str]) -> list[str]:
    return [name for name in names if _NUMBERED_NAME.fullmatch(name.strip())]


def has_step_columns(names: list[str]) -> bool:
    """Whether three columns or more have one name with step numbers: S0, S1, S2."""
    groups: dict[str, list[int]] = {}
    for name in _numbered(names):
        found = _NUMBERED_NAME.fullmatch(name.strip())
        if found is not None:
            groups.setdefault(found[1], []).append(int(found[2]))
    return any(len(steps) > 2 for steps in groups.values())
