"""Whether samples can be learned from: train on them, test on real rows.

The same trees learn to predict a column from as many samples as real rows, and both are tested on
real rows that neither saw. Words, truth values and numbers of two values are classes; other numbers
are predicted as numbers. Each side learns REPEATS times, from PART of its rows: the variance of
these scores, times PART / (1 - PART), is the part of the error's square that is due to the rows
that were learned from (the jackknife that deletes many: Shao & Wu, Ann. Statist. 17, 1989); the
rest is that of the difference between two predictions of the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surrogate.errors import ModelError, unknown_name
from surrogate.evaluation.result import Finding, Row
from surrogate.evaluation.verdict import DEVIATIONS_SIGNIFICANT, Reason
from surrogate.evaluation.weights import Array
from surrogate.kinds.tables.align import Column
from surrogate.kinds.tables.boosting import MIN_ROWS, Features, Trees, require

MAX_LEARNED_ROWS = 10_000
REPEATS = 4
PART = 2 / 3
TESTED_SHARE = 0.3  # of the real rows
MAX_TESTED_ROWS = 10_000
MIN_CLASS_ROWS = 5  # of a class, from which on it can be learned
LOSS_MATTERS = 0.02  # of a score


@dataclass(frozen=True)
class Score:
    """How well a column is predicted on real rows, learned from samples and from real rows.

    error: the standard error of the difference. guess: the score without looking at a row.
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
        return self.difference < -DEVIATIONS_SIGNIFICANT * self.error


@dataclass(frozen=True)
class Usefulness(Finding):
    """Train on samples, test on real rows: `learned` rows of each, `tested` real ones."""

    target: str
    kind: str  # classes or numbers
    learned: int
    tested: int
    scores: tuple[Score, ...]

    def values(self) -> Mapping[str, Any]:
        return {"usefulness": self}

    def to_dict(self) -> dict[str, Any]:
        scores = [asdict(each) | {"difference": each.difference} for each in self.scores]
        return asdict(self) | {"scores": scores}

    def rows(self) -> Iterator[Row]:
        for each in self.scores:
            note = f"floor: learned from real rows; difference {each.difference:+.4f}"
            note += f" ± {each.error:.4f}; a guess {each.guess:.4f}"
            name = f"{self.target} predicted, {each.name}"
            yield name, f"{each.samples:.4f}", f"{each.real:.4f}", "", note

    def reasons(self) -> Iterator[Reason]:
        for each in self.scores:
            bad = each.worse and each.difference < -LOSS_MATTERS
            learned = f"Learned from the rows, {self.target} is predicted"
            scores = f"{each.name} {each.samples:.3f}, from real rows {each.real:.3f}"
            word = "worse" if bad else "about as well"
            yield Reason("care" if bad else "good", f"{learned} {word}: {scores}.")


def usefulness(
    columns: Sequence[Column], target: str, weights: Array, others: Array, *, seed: int = 0
) -> Usefulness:
    """Of samples with `weights` (n,) against real rows with weights `others` (m,)."""
    column = predicted(columns, target)
    rest = [each for each in columns if each.name != target]
    if not rest:
        raise ModelError(
            f"{target} is the only column in common: there is nothing to predict it from",
            value=target,
            remedy="give tables that share more columns",
        )
    kind = "classes" if column.kind == "word" or _two(column) else "numbers"
    features = Features.of(rest)
    random = np.random.default_rng([seed, 7])
    known = [random.permutation(np.flatnonzero(~np.isnan(side))) for side in column.sides[:2]]
    test = min(int(TESTED_SHARE * len(known[1])), MAX_TESTED_ROWS)
    count = min(len(known[0]), len(known[1]) - test, MAX_LEARNED_ROWS)
    if count < MIN_ROWS or test < MIN_ROWS:
        raise ModelError(
            f"{target} cannot be predicted: {len(known[0]):,} samples and {len(known[1]):,} real "
            "rows have a value of it",
            remedy=f"give {MIN_ROWS} and {math.ceil(MIN_ROWS / TESTED_SHARE)} or more",
        )
    part = round(PART * count)
    unseen, learned = known[1][:test], known[1][test : test + count]
    truth, x = column.right[unseen], features.sides[1][unseen]
    scores = _classes if kind == "classes" else _numbers
    found = []
    for repeat in range(REPEATS):
        told = []
        for k, (rows, weight) in enumerate(((known[0][:count], weights), (learned, others))):
            chosen = random.permutation(rows)[:part]
            model = Model(kind, features.words, seed + repeat)
            model.fit(features.sides[k][chosen], column.sides[k][chosen], weight[chosen])
            told.append(model)
        found.append(scores(told, x, truth, column.right[learned]))
    return Usefulness(target, kind, part, test, tuple(map(_averaged, zip(*found, strict=True))))


