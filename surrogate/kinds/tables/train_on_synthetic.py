"""Train on synthetic, test on real (TSTR): whether samples are as good to learn from as real rows.

The same trees learn to predict a column from as many samples as real rows, and both are tested on
held-out real rows. Categories, booleans and numbers with two values are classes; other numbers are
regression targets. Each side is fitted FIT_REPEATS times to a share f = LEARNED_SHARE of its rows.
The squared standard error of the difference has two parts: the variance of the repeated scores
times f / (1 - f), for the choice of training rows (the delete-d jackknife: Shao & Wu, Ann. Statist.
17, 1989), and the variance of the difference between two predictions of the same test rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from surrogate.errors import ModelError, unknown_name
from surrogate.evaluation.boosting import MIN_TREE_ROWS, Trees, require
from surrogate.evaluation.result import Finding, Row
from surrogate.evaluation.verdict import DEVIATIONS_SIGNIFICANT, Reason
from surrogate.evaluation.weights import Array
from surrogate.kinds.tables.align import Column
from surrogate.kinds.tables.tree_features import tree_features

MAX_LEARNED_ROWS = 10_000
FIT_REPEATS = 4
LEARNED_SHARE = 2 / 3
TESTED_SHARE = 0.3  # of the real rows
MAX_TESTED_ROWS = 10_000
MIN_CLASS_ROWS = 5  # training rows of a class; rarer classes are dropped
MIN_SCORE_LOSS = 0.02  # a smaller loss of a score does not matter


@dataclass(frozen=True)
class Score:
    """How well a column is predicted on real rows, learned from samples and from real rows.

    error: the standard error of the difference. guess: the score of the best constant.
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
            bad = each.worse and each.difference < -MIN_SCORE_LOSS
            learned = f"Learned from the rows, {self.target} is predicted"
            scores = f"{each.name} {each.samples:.3f}, from real rows {each.real:.3f}"
            word = "worse" if bad else "about as well"
            yield Reason("care" if bad else "good", f"{learned} {word}: {scores}.")


def usefulness(
    columns: Sequence[Column], target: str, weights: Array, others: Array, *, seed: int = 0
) -> Usefulness:
    """Scores of models trained on samples of `weights` (n,) and on real rows of `others` (m,)."""
    column = target_column(columns, target)
    rest = [each for each in columns if each.name != target]
    if not rest:
        raise ModelError(
            f"{target} is the only column in common: there is nothing to predict it from",
            value=target,
            remedy="give tables that share more columns",
        )
    kind = "classes" if column.kind == "word" or _is_binary(column) else "numbers"
    features = tree_features(rest)
    random = np.random.default_rng([seed, 7])
    known = [random.permutation(np.flatnonzero(~np.isnan(side))) for side in column.sides[:2]]
    test = min(int(TESTED_SHARE * len(known[1])), MAX_TESTED_ROWS)
    count = min(len(known[0]), len(known[1]) - test, MAX_LEARNED_ROWS)
    if count < MIN_TREE_ROWS or test < MIN_TREE_ROWS:
        raise ModelError(
            f"{target} cannot be predicted: {len(known[0]):,} samples and {len(known[1]):,} real "
            "rows have a value of it",
            remedy=f"give {MIN_TREE_ROWS} and {math.ceil(MIN_TREE_ROWS / TESTED_SHARE)} or more",
        )
    part = round(LEARNED_SHARE * count)
    unseen, learned = known[1][:test], known[1][test : test + count]
    truth, x = column.right[unseen], features.sides[1][unseen]
    scores = _classification_scores if kind == "classes" else _regression_scores
    found = []
    for repeat in range(FIT_REPEATS):
        models = []
        for k, (rows, weight) in enumerate(((known[0][:count], weights), (learned, others))):
            chosen = random.permutation(rows)[:part]
            model = Model(kind, features.words, seed + repeat)
            model.fit(features.sides[k][chosen], column.sides[k][chosen], weight[chosen])
            models.append(model)
        found.append(scores(models, x, truth, column.right[learned]))
    return Usefulness(target, kind, part, test, tuple(map(_mean_score, zip(*found, strict=True))))


def _mean_score(repeats: Sequence[Score]) -> Score:
    """The mean of repeated scores; its error includes the choice of training rows."""
    mine, real = (np.array([getattr(s, k) for s in repeats]) for k in ("samples", "real"))
    spread = LEARNED_SHARE / (1 - LEARNED_SHARE) * float(mine.var(ddof=1) + real.var(ddof=1))
    noise = float(np.mean([s.error**2 for s in repeats])) + spread
    first = repeats[0]
    return Score(first.name, float(mine.mean()), float(real.mean()), math.sqrt(noise), first.guess)


