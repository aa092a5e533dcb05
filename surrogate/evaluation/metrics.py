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

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from constraints.explanation import percent
from surrogate.evaluation.result import CardRow, Distance, Finding, Row, distance_row
from surrogate.evaluation.verdict import DEVIATIONS_SIGNIFICANT, Reason, is_significant

P = TypeVar("P")  # a pair of datasets that are compared
CardRows = Callable[[Mapping[str, Any]], list[CardRow]]
ACCURACY_MATTERS = 0.55  # from which a classifier that tells samples from the reference matters


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
        self, name: str, words: str, difference: str
    ) -> Callable[[Callable[[P], Distance | None]], Metric[P]]:
        """Register a function that measures a distance; a decorator.

        `words` name it in tables; `difference` begins the sentence of a verdict, "... from the
        reference", if it is beyond the noise.
        """

        def registered(function: Callable[[P], Distance | None]) -> Metric[P]:
            def measure(pair: P) -> Finding | None:
                found = function(pair)
                return None if found is None else DistanceFinding(name, words, difference, found)

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

    def values(self) -> Mapping[str, Any]:
        return {self.name: self.distance}

    def rows(self) -> Iterator[Row]:
        yield self.words, *self.distance.cells(), ""

    def reasons(self) -> Iterator[Reason]:
        if is_significant(self.distance):
            ratio = f"{self.distance.ratio:.1f} times the noise"
            yield Reason("care", f"{self.difference} from the reference: {ratio}.")


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
        accuracy, error = self.accuracy
        if accuracy >= max(ACCURACY_MATTERS, 0.5 + DEVIATIONS_SIGNIFICANT * error):
            who = "A simple classifier" if self.simple else "A classifier"
            yield Reason(
                "care",
                f"{who} tells samples from the reference in {percent(accuracy)} of the cases; "
                "guessing would be right in 50 %.",
            )


def classifier_card(found: Mapping[str, Any]) -> list[CardRow]:
    test = found["classifier"]
    chance = f"0.5000 ± {test['error']:.4f}"
    return [("accuracy of a classifier", f"{test['accuracy']:.4f}", chance, "")]


@dataclass(frozen=True)
class Satisfied(Finding):
    """The share of samples that satisfy the scenario that they are labelled with."""

    share: float | None

    def values(self) -> Mapping[str, Any]:
        return {"satisfied": self.share}

    def rows(self) -> Iterator[Row]:
        if self.share is not None:
            yield "satisfied", percent(self.share), "", "", ""
