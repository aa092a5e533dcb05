"""Fan charts of trajectories: quantile bands, a few single trajectories, and the scenario: required
values as markers, forbidden ranges hatched."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.evaluation.weights import normalised_weights, weighted_quantiles
from surrogate.io.attributes import simulation
from surrogate.kinds import trajectories as package  # formulas load torch: only where needed
from surrogate.kinds.drawing import Drawing, drawing_of
from surrogate.kinds.trajectories.observed_points import draw_observed
from surrogate.kinds.trajectories.time_axis import times as times
from surrogate.reports.style import AGAINST, COLOURS, REQUIRED, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from surrogate.kinds.trajectories.requirements import Mark

BANDS = ((0.05, 0.95, 0.18), (0.25, 0.75, 0.30))
MAX_FIGURE_PANELS = 24  # of a figure in a file
MAX_PLOTTED = 20_000  # trajectories: quantiles of a figure need no more


def series(data: xr.Dataset) -> list[str]:
    """Names of the variables that are trajectories over (sample, time)."""
    names = [
        str(name)
        for name, array in data.data_vars.items()
        if set(array.dims) == {"sample", "time"} and array.dtype.kind in "iufb"
    ]
    # Zarr forgets the order of variables, the description of the network does not
    species = list((simulation(data.attrs).get("network") or {}).get("species") or [])
    return [name for name in species if name in names] + [n for n in names if n not in species]


def thinned(data: xr.Dataset, most: int = MAX_PLOTTED) -> xr.Dataset:
    """At most `most` samples, evenly spaced."""
    step = -(-data.sizes["sample"] // most)
    return data if step == 1 else data.isel(sample=slice(None, None, step))


def values(data: xr.Dataset, name: str) -> np.ndarray:
    """(n, T), float64."""
    return np.asarray(data[name].transpose("sample", "time").values, np.float64)


def fan_chart(
    data: xr.Dataset,
    names: Sequence[str] | None = None,
    *,
    against: xr.Dataset | None = None,
    trajectories: int = 40,
    title: str | None = None,
    marks: Sequence[Mark] | None = None,
    colour: str | None = None,
) -> Figure:
    """One panel per variable: median, 50 % and 90 % bands, and some single trajectories.

    `against`: a second dataset, drawn as dashed quantile lines. `marks`: what is required of the
    trajectories; None: the scenario that the data are labelled with. `colour`: of all panels; None:
    each its own. Samples count by their weight.
    """
    # the object interface: no window system, no global state
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = list(names) if names else series(data)
    required = _required(data) if marks is None else marks
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(4.6 * columns, 3.4 * rows), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    _panels(list(axes), data, shown, against, trajectories, required, colour)
    for axis in axes[len(shown) :]:
        axis.remove()
    if title is None:
        title = f"{data.sizes['sample']:,} trajectories: median, 50 % and 90 % bands"
        title += "" if against is None else "; dashed: median and 90 % of the other data"
        title += "; marked and shaded: what was required" if required else ""
    figure.suptitle(textwrap.fill(title, 50 * columns))
    return figure


def _panels(
    axes: Sequence[Axes],
    data: xr.Dataset,
    names: Sequence[str],
    against: xr.Dataset | None,
    trajectories: int,
    required: Sequence[Mark],
    colour: str | None = None,
) -> None:
    few = thinned(data)
    other = None if against is None else thinned(against)
    for axis, name, own in zip(axes, names, COLOURS * len(names), strict=False):
        _fan(axis, few, name, colour or own, trajectories)
        if other is not None and name in series(other):
            _outline(axis, other, name, times(data))
        _draw_scenario(axis, times(data), [mark for mark in required if mark.name == name])
        # a name from a file is not mathematics, whatever dollars it holds
        axis.set_title(
            short(name, 40), loc="left", fontweight="bold", fontsize=11, parse_math=False
        )
        axis.set_xlabel(_time_label(data), parse_math=False)
        axis.spines[["top", "right"]].set_visible(False)
        axis.margins(x=0.01)
        if times(data).dtype.kind == "M":
            _mark_dates(axis)


def plot(
    data: xr.Dataset,
    against: xr.Dataset | None = None,
    observed: xr.Dataset | pd.DataFrame | None = None,
    ax: Any = None,
    *,
    variables: Sequence[str] | None = None,
    trajectories: int = 40,
    constraints: bool = True,
    title: str | None = None,
    observed_columns: Mapping[str, str] | None = None,
    observed_time: str | None = None,
) -> Any:
    """A fan chart on new Axes, or on `ax`: an Axes for each variable.

    `observed`: points over the fan, with a time of their own; `observed_columns`: which of its
    columns observe which variable (see `observed_points`); `observed_time`: its column of times.
    `constraints`: whether the scenario that the data are labelled with is drawn.
    """
    names = _chosen(data, variables)
    required = _required(data) if constraints else ()
    if ax is None:
        figure = fan_chart(
            data, names, against=against, trajectories=trajectories, title=title, marks=required
        )
        axes = list(figure.axes)
    else:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) != len(names):
            raise ModelError(
                f"{len(names)} variables need as many Axes, not {len(axes)}",
                value=len(axes),
                allowed=names,
                remedy=("choose with ", Setting("variables")),
            )
        _panels(axes, data, names, against, trajectories, required)
    if observed is not None:
        draw_observed(axes, names, data, observed, observed_columns or {}, observed_time)
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


def drawing(
    data: xr.Dataset,
    against: xr.Dataset | None = None,
    observed: xr.Dataset | pd.DataFrame | None = None,
    *,
    variables: Sequence[str] | None = None,
    **options: Any,
) -> Drawing:
    """The figure of `plot` for a file; of many variables it shows the first."""
    have = series(data)
    names = _chosen(data, variables)
    if against is not None and not set(names) & set(series(against)):
        raise ModelError(
            f"the second dataset has none of {', '.join(names)}: nothing to compare",
            value=series(against),
            remedy="give one with the same variables",
        )
    shown = names if variables is not None else names[:MAX_FIGURE_PANELS]
    try:
        axes = plot(data, against, observed, variables=shown, **options)
    except (OSError, RuntimeError) as problem:  # a damaged file opens, and fails when it is read
        raise ModelError(f"cannot read the data: {problem}") from None
    left = f"the first {len(shown)} of {len(have)} variables" if len(shown) < len(names) else ""
    return drawing_of(np.ravel(axes)[0].figure, ", ".join(shown), (left,) if left else ())


def _chosen(data: xr.Dataset, variables: Sequence[str] | None) -> list[str]:
    have = series(data)
    names = have if variables is None else list(variables)
    for name in names:
        if name not in have:
            raise ModelError(f"unknown variable {name!r}", value=name, allowed=have)
    if not names:
        raise ModelError(
            "the data have no variables over (sample, time) that are numbers",
            value=[str(name) for name in data.data_vars],
            remedy="give trajectories over (sample, time)",
        )
    return names


def _fan(axis: Axes, data: xr.Dataset, name: str, colour: str, trajectories: int) -> None:
    grid, found, weight = times(data), values(data, name), normalised_weights(data)
    mark = "_" if len(grid) == 1 else None  # a single time has no lines to draw
    some = found[_evenly_spaced(len(found), weight, trajectories)]
    if len(some):
        axis.plot(grid, some.T, color=colour, alpha=0.16, linewidth=0.6, marker=mark)
    for low, high, alpha in BANDS:
        bottom, top = weighted_quantiles(found, [low, high], weight)
        axis.fill_between(grid, bottom, top, color=colour, alpha=alpha, linewidth=0)
    middle = weighted_quantiles(found, [0.5], weight)[0]
    axis.plot(grid, middle, color=colour, linewidth=2.0, marker=mark)


def _mark_dates(axis: Axes) -> None:
    """Ticks at days, months or years, whichever fit."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(maxticks=8)  # type: ignore[no-untyped-call]
    axis.xaxis.set_major_locator(locator)
    formatter = ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    axis.xaxis.set_major_formatter(formatter)


