"""Figures of a report on trajectories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from surrogate.evaluation.result import Evaluation, Histograms
from surrogate.evaluation.weights import normalised_weights
from surrogate.kinds.trajectories.observed_points import ObservedPoints
from surrogate.kinds.trajectories.plot import fan_chart, series, values
from surrogate.kinds.trajectories.requirements import Mark
from surrogate.reports import figures
from surrogate.reports.style import AGAINST, COLOURS, NAME_ROOM, short
from surrogate.reports.wording import stamp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_BARS = 40  # of a histogram
HISTOGRAMS = 6  # for each variable
MAX_CORRELATED_COLUMNS = 240  # of a correlation matrix


@dataclass(frozen=True)
class Series:
    """Trajectories of a page, as many as figures need, and a reference.

    names: the variables, in order. grid: the times (T,). marks: what the scenario requires.
    observed: points over the fan charts. checks: observed numbers against predictive bands.
    """

    data: xr.Dataset
    names: list[str]
    grid: np.ndarray
    marks: tuple[Mark, ...]
    against: xr.Dataset | None = None
    evaluation: Evaluation | None = None
    observed: ObservedPoints | None = None
    checks: Sequence[Any] = ()


def colour_of(content: Series, name: str) -> str:
    return COLOURS[content.names.index(name) % len(COLOURS)]


# --- trajectories ---------------------------------------------------------------------------------


def fan(content: Series, name: str) -> Figure:
    """The fan chart of one variable with its part of the scenario."""
    marks = content.marks
    made = fan_chart(
        content.data,
        [name],
        against=content.against,
        trajectories=25,
        title="",
        marks=marks,
        colour=colour_of(content, name),
    )
    if content.observed is not None:
        content.observed.draw(made.axes, [name])
    return made


def shown_steps(count: int, marks: Sequence[Mark], most: int = HISTOGRAMS) -> list[int]:
    """Steps to plot: the first, the last, those with required values, and some between."""
    chosen = sorted({0, count - 1} | {mark.first for mark in marks if mark.value})
    if len(chosen) > most:
        chosen = [chosen[k] for k in np.linspace(0, len(chosen) - 1, most).round().astype(int)]
    while len(chosen) < min(most, count):
        gaps = np.abs(np.arange(count)[:, None] - np.array(chosen)).min(1)
        chosen.append(int(gaps.argmax()))
    return sorted(chosen)


def marginals(content: Series, name: str, steps: Sequence[int]) -> Figure:
    """Histograms of one variable at a few steps, the reference as an outline."""
    figure = figures.blank(1.85 * HISTOGRAMS, 1.95)
    axes = figure.subplots(1, HISTOGRAMS, squeeze=False)[0]
    found = _histograms(content.evaluation, name)
    other = (
        content.against if content.against is not None and name in series(content.against) else None
    )
    mine = values(content.data, name)
    theirs = None if other is None else values(other, name)
    whole = content.data[name].dtype.kind in "iub"
    for axis, step in zip(axes, steps, strict=False):
        x, y = mine[:, step], np.empty(0) if theirs is None else theirs[:, step]
        edges = histogram_edges(np.concatenate([x, y]), whole)
        axis.stairs(
            shares(x, edges, normalised_weights(content.data)),
            edges,
            fill=True,
            color=colour_of(content, name),
            alpha=0.55,
        )
        if other is not None:
            outline = shares(y, edges, normalised_weights(other))
            axis.stairs(outline, edges, color=AGAINST, linewidth=1.2)
        title = f"time {stamp(content.grid, step)}"
        if found is not None:
            distance, floor = found.steps[step], found.floors[step]
            same = "all the same in both"
            title += f"\nD {distance:.3f}, noise {floor:.3f}" if distance or floor else f"\n{same}"
        axis.set_title(title, fontsize=8.5, loc="left")
        strip_axes(axis)
    for axis in axes[len(steps) :]:
        axis.set_visible(False)
    axes[0].set_ylabel(
        short(name, NAME_ROOM), fontweight="bold", rotation=0, labelpad=10, fontsize=11
    )
    return figure


def strip_axes(axis: Axes) -> None:
    """Axes of a histogram: values, no shares."""
    from matplotlib.ticker import MaxNLocator

    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.set_yticks([])
    axis.xaxis.set_major_locator(MaxNLocator(3))
    axis.tick_params(labelsize=8)


def _histograms(found: Evaluation | None, name: str) -> Histograms | None:
    if found is None:
        return None
    return next((each for each in found.variables if each.name == name), None)


def histogram_edges(both: np.ndarray, whole: bool) -> np.ndarray:
    """Bins of a histogram: unit ones for counts, unless that makes too many."""
    known = both[np.isfinite(both)]
    if not known.size:
        return np.array([0.0, 1.0])
    low, high = float(known.min()), float(known.max())
    if whole:
        width = max(1.0, np.ceil((high - low + 1) / MAX_BARS))
        few = 5.0 if high - low < 5 else 0.0  # a single value is a bar, not a wall
        start = max(low - few, min(low, 0.0))
        count = np.ceil((high + few - start + 1) / width)
        return np.asarray(start - 0.5 + width * np.arange(count + 1))
    if low == high:
        low, high = low - 0.5 * (abs(low) or 1.0), high + 0.5 * (abs(high) or 1.0)
    return np.linspace(low, high, 31)


def shares(x: np.ndarray, edges: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    known = np.isfinite(x)
    given = None if weight is None else weight[known]
    counts = np.histogram(x[known], edges, weights=given)[0].astype(np.float64)
    return np.asarray(counts / (counts.sum() or 1.0))


# --- against the reference ------------------------------------------------------------------------


def over_time(content: Series) -> list[Histograms]:
    """The distances at each step."""
    found = content.evaluation
    return [each for each in found.variables if each.name in content.names] if found else []


def distance_heatmap(content: Series) -> Figure:
    """D over its noise floor for each variable and step; blank where neither dataset varies."""
    from matplotlib.colors import LinearSegmentedColormap

    shown = over_time(content)
    distance, floor = (np.array([getattr(each, k) for each in shown]) for k in ("steps", "floors"))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = distance / floor
    ratio = np.ma.masked_invalid(np.where(np.isinf(ratio), 99.0, ratio))
    figure = figures.blank(11, 1.05 + 0.42 * len(shown))
    axis = figure.subplots()
    scale = LinearSegmentedColormap.from_list(
        "noise",
        [(0.0, "#d9ead9"), (0.3, "#e3efcf"), (0.5, "#f6d77a"), (0.75, "#dd7a3c"), (1.0, "#8f1d1d")],
    )
    picture = axis.imshow(ratio, aspect="auto", cmap=scale, vmin=0, vmax=4, interpolation="nearest")
    axis.set_yticks(
        range(len(shown)), [short(each.name, NAME_ROOM) for each in shown], fontweight="bold"
    )
    ticks = np.unique(np.linspace(0, len(content.grid) - 1, 9).round().astype(int))
    axis.set_xticks(ticks, [stamp(content.grid, step) for step in ticks])
    axis.set_xlabel("time")
    axis.spines[:].set_visible(False)
    axis.set_yticks(np.arange(len(shown) - 1) + 0.5, minor=True)
    axis.grid(which="minor", axis="y", color="#ffffff", linewidth=2)
    axis.tick_params(which="both", length=0)
    bar = figure.colorbar(picture, ax=axis, pad=0.01, aspect=8, ticks=[0, 1, 2, 3, 4])
    bar.ax.set_yticklabels(["0", "1 = noise", "2", "3", "4 and more"], fontsize=8)
    bar.outline.set_visible(False)
    return figure


# --- correlations ---------------------------------------------------------------------------------


def correlations(content: Series) -> Figure:
    """Correlations of variables and times; with a reference, its own and the difference."""
    names = [n for n in content.names if content.against is None or n in series(content.against)]
    names = names[: MAX_CORRELATED_COLUMNS // 2]
    count = len(content.grid)
    steps = np.unique(
        np.linspace(0, count - 1, min(count, max(2, MAX_CORRELATED_COLUMNS // len(names)))).astype(
            int
        )
    )
    sides = [("samples" if content.against is not None else "", content.data)]
    sides += [] if content.against is None else [("reference", content.against)]
    found = [
        (
            title,
            correlation(
                np.concatenate([values(side, n)[:, steps] for n in names], 1),
                normalised_weights(side),
            ),
        )
        for title, side in sides
    ]
    panels = [(title, matrix, 1.0) for title, matrix in found]
    if len(found) == 2:
        panels.append(("difference", found[0][1] - found[1][1], 0.5))
    figure = figures.blank(3.8 * len(panels) - 0.3 * (len(panels) == 1), 3.5)
    for axis, (title, matrix, limit) in zip(
        figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        picture = axis.imshow(
            matrix, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
        )
        axis.set_title(title, fontsize=10)
        middle = [(k + 0.5) * len(steps) - 0.5 for k in range(len(names))]
        labels = [short(name, NAME_ROOM) for name in names]
        axis.set_xticks(middle, labels, rotation=0 if len("".join(labels)) < 24 else 90)
        axis.set_yticks(middle, labels)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        for k in range(1, len(names)):
            axis.axhline(k * len(steps) - 0.5, color=figures.INK, linewidth=0.5)
            axis.axvline(k * len(steps) - 0.5, color=figures.INK, linewidth=0.5)
        bar = figure.colorbar(picture, ax=axis, shrink=0.8, pad=0.02, ticks=[-limit, 0, limit])
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, length=0)
    return figure


def correlation(x: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Correlations (d, d) of columns (n, d); 0 where a column is constant or not finite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = np.atleast_2d(np.cov(x, rowvar=False, aweights=weight, bias=True))
        scale = np.sqrt(np.diag(covariance))
        found = covariance / np.outer(scale, scale)
    return np.asarray(np.clip(np.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0), -1, 1))
