"""Figures of a calibration: coverage, and the ECDF of the ranks of each quantity less the diagonal.

Grey bands hold all of an ECDF of uniform ranks with 95 % probability (`evaluation.ranks`). Above
the band on the left and below it on the right: samples are too narrow; a hill: too high; a valley:
too low.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from surrogate.evaluation.ranks import ecdf_band
from surrogate.reports.figures import blank
from surrogate.reports.style import COLOURS, NAME_ROOM, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from surrogate.calibration.result import Calibration

MAX_PANELS = 11  # of quantities, the worst ones first
COLUMNS = 4
PANEL_WIDTH, PANEL_HEIGHT = 2.4, 2.1  # inches
COVERAGE_LEVELS = np.linspace(0.05, 0.95, 19)
WORST_COLOUR, LINE_COLOUR, BAND_COLOUR = COLOURS[1], COLOURS[0], "#8795a3"


def figure(found: Calibration) -> Figure:
    """A panel of coverage, and one of each quantity."""
    ranked = sorted(found.found, key=lambda each: each.uniform.p_value)[:MAX_PANELS]
    shown = [each for each in found.found if each in ranked]
    rows = math.ceil((len(shown) + 1) / COLUMNS)
    columns = min(COLUMNS, len(shown) + 1)
    made = blank(PANEL_WIDTH * columns, PANEL_HEIGHT * rows)
    places = np.ravel(made.subplots(rows, columns, squeeze=False))
    _coverage(places[0], found)
    tested = len(found.found)
    for ax, each in zip(places[1:], shown, strict=False):
        colour = LINE_COLOUR if each.level(tested) == "good" else WORST_COLOUR
        _ranks(ax, found.ranks_of(each.name), colour)
        ax.set_title(short(each.name, 2 * NAME_ROOM), fontsize="medium")
    for ax in places[len(shown) + 1 :]:
        ax.set_axis_off()
    return made


def _coverage(ax: Axes, found: Calibration) -> None:
    ranks = found.ranks.loc[found.ranks["rank"].notna(), ["replicate", "rank"]]
    off = (ranks["rank"] - 0.5).abs().to_numpy()
    inside = off[:, None] <= COVERAGE_LEVELS / 2
    frame = ranks.assign(**{str(k): inside[:, k] for k in range(len(COVERAGE_LEVELS))})
    by_replicate = frame.drop(columns="rank").groupby("replicate").mean()
    mean = by_replicate.mean().to_numpy()
    error = by_replicate.std().to_numpy() / math.sqrt(max(len(by_replicate), 1))
    ax.plot([0, 100], [0, 100], color=BAND_COLOUR, lw=0.8, ls="--")
    ends = 100 * (mean - 2 * error), 100 * (mean + 2 * error)
    ax.fill_between(100 * COVERAGE_LEVELS, *ends, color=LINE_COLOUR, alpha=0.25, lw=0)
    ax.plot(100 * COVERAGE_LEVELS, 100 * mean, color=LINE_COLOUR)
    ax.set(xlim=(0, 100), ylim=(0, 100))
    ax.set_title("% of truths in % intervals", fontsize="medium")


def _ranks(ax: Axes, u: np.ndarray, colour: str) -> None:
    if len(u) < 2:  # which have no band
        return
    z, low, high = ecdf_band(len(u))
    ax.fill_between(z, low - z, high - z, color=BAND_COLOUR, alpha=0.3, lw=0, step="mid")
    ordered = np.sort(u)
    steps = np.repeat(np.arange(len(u) + 1) / len(u), 2)[1:-1]
    at = np.repeat(ordered, 2)
    ax.plot([0, *at, 1], [0, *(steps - at), 0], color=colour, lw=1.2)
    ax.axhline(0, color=BAND_COLOUR, lw=0.6)
    reach = max(0.1, 1.1 * float(np.abs(steps - at).max()), 1.1 * float((high - z).max()))
    ax.set(xlim=(0, 1), ylim=(-reach, reach), xticks=[0, 0.5, 1])
