"""One page about trajectories, a table or images, that needs nothing but itself.

It says what was asked of them and how probable that is, how far they are to be relied on, shows how
they unfold and what goes together, how far they are from a reference, what they cost and where they
come from. `facts` reads the data, `trust` judges them, `pictures` draws; each section is there only
if the data have what it tells.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from constraints.explanation import percent
from surrogate.evaluation.result import Distance
from surrogate.evaluation.verdict import Verdict
from surrogate.kinds.signals import Data
from surrogate.reports import images, rows
from surrogate.reports.comparison import correlations, marginals
from surrogate.reports.facts import Facts
from surrogate.reports.facts import facts as read
from surrogate.reports.markup import Html, document, element
from surrogate.reports.origin import cost, footer, provenance
from surrogate.reports.scenario import PANELS, rules, scenario, stated, trajectories
from surrogate.reports.trust import verdict
from surrogate.reports.wording import (
    chance,
    give_or_take,
    odds,
    several,
    shortened,
    signed,
    stamp,
)

SECTIONS = (scenario, trajectories, rules, marginals, correlations, cost, provenance)
OF_ROWS = (
    scenario,
    rules,
    rows.columns,
    rows.pairs,
    rows.privacy,
    rows.usefulness,
    cost,
    provenance,
)
OF_IMAGES = (scenario, images.sheets, rules, images.distances, cost, provenance)
LONGEST = 120  # characters of a question that is a heading


def report(
    data: Data,
    against: Data | None = None,
    title: str | None = None,
    *,
    target: str | None = None,
    train: Data | None = None,
) -> str:
    """The page, as HTML. `against`: a reference with the same variables and times.

    Of tables, `target` is a column to be predicted, and `train` the rows that were learned from.
    """
    return page(read(data, against, target=target, train=train), title)


def page(facts: Facts, title: str | None = None) -> str:
    """The page about facts that were read before."""
    name = shortened(title or _title(facts))
    of_one = OF_IMAGES if facts.pictured else SECTIONS
    sections = of_one if facts.table is None else OF_ROWS
    body = [_headline(facts, name), *(part for each in sections for part in each(facts))]
    return document(name, [*body, element("footer", footer())])


def _headline(facts: Facts, title: str) -> Html:
    over = "Scenario report" if facts.asked is not None else facts.noun.capitalize()
    network = facts.network.get("network") or {}
    over += f" · {shortened(network['name'])}" if network.get("name") else ""
    return element(
        "header",
        element("p", over, class_="over"),
        element("h1", title),
        element("p", _lead(facts), class_="lead"),
        _verdict(verdict(facts)),
        element("div", [_tile(*words) for words in _tiles(facts)], class_="tiles"),
    )


def _title(facts: Facts) -> str:
    lines = [stated(part, facts) for part in facts.asked.parts] if facts.asked else []
    question = several([re.sub(r" \(step \d+\)", "", line or "") for line in lines])
    if lines and all(lines) and len(question) <= LONGEST:
        return f"What if {question}?"
    network = facts.network.get("network") or {}
    own = facts.data.attrs.get("title")
    names = several(facts.names[:6]) if facts.table is None else _columns(facts.names)
    names = f"images of {facts.extent(1)}" if facts.pictured else names
    named = str(network.get("title") or own or network.get("name") or names)
    return named[:1].upper() + named[1:]


def _columns(names: list[str], most: int = 4) -> str:
    some = names[:most] if len(names) > most + 1 else names
    more = [f"{len(names) - len(some)} more columns"] if len(some) < len(names) else []
    return f"a table of {several([*some, *more])}"


def _lead(facts: Facts) -> str:
    """The answer in a few sentences."""
    span = f"{facts.samples:,} {facts.noun} of {facts.extent(PANELS)}"
    if facts.asked is None:
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
    elif facts.sampled:
        parts.append("The method used here does not tell how probable the scenario is.")
    met = "" if facts.satisfied is None else f", {_all(facts.satisfied)}"
    parts.append(f"This page shows {span}{met}.")
    return " ".join(parts)


def _all(share: float) -> str:
    if share == 1:
        return "all of which meet every requirement"
    return f"of which {percent(share)} meet every requirement"


def _tiles(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """Label, figure, and what stands below it."""
    if facts.probability is not None:
        log_p, error = facts.probability
        sure = "" if error is None else f" ± {signed(error)}" if error else " (exact)"
        yield "probability", odds(log_p), f"P = {chance(log_p)}, log P = {signed(log_p)}{sure}"
    if facts.satisfied is not None:
        yield (
            "all requirements met in",
            percent(facts.satisfied),
            f"of {facts.samples:,} {facts.noun}",
        )
    if facts.evaluation is not None:
        middle = facts.evaluation.overall.median
        yield (
            "distance to the reference",
            _times(middle),
            f"D = {middle.value:.3f}, noise {middle.floor:.3f}",
        )
    yield from _extent(facts)
    if facts.effective is not None and facts.evaluation is None:
        yield "they are worth", f"{facts.effective:,.0f}", "independent ones"


def _extent(facts: Facts) -> Iterator[tuple[str, str, str]]:
    """How much there is of them; of rows also what is told of no single column."""
    if facts.pictured:
        yield "images", f"{facts.samples:,}", facts.extent(1)
        return
    if facts.table is None:
        first, last = stamp(facts.grid, 0), stamp(facts.grid, len(facts.grid) - 1)
        below = f"{len(facts.grid)} steps, time {first} to {last}"
        yield "trajectories", f"{facts.samples:,}", below
        return
    count = len(facts.names)
    yield "rows", f"{facts.samples:,}", f"{count} column{'s' * (count > 1)}"
    if facts.evaluation is not None:
        accuracy, error = facts.evaluation.classifier
        yield "told from real rows in", percent(accuracy), f"guessing: 50 % ± {100 * error:.1f} %"
        found = facts.evaluation.privacy
        if found is not None:
            real = f"of real rows: {found.real.copies:.1%}"
            yield "copies of learned rows", f"{found.samples.copies:.1%}", real


def _times(measured: Distance) -> str:
    return f"{measured.ratio:.2f} × noise" if math.isfinite(measured.ratio) else "beyond noise"


def _tile(label: str, value: str, below: str) -> Html:
    return element(
        "div", element("span", label), element("b", value), element("span", below), class_="tile"
    )


def _verdict(found: Verdict | None) -> Html | None:
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
