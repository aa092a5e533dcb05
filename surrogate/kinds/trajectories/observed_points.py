"""Observed points over a fan chart: filled where samples are conditioned on them, hollow after.

Which column observes which variable is recorded with samples that are conditioned on data; else
columns have the names of variables, or are said to observe one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.io.attributes import json_object
from surrogate.kinds.observed import RECORD
from surrogate.kinds.trajectories.date_formats import read_dates
from surrogate.kinds.trajectories.observations import as_frame, time_column
from surrogate.kinds.trajectories.time_axis import times
from surrogate.reports.style import OBSERVED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLE: dict[str, Any] = {
    "marker": "o",
    "markersize": 5,
    "linestyle": "none",
    "color": OBSERVED,
    "zorder": 7,
}


def draw_observed(
    axes: Sequence[Axes],
    names: Sequence[str],
    data: xr.Dataset,
    observed: Any,
    columns: Mapping[str, str],
) -> None:
    """Points of the variables that were observed, one Axes for each name."""
    frame = as_frame(observed)
    record = json_object(data.attrs.get(RECORD))
    when = record.get("time")
    when = time_column(frame, when if when in frame else None)
    variables = {**(record.get("columns") or {}), **columns}
    shown = {variables.get(str(column), str(column)): str(column) for column in frame}
    shared = [name for name in names if name in shown]
    if not shared:
        raise ModelError(
            "observed data need a time and one of the variables",
            value=[str(name) for name in frame],
            allowed=["time", *names],
            remedy=Action(
                "say what a column observes: observed_columns={'B': 'I'}",
                "say what a column observes: --map B=I",
            ),
        )
    grid = times(data)
    at = _times(frame[when], when, grid.dtype.kind == "M")
    last = grid[record["last_step"]] if isinstance(record.get("last_step"), int) else at.max()
    for axis, name in zip(axes, names, strict=True):
        if name in shared:
            values = np.asarray(frame[shown[name]], np.float64)
            for some, edge, face in (
                (at <= last, "white", OBSERVED),
                (at > last, OBSERVED, "none"),
            ):
                if some.any():
                    axis.plot(
                        at[some],
                        values[some],
                        markeredgecolor=edge,
                        markerfacecolor=face,
                        **STYLE,
                    )


def _times(column: pd.Series[Any], name: str, dated: bool) -> np.ndarray:
    at = np.asarray(column)
    if dated != (at.dtype.kind not in "iuf"):
        raise ModelError(
            f"{name} of the observed data holds {'numbers' if dated else 'dates'}, and the axis "
            f"{'dates' if dated else 'numbers'}",
            value=str(at[0]),
            remedy="give both as dates, or both as numbers",
        )
    return read_dates(pd.Series(at), name)[0] if dated and at.dtype.kind != "M" else at
