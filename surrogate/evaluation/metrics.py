"""What is measured of samples beside a reference: metrics, and what they find.

A kind of data keeps its metrics in a `Metrics` registry over the pair of datasets that it compares.
A distance is one decorated function:

    @METRICS.distance("energy", "energy distance", "The samples as a whole differ")
    def energy(pair: Pair) -> Distance | None: ...

Its finding is then an attribute of the evaluation, a row of its table, an entry of its JSON and of
a model's card, and a reason in the verdict of a report. What is no distance is a function to a
`Finding` of its own, registered by `METRICS.finding(name)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from constraints.explanation import percent
from surrogate.evaluation.result import CardRow, Distance, Finding, Row, distance_row
from surrogate.evaluation.verdict import (
    Reason,
    level_of_accuracy,
    level_of_excess,
    level_of_laws,
)

P = TypeVar("P")  # a pair of datasets that are compared
CardRows = Callable[[Mapping[str, Any]], list[CardRow]]


def no_card_rows(found: Mapping[str, Any]) -> list[CardRow]:
    return []


@dataclass(frozen=True)
class Metric(Generic[P]):
    """A question about a pair of datasets.

    name: the attribute of the evaluation and the key of its JSON. measure: the finding, None where
    the data do not have what is measured. card_rows: of a model's card, from the evaluation's JSON.
    """

    name: str
    measure: Callable[[P], Finding | None]
    card_rows: CardRows = no_card_rows


class Metrics(Generic[P]):
    """The metrics of a kind, in the order of the table."""

    def __init__(self) -> None:
        self._metrics: list[Metric[P]] = []

    def __iter__(self) -> Iterator[Metric[P]]:
        return iter(self._metrics)

    def register(self, metric: Metric[P]) -> Metric[P]:
        self._metrics.append(metric)
        return metric

    def unregister(self, metric: Metric[P]) -> None:
        self._metrics.remove(metric)

    def finding(
        self, name: str, card_rows: CardRows = no_card_rows
    ) -> Callable[[Callable[[P], Finding | None]], Metric[P]]:
        """Register a function from a pair to a finding; a decorator."""
        return lambda function: self.register(Metric(name, function, card_rows))

    def distance(
        self,
        name: str,
        words: str,
        difference: str,
        *,
        negligible: float = 0.0,
        ruinous: float = math.inf,
    ) -> Callable[[Callable[[P], Distance | None]], Metric[P]]:
        """Register a function that measures a distance; a decorator.

        `words` name it in tables; `difference` begins the sentence of a verdict, "... from the
        reference", if it is beyond the noise. `negligible`, `ruinous`: how far beyond its floor it
        may be without mattering, and from where on samples are not usable.
        """

        def registered(function: Callable[[P], Distance | None]) -> Metric[P]:
            def measure(pair: P) -> Finding | None:
                found = function(pair)
                return (
                    None
                    if found is None
                    else DistanceFinding(name, words, difference, found, negligible, ruinous)
                )

            def card_rows(found: Mapping[str, Any]) -> list[CardRow]:
                return [distance_row(words, found[name])] if found.get(name) else []

            return self.register(Metric(name, measure, card_rows))

        return registered

    def measure(self, pair: P) -> tuple[Finding, ...]:
        """All findings, in order."""
        return tuple(metric.measure(pair) or Absent(metric.name) for metric in self)

    def card_rows(self, found: Mapping[str, Any]) -> list[CardRow]:
        """Rows of a model's card, from the JSON of an evaluation."""
        return [row for metric in self for row in metric.card_rows(found)]


# --- distances ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DistanceFinding(Finding):
    name: str
    words: str
    difference: str
    distance: Distance
    negligible: float = 0.0
    ruinous: float = math.inf

    def values(self) -> Mapping[str, Any]:
        return {self.name: self.distance}

    def rows(self) -> Iterator[Row]:
        yield self.words, *self.distance.cells(), ""

    def reasons(self) -> Iterator[Reason]:
        level = level_of_excess(self.distance, self.negligible, self.ruinous)
        if level != "good":
            ratio = f"{self.distance.ratio:.1f} times the noise"
            yield Reason(level, f"{self.difference} from the reference: {ratio}.")


# --- what all kinds may have ----------------------------------------------------------------------


@dataclass(frozen=True)
class Absent(Finding):
    """Nothing, under a name."""

    name: str

    def values(self) -> Mapping[str, Any]:
        return {self.name: None}


@dataclass(frozen=True)
class Detail(Finding):
    """Values for Python and JSON that have no row of their own."""

    content: tuple[tuple[str, Any], ...]

    def values(self) -> Mapping[str, Any]:
        return dict(self.content)


@dataclass(frozen=True)
class Names(Finding):
    """A list of names, with a row if there are some."""

    name: str
    words: str
    names: tuple[str, ...]

    def values(self) -> Mapping[str, Any]:
        return {self.name: self.names}

    def rows(self) -> Iterator[Row]:
        if self.names:
            yield self.words, ", ".join(self.names), "", "", ""


