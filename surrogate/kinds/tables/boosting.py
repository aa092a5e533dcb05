"""Gradient-boosted trees that look at rows: to tell samples from data, or to predict a column.

Numbers, words and what is missing are taken as they are. The trees are scikit-learn's (histogram
gradient boosting, after LightGBM); it is an extra, and its absence is told.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from surrogate.errors import ModelError
from surrogate.evaluation.weights import Array, effective_sample_size
from surrogate.kinds.tables.align import Column

MAX_CLASSIFIED_ROWS = 5_000  # of each table
FOLDS = 3
MIN_ROWS = 30  # of each table, for trees to learn from
MAX_TREE_WORDS = 250  # of a column; trees have at most 255 bins
ROUNDS = 100
INSTALL = "pip install 'surrogate-toolkit[tables]'"


def installed() -> bool:
    return find_spec("sklearn") is not None


def require(what: str) -> None:
    if not installed():
        raise ModelError(f"{what} needs scikit-learn, which is not installed", remedy=INSTALL)


@dataclass(frozen=True)
class Features:
    """Columns as trees take them: values (n, d) of each side, and which of them are words (d,)."""

    sides: tuple[Array, ...]
    words: tuple[bool, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Features:
        made = [_ordinal(each) for each in columns]
        sides = tuple(np.stack(parts, 1) for parts in zip(*made, strict=True))
        return cls(sides, tuple(each.kind == "word" for each in columns))


def _ordinal(column: Column) -> tuple[Array, ...]:
    """Words by how frequent they are, the rarest as one."""
    if column.kind != "word":
        return column.tame().sides
    order = np.argsort(np.argsort(-column.often(), kind="stable"))
    place = np.minimum(order, MAX_TREE_WORDS).astype(np.float64)
    return tuple(
        np.where(np.isnan(side), np.nan, place[np.nan_to_num(side, nan=0.0).astype(np.int64)])
        for side in column.sides
    )


class Trees:
    """A classifier (`kind` classes) or regressor; it stops when it learns no more."""

    def __init__(self, kind: str, words: Sequence[bool], seed: int) -> None:
        self.kind, self.words, self.seed = kind, np.asarray(words, bool), seed

    def fit(self, x: Array, target: np.ndarray, weight: Array) -> Trees:
        """Learn to tell the target (n,) from rows x (n, d) with weights (n,)."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        classes = self.kind == "classes"
        made = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        enough = len(target) >= 300  # a part of them can tell when to stop
        if classes:
            enough &= int(np.unique(target, return_counts=True)[1].min()) >= 20
        self.known = ~np.isnan(x).all(0)  # of the others there is nothing to learn
        words = self.words[self.known]
        model = made(
            max_iter=ROUNDS if enough else 30,
            early_stopping=enough,
            validation_fraction=0.1 if enough else None,
            n_iter_no_change=8,
            min_samples_leaf=20 if enough else 5,
            categorical_features=words if words.any() else None,
            random_state=self.seed % 2**32,
        )
        # trees take long to find bins of weighted rows
        given = None if np.ptp(weight) == 0 else weight / weight.mean()
        self.model = model.fit(self.seen(x), target, sample_weight=given)
        return self

    def seen(self, x: Array) -> Array:
        """The columns that were learned from; a constant where there are none."""
        return x[:, self.known] if self.known.any() else np.zeros((len(x), 1))


def two_sample_test(
    features: Features, weights: Array, others: Array, *, seed: int = 0
) -> tuple[float, float]:
    """Cross-validated accuracy of telling the rows of two sides apart, and its standard error; as
    many of each are looked at, and 0.5 is chance. `weights` (n,) and `others` (m,).
    """
    random = np.random.default_rng([seed, 5])
    count = min(MAX_CLASSIFIED_ROWS, len(weights), len(others))
    rows = [random.permutation(len(each))[:count] for each in (weights, others)]
    x = np.concatenate([side[r] for side, r in zip(features.sides, rows, strict=True)])
    label = np.repeat([1, 0], count)
    weight = np.concatenate([_mean_one(w[r]) for w, r in zip((weights, others), rows, strict=True)])
    fold = np.tile(np.arange(count) % FOLDS, 2)
    right = np.zeros(len(label))
    for k in range(FOLDS):
        train, test = fold != k, fold == k
        trees = Trees("classes", features.words, seed).fit(x[train], label[train], weight[train])
        margin = trees.model.decision_function(trees.seen(x[test]))
        right[test] = np.where(np.abs(margin) < 1e-9, 0.5, (margin > 0) == label[test])
    return accuracy(right, weight, label)


def _mean_one(weights: Array) -> Array:
    return np.asarray(weights / weights.mean())


def accuracy(right: Array, weight: Array, label: np.ndarray) -> tuple[float, float]:
    """The mean share of both sides that was told right, and its standard error."""
    shares, noise = [], []
    for side in (label == 1, label == 0):
        share = float(np.average(right[side], weights=weight[side]))
        size = effective_sample_size(weight[side])
        shares.append(share)
        # a share of 0 or 1 out of n is not known better than to about 1/n
        noise.append(max(share * (1 - share), 1 / size) / size)
    return sum(shares) / 2, math.sqrt(sum(noise)) / 2
