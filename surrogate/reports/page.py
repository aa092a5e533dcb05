"""One self-contained page about samples of any kind.

It says what was asked of them and how probable that is, and how far they may be relied on; the
sections are the kind's, each there only if the data have what it shows. `facts` holds what is
known, `trust` judges it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator

from constraints.explanation import percent
from surrogate.evaluation.result import Distance
from surrogate.evaluation.verdict import Verdict
from surrogate.reports.facts import Facts, Tile
from surrogate.reports.markup import Html, document, element
from surrogate.reports.provenance import footer
from surrogate.reports.wording import chance, give_or_take, odds, several, shortened, signed

Section = Callable[[Facts], list[Html]]
MAX_QUESTION = 120  # characters of a question that is a heading


def page(facts: Facts, sections: Iterable[Section], title: str | None = None) -> str:
    """The page, as HTML."""
    name = shortened(title or _title(facts))
    body = [_headline(facts, name), *(part for each in sections for part in each(facts))]
    return document(name, [*body, element("footer", footer())])


def _headline(facts: Facts, title: str) -> Html:
    over = (
        "Scenario report" if facts.requirements is not None else facts.subject.plural.capitalize()
    )
    network = facts.network.get("network") or {}
    over += f" · {shortened(network['name'])}" if network.get("name") else ""
    return element(
        "header",
        element("p", over, class_="over"),
        element("h1", title),
        element("p", _lead(facts), class_="lead"),
        verdict_box(facts.verdict),
        element("div", [_tile(*words) for words in _tiles(facts)], class_="tiles"),
    )


def _title(facts: Facts) -> str:
    lines = [part.words for part in facts.requirements.parts] if facts.requirements else []
    question = several([re.sub(r" \(step \d+\)", "", line or "") for line in lines])
    if lines and all(lines) and len(question) <= MAX_QUESTION:
        return f"What if {question}?"
    network = facts.network.get("network") or {}
    own = facts.attrs.get("title")
    named = str(network.get("title") or own or network.get("name") or facts.subject.title)
    return named[:1].upper() + named[1:]


def _lead(facts: Facts) -> str:
    """The answer in a few sentences."""
    span = f"{facts.samples:,} {facts.subject.plural} of {facts.subject.extent}"
    if facts.requirements is None:
        made = "drawn from a learned model" if facts.sampled else "as they were given"
        usual = "Nothing was required of them: they show what is usual."
        if facts.satisfied is not None:
            usual = (
                f"{percent(facts.satisfied)} of them meet what was asked, which is not told here."
            )
        return f"This page shows {span}, {made}. {usual}"
    parts = []
    if facts.probability is not None:
        log_p, error = facts.probability
        about = "" if not error else f", {give_or_take(error)}"
        parts.append(f"The scenario has a probability of about {odds(log_p)}{about}.")
    elif facts.evidence is not None:
        log_evidence, error = facts.evidence
        about = "" if not error else f" ± {signed(error)}"
        parts.append(f"The log evidence of what was observed is {signed(log_evidence)}{about}.")
    elif facts.sampled:
        parts.append("The method used here does not tell how probable the scenario is.")
    met = "" if facts.satisfied is None else f", {_all(facts.satisfied)}"
    parts.append(f"This page shows {span}{met}.")
    return " ".join(parts)


def _all(share: float) -> str:
    if share == 1:
        return "all of which meet every requirement"
    return f"of which {percent(share)} meet every requirement"


def _tiles(facts: Facts) -> Iterator[Tile]:
    """Label, figure, and what stands below it."""
    if facts.probability is not None:
        log_p, error = facts.probability
        sure = "" if error is None else f" ± {signed(error)}" if error else " (exact)"
        yield "probability", odds(log_p), f"P = {chance(log_p)}, log P = {signed(log_p)}{sure}"
    if facts.satisfied is not None:
        yield (
            "all requirements met in",
            percent(facts.satisfied),
            f"of {facts.samples:,} {facts.subject.plural}",
        )
    if facts.evaluation is not None:
        middle = facts.evaluation.overall.median
        yield (
            "distance to the reference",
            _times(middle),
            f"D = {middle.value:.3f}, noise {middle.floor:.3f}",
        )
    yield from facts.subject.tiles
    if facts.effective is not None and facts.evaluation is None:
        yield (
            "effective sample size",
            f"{facts.effective:,.0f}",
            "independent samples that these are worth",
        )


def _times(distance: Distance) -> str:
    return f"{distance.ratio:.2f} × noise" if math.isfinite(distance.ratio) else "beyond noise"


def _tile(label: str, value: str, below: str) -> Html:
    return element(
        "div", element("span", label), element("b", value), element("span", below), class_="tile"
    )


def verdict_box(found: Verdict | None) -> Html | None:
    """A verdict with its reasons."""
    if found is None:
        return None
    sign = {"good": "✓", "care": "!", "poor": "✕"}[found.level]
    against, good = (
        [element("li", shortened(each)) for each in side] for side in (found.against, found.good)
    )
    return element(
        "div",
        element("p", f"{sign}  {found.summary}"),
        element("ul", against) if against else None,
        element("span", "What is fine:") if against and good else None,
        element("ul", good) if good else None,
        class_=f"verdict {found.level}",
        role="note",
    )
