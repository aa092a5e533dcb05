"""Trajectories in files: datasets over (sample, time), or tables whose rows are time steps."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.io import formats
from surrogate.io.formats import DATASET, TABLE, Say
from surrogate.io.reading import RUN_OPTIONS, TableOfRuns
from surrogate.kinds.tables.shapes import has_step_columns
from surrogate.kinds.trajectories import sample_tables
from surrogate.kinds.trajectories.from_table import trajectories_from_table
from surrogate.kinds.trajectories.from_wide import dates_in


def opened(data: Any, path: str, options: TableOfRuns, say: Say) -> xr.Dataset:
    """Trajectories of a file: as they are in a dataset, made from a table."""
    used = [name for name, value in asdict(options).items() if value not in (None, False)]
    if not isinstance(data, pd.DataFrame):
        if used:
            raise ModelError(
                f"{path!r} holds trajectories, no table",
                remedy=("leave out ", Setting(used[0]), ", which is for tables"),
            )
        return data  # type: ignore[no-any-return]
    if set(used) <= {"columns"} and sample_tables.holds_samples(data):
        found = data if options.columns is None else _chosen(data, options.columns)
        made, understood = sample_tables.from_frame(found)
        say(understood)
        return made
    if options.missing == "model":
        raise ModelError(
            "missing values of runs cannot be modelled, only those of rows",
            value="model",
            remedy=(Setting("missing", "drop"), " or ", Setting("missing", "refuse")),
        )
    if options.wide:
        _check_wide(path, data, options, used)
    settings = {k: v for k, v in asdict(options).items() if k != "wide"}
    settings |= {name: settings[name] or "refuse" for name in ("missing", "irregular")}
    try:
        made, understood = trajectories_from_table(data, **settings)
    except ModelError as problem:
        raise problem.at(path) from None
    say(understood)
    return made


def _chosen(table: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """The grid of a table of samples, and these columns."""
    for name in columns:
        if name not in table.columns:
            raise ModelError(f"there is no column {name!r}", value=name, allowed=table.columns)
    return table[[*table.columns[:2], *(n for n in columns if n not in table.columns[:2])]]


def write(data: xr.Dataset, path: str | Path) -> None:
    """A dataset, or a long table, by the suffix of the path."""
    ways = (DATASET, TABLE)
    table = formats.format_for(path, ways).holds == TABLE
    formats.write(sample_tables.to_frame(data) if table else data, path, ways)


def _check_wide(path: str, found: pd.DataFrame, options: TableOfRuns, used: list[str]) -> None:
    others = [name for name in used if name in RUN_OPTIONS and name not in ("wide", "irregular")]
    if others:
        raise ModelError(
            "columns are the steps of a wide table", remedy=("leave out ", Setting(others[0]))
        )
    names = [str(name) for name in found.columns]
    if not has_step_columns(options.columns or names) and not dates_in(options.columns or names):
        raise ModelError(
            f"{path}: a wide table needs columns that are steps, not {', '.join(names)}",
            value=names,
            remedy="name them after a variable and a step: S0, S1, S2; or a date: 1948-01-31",
        )
