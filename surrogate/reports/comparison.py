"""The table of distances to a reference."""

from __future__ import annotations

from surrogate.evaluation.result import Evaluation
from surrogate.reports.facts import Facts
from surrogate.reports.markup import Html, element, section, table
from surrogate.reports.wording import several, shortened

HOW_TO_READ = (
    "A ratio of 1 is as close as these numbers of samples can tell. Classifiers try to tell "
    "samples from the reference: 0.5 is guessing."
)


def distance_table(found: Evaluation) -> Html:
    return table(found.rows(), ("measure", "value", "noise floor", "ratio", ""))


def unshared_note(facts: Facts) -> list[Html]:
    """What only one side has."""
    if not facts.unshared:
        return []
    text = f"Only on one side, and so not compared: {several(facts.unshared)}."
    return [element("p", shortened(text), class_="note")]


def distances(facts: Facts) -> list[Html]:
    """The section of a kind that shows no more than the table."""
    if facts.evaluation is None:
        return []
    note = element("p", HOW_TO_READ, class_="note")
    return section("Against the reference", distance_table(facts.evaluation), note)
