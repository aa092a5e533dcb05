"""What a comparison finds: distances beside their noise floors, and what they say of samples.

The numbers are made in `evaluation` (trajectories) and `quality` (tables); here is how they are
kept, told as text and told as JSON.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from constraints.explanation import percent
from surrogate.evaluation.distances import Array

HEADER = ("measure", "value", "floor", "ratio", "")
Row = tuple[str, str, str, str, str]
Summary = Callable[..., Any]
MEASURES = {  # of whole samples, in words
    "correlation": "correlation error",
    "correlation_ratio": "correlation ratio error, number with word",
    "cramers_v": "Cramér's V error, word with word",
    "contingency": "D of pairs of columns",
    "autocorrelation": "autocorrelation error",
    "energy": "energy distance",
}


@dataclass(frozen=True)
class Measured:
    """A distance, and the mean and deviation of what it is between samples of one law."""

    value: float
    floor: float
    floor_sd: float

    @property
    def ratio(self) -> float:
        """1 at the floor; where that is 0, only 0 is."""
        if self.floor > 0:
            return self.value / self.floor
        return 1.0 if self.value == 0 else math.inf

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which knows no infinity: such a ratio is None."""
        return asdict(self) | {"ratio": self.ratio if math.isfinite(self.ratio) else None}

    def cells(self) -> tuple[str, str, str]:
        return f"{self.value:.4f}", f"{self.floor:.4f} ± {self.floor_sd:.4f}", f"{self.ratio:.2f}"


@dataclass(frozen=True)
class Histograms:
    """D of a variable over its steps, (T,), with its floor at each; `worst` is the furthest step.

    The floors of the median, mean and maximum are those of these numbers, not of single steps.
    """

    name: str
    steps: tuple[float, ...]
    floors: tuple[float, ...]
    median: Measured
    mean: Measured
    max: Measured
    worst: int

    def to_dict(self) -> dict[str, Any]:
        return {k: _plain(v) for k, v in vars(self).items()}


NEAREST = 0.05  # share of the real rows that are called near to a training row
CERTAIN = 4.0  # standard errors from which a difference is none of chance


@dataclass(frozen=True)
class Closeness:
    """Of rows to the nearest training row: quantiles of the distance, the share of exact copies,
    and how the distances are spread over the bins of `Privacy.edges`, (bins,)."""

    median: float
    low: float
    copies: float
    shares: tuple[float, ...]


@dataclass(frozen=True)
class Privacy:
    """Whether samples repeat the rows that were learned from, beside what real rows do.

    `near`: the share of samples as near to a training row as the nearest NEAREST of real rows are,
    which is NEAREST if they are new rows of the same law, with its standard error. `copies_error`:
    that of the difference of copies. `held_out`: whether the real rows are other ones than the
    training rows; if not, each was compared with the others.
    """

    trained: int
    held_out: bool
    samples: Closeness
    real: Closeness
    near: float
    error: float
    copies_error: float
    edges: tuple[float, ...]

    @property
    def memorised(self) -> bool:
        more = self.samples.copies - self.real.copies
        return self.near > NEAREST + CERTAIN * self.error or more > CERTAIN * self.copies_error

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"memorised": self.memorised}

    def rows(self) -> Iterator[Row]:
        real = "held-out rows" if self.held_out else "real rows among themselves"
        for what, name in (("median", "median"), ("low", f"{NEAREST:.0%}")):
            value, floor = (getattr(side, what) for side in (self.samples, self.real))
            note = f"floor: {real}" if what == "median" else ""
            yield f"nearest training row, {name}", f"{value:.4f}", f"{floor:.4f}", "", note
        note = "MEMORISED rows" if self.memorised else ""
        floor_ = f"{NEAREST:.4f} ± {self.error:.4f}"
        yield f"as near as {NEAREST:.0%} of real rows", f"{self.near:.4f}", floor_, "", note
        mine, theirs = (f"{side.copies:.4f}" for side in (self.samples, self.real))
        yield "exact copies of training rows", mine, theirs, "", ""


@dataclass(frozen=True)
class Score:
    """How well a column is predicted on real rows, learned from samples and from real rows.

    `error`: the standard error of the difference; `guess`: the score without looking at a row.
    """

    name: str
    samples: float
    real: float
    error: float
    guess: float

    @property
    def difference(self) -> float:
        return self.samples - self.real

    @property
    def worse(self) -> bool:
        return self.difference < -CERTAIN * self.error


@dataclass(frozen=True)
class Usefulness:
    """Train on samples, test on real rows: `learned` rows of each, `tested` real ones."""

    target: str
    kind: str  # classes or numbers
    learned: int
    tested: int
    scores: tuple[Score, ...]

    def to_dict(self) -> dict[str, Any]:
        scores = [asdict(each) | {"difference": each.difference} for each in self.scores]
        return asdict(self) | {"scores": scores}

    def rows(self) -> Iterator[Row]:
        for each in self.scores:
            note = f"floor: learned from real rows; difference {each.difference:+.4f}"
            note += f" ± {each.error:.4f}; a guess {each.guess:.4f}"
            name = f"{self.target} predicted, {each.name}"
            yield name, f"{each.samples:.4f}", f"{each.real:.4f}", "", note


