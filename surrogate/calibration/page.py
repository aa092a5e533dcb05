"""One self-contained HTML page about a calibration."""

from __future__ import annotations

from collections.abc import Iterator

from surrogate.calibration.figures import figure as drawn_figure
from surrogate.calibration.result import HEADER, Calibration
from surrogate.evaluation.ranks import LEVELS
from surrogate.reports import figures
from surrogate.reports.markup import Html, document, element, figure, section, table
from surrogate.reports.page import verdict_box

HOW_TO_READ = (
    "Each replicate takes a truth, observes it, samples the model given what was observed, and "
    "ranks the truth among the samples. Ranks are uniform where samples given data can be relied "
    "on. Panels show the ECDF of the ranks less the diagonal: within the grey band it is that of "
    "uniform ranks (95 % simultaneously). High on the left and low on the right: samples are too "
    "narrow; low, then high: too wide; a hill: too high; a valley: too low."
)
COLUMNS = (
    "Mean rank 0.5 and spread 1 are those of uniform ranks. 50, 80, 95 %: truths within the "
    "central intervals of the samples. Contraction: by how much the variance falls below "
    "that of the truths. Bias: mean of the samples less the truth, in deviations of the samples."
)
SOURCES = {
    "given": "data that were given",
    "own": "samples of the model itself",
}


def page(found: Calibration, title: str) -> str:
    """The page, as HTML."""
    return document(title, [*_head(found, title), *_figures(found), *_details(found)])


def _head(found: Calibration, title: str) -> Iterator[Html]:
    lead = (
        f"{found.replicates:,} replicates of {found.samples:,} samples; truths are "
        f"{SOURCES.get(found.source, found.source)}."
    )
    tiles = [
        element(
            "div",
            element("span", f"truths in {level:.0%} intervals"),
            element("b", f"{100 * found.coverage[level][0]:.1f} %"),
            element("span", f"± {100 * found.coverage[level][1]:.1f}, all quantities"),
            class_="tile",
        )
        for level in LEVELS
    ]
    yield element(
        "header",
        element("p", "Calibration", class_="over"),
        element("h1", title),
        element("p", lead, class_="lead"),
        verdict_box(found.verdict),
        element("div", tiles, class_="tiles"),
    )


def _figures(found: Calibration) -> list[Html]:
    source = figures.drawn(drawn_figure, found)
    shown = figure(source, "Coverage, and ranks of each quantity", HOW_TO_READ, "wide")
    return section("Ranks and coverage", shown)


def _details(found: Calibration) -> Iterator[Html]:
    rows = [each.cells() for each in found.found]
    yield from section("Quantities", table(rows, HEADER), element("p", COLUMNS, class_="note"))
    facts = [("observed", each.removeprefix("observed: ")) for each in found.observed]
    facts += [("note", each) for each in found.notes]
    facts += [(f"replicate {i}", why) for i, why in list(found.failed.items())[:10]]
    facts += [("seed", str(found.seed)), ("time taken", f"{found.seconds:.0f} s")]
    yield from section("What was done", table(facts, class_="facts"))
