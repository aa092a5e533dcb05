"""The page about samples of any kind: a figure, and how far they are from a reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from surrogate.evaluation.result import Evaluation
from surrogate.evaluation.verdict import Verdict
from surrogate.reports.markup import Html, document, element, figure, section, table
from surrogate.reports.render import rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def simple_page(title: str, drawing: Figure, evaluation: Evaluation | None) -> str:
    """The page, as HTML."""
    body: list[Html] = [element("header", element("h1", title))]
    body += section("The samples", figure(rendered(drawing), title))
    if evaluation is not None:
        ratio = evaluation.overall.median.ratio
        good = f"Close to the reference: {ratio:.2f} times the distance that chance alone makes."
        verdict = Verdict.of(evaluation.reasons(), good)
        body += section(
            "Against the reference",
            element("p", verdict.summary),
            element("ul", [element("li", each) for each in verdict.reasons]),
            table(evaluation.rows(), ("measure", "value", "noise floor", "ratio", "")),
        )
    return document(title, body)