class Accuracy(NamedTuple):
    """Of a classifier that tells samples from the reference, and its standard error."""

    accuracy: float
    error: float


@dataclass(frozen=True)
class Classifier(Finding):
    """A two-sample test by a classifier, `judge`; `note`: what the table says of it."""

    accuracy: Accuracy
    judge: str
    note: str = ""
    simple: bool = True

    def values(self) -> Mapping[str, Any]:
        return {"classifier": self.accuracy, "judge": self.judge}

    def rows(self) -> Iterator[Row]:
        accuracy, error = self.accuracy
        chance = f"0.5000 ± {error:.4f}"
        yield "classifier accuracy", f"{accuracy:.4f}", chance, "", self.note

    def reasons(self) -> Iterator[Reason]:
        level = level_of_accuracy(*self.accuracy)
        if level != "good":
            who = "A simple classifier" if self.simple else "A classifier"
            yield Reason(level, _distinguished(who, self.accuracy.accuracy, 0.5))


def classifier_card(found: Mapping[str, Any]) -> list[CardRow]:
    test = found["classifier"]
    chance = f"0.5000 ± {test['error']:.4f}"
    return [("accuracy of a classifier", f"{test['accuracy']:.4f}", chance, "")]


def _distinguished(who: str, accuracy: float, floor: float) -> str:
    chance = "guessing would be right" if floor == 0.5 else "it tells data from data"
    return (
        f"{who} tells samples from the reference in {percent(accuracy)} of the cases; {chance} in "
        f"{percent(floor)}."
    )


@dataclass(frozen=True)
class TreeAccuracy:
    """Of trees that tell samples from the reference, with its standard error.

    floor: the same accuracy between data and data: 0.5 unless their samples depend on each other.
    """

    accuracy: float
    error: float
    floor: float = 0.5

    def to_dict(self) -> dict[str, float]:
        return asdict(self)

    def cells(self) -> tuple[str, str, str]:
        return f"{self.accuracy:.4f}", f"{self.floor:.4f} ± {self.error:.4f}", ""


@dataclass(frozen=True)
class TreeTest(Finding):
    """A two-sample test by gradient-boosted trees; `what` they see: "values and changes"."""

    test: TreeAccuracy
    what: str

    def values(self) -> Mapping[str, Any]:
        return {"trees": self.test}

    def rows(self) -> Iterator[Row]:
        yield "accuracy of trees", *self.test.cells(), f"on {self.what}"

    def reasons(self) -> Iterator[Reason]:
        test = self.test
        level = level_of_accuracy(test.accuracy, test.error, test.floor)
        if level == "good":
            yield Reason(
                "good",
                f"Gradient-boosted trees on {self.what} cannot tell samples from the reference "
                f"(accuracy {test.accuracy:.3f}, {test.floor:.3f} between data and data).",
            )
        else:
            who = f"A classifier (gradient-boosted trees on {self.what})"
            yield Reason(level, _distinguished(who, test.accuracy, test.floor))


def tree_card(what: str) -> CardRows:
    """The row of a `TreeTest` in a card; cards of earlier versions have none."""

    def rows(found: Mapping[str, Any]) -> list[CardRow]:
        if not found.get("trees"):
            return []
        return [(f"accuracy of trees on {what}", *TreeAccuracy(**found["trees"]).cells())]

    return rows


@dataclass(frozen=True)
class Laws(Finding):
    """The share of samples that obey all rules that the data carry; None where they carry none.

    network: whether the rules are those of a network that the data describe.
    """

    share: float | None
    rules: int
    network: bool = True

    def values(self) -> Mapping[str, Any]:
        stated = {} if self.network else {"rules_of": "the data"}
        return {"consistent": self.share, "rules": self.rules, **stated}

    def rows(self) -> Iterator[Row]:
        if self.share is not None:
            note = f"{self.rules} rule{'s' * (self.rules > 1)} {_owner(self.values())}"
            yield "consistent", percent(self.share), "", "", note

    def reasons(self) -> Iterator[Reason]:
        if self.share is None:
            return
        owner = _owner(self.values())
        level = level_of_laws(self.share)
        if self.share == 1:
            yield Reason("good", f"Every sample obeys the laws {owner}.")
        else:
            yield Reason(level, f"{percent(1 - self.share)} of the samples break a law {owner}.")


def _owner(found: Mapping[str, Any]) -> str:
    return f"of {found.get('rules_of', 'the network')}"


def laws_card(found: Mapping[str, Any]) -> list[CardRow]:
    if found.get("consistent") is None:
        return []
    count = found["rules"]
    name = f"obey the {count} rules" if count > 1 else "obey the rule"
    name = f"{name} {_owner(found)}"
    return [(name, f"{found['consistent']:.2%}", "", "")]


@dataclass(frozen=True)
class Satisfied(Finding):
    """The share of samples that satisfy the scenario that they are labelled with."""

    share: float | None

    def values(self) -> Mapping[str, Any]:
        return {"satisfied": self.share}

    def rows(self) -> Iterator[Row]:
        if self.share is not None:
            yield "satisfied", percent(self.share), "", "", ""
