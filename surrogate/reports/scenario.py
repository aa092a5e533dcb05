"""What was asked of trajectories, how they unfold, and how many meet each rule."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from constraints.explanation import percent
from surrogate.evaluation.weights import weighted_quantiles
from surrogate.kinds.trajectories.requirements import Mark, Part
from surrogate.reports import figures as pictures
from surrogate.reports.conditions import condition
from surrogate.reports.facts import Facts, Rule
from surrogate.reports.markup import Html, element, figure, section, table
from surrogate.reports.wording import number, requirement, shortened

PANELS = 12  # variables that are drawn
RULES = 40  # that are listed
NARROW = 24  # bars of a distribution of margins
READ = "Line: median. Dark band: half of the trajectories. Light band: nine in ten."
MARGIN = (
    "The margin is how far a {one} is from breaking a rule: above 0 there was room, below 0 "
    "(red) it was broken by that much."
)


DRAWN: tuple[tuple[str, Callable[[Mark], bool]], ...] = (
    (" Dots: required values.", lambda mark: mark.value and mark.kind != "either"),
    (" Open dots: one of them is required.", lambda mark: mark.kind == "either"),
    (" Shaded: forbidden.", lambda mark: mark.kind == "every" and not mark.value),
    (" Dotted line: to be reached at some time.", lambda mark: mark.kind == "some"),
)


def scenario(facts: Facts) -> list[Html]:
    if facts.asked is None:
        return []
    lines = []
    for part in facts.asked.parts[:RULES]:
        words = stated(part, facts)
        lines.append(element("li", shortened(words) if words else _code(part.text)))
    named = [rule.name for rule in facts.rules if not rule.physics]
    own = named or [part.text for part in facts.asked.parts]
    more = []
    if facts.asked.physics:
        laws = [shortened(each) for each in facts.asked.physics[:RULES]]
        more = [
            element("p", "Besides, the laws of the network had to hold:"),
            element("pre", "\n".join(laws)),
        ]
    return section(
        "What was asked",
        element("ul", lines, class_="asked"),
        element("p", "As it was stated:"),
        element("pre", "\n".join(shortened(each) for each in own[:RULES])),
        *more,
    )


def stated(part: Part, facts: Facts) -> str | None:
    """A requirement in plain words; None where they would not do."""
    return requirement(part, facts.grid) if len(facts.grid) else condition(part.text)


def _code(text: str) -> Html:
    return element("code", shortened(text))


def trajectories(facts: Facts) -> list[Html]:
    marks = facts.asked.marks if facts.asked is not None else ()
    shown = facts.names[:PANELS]
    cards = []
    for name in shown:
        bound = list(_words(facts, name))
        alt = f"Fan chart of {name} over time: median and bands of {facts.samples:,} trajectories"
        alt += f"; required: {'; '.join(bound)}" if bound else ""
        cards.append(figure(pictures.drawn(pictures.fan, facts, name), shortened(alt)))
    caption = READ
    if facts.weight is not None:
        caption += " Trajectories count by their weight."
    if facts.against is not None:
        caption += " Dashed: median and nine in ten of the reference."
    caption += "".join(text for text, holds in DRAWN if any(map(holds, marks)))
    if len(facts.names) > PANELS:
        caption += f" The first {PANELS} of {len(facts.names)} variables are shown."
    undrawn = [part.text for part in facts.asked.parts if not part.marks] if facts.asked else []
    rest = []
    if undrawn:
        rest = [
            element("p", "Required too, but not to be drawn over time:", class_="note"),
            element("pre", "\n".join(shortened(each) for each in undrawn[:RULES])),
        ]
    return section(
        "How it unfolds",
        element("div", cards, class_="fans"),
        element("p", caption, class_="note"),
        *rest,
    )


def _words(facts: Facts, name: str) -> Iterator[str]:
    for part in facts.asked.parts if facts.asked is not None else ():
        words = requirement(part, facts.grid)
        if words and any(mark.name == name for mark in part.marks):
            yield words


def rules(facts: Facts) -> list[Html]:
    if not facts.rules:
        return []
    groups = (("What was asked", False), ("Laws of the network", True))
    made: list[Html] = []
    for title, physics in groups:
        those = [rule for rule in facts.rules if rule.physics == physics]
        if not those:
            continue
        worst = sorted(those, key=lambda rule: rule.share)[:RULES] if len(those) > RULES else those
        header = ("rule", "met by", "", "margins", "least", "median")
        rows = (_rule(rule, facts.weight) for rule in worst)
        made += [element("h3", title), table(rows, header, "rules")]
        if len(those) > RULES:
            made.append(
                element("p", f"The {RULES} least met of {len(those)} rules.", class_="note")
            )
    known = any(np.isfinite(rule.margins).any() for rule in facts.rules)
    ones = {"trajectories": "trajectory", "rows": "row", "images": "image"}
    note = MARGIN.format(one=ones[facts.noun])
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
    size = (max(most, 0.0) - min(least, 0.0)) / NARROW or 1.0
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
