"""The sections of a report about a table: columns, associations, memorisation, usefulness."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from constraints.explanation import percent
from surrogate.errors import ModelError
from surrogate.evaluation.result import Evaluation
from surrogate.kinds.label_names import LABELS, RULE_PREFIX, label_columns
from surrogate.kinds.signals import Data, samples_of
from surrogate.kinds.tables.align import Column, Rows, shared_columns
from surrogate.kinds.tables.association import affordable_rows, features, numbers_first
from surrogate.kinds.tables.compare import compare
from surrogate.kinds.tables.plot import small_multiples
from surrogate.kinds.tables.privacy import NEAR_SHARE, Privacy
from surrogate.reports import figures
from surrogate.reports.comparison import distance_table, unshared_note
from surrogate.reports.conditions import condition
from surrogate.reports.facts import Facts, Subject, Tile, loaded
from surrogate.reports.markup import Html, element, figure, section, table
from surrogate.reports.provenance import cost, provenance
from surrogate.reports.requirements import Requirement, Requirements, requirements_in
from surrogate.reports.scenario import rules, scenario
from surrogate.reports.style import AGAINST, COLOURS, NAME_ROOM, short
from surrogate.reports.wording import several, shortened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS_PER_FIGURE = 24
MAX_HEAT_COLUMNS = 40
MAX_PLOTTED_COLUMNS = 96
MAX_PLOTTED_ROWS = 20_000
MAX_NAMED_COLUMNS = 12  # in a sentence
COLUMNS_NOTE = "Each panel shows how the values of a column are spread."
COLUMNS_COMPARED_NOTE = (
    "Filled: these rows; outline: the reference. D is the share of the rows that would have to "
    "change to turn one into the other; noise is the D that chance alone makes between two sets of "
    "real rows of these sizes."
)
TAILS_NOTE = " The outermost bars hold what lies beyond; “others” are the rarer words."
DISTANCES_NOTE = (
    "A ratio of 1 is as close as these numbers of rows can tell. The classifier tries to tell rows "
    "from the reference: 0.5 is guessing."
)
ASSOCIATIONS_NOTE = (
    "Two columns of numbers: their correlation (red: they rise and fall together, blue: one rises "
    "when the other falls). A number and a word: the correlation ratio. Two words: Cramér's V. The "
    "last two run from 0 to 1."
)
NEAREST_ROWS_NOTE = (
    "The distance of each row to the nearest row that was learned from; filled: these rows, "
    "outline: {real}. Rows that were memorised pile up at 0, beyond what real rows do."
)
USEFULNESS_NOTE = (
    "The same trees learn to predict {target} from {learned:,} of these rows and from as many real "
    "ones, and are tested on {tested:,} real rows that neither saw. The error is that of the "
    "difference."
)


@dataclass(frozen=True)
class Table:
    """The columns of rows, beside those of a reference, and the weights (n,) of each side."""

    columns: tuple[Column, ...]
    weights: tuple[np.ndarray, ...]


def read(
    data: Data, against: Data | None, target: str | None = None, train: Data | None = None
) -> Facts:
    """The facts of a report about rows; labels may be columns of a DataFrame, one per rule."""
    if against is None and (target is not None or train is not None):
        what = "target" if train is None else "train"
        raise ModelError(
            f"{what} needs real rows to compare with", remedy="name a reference as well"
        )
    evaluation = None if against is None else compare(data, against, 0, target, train)
    sides = [Rows(data, "the data", least=1)]
    sides += [] if against is None else [Rows(against, "the reference")]
    shown, _ = shared_columns(*sides)
    some = [np.arange(0, len(s.weights), -(-len(s.weights) // MAX_PLOTTED_ROWS)) for s in sides]
    labels, names, samples = _labels(data), [each.name for each in shown], samples_of(data)
    others = ["others"] if len(names) > MAX_NAMED_COLUMNS else []
    subject = Subject(
        "rows",
        "row",
        several([*names[:MAX_NAMED_COLUMNS], *others]),
        _named(names),
        tuple(_tiles(samples, len(names), evaluation)),
    )
    return Facts.of(
        subject,
        samples,
        labels,
        requirements_in(data.attrs, _part) or _requirements_by_rules(labels),
        Table(
            tuple(each.take(some) for each in shown),
            tuple(side.weights[rows] for side, rows in zip(sides, some, strict=True)),
        ),
        attrs=data.attrs,
        against_attrs=None if against is None else against.attrs,
        against_requirements=None if against is None else requirements_in(against.attrs, _part),
        evaluation=evaluation,
        unshared=() if evaluation is None else evaluation.lone,
    )


def _part(formula: Any) -> Requirement:
    return Requirement(str(formula), condition(str(formula)))


def _requirements_by_rules(labels: xr.Dataset) -> Requirements | None:
    """The requirements of a table that was labelled by several rules: their names."""
    if "rule" not in labels.coords:
        return None
    names = [str(name) for name in labels["rule"].values]
    return Requirements(
        " and ".join(names), tuple(Requirement(name, condition(name)) for name in names)
    )


def _labels(data: Data) -> xr.Dataset:
    """The labels of rows, as those of trajectories are: over (sample,) and (sample, rule)."""
    if isinstance(data, xr.Dataset):
        own = [n for n in LABELS if n in data.variables and "kind" not in data[n].attrs]
        return loaded(data[own], "the data")
    known = label_columns(data)
    plain = [name for name in ("satisfied", "robustness") if known]
    plain += ["log_weight"] if "log_weight" in data.columns else []
    found: dict[str, Any] = {n: ("sample", data[n].to_numpy()) for n in plain}
    rule_columns = [name for name in known if name.startswith(RULE_PREFIX)]
    coords = {}
    if rule_columns:
        met = data[rule_columns].to_numpy(np.float64)
        unknown = np.full_like(met, np.nan)  # a table has no margins of single rules
        found |= {
            "rule_satisfied": (("sample", "rule"), met),
            "rule_robustness": (("sample", "rule"), unknown),
        }
        names = [name.removeprefix(RULE_PREFIX) for name in rule_columns]
        coords["rule"] = np.array(names, dtype=object)
    return xr.Dataset(found, coords, dict(data.attrs))


def _named(names: list[str], most: int = 4) -> str:
    some = names[:most] if len(names) > most + 1 else names
    more = [f"{len(names) - len(some)} more columns"] if len(some) < len(names) else []
    return f"a table of {several([*some, *more])}"


def _tiles(samples: int, columns: int, found: Evaluation | None) -> Iterator[Tile]:
    yield "rows", f"{samples:,}", f"{columns} column{'s' * (columns > 1)}"
    if found is not None:
        accuracy, error = found.classifier
        yield "told from real rows in", percent(accuracy), f"guessing: 50 % ± {100 * error:.1f} %"
        real = f"of real rows: {found.privacy.real.copies:.1%}"
        yield "copies of training rows", f"{found.privacy.samples.copies:.1%}", real


def columns(facts: Facts) -> list[Html]:
    """Histograms of the columns, and their distances from the reference."""
    shown = facts.content.columns[:MAX_PLOTTED_COLUMNS]
    made: list[Html] = []
    for start in range(0, len(shown), COLUMNS_PER_FIGURE):
        part = shown[start : start + COLUMNS_PER_FIGURE]
        alt = f"How the values are spread: {several([each.name for each in part])}"
        alt += "" if facts.evaluation is None else ", with the reference as an outline"
        source = figures.drawn(_panels, facts, start, start + len(part))
        made.append(figure(source, shortened(alt), class_="wide"))
    caption = (COLUMNS_NOTE if facts.evaluation is None else COLUMNS_COMPARED_NOTE) + TAILS_NOTE
    if facts.weight is not None:
        caption += " Rows count by their weight."
    if len(facts.content.columns) > MAX_PLOTTED_COLUMNS:
        caption += (
            f" The first {MAX_PLOTTED_COLUMNS} of {len(facts.content.columns)} columns are shown."
        )
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
    rows = facts.content
    return small_multiples(rows.columns[first:last], rows.weights, notes=notes)


def _figures(facts: Facts, found: Evaluation) -> list[Html]:
    made = [
        element("h3", "In figures"),
        distance_table(found),
        element("p", DISTANCES_NOTE, class_="note"),
    ]
    made += unshared_note(facts)
    return made


# --- pairs ----------------------------------------------------------------------------------------


def pairs(facts: Facts) -> list[Html]:
    """Associations of pairs of columns: these rows, the reference, and the difference."""
    if len(facts.content.columns) < 2 or facts.samples < 2:
        return []
    caption, found = ASSOCIATIONS_NOTE, facts.evaluation
    if found is not None and found.contingency is not None:
        value, floor, ratio = found.contingency.cells()
        caption += f" D of pairs of columns {value}, noise {floor}: {ratio} times the noise."
    if len(facts.content.columns) > MAX_HEAT_COLUMNS:
        caption += (
            f" The first {MAX_HEAT_COLUMNS} of {len(facts.content.columns)} columns are shown."
        )
    names = [each.name for each in facts.content.columns[:MAX_HEAT_COLUMNS]]
    alt = f"What goes together of {several(names)}"
    alt += "" if facts.evaluation is None else ": these rows, the reference and their difference"
    source = figures.drawn(_pairs, facts.content)
    class_ = None if facts.evaluation is None else "wide"
    return section("What goes together", figure(source, shortened(alt), caption, class_))


def associations(rows: Table) -> tuple[list[str], list[np.ndarray]]:
    """Names of columns, numbers first, and r, η or V of every two of each side, (d, d)."""
    most = affordable_rows(rows.columns)
    some = [np.arange(min(len(each), most)) for each in rows.weights]
    few = numbers_first([each.take(some) for each in rows.columns])
    measure, sides = features(few)
    found = [
        measure.coefficients(measure.sums(side, weight[: len(side)]))
        for side, weight in zip(sides, rows.weights, strict=True)
    ]
    return [each.name for each in few], found


def _pairs(rows: Table) -> Figure:
    names, found = associations(Table(rows.columns[:MAX_HEAT_COLUMNS], rows.weights))
    panels = [("these rows" if len(found) > 1 else "", found[0], 1.0)]
    if len(found) > 1:
        panels.append(("reference", found[1], 1.0))
        panels.append(("difference", found[0] - found[1], 0.5))
    size = 3.5 if len(names) < 20 else 4.4
    made = figures.blank((size + 0.3) * len(panels), size)
    for axis, (title, matrix, limit) in zip(
        made.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
    ):
        shown = np.where(np.eye(len(names), dtype=bool), np.nan, matrix)
        picture = axis.imshow(
            shown, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
        )
        axis.set_title(title, fontsize=10)
        labels = [short(name, NAME_ROOM) for name in names]
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
    """Whether training rows were memorised."""
    found = None if facts.evaluation is None else facts.evaluation.privacy
    if found is None:
        return []
    real = "rows that were held out" if found.held_out else "real rows among themselves"
    rows = [
        ("median distance", f"{found.samples.median:.4f}", f"{found.real.median:.4f}"),
        (f"nearest {NEAR_SHARE:.0%}", f"{found.samples.low:.4f}", f"{found.real.low:.4f}"),
        (
            f"as near as {NEAR_SHARE:.0%} of real rows",
            f"{found.near:.1%}",
            f"{NEAR_SHARE:.1%} ± {found.error:.1%}",
        ),
        ("exact copies", f"{found.samples.copies:.2%}", f"{found.real.copies:.2%}"),
    ]
    alt = "Histograms of the distance to the nearest row that was learned from"
    return section(
        "Whether rows were memorised",
        figure(figures.drawn(_nearest, found), alt, NEAREST_ROWS_NOTE.format(real=real)),
        table(rows, ("nearest learned row", "these rows", real)),
    )


def _nearest(found: Privacy) -> Figure:
    made = figures.blank(5.5, 2.4)
    axis = made.subplots()
    edges = np.asarray(found.edges)
    axis.stairs(found.samples.shares, edges, fill=True, color=COLOURS[0], alpha=0.55)
    axis.stairs(found.real.shares, edges, color=AGAINST, linewidth=1.2)
    axis.set_xlabel("distance to the nearest learned row")
    axis.set_yticks([])
    axis.spines[["top", "right", "left"]].set_visible(False)
    return made


def usefulness(facts: Facts) -> list[Html]:
    """Train on synthetic, test on real."""
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
    told = USEFULNESS_NOTE.format(target=found.target, learned=found.learned, tested=found.tested)
    header = ("score", "from these rows", "from real rows", "difference", "a guess")
    return section(
        "What can be learned from them",
        table(rows, header),
        element("p", shortened(told), class_="note"),
    )


SECTIONS = (scenario, rules, columns, pairs, privacy, usefulness, cost, provenance)