def _averaged(repeats: Sequence[Score]) -> Score:
    """Of several scores, with the error that learning from other rows of the same law makes."""
    mine, real = (np.array([getattr(s, k) for s in repeats]) for k in ("samples", "real"))
    spread = PART / (1 - PART) * float(mine.var(ddof=1) + real.var(ddof=1))
    noise = float(np.mean([s.error**2 for s in repeats])) + spread
    first = repeats[0]
    return Score(first.name, float(mine.mean()), float(real.mean()), math.sqrt(noise), first.guess)


def predicted(columns: Sequence[Column], target: str) -> Column:
    """The column to be predicted, if there is one and what predicts it is installed."""
    require(f"predicting {target}")
    names = [each.name for each in columns]
    if target not in names:
        raise unknown_name("column", str(target), names, " to predict")
    return columns[names.index(target)]


def _two(column: Column) -> bool:
    known = column.right[~np.isnan(column.right)]
    return len(np.unique(known)) <= 2


class Model:
    """Trees, or the only class there is to predict."""

    def __init__(self, kind: str, words: Sequence[bool], seed: int) -> None:
        self.kind, self.words, self.seed = kind, words, seed
        self.only: float | None = None
        self.trees: Trees

    def fit(self, x: Array, target: Array, weight: Array) -> None:
        if self.kind == "classes":
            kinds, often = np.unique(target, return_counts=True)
            common = np.isin(target, kinds[often >= MIN_CLASS_ROWS])
            if common.any():  # a class of few rows is none to learn
                x, target, weight = x[common], target[common], weight[common]
        if len(np.unique(target)) == 1:
            self.only = float(target[0])
            return
        self.trees = Trees(self.kind, self.words, self.seed).fit(x, target, weight)

    def predict(self, x: Array) -> Array:
        if self.only is not None:
            return np.full(len(x), self.only)
        return np.asarray(self.trees.model.predict(self.trees.seen(x)), np.float64)

    def chance(self, x: Array, of: float) -> Array:
        """The probability of a class, (n,)."""
        if self.only is not None:
            return np.full(len(x), float(self.only == of))
        kinds = list(self.trees.model.classes_)
        if of not in kinds:
            return np.zeros(len(x))
        return np.asarray(self.trees.model.predict_proba(self.trees.seen(x))[:, kinds.index(of)])


# --- scores ---------------------------------------------------------------------------------------


def _numbers(told: Sequence[Model], x: Array, truth: Array, learned: Array) -> list[Score]:
    squares = [(model.predict(x) - truth) ** 2 for model in told]
    total = float(((truth - truth.mean()) ** 2).mean())
    if total == 0:
        return [Score("R²", 0.0, 0.0, 0.0, 0.0)]
    mine, real = (1 - float(each.mean()) / total for each in squares)
    error = float((squares[0] - squares[1]).std()) / total / math.sqrt(len(truth))
    guess = 1 - float(((truth - learned.mean()) ** 2).mean()) / total
    return [Score("R²", mine, real, error, guess)]


def _classes(told: Sequence[Model], x: Array, truth: Array, learned: Array) -> list[Score]:
    hits = [1.0 * (model.predict(x) == truth) for model in told]
    kinds, often = np.unique(learned, return_counts=True)
    usual = float((truth == kinds[often.argmax()]).mean())
    error = float((hits[0] - hits[1]).std()) / math.sqrt(len(truth))
    found = [Score("accuracy", float(hits[0].mean()), float(hits[1].mean()), error, usual)]
    present = np.unique(truth)
    if len(present) == 2:
        found.append(_ranked([model.chance(x, float(present[1])) for model in told], truth))
    elif len(present) > 2:
        recalls = [[hit[truth == kind] for kind in present] for hit in hits]
        mine, real = (float(np.mean([each.mean() for each in side])) for side in recalls)
        noise = [(a - b).var() / len(a) for a, b in zip(*recalls, strict=True)]
        error = math.sqrt(sum(noise)) / len(present)
        found.append(Score("balanced accuracy", mine, real, error, 1 / len(present)))
    return found


def _ranked(chances: Sequence[Array], truth: Array) -> Score:
    """The area under the ROC curve; its error as DeLong, DeLong & Clarke-Pearson have it (1988)."""
    high = truth == truth.max()
    areas, parts = [], []
    for chance in chances:
        up, down = chance[high], chance[~high]
        above, below = _beaten(up, down), 1 - _beaten(down, up)
        areas.append(float(above.mean()))
        parts.append((above, below))
    noise = sum((a - b).var() / len(a) for a, b in zip(*parts, strict=True))
    return Score("ROC AUC", areas[0], areas[1], math.sqrt(noise), 0.5)


def _beaten(x: Array, others: Array) -> Array:
    """The share of others that each is above, ties counting half: (n,)."""
    order = np.sort(others)
    sides = [np.searchsorted(order, x, side) for side in ("left", "right")]
    return np.asarray((sides[0] + sides[1]) / (2 * len(others)))
