"""The section of a report on what a trajectory has once: parameters, such as rates that were drawn.

Of samples given data it shows the posterior: a histogram of each parameter with the range that it
was drawn from as an outline, pairs of them, and credible intervals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from constraints.physics.rules import limits
from surrogate.evaluation.summary import summary
from surrogate.evaluation.weights import normalised_weights
from surrogate.io.attributes import simulation
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.trajectories.figures import Series, histogram_edges, shares, strip_axes
from surrogate.reports import figures
from surrogate.reports.facts import Facts
from surrogate.reports.markup import Html, figure, section, table
from surrogate.reports.style import AGAINST, COLOURS, NAME_ROOM, short
from surrogate.reports.wording import several, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_PAIRED = 5  # parameters of a pair plot
MAX_POINTS = 1_500  # of a panel
PANEL_INCHES = 1.9
INTERVALS = (("q5", "q95"), ("q2.5", "q97.5"))
CAPTION = "Diagonal: each parameter; below it: pairs."
PRIOR_CAPTION = " Grey outline: the range that simulations drew it from, evenly."
AGAINST_CAPTION = " Dark outline: the reference."


def names(data: xr.Dataset) -> list[str]:
    """Numbers that each trajectory has once, and that differ between trajectories."""
    return [
        str(name)
        for name, array in data.data_vars.items()
        if array.dims == ("sample",) and array.dtype.kind in "iuf" and name not in LABELS
        if np.ptp(array.values) > 0
    ]


def parameters(facts: Facts) -> list[Html]:
    """The section; empty without parameters."""
    content = facts.content
    found = names(content.data)
    if not found:
        return []
    ranges = limits(about) if (about := simulation(content.data.attrs)) else {}
    shown = found[:MAX_PAIRED]
    caption = CAPTION + (PRIOR_CAPTION if any(name in ranges for name in shown) else "")
    caption += AGAINST_CAPTION if content.against is not None else ""
    source = figures.drawn(pairs, content, shown, ranges)
    numbers = summary(content.data[[*found, *_weights(content.data)]])
    each = {str(row["variable"]): row for row in numbers.to_dict("records")}
    rows = [
        [
            name,
            *(f"{own[column]:.4g}" for column in ("mean", "sd", "q50")),
            *(f"{own[low]:.4g} to {own[high]:.4g}" for low, high in INTERVALS),
        ]
        for name, own in each.items()
    ]
    header = ["parameter", "mean", "sd", "median", "90 % interval", "95 % interval"]
    alt = f"Histograms and pairs of {several(shown)}"
    return section("Parameters", figure(source, shortened(alt), caption), table(rows, header))


def _weights(data: xr.Dataset) -> list[str]:
    return ["log_weight"] if "log_weight" in data else []


def pairs(content: Series, shown: list[str], ranges: dict[str, tuple[float, float]]) -> Figure:
    """Histograms on the diagonal, pairs below it."""
    count = len(shown)
    made = figures.blank(max(PANEL_INCHES * count, 2.6), PANEL_INCHES * count)
    axes = made.subplots(count, count, squeeze=False)
    for i, below in enumerate(shown):
        for j, across in enumerate(shown):
            axis = axes[i][j]
            if j > i:
                axis.set_visible(False)
            elif i == j:
                _histogram(axis, content, below, ranges.get(below), COLOURS[i % len(COLOURS)])
            else:
                _pair(axis, content, across, below)
            if i == count - 1:
                axis.set_xlabel(short(across, NAME_ROOM), fontweight="bold")
    return made


def _histogram(
    axis: Axes, content: Series, name: str, prior: tuple[float, float] | None, colour: str
) -> None:
    x = np.asarray(content.data[name].values, np.float64)
    other = content.against
    theirs = None if other is None or name not in other else np.asarray(other[name].values, float)
    every = np.concatenate([x, *([] if theirs is None else [theirs]), *([prior] if prior else [])])
    edges = histogram_edges(every, content.data[name].dtype.kind in "iu")
    weight = normalised_weights(content.data)
    axis.stairs(shares(x, edges, weight), edges, fill=True, color=colour, alpha=0.55)
    if prior is not None:
        even = np.diff(edges) / (prior[1] - prior[0])
        axis.stairs(even, edges, color="0.6", linewidth=1.0)
    if theirs is not None and other is not None:
        axis.stairs(shares(theirs, edges, normalised_weights(other)), edges, color=AGAINST)
    strip_axes(axis)


def _pair(axis: Axes, content: Series, across: str, below: str) -> None:
    weight = normalised_weights(content.data)
    count = content.data.sizes["sample"]
    some = np.linspace(0, count - 1, min(count, MAX_POINTS)).astype(int)
    if weight is not None:  # points of equal weight: each where the cumulated weight passes it
        even = (np.arange(len(some)) + 0.5) / len(some)
        some = np.searchsorted(np.cumsum(weight), even).clip(max=count - 1)
    x, y = (np.asarray(content.data[name].values, float)[some] for name in (across, below))
    axis.plot(x, y, ".", markersize=2, alpha=0.35, color=COLOURS[0], markeredgewidth=0)
    axis.spines[["top", "right"]].set_visible(False)
    axis.tick_params(labelsize=8)
