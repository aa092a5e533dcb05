"""Sections on the scenario: its requirements, and the share of samples that meets each rule."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from constraints.explanation import percent
from surrogate.evaluation.weights import weighted_quantiles
from surrogate.reports.facts import Facts, Rule
from surrogate.reports.markup import Html, element, section, table
from surrogate.reports.wording import number, shortened

MAX_RULES = 40  # that are listed
MARGIN_BARS = 24  # bars of a distribution of margins
MARGIN = (
    "The margin is how far a {one} is from breaking a rule: above 0 there was room, below 0 "
    "(red) it was broken by that much."
)


def scenario(facts: Facts) -> list[Html]:
    if facts.requirements is None:
        return []
    lines = []
    for part in facts.requirements.parts[:MAX_RULES]:
        words = part.words
        lines.append(element("li", shortened(words) if words else _code(part.text)))
    named = [rule.name for rule in facts.rules if not rule.physics]
    own = named or [part.text for part in facts.requirements.parts]
    more = []
    if facts.requirements.physics:
        laws = [shortened(each) for each in facts.requirements.physics[:MAX_RULES]]
        more = [
            element("p", "Besides, the laws of the network had to hold:"),
            element("pre", "\n".join(laws)),
        ]
    return section(
        "What was asked",
        element("ul", lines, class_="asked"),
        element("p", "As it was stated:"),
        element("pre", "\n".join(shortened(each) for each in own[:MAX_RULES])),
        *more,
    )


def _code(text: str) -> Html:
    return element("code", shortened(text))


def rules(facts: Facts) -> list[Html]:
    if not facts.rules:
        return []
    groups = (("What was asked", False), ("Laws of the network", True))
    made: list[Html] = []
    for title, physics in groups:
        those = [rule for rule in facts.rules if rule.physics == physics]
        if not those:
            continue
        worst = (
            sorted(those, key=lambda rule: rule.share)[:MAX_RULES]
            if len(those) > MAX_RULES
            else those
        )
        header = ("rule", "met by", "", "margins", "least", "median")
        rows = (_rule(rule, facts.weight) for rule in worst)
        made += [element("h3", title), table(rows, header, "rules")]
        if len(those) > MAX_RULES:
            made.append(
                element("p", f"The {MAX_RULES} least met of {len(those)} rules.", class_="note")
            )
    known = any(np.isfinite(rule.margins).any() for rule in facts.rules)
    note = MARGIN.format(one=facts.subject.singular)
    return section("Requirements met", *made, element("p", note, class_="note") if known else None)


def _rule(rule: Rule, weight: np.ndarray | None) -> Iterator[str]:
    """The cells of a rule: its text, its share as a bar and in figures, and its margins."""
    known = np.isfinite(rule.margins)
    margins, given = rule.margins[known], None if weight is None else weight[known]
    part = None if rule.share == 1 else "part"
    inner = element("i", style=f"width: {100 * rule.share:.2f}%", class_=part)
    told = f"met by {percent(rule.share)}"
    yield element("code", shortened(rule.name))
    yield element("div", inner, class_="bar", role="img", aria_label=told)
    yield percent(rule.share)
    if not margins.size:
        yield from ("", "", "")
        return
    yield _margins(margins, given)
    yield number(float(margins.min()))
    yield number(float(weighted_quantiles(margins[:, None], [0.5], given)[0, 0]))


def _margins(margins: np.ndarray, weight: np.ndarray | None) -> Html:
    """Bars of a small histogram in which no bin has margins on both sides of 0."""
    least, most = float(margins.min()), float(margins.max())
    size = (max(most, 0.0) - min(least, 0.0)) / MARGIN_BARS or 1.0
    first, last = math.floor(min(least, 0.0) / size) - 1, math.floor(max(most, 0.0) / size) + 2
    counts = np.histogram(margins, np.arange(first, last + 1) * size, weights=weight)[0]
    width, top = 150 / len(counts), float(counts.max()) or 1.0
    bars = [
        element(
            "rect",
            x=f"{k * width:.2f}",
            y=f"{29 - 28 * count / top:.2f}",
            width=f"{width - 0.6:.2f}",
            height=f"{28 * count / top:.2f}",
            class_="missed" if first + k < 0 else "met",
        )
        for k, count in enumerate(counts.tolist())
        if count
    ]
    zero = f"{-first * width:.2f}"
    line = element("line", x1=zero, x2=zero, y1="0", y2="30")
    told = f"margins from {number(least)} to {number(most)}"
    return element(
        "svg", bars, line, class_="margins", viewBox="0 0 150 30", role="img", aria_label=told
    )
