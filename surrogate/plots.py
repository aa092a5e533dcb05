"""Pictures of trajectories: fan charts with a few trajectories behind the bands."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#2d6a9f", "#c8553d", "#4b8f5c", "#8a5a9e", "#b8862b", "#4a4a4a")
AGAINST = "#3a3a3a"
BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.30))
MOST = 20_000  # trajectories looked at: quantiles of a picture need no more


def series(data: xr.Dataset) -> list[str]:
    """Names of the variables that are trajectories over (sample, time)."""
    names = [
        str(name)
        for name, array in data.data_vars.items()
        if array.dims == ("sample", "time") and array.dtype.kind in "iufb"
    ]
    try:  # Zarr forgets the order of variables, the description of the network does not
        species = list(json.loads(data.attrs["surrogate_config"])["network"]["species"])
    except (KeyError, TypeError, ValueError):
        return names
    return [name for name in species if name in names] + [n for n in names if n not in species]


def fan_chart(
    data: xr.Dataset,
    names: Sequence[str] | None = None,
    *,
    against: xr.Dataset | None = None,
    trajectories: int = 40,
    title: str | None = None,
) -> Figure:
    """One panel per variable: median, 50 % and 90 % bands, and some single trajectories.

    `against`: a second dataset, drawn as dashed quantile lines.
    """
    # the object interface: no window system, no global state
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = list(names) if names else series(data)
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, name, colour in zip(axes, shown, COLOURS * len(shown), strict=False):
        _fan(axis, data, name, colour, trajectories)
        if against is not None and name in series(against):
            _outline(axis, against, name)
        axis.set_title(name, loc="left", fontweight="bold", fontsize=11)
        axis.set_xlabel(_time_label(data))
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.01)
    for axis in axes[len(shown) :]:
        axis.remove()
    heading = f"{data.sizes['sample']:,} trajectories: median, 50 % and 90 % bands"
    if against is not None:
        heading += "; dashed: median and 90 % of the other data"
    figure.suptitle(title or heading)
    return figure


def _values(data: xr.Dataset, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Times (T,) and at most MOST trajectories (n, T), evenly taken, float64."""
    step = max(1, data.sizes["sample"] // MOST)
    chosen = data[name].isel(sample=slice(None, None, step))
    return np.asarray(data["time"].values, np.float64), np.asarray(chosen.values, np.float64)


def _fan(axis: Axes, data: xr.Dataset, name: str, colour: str, trajectories: int) -> None:
    times, values = _values(data, name)
    few = values[:: max(1, len(values) // max(trajectories, 1))][:trajectories]
    mark = "_" if len(times) == 1 else None  # a single time has no lines to draw
    axis.plot(times, few.T, color=colour, alpha=0.16, linewidth=0.6, marker=mark)
    for low, high, alpha in BANDS:
        bottom, top = _quantiles(values, [low, high])
        axis.fill_between(times, bottom, top, color=colour, alpha=alpha, linewidth=0)
    axis.plot(times, _quantiles(values, [0.5])[0], color=colour, linewidth=2.0, marker=mark)


def _outline(axis: Axes, data: xr.Dataset, name: str) -> None:
    times, values = _values(data, name)
    for quantile, width in ((0.05, 0.8), (0.5, 1.4), (0.95, 0.8)):
        line = _quantiles(values, [quantile])[0]
        axis.plot(times, line, color=AGAINST, linewidth=width, linestyle="--")


def _quantiles(values: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Quantiles over trajectories, shape (len(levels), T); NaN where nothing is known."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanquantile(values, levels, axis=0))


def _time_label(data: xr.Dataset) -> str:
    units = str(data["time"].attrs.get("units", "1"))
    return "time" if units == "1" else f"time ({units})"
