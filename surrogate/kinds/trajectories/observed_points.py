"""Observed points over a fan chart: filled where samples are conditioned on them, hollow after.

Which column observes which variable is recorded with samples that are conditioned on data; else
columns have the names of variables, or are said to observe one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.io.attributes import json_object
from surrogate.kinds.observed import RECORD
from surrogate.kinds.trajectories.date_formats import read_dates
from surrogate.kinds.trajectories.observations import STEP, as_frame, time_column
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


@dataclass(frozen=True)
class ObservedPoints:
    """Points of variables: times (n,) and values (n,) of each, and the last time conditioned on."""

    at: np.ndarray
    values: Mapping[str, np.ndarray]
    last: Any

    @classmethod
    def of(
        cls,
        data: xr.Dataset,
        observed: Any,
        columns: Mapping[str, str],
        time: str | None = None,
    ) -> ObservedPoints:
        """`columns`: what columns observe; `time`: the column of times."""
        frame = as_frame(observed)
        record = json_object(data.attrs.get(RECORD))
        known = record.get("time")
        when = time_column(frame, time or (known if known in frame else None))
        variables = {**(record.get("columns") or {}), **columns}
        shown = {variables.get(str(name), str(name)): str(name) for name in frame if name != when}
        grid = times(data)
        at = _times(frame[when], when, grid)
        last = grid[record["last_step"]] if isinstance(record.get("last_step"), int) else at.max()
        values = {
            name: np.asarray(frame[column], np.float64)
            for name, column in shown.items()
            if frame[column].dtype.kind in "iufb"
        }
        return cls(at, values, last)

    def draw(self, axes: Sequence[Axes], names: Sequence[str]) -> None:
        """The points of the variables that were observed, one Axes for each name."""
        for axis, name in zip(axes, names, strict=True):
            if name not in self.values:
                continue
            for some, edge, face in (
                (self.at <= self.last, "white", OBSERVED),
                (self.at > self.last, OBSERVED, "none"),
            ):
                if some.any():
                    axis.plot(
                        self.at[some],
                        self.values[name][some],
                        markeredgecolor=edge,
                        markerfacecolor=face,
                        **STYLE,
                    )


def draw_observed(
    axes: Sequence[Axes],
    names: Sequence[str],
    data: xr.Dataset,
    observed: Any,
    columns: Mapping[str, str],
    time: str | None = None,
) -> None:
    """Points of the variables that were observed, one Axes for each name; ModelError for none."""
    points = ObservedPoints.of(data, observed, columns, time)
    if not any(name in points.values for name in names):
        raise ModelError(
            "observed data need a time and one of the variables",
            value=[str(name) for name in as_frame(observed)],
            allowed=["time", *names],
            remedy=Action(
                "say what a column observes: observed_columns={'B': 'I'}",
                "say what a column observes: --map B=I",
            ),
        )
    points.draw(axes, names)


def _times(column: pd.Series[Any], name: str, grid: np.ndarray) -> np.ndarray:
    """The times (n,) on the axis of a grid: dates, numbers, or steps of it."""
    at, dated = np.asarray(column), grid.dtype.kind == "M"
    if name.lower() == STEP and at.dtype.kind in "iuf":
        on = np.isfinite(at) & (at >= 0) & (at < len(grid))
        moved = np.full(len(at), np.datetime64("NaT") if dated else np.nan, grid.dtype)
        moved[on] = grid[at[on].astype(int)]
        return moved
    if dated != (at.dtype.kind not in "iuf"):
        raise ModelError(
            f"{name} of the observed data holds {'numbers' if dated else 'dates'}, and the axis "
            f"{'dates' if dated else 'numbers'}",
            value=str(at[0]),
            remedy="give both as dates, or both as numbers",
        )
    return read_dates(pd.Series(at), name)[0] if dated and at.dtype.kind != "M" else at