@dataclass(frozen=True)
class Evaluation:
    """Samples against a reference; None for what the data do not have.

    `effective`: what weighted samples are worth. `classifier`: accuracy and its standard error.
    `consistent`: the share of samples that obey the `rules` of the network that the data describe.
    Tables have no `times`; for them `correlation` is between numbers, `correlation_ratio` between a
    number and a word, `cramers_v` between words, and `contingency` is D of two columns at once.
    """

    samples: int
    effective: float
    reference: int
    times: tuple[float, ...]
    variables: tuple[Histograms, ...]
    overall: Histograms
    correlation: Measured | None
    autocorrelation: Measured | None
    energy: Measured
    classifier: tuple[float, float]
    consistent: float | None
    rules: int
    satisfied: float | None
    unjudged: tuple[str, ...] = ()  # variables that no measure is made for: words over time
    judge: str = "logistic regression"  # what the classifier is
    correlation_ratio: Measured | None = None
    cramers_v: Measured | None = None
    contingency: Measured | None = None
    privacy: Privacy | None = None
    usefulness: Usefulness | None = None
    lone: tuple[str, ...] = ()  # columns that only one of two tables has
    noun: str = ""  # what the samples are, where they are neither trajectories nor rows

    def to_dict(self) -> dict[str, Any]:
        made = {k: _plain(v) for k, v in vars(self).items()}
        accuracy, error = self.classifier
        return made | {"classifier": {"accuracy": accuracy, "error": error}}

    def rows(self) -> list[Row]:
        """Cells in the order of HEADER."""
        single = len(self.variables) == 1
        found = [row for each in self.variables for row in self._histogram(each)]
        found += [] if single else self._histogram(self.overall)
        found += self._whole_samples()
        for part in (self.privacy, self.usefulness):
            found += [] if part is None else part.rows()
        if self.consistent is not None:
            note = f"{self.rules} rule{'s' * (self.rules > 1)} of the network"
            found.append(("consistent", percent(self.consistent), "", "", note))
        if self.satisfied is not None:
            found.append(("satisfied", percent(self.satisfied), "", "", ""))
        if self.unjudged:
            found.append(("not judged", ", ".join(self.unjudged), "", "", ""))
        if self.lone:
            found.append(("only on one side", ", ".join(self.lone), "", "", ""))
        if self.effective < self.samples * (1 - 1e-9):
            note = f"of {self.samples:,}, which have weights"
            found.append(("effective samples", f"{self.effective:,.0f}", "", "", note))
        return found

    def _histogram(self, each: Histograms) -> Iterator[Row]:
        overall = each is self.overall
        what = "D" if overall else f"D({each.name})"
        if len(each.steps) == 1:
            yield what, *each.median.cells(), ""
            return
        note = "of all variables" if self.times else "of all columns"
        note = f"of all that is measured of {self.noun}" if self.noun else note
        yield f"{what}, median", *each.median.cells(), note if overall else ""
        yield f"{what}, max", *each.max.cells(), self._furthest(each)

    def _furthest(self, each: Histograms) -> str:
        """Where D is greatest."""
        if each is self.overall:
            return "" if self.times else self.furthest
        if not self.times:
            return f"{each.name} {each.worst}"
        return f"step {each.worst} (time {self.times[each.worst]:.4g})"

    @property
    def furthest(self) -> str:
        """The variable that the furthest of all distances is of."""
        ends = np.cumsum([len(each.steps) for each in self.variables])
        return self.variables[int(np.searchsorted(ends, self.overall.worst, "right"))].name

    def _whole_samples(self) -> Iterator[Row]:
        for name, words in MEASURES.items():
            measured = getattr(self, name)
            if measured is not None:
                yield words, *measured.cells(), ""
        accuracy, error = self.classifier
        floor, note = f"0.5000 ± {error:.4f}", "" if self.times else self.judge
        yield "classifier accuracy", f"{accuracy:.4f}", floor, "", note

    def table(self) -> str:
        """Plain text, one line a row."""
        lines = [HEADER, *self.rows()]
        wide = [max(len(line[i]) for line in lines) for i in range(len(HEADER))]
        shown = []
        for name, *numbers, note in lines:
            middle = [cell.rjust(w) for cell, w in zip(numbers, wide[1:-1], strict=True)]
            shown.append("  ".join([name.ljust(wide[0]), *middle, note]).rstrip())
        return "\n".join(shown)

    __str__ = table


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.to_dict() if hasattr(value, "to_dict") else value


def measured(value: float, floors: Array) -> Measured:
    return Measured(float(value), float(floors.mean()), float(floors.std()))


def histograms(name: str, found: Array, floors: Array) -> Histograms:
    """From D at each step, (T,), and among splits of the reference, (splits, T)."""

    def summary(how: Summary) -> Measured:
        return measured(how(found), how(floors, axis=1))

    return Histograms(
        name,
        tuple(found.tolist()),
        tuple(floors.mean(0).tolist()),
        median=summary(np.median),
        mean=summary(np.mean),
        max=summary(np.max),
        worst=int(found.argmax()),
    )