def target_column(columns: Sequence[Column], target: str) -> Column:
    """The column to predict; ModelError if it or scikit-learn is missing."""
    require(f"predicting {target}")
    names = [each.name for each in columns]
    if target not in names:
        raise unknown_name("column", str(target), names, " to predict")
    return columns[names.index(target)]


def _is_binary(column: Column) -> bool:
    known = column.right[~np.isnan(column.right)]
    return len(np.unique(known)) <= 2


class Model:
    """Trees, or a constant where all rows have the same value."""

    def __init__(self, kind: str, words: Sequence[bool], seed: int) -> None:
        self.kind, self.words, self.seed = kind, words, seed
        self.only: float | None = None
        self.trees: Trees

    def fit(self, x: Array, target: Array, weight: Array) -> None:
        if self.kind == "classes":
            kinds, often = np.unique(target, return_counts=True)
            common = np.isin(target, kinds[often >= MIN_CLASS_ROWS])
            if common.any():  # drop classes with too few rows
                x, target, weight = x[common], target[common], weight[common]
        if len(np.unique(target)) == 1:
            self.only = float(target[0])
            return
        self.trees = Trees(self.kind, self.words, self.seed).fit(x, target, weight)

    def predict(self, x: Array) -> Array:
        if self.only is not None:
            return np.full(len(x), self.only)
        return np.asarray(self.trees.model.predict(self.trees.usable_columns(x)), np.float64)

    def probability(self, x: Array, of: float) -> Array:
        """The probability of a class, (n,)."""
        if self.only is not None:
            return np.full(len(x), float(self.only == of))
        kinds = list(self.trees.model.classes_)
        if of not in kinds:
            return np.zeros(len(x))
        return np.asarray(
            self.trees.model.predict_proba(self.trees.usable_columns(x))[:, kinds.index(of)]
        )


# --- scores ---------------------------------------------------------------------------------------


def _regression_scores(
    models: Sequence[Model], x: Array, truth: Array, learned: Array
) -> list[Score]:
    squares = [(model.predict(x) - truth) ** 2 for model in models]
    total = float(((truth - truth.mean()) ** 2).mean())
    if total == 0:
        return [Score("R²", 0.0, 0.0, 0.0, 0.0)]
    mine, real = (1 - float(each.mean()) / total for each in squares)
    error = float((squares[0] - squares[1]).std()) / total / math.sqrt(len(truth))
    guess = 1 - float(((truth - learned.mean()) ** 2).mean()) / total
    return [Score("R²", mine, real, error, guess)]


def _classification_scores(
    models: Sequence[Model], x: Array, truth: Array, learned: Array
) -> list[Score]:
    hits = [1.0 * (model.predict(x) == truth) for model in models]
    kinds, often = np.unique(learned, return_counts=True)
    usual = float((truth == kinds[often.argmax()]).mean())
    error = float((hits[0] - hits[1]).std()) / math.sqrt(len(truth))
    found = [Score("accuracy", float(hits[0].mean()), float(hits[1].mean()), error, usual)]
    present = np.unique(truth)
    if len(present) == 2:
        found.append(_roc_auc([model.probability(x, float(present[1])) for model in models], truth))
    elif len(present) > 2:
        recalls = [[hit[truth == kind] for kind in present] for hit in hits]
        mine, real = (float(np.mean([each.mean() for each in side])) for side in recalls)
        noise = [(a - b).var() / len(a) for a, b in zip(*recalls, strict=True)]
        error = math.sqrt(sum(noise)) / len(present)
        found.append(Score("balanced accuracy", mine, real, error, 1 / len(present)))
    return found


def _roc_auc(chances: Sequence[Array], truth: Array) -> Score:
    """The area under the ROC curve; its error by DeLong, DeLong & Clarke-Pearson (1988)."""
    high = truth == truth.max()
    areas, parts = [], []
    for probability in chances:
        up, down = probability[high], probability[~high]
        above, below = _rank_shares(up, down), 1 - _rank_shares(down, up)
        areas.append(float(above.mean()))
        parts.append((above, below))
    noise = sum((a - b).var() / len(a) for a, b in zip(*parts, strict=True))
    return Score("ROC AUC", areas[0], areas[1], math.sqrt(noise), 0.5)


def _rank_shares(x: Array, others: Array) -> Array:
    """For each x the share of `others` below it, ties counted as half: (n,)."""
    order = np.sort(others)
    sides = [np.searchsorted(order, x, side) for side in ("left", "right")]
    return np.asarray((sides[0] + sides[1]) / (2 * len(others)))
