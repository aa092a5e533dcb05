"""Gradient-boosted trees on rows: a classifier two-sample test, and prediction of a column.

Numbers, categories and missing values need no preprocessing. The trees are scikit-learn's histogram
gradient boosting (after LightGBM), an optional dependency.
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
TREE_FOLDS = 3
MIN_TREE_ROWS = 30  # of each table, for trees to learn from
MAX_TREE_WORDS = 250  # of a column; trees have at most 255 bins
MAX_TREES = 100
INSTALL = "pip install 'surrogate-toolkit[tables]'"


def installed() -> bool:
    return find_spec("sklearn") is not None


def require(what: str) -> None:
    if not installed():
        raise ModelError(f"{what} needs scikit-learn, which is not installed", remedy=INSTALL)


@dataclass(frozen=True)
class Features:
    """Features of trees: values (n, d) per table, and which columns are categorical (d,)."""

    sides: tuple[Array, ...]
    words: tuple[bool, ...]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> Features:
        made = [_ordinal(each) for each in columns]
        sides = tuple(np.stack(parts, 1) for parts in zip(*made, strict=True))
        return cls(sides, tuple(each.kind == "word" for each in columns))


def _ordinal(column: Column) -> tuple[Array, ...]:
    """Values (n,) per table; words as their rank by frequency, the rarest sharing the last."""
    if column.kind != "word":
        return column.rescaled().sides
    order = np.argsort(np.argsort(-column.word_counts(), kind="stable"))
    place = np.minimum(order, MAX_TREE_WORDS).astype(np.float64)
    return tuple(
        np.where(np.isnan(side), np.nan, place[np.nan_to_num(side, nan=0.0).astype(np.int64)])
        for side in column.sides
    )


class Trees:
    """A classifier (`kind` "classes") or a regressor, with early stopping."""

    def __init__(self, kind: str, words: Sequence[bool], seed: int) -> None:
        self.kind, self.words, self.seed = kind, np.asarray(words, bool), seed

    def fit(self, x: Array, target: np.ndarray, weight: Array) -> Trees:
        """Fit the target (n,) to rows x (n, d) with weights (n,)."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        classes = self.kind == "classes"
        made = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
        enough = len(target) >= 300  # for a validation set that decides when to stop
        if classes:
            enough &= int(np.unique(target, return_counts=True)[1].min()) >= 20
        self.known = ~np.isnan(x).all(0)  # columns with values
        words = self.words[self.known]
        model = made(
            max_iter=MAX_TREES if enough else 30,
            early_stopping=enough,
            validation_fraction=0.1 if enough else None,
            n_iter_no_change=8,
            min_samples_leaf=20 if enough else 5,
            categorical_features=words if words.any() else None,
            random_state=self.seed % 2**32,
        )
        # binning weighted rows is slow
        given = None if np.ptp(weight) == 0 else weight / weight.mean()
        self.model = model.fit(self.usable_columns(x), target, sample_weight=given)
        return self

    def usable_columns(self, x: Array) -> Array:
        """The columns of x that have values; a constant if there are none."""
        return x[:, self.known] if self.known.any() else np.zeros((len(x), 1))


def two_sample_test(
    features: Features, weights: Array, others: Array, *, seed: int = 0
) -> tuple[float, float]:
    """Cross-validated accuracy of classifying rows by their table, and its standard error.

    The classes are balanced, so 0.5 is chance. `weights` (n,) of the first table, `others` (m,) of
    the second.
    """
    random = np.random.default_rng([seed, 5])
    count = min(MAX_CLASSIFIED_ROWS, len(weights), len(others))
    rows = [random.permutation(len(each))[:count] for each in (weights, others)]
    x = np.concatenate([side[r] for side, r in zip(features.sides, rows, strict=True)])
    label = np.repeat([1, 0], count)
    weight = np.concatenate([_mean_one(w[r]) for w, r in zip((weights, others), rows, strict=True)])
    fold = np.tile(np.arange(count) % TREE_FOLDS, 2)
    right = np.zeros(len(label))
    for k in range(TREE_FOLDS):
        train, test = fold != k, fold == k
        trees = Trees("classes", features.words, seed).fit(x[train], label[train], weight[train])
        margin = trees.model.decision_function(trees.usable_columns(x[test]))
        right[test] = np.where(np.abs(margin) < 1e-9, 0.5, (margin > 0) == label[test])
    return accuracy(right, weight, label)


def _mean_one(weights: Array) -> Array:
    return np.asarray(weights / weights.mean())


def accuracy(right: Array, weight: Array, label: np.ndarray) -> tuple[float, float]:
    """The balanced accuracy of two classes, and its standard error."""
    shares, noise = [], []
    for side in (label == 1, label == 0):
        share = float(np.average(right[side], weights=weight[side]))
        size = effective_sample_size(weight[side])
        shares.append(share)
        # the error of a share of 0 or 1 out of n is about 1/n
        noise.append(max(share * (1 - share), 1 / size) / size)
    return sum(shares) / 2, math.sqrt(sum(noise)) / 2
