"""Reports as a browser reads them, and what the tests of reports are about."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from surrogate.data import report_facts
from surrogate.reports.facts import Facts
from surrogate.reports.page import page

RULES = ("S(25) = 30 or S(25) = 40", "forall t: I(t) <= 40", "mean(I) >= 1")
DIAGNOSTICS = {
    "method": "twisted",
    "why": "few meet it",
    "log_probability": -11.23,
    "log_probability_error": 0.05,
    "effective": 90.0,
    "least_effective": 0.4,
    "ancestors": 95,
    "particles": 600,
    "evaluations": 24_000,
    "met_before": 0.9,
    "acceptance": 0.001,
    "copies": 2,
    "seconds": 3.2,
    "samples": 120,
    "rejection_seconds": 7200.0,
    "warnings": [],
}
SECTIONS = (
    "What was asked",
    "How it unfolds",
    "Requirements met",
    "Against the reference",
    "Values at single times",
    "What goes together",
    "What it took",
    "Where it comes from",
)


def facts(data: Any, against: Any = None, **options: Any) -> Facts:
    return report_facts(data, against, **options)[1]


def report(data: Any, against: Any = None, title: str | None = None, **options: Any) -> str:
    kind, found = report_facts(data, against, **options)
    return page(found, kind.report_sections(), title)


class Page(HTMLParser):
    """What a browser would make of a page: elements, texts, headings."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.stack: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.headings: list[str] = []
        self.feed(text)
        assert not self.stack, self.stack

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("img", "meta"):
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.stack:
            self.words.append(data)
            if self.stack[-1:] == ["h2"]:
                self.headings.append(data)

    @property
    def said(self) -> str:
        return " ".join(self.words)

    @property
    def sections(self) -> set[str]:
        return set(self.headings)

    def pictures(self) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == "img"]
