"""Histograms of the columns of a table, with those of a reference as outlines.

A panel has bars 0, 1, 2, ...: bins of numbers or dates, or the most frequent words; missing values
have a bar of their own. Every value is in one bar: the outermost bins include the tails, and one
bar collects the rarer words.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from constraints.errors import Setting
from surrogate.errors import ModelError, unknown_name
from surrogate.evaluation.weights import Array
from surrogate.kinds.drawing import Drawing, drawing_of
from surrogate.kinds.signals import Data
from surrogate.kinds.tables.align import Column, Rows, shared_columns
from surrogate.reports.style import AGAINST, COLOURS, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_FIGURE_COLUMNS = 24  # panels of a figure in a file
HISTOGRAM_BINS = 30
MAX_INTEGER_BARS = 40  # range of integers with a bar each
MAX_WORD_BARS = 8
TAIL_RATIO = 4.0  # range over middle 98 %, from which tails are clipped
PANELS_PER_ROW = 4
MISSING_LABEL = "missing"


@dataclass(frozen=True)
class Bars:
    """Shares (bars,) per table; `labels` {position on the axis, in bars: text}."""

    shares: tuple[Array, ...]
    labels: Mapping[float, str]
    words: bool = False


def bars(column: Column, weights: Sequence[Array]) -> Bars:
    """The bars of a column; they add up to 1 in each table, with weights (n,)."""
    if column.kind == "word":
        codes, labels = _word_bars(column)
    else:
        codes, labels = _number_bars(column)
    count = 1 + max(int(max(each.max(initial=0) for each in codes)), int(max(labels, default=0)))
    if column.has_missing:
        count += 1 if column.kind == "word" else 2  # with a gap between
        labels = {**labels, count - 1: MISSING_LABEL}
        codes = [np.where(each < 0, count - 1, each) for each in codes]
    shares = [np.bincount(each, w, count) / w.sum() for each, w in zip(codes, weights, strict=True)]
    return Bars(tuple(shares), labels, column.kind == "word")


def _word_bars(column: Column) -> tuple[list[np.ndarray], dict[float, str]]:
    """Bars of the most frequent words of all tables; the others share one."""
    often = sum(
        np.bincount(side[~np.isnan(side)].astype(np.int64), minlength=len(column.words))
        / max(1, len(side))
        for side in column.sides
    )
    order = np.argsort(-np.asarray(often), kind="stable")
    shown = order if len(order) <= MAX_WORD_BARS + 1 else order[:MAX_WORD_BARS]
    place = np.full(len(order), len(shown))
    place[shown] = np.arange(len(shown))
    labels: dict[float, str] = {k: short(column.words[w], 16) for k, w in enumerate(shown)}
    if len(shown) < len(order):
        labels[len(shown)] = f"{len(order) - len(shown):,} others"
    codes = [
        np.where(np.isnan(side), -1, place[np.nan_to_num(side, nan=0.0).astype(np.int64)])
        for side in column.sides
    ]
    return codes, labels


def _number_bars(column: Column) -> tuple[list[np.ndarray], dict[float, str]]:
    """Bins over the range of all tables, long tails clipped."""
    rescaled = column.rescaled()
    both = np.concatenate(rescaled.sides)
    known = both[~np.isnan(both)]
    if not known.size:
        return [np.full(len(side), -1) for side in rescaled.sides], {}
    low, high = _plot_range(known)
    one = column.integral and rescaled is column and high - low < MAX_INTEGER_BARS
    count = round(high - low) + 1 if one else 1 if low == high else HISTOGRAM_BINS
    width = 1.0 if one else (high - low) / count or 1.0
    start = low - 0.5 if one else low
    codes = []
    for side in rescaled.sides:
        place = np.floor((np.nan_to_num(side, nan=low) - start) / width)
        codes.append(np.where(np.isnan(side), -1, np.clip(place, 0, count - 1)).astype(np.int64))
    places = _ticks(low, high, count == 1)
    labels = {(at - start) / width - 0.5: _tick_text(column, at, high - low) for at in places}
    return codes, {0.0: next(iter(labels.values()))} if count == 1 else labels


def _plot_range(known: Array) -> tuple[float, float]:
    low, high = float(known.min()), float(known.max())
    first, last = (float(each) for each in np.quantile(known, [0.01, 0.99]))
    if last > first and high - low > TAIL_RATIO * (last - first):
        return first, last
    return low, high


def _ticks(low: float, high: float, single: bool) -> list[float]:
    from matplotlib.ticker import MaxNLocator

    if single:
        return [low]
    found = [float(t) for t in MaxNLocator(3).tick_values(low, high) if low <= t <= high]
    return found or [low, high]


def _tick_text(column: Column, at: float, span: float) -> str:
    """A value of the rescaled column, in the original unit."""
    if column.kind == "date":
        unit = "D" if span > 3 * 86_400 else "s"
        return str(np.datetime64(int(at), "s").astype(f"datetime64[{unit}]")).replace("T", " ")
    value = float(np.ldexp(at, column.exponent))
    return f"{value:,.6g}" if 1e-4 <= abs(value) < 1e6 or not value else f"{value:.3g}"


def small_multiples(
    columns: Sequence[Column],
    weights: Sequence[Array],
    *,
    notes: Mapping[str, str] | None = None,
    title: str | None = None,
) -> Figure:
    """A panel for each column: the samples filled, a reference (if there is one) as an outline.

    `notes`: what to say of a column below its name.
    """
    # the object interface: no window system, no global state
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    across = min(PANELS_PER_ROW, len(columns))
    down = -(-len(columns) // across)
    figure = Figure(figsize=(max(2.75 * across, 4.5), 2.05 * down), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for k, (axis, column) in enumerate(zip(axes, columns, strict=False)):
        _panel(axis, bars(column, weights), COLOURS[k % len(COLOURS)])
        note = (notes or {}).get(column.name)
        # a name from a file is not mathematics, whatever dollars it holds
        axis.set_title(
            short(column.name, 30) + (f"\n{note}" if note else ""),
            loc="left",
            fontsize=8.5,
            parse_math=False,
        )
    for axis in axes[len(columns) :]:
        axis.remove()
    if title:
        figure.suptitle(textwrap.fill(title, 30 * across), fontsize=10, parse_math=False)
    return figure


def plot(
    data: Data,
    against: Data | None = None,
    ax: Any = None,
    *,
    columns: Sequence[str] | None = None,
    title: str | None = None,
) -> Any:
    """A panel for each column on new Axes, or on `ax`: an Axes for each column."""
    tables = [Rows(data, "the data", least=1)]
    tables += [] if against is None else [Rows(against, "the other data", least=1)]
    shown, _ = shared_columns(*tables)
    have = {each.name: each for each in shown}
    for name in columns or ():
        if name not in have:
            raise unknown_name("column", name, have)
    chosen = shown if columns is None else [have[name] for name in columns]
    weights = [table.weights for table in tables]
    if ax is None:
        axes = list(small_multiples(chosen, weights, title=title).axes)
    else:
        axes = list(np.ravel(np.asarray(ax, dtype=object)))
        if len(axes) != len(chosen):
            raise ModelError(
                f"{len(chosen)} columns need as many Axes, not {len(axes)}",
                value=len(axes),
                remedy=("choose with ", Setting("columns")),
            )
        for k, (axis, column) in enumerate(zip(axes, chosen, strict=True)):
            _panel(axis, bars(column, weights), COLOURS[k % len(COLOURS)])
            axis.set_title(short(column.name, 30), loc="left", fontsize=8.5, parse_math=False)
    return axes[0] if len(axes) == 1 else np.array(axes, dtype=object)


def drawing(
    data: Data,
    against: Data | None = None,
    *,
    columns: Sequence[str] | None = None,
    title: str | None = None,
) -> Drawing:
    """The figure of `plot` for a file; of many columns it shows the first."""
    tables = [Rows(data, "the data", least=1)]
    tables += [] if against is None else [Rows(against, "the other data", least=1)]
    common, lone = shared_columns(*tables)
    have = [each.name for each in common]
    names = list(columns) if columns is not None else have[:MAX_FIGURE_COLUMNS]
    if title is None:
        title = f"{tables[0].count:,} rows"
        title += "" if against is None else f"; outlines: {tables[1].count:,} other rows"
    axes = plot(data, against, columns=names, title=title)
    notes = [f"only on one side, and so not drawn: {', '.join(lone)}"] if lone else []
    if columns is None and len(have) > len(names):
        notes.append(f"the first {len(names)} of {len(have)} columns")
    return drawing_of(np.ravel(axes)[0].figure, ", ".join(names), tuple(notes))


def _panel(axis: Axes, found: Bars, colour: str) -> None:
    count = len(found.shares[0])
    edges = np.arange(count + 1) - 0.5
    way = {"orientation": "horizontal"} if found.words else {}
    axis.stairs(found.shares[0], edges, fill=True, color=colour, alpha=0.55, **way)  # type: ignore[arg-type]
    if len(found.shares) > 1:
        axis.stairs(found.shares[1], edges, color=AGAINST, linewidth=1.2, **way)  # type: ignore[arg-type]
    places, texts = list(found.labels), [found.labels[k] for k in found.labels]
    axis.spines[["top", "right"]].set_visible(False)
    if found.words:
        axis.set_yticks(places, texts, fontsize=7.5, parse_math=False)
        axis.set_ylim(max(count, 4) - 0.4, -0.6)  # a single word is a bar, not a wall
        axis.set_xticks([])
        axis.spines[["bottom"]].set_visible(False)
    else:
        axis.set_xticks(places, texts, fontsize=7.5, parse_math=False)
        room = max(0, 7 - count) / 2
        axis.set_xlim(-0.7 - room, count - 0.3 + room)
        axis.set_yticks([])
        axis.spines[["left"]].set_visible(False)
    axis.tick_params(length=2)
