"""The sections of a page about a table: its columns, what goes together, whether rows were
memorised and what can be learned from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from surrogate.evaluation.result import Evaluation
from surrogate.kinds.tables.association import affordable, arranged, features
from surrogate.kinds.tables.plot import small_multiples
from surrogate.kinds.tables.privacy import NEAREST, Privacy
from surrogate.kinds.trajectories.plot import AGAINST, COLOURS, short
from surrogate.reports import figures as pictures
from surrogate.reports.facts import Facts, Table
from surrogate.reports.markup import Html, element, figure, section, table
from surrogate.reports.wording import several, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS = 24  # columns in a picture
PAIRED = 40  # columns of a heat map
MOST = 96  # columns that are drawn at all
ALONE = "Each panel shows how the values of a column are spread."
COMPARED = (
    "Filled: these rows; outline: the reference. D is the share of the rows that would have to "
    "change to turn one into the other; noise is the D that chance alone makes between two sets of "
    "real rows of these sizes."
)
ENDS = " The outermost bars hold what lies beyond; “others” are the rarer words."
FIGURES = (
    "A ratio of 1 is as close as these numbers of rows can tell. The classifier tries to tell rows "
    "from the reference: 0.5 is guessing."
)
PAIRS = (
    "Two columns of numbers: their correlation (red: they rise and fall together, blue: one rises "
    "when the other falls). A number and a word: the correlation ratio. Two words: Cramér's V. The "
    "last two run from 0 to 1."
)
NEAREST_ROWS = (
    "The distance of each row to the nearest row that was learned from; filled: these rows, "
    "outline: {real}. Rows that were memorised pile up at 0, beyond what real rows do."
)
USEFUL = (
    "The same trees learn to predict {target} from {learned:,} of these rows and from as many real "
    "ones, and are tested on {tested:,} real rows that neither saw. The error is that of the "
    "difference."
)


def columns(facts: Facts) -> list[Html]:
    """How each column is spread, and how far it is from the reference."""
    if facts.table is None:
        return []
    shown = facts.table.columns[:MOST]
    made: list[Html] = []
    for start in range(0, len(shown), PANELS):
        part = shown[start : start + PANELS]
        alt = f"How the values are spread: {several([each.name for each in part])}"
        alt += "" if facts.evaluation is None else ", with the reference as an outline"
        source = pictures.drawn(_panels, facts, start, start + len(part))
        made.append(figure(source, shortened(alt), class_="wide"))
    caption = (ALONE if facts.evaluation is None else COMPARED) + ENDS
    if facts.weight is not None:
        caption += " Rows count by their weight."
    if len(facts.table.columns) > MOST:
        caption += f" The first {MOST} of {len(facts.table.columns)} columns are shown."
    made.append(element("p", caption, class_="note"))
    if facts.evaluation is None:
        return section("The columns", *made)
    return section("Against the reference", *made, *_figures(facts, facts.evaluation))


def _panels(facts: Facts, first: int, last: int) -> Figure:
    notes = {}
    for each in facts.evaluation.variables if facts.evaluation is not None else ():
        distance, floor = each.max.value, each.max.floor
        same = "all the same in both"
        notes[each.name] = f"D {distance:.3f}, noise {floor:.3f}" if distance or floor else same
    rows = facts.table or Table((), ())
    return small_multiples(rows.columns[first:last], rows.weights, notes=notes)


def _figures(facts: Facts, found: Evaluation) -> list[Html]:
    made = [
        element("h3", "In figures"),
        table(found.rows(), ("measure", "value", "noise floor", "ratio", "")),
        element("p", FIGURES, class_="note"),
    ]
    if found.lone:
        lone = f"Only on one side, and so not compared: {several(found.lone)}."
        made.append(element("p", shortened(lone), class_="note"))
    return made


# --- pairs ----------------------------------------------------------------------------------------


def pairs(facts: Facts) -> list[Html]:
    """What goes together: these rows, the reference, and the difference."""
    if facts.table is None or len(facts.table.columns) < 2 or facts.samples < 2:
        return []
    caption, found = PAIRS, facts.evaluation
    if found is not None and found.contingency is not None:
        value, floor, ratio = found.contingency.cells()
        caption += f" D of pairs of columns {value}, noise {floor}: {ratio} times the noise."
    if len(facts.table.columns) > PAIRED:
        caption += f" The first {PAIRED} of {len(facts.table.columns)} columns are shown."
    alt = f"What goes together of {several(facts.names[:PAIRED])}"
    alt += "" if facts.against is None else ": these rows, the reference and their difference"
    source = pictures.drawn(_pairs, facts.table)
    class_ = None if facts.against is None else "wide"
    return section("What goes together", figure(source, shortened(alt), caption, class_))


def associations(rows: Table) -> tuple[list[str], list[np.ndarray]]:
    """Names of columns, numbers first, and r, η or V of every two of each side, (d, d)."""
    most = affordable(rows.columns)
    some = [np.arange(min(len(each), most)) for each in rows.weights]
    few = arranged([each.some(some) for each in rows.columns])
    measure, sides = features(few)
    found = [
        measure.coefficients(measure.sums(side, weight[: len(side)]))
        for side, weight in zip(sides, rows.weights, strict=True)
    ]
    return [each.name for each in few], found


def _pairs(rows: Table) -> Figure:
    names, found = associations(Table(rows.columns[:PAIRED], rows.weights))
    panels = [("these rows" if len(found) > 1 else "", found[0], 1.0)]
    if len(found) > 1:
        panels.append(("reference", found[1], 1.0))
        panels.append(("difference", found[0] - found[1], 0.5))
    size = 3.5 if len(names) < 20 else 4.4
    made = pictures.blank((size + 0.3) * len(panels), size)
    for axis, (title, matrix, limit) in zip(
        made.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        shown = np.where(np.eye(len(names), dtype=bool), np.nan, matrix)
        picture = axis.imshow(
            shown, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
        )
        axis.set_title(title, fontsize=10)
        labels = [short(name, pictures.ROOM) for name in names]
        small = 8 if len(names) < 20 else 5.5
        axis.set_xticks(range(len(names)), labels, rotation=90, fontsize=small)
        axis.set_yticks(range(len(names)), labels, fontsize=small)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
        bar = made.colorbar(picture, ax=axis, shrink=0.8, pad=0.02, ticks=[-limit, 0, limit])
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, length=0)
    return made


# --- memorised and useful -------------------------------------------------------------------------


def privacy(facts: Facts) -> list[Html]:
    """Whether rows that were learned from are repeated."""
    found = None if facts.evaluation is None else facts.evaluation.privacy
    if found is None:
        return []
    real = "rows that were held out" if found.held_out else "real rows among themselves"
    rows = [
        ("median distance", f"{found.samples.median:.4f}", f"{found.real.median:.4f}"),
        (f"nearest {NEAREST:.0%}", f"{found.samples.low:.4f}", f"{found.real.low:.4f}"),
        (
            f"as near as {NEAREST:.0%} of real rows",
            f"{found.near:.1%}",
            f"{NEAREST:.1%} ± {found.error:.1%}",
        ),
        ("exact copies", f"{found.samples.copies:.2%}", f"{found.real.copies:.2%}"),
    ]
    alt = "Histograms of the distance to the nearest row that was learned from"
    return section(
        "Whether rows were memorised",
        figure(pictures.drawn(_nearest, found), alt, NEAREST_ROWS.format(real=real)),
        table(rows, ("nearest learned row", "these rows", real)),
    )


def _nearest(found: Privacy) -> Figure:
    made = pictures.blank(5.5, 2.4)
    axis = made.subplots()
    edges = np.asarray(found.edges)
    axis.stairs(found.samples.shares, edges, fill=True, color=COLOURS[0], alpha=0.55)
    axis.stairs(found.real.shares, edges, color=AGAINST, linewidth=1.2)
    axis.set_xlabel("distance to the nearest learned row")
    axis.set_yticks([])
    axis.spines[["top", "right", "left"]].set_visible(False)
    return made


def usefulness(facts: Facts) -> list[Html]:
    """What can be learned from the rows."""
    found = None if facts.evaluation is None else facts.evaluation.usefulness
    if found is None:
        return []
    rows = [
        (
            each.name,
            f"{each.samples:.4f}",
            f"{each.real:.4f}",
            f"{each.difference:+.4f} ± {each.error:.4f}",
            f"{each.guess:.4f}",
        )
        for each in found.scores
    ]
    told = USEFUL.format(target=found.target, learned=found.learned, tested=found.tested)
    header = ("score", "from these rows", "from real rows", "difference", "a guess")
    return section(
        "What can be learned from them",
        table(rows, header),
        element("p", shortened(told), class_="note"),
    )