def _evenly_spaced(count: int, weight: np.ndarray | None, trajectories: int) -> np.ndarray:
    """Rows of a few trajectories: evenly spaced, or along the cumulative weight."""
    if weight is None:
        return np.arange(0, count, max(1, count // max(trajectories, 1)))[:trajectories]
    places = (np.arange(trajectories) + 0.5) / max(trajectories, 1)
    return np.minimum(np.searchsorted(np.cumsum(weight), places), count - 1)


def _outline(axis: Axes, data: xr.Dataset, name: str, shown: np.ndarray) -> None:
    """Dashed quantiles over the axis `shown`: dates and steps from a start are the same steps."""
    grid = times(data)
    grid = shown if grid.dtype.kind != shown.dtype.kind and len(grid) == len(shown) else grid
    lines = weighted_quantiles(values(data, name), [0.05, 0.5, 0.95], normalised_weights(data))
    for line, width in zip(lines, (0.8, 1.4, 0.8), strict=True):
        axis.plot(grid, line, color=AGAINST, linewidth=width, linestyle="--")


# --- the scenario ---------------------------------------------------------------------------------


def _required(data: xr.Dataset) -> Sequence[Mark]:
    if "surrogate_constraint" not in data.attrs:
        return ()
    found: Sequence[Mark] = package.requirements.marks_of(package.requirements.requirements(data))
    return found


def _draw_scenario(axis: Axes, grid: np.ndarray, marks: Sequence[Mark]) -> None:
    """Required values as markers (open: one of several alternatives), forbidden ranges hatched."""
    bounds = [mark for mark in marks if not mark.value]
    finite = [x for mark in marks for x in (mark.low, mark.high) if math.isfinite(x)]
    if finite:  # room for what lies beyond a bound
        low, high = axis.get_ylim()
        low, high = min(low, *finite), max(high, *finite)
        room = 0.08 * (high - low)
        up = any(math.isfinite(mark.high) and mark.high + room > high for mark in bounds)
        down = any(math.isfinite(mark.low) and mark.low - room < low for mark in bounds)
        axis.set_ylim(low - room * down, high + room * up)
    for mark in bounds:
        _bound(axis, grid, mark)
    for mark in marks:
        if mark.value:
            _value(axis, grid, mark)


def _value(axis: Axes, grid: np.ndarray, mark: Mark) -> None:
    when, middle = grid[mark.first], (mark.low + mark.high) / 2
    either = mark.kind == "either"
    if mark.high > mark.low:
        axis.errorbar(
            [when], [middle], [[middle - mark.low], [mark.high - middle]],
            fmt="none", color=REQUIRED, capsize=4, linewidth=1.4, zorder=5,
        )  # fmt: skip
    axis.plot(
        [when], [middle], marker="o", markersize=7, linestyle="none", zorder=6, clip_on=False,
        markerfacecolor="white" if either else REQUIRED,
        markeredgecolor=REQUIRED if either else "white", markeredgewidth=1.3,
    )  # fmt: skip


def _bound(axis: Axes, grid: np.ndarray, mark: Mark) -> None:
    left, right = grid[mark.first], grid[mark.last]
    if mark.first == mark.last and len(grid) > 1:  # half a step to either side
        before, after = grid[max(mark.first - 1, 0)], grid[min(mark.first + 1, len(grid) - 1)]
        left, right = left - (left - before) / 2, right + (after - right) / 2
    low, high = axis.get_ylim()
    some = mark.kind == "some"
    for edge, beyond in ((mark.low, low), (mark.high, high)):
        if not math.isfinite(edge):
            continue
        if some:  # dotted, with a caret towards the required side
            caret = 6 if edge == mark.low else 7  # up or down
            axis.plot(
                [left, left + (right - left) / 2, right], [edge] * 3, color=REQUIRED, linewidth=1.8,
                linestyle=":", marker=caret, markevery=[1], markersize=8,
            )  # fmt: skip
        else:
            axis.plot([left, right], [edge, edge], color=REQUIRED, linewidth=1.3)
            axis.fill_between(
                [left, right], edge, beyond,
                facecolor=(*_GREY, 0.13), edgecolor=(*_GREY, 0.5), hatch="////", linewidth=0,
            )  # fmt: skip
    axis.set_ylim(low, high)


_GREY = (0.35, 0.35, 0.35)


def _time_label(data: xr.Dataset) -> str:
    if times(data).dtype.kind == "M":
        return ""
    units = str(data["time"].attrs.get("units", "1")) if "time" in data.variables else "1"
    return "time" if units == "1" else f"time ({units})"
