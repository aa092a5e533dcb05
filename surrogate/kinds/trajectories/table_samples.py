"""Samples read from a table, as a dataset over (sample, time)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.trajectories.integer_types import smallest_integer_type
from surrogate.kinds.trajectories.records import Run

TIME_COLUMNS = (
    "time",
    "date",
    "datetime",
    "timestamp",
    "t",
    "step",
    "day",
    "week",
    "month",
    "year",
)


@dataclass(frozen=True)
class TableSamples:
    """Samples: values (n, T) or (n,) of each variable, the grid (T,), and their origin."""

    values: Mapping[str, np.ndarray]
    times: np.ndarray
    attrs: Mapping[str, str]  # of the time axis
    coords: Mapping[str, np.ndarray]  # (n,): the run or the start of each sample
    whole: Collection[str]  # names of the integer variables


def integer_variables(runs: Sequence[Run]) -> set[str]:
    """Names of the variables that hold whole numbers in every run."""
    names = [str(name) for name in runs[0].values]
    return {n for n in names if all(str(run.values[n].dtype) == "Int64" for run in runs)}


def to_dataset(made: TableSamples, summary: str) -> tuple[xr.Dataset, str]:
    """The dataset, and `summary` with the variables that turned out to be static.

    A series that is constant within each sample, but not over all, becomes one value a sample.
    """
    data: dict[str, Any] = {}
    static = []
    for name, values in made.values.items():
        if values.ndim == 2 and _is_static(values):
            static.append(name)
            values = values[:, 0]
        if name in made.whole:
            values = values.astype(smallest_integer_type(values.min(), values.max()))
        data[name] = (("sample", "time")[: values.ndim], values)
    if len(static) == len(made.values):
        raise ModelError(
            "no column changes with time: there are no series in the table",
            value=static,
            remedy="name columns that change along a run",
        )
    summary += f"; one value for each run: {', '.join(static)}" if static else ""
    samples = len(next(iter(made.values.values())))
    about = {"standard_name": "realization", "long_name": "trajectory", "units": "1"}
    coords: dict[str, Any] = {
        "sample": ("sample", np.arange(samples), about),
        "time": ("time", made.times, dict(made.attrs)),
    }
    coords |= {name: ("sample", values) for name, values in made.coords.items()}
    clash = sorted(set(coords) & set(data))
    if clash:
        raise ModelError(
            f"a variable cannot be named {clash[0]!r} here",
            value=clash[0],
            remedy="rename the column",
        )
    return xr.Dataset(data, coords, {"source": summary}), summary


def _is_static(values: np.ndarray) -> bool:
    same = bool((values == values[:, :1]).all())
    return same and not bool((values[:, 0] == values[0, 0]).all())
