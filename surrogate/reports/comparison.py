"""The values at single times and what goes together, beside a reference where there is one."""

from __future__ import annotations

from surrogate.evaluation.result import Evaluation
from surrogate.reports import figures as pictures
from surrogate.reports.facts import Facts
from surrogate.reports.markup import Html, element, figure, section, table
from surrogate.reports.scenario import PANELS
from surrogate.reports.wording import moment, several, shortened

ALONE = "Each panel shows how the values are spread at one time."
COMPARED = (
    "Filled: these samples; outline: the reference. D is the share of the samples that would have "
    "to move to turn one into the other; noise is the D that chance alone makes between two sets "
    "of the truth of these sizes."
)
HEAT = (
    "Pale green: as close as two sets of the truth are to each other. Yellow to red: further apart "
    "than chance explains. Blank: all values are the same in both."
)
FIGURES = (
    "A ratio of 1 is as close as these numbers of samples can tell. The classifier tries to tell "
    "samples from the reference: 0.5 is guessing."
)
PAIRS = (
    "Each cell compares two variables at two times (each block runs from the first time to the "
    "last). Red: they rise and fall together; blue: one rises when the other falls."
)


def marginals(facts: Facts) -> list[Html]:
    """Histograms; with a reference, also where and by how much it is missed."""
    marks = facts.asked.marks if facts.asked is not None else ()
    steps = pictures.telling(len(facts.grid), marks)
    made: list[Html] = []
    for name in facts.names[:PANELS]:
        alt = f"Histograms of {name} at {several([moment(facts.grid, step) for step in steps])}"
        alt += "" if facts.evaluation is None else ", with the reference as an outline"
        source = pictures.drawn(pictures.marginals, facts, name, steps)
        made.append(figure(source, shortened(alt), class_="wide"))
    if facts.evaluation is None:
        return section("Values at single times", *made, element("p", ALONE, class_="note"))
    made.append(element("p", COMPARED, class_="note"))
    return section("Against the reference", *made, *_distances(facts, facts.evaluation))


def _distances(facts: Facts, found: Evaluation) -> list[Html]:
    made: list[Html] = []
    if pictures.over_time(facts):
        furthest = max(found.variables, key=lambda each: each.max.value).name
        alt = f"Heat map of the distance over its noise by variable and time; most in {furthest}"
        made += [
            element("h3", "Where and when they differ"),
            figure(pictures.drawn(pictures.heat, facts), shortened(alt), HEAT, "wide"),
        ]
    made += [
        element("h3", "In figures"),
        table(found.rows(), ("measure", "value", "noise floor", "ratio", "")),
        element("p", FIGURES, class_="note"),
    ]
    if facts.apart:
        lone = f"Only on one side, and so not compared: {several(facts.apart)}."
        made.append(element("p", shortened(lone), class_="note"))
    return made


def correlations(facts: Facts) -> list[Html]:
    if len(facts.names) * len(facts.grid) < 2 or facts.samples < 2:
        return []
    caption, found = PAIRS, facts.evaluation
    if found is not None and found.correlation is not None:
        value, floor, ratio = found.correlation.cells()
        caption += f" Mean difference {value}, noise {floor}: {ratio} times the noise."
    alt = f"Correlations between {several(facts.names[:PANELS])} over time"
    alt += "" if facts.against is None else ": samples, reference and their difference"
    source = pictures.drawn(pictures.correlations, facts)
    class_ = None if facts.against is None else "wide"
    return section("What goes together", figure(source, shortened(alt), caption, class_))
