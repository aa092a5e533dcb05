"""Gradient-boosted trees: a classifier two-sample test, and prediction of a column.

The two-sample test (C2ST: Lopez-Paz & Oquab, ICLR 2017) is the cross-validated accuracy of trees
that tell samples from a reference; between two samples of one law it is 0.5, within the binomial
noise. Numbers, categories and missing values need no preprocessing. The trees are scikit-learn's
histogram gradient boosting (after LightGBM), an optional dependency.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

from surrogate.errors import ModelError
from surrogate.evaluation.weights import Array, effective_sample_size

MAX_CLASSIFIED_ROWS = 5_000  # of each dataset
TREE_FOLDS = 3
MIN_TREE_ROWS = 30  # of each dataset, for trees to learn from
MAX_TREE_WORDS = 250  # of a categorical column; trees have at most 255 bins
MAX_TREES = 100
INSTALL = "pip install 'surrogate-toolkit[tables]'"


def installed() -> bool:
    return find_spec("sklearn") is not None


def require(what: str) -> None:
    if not installed():
        raise ModelError(f"{what} needs scikit-learn, which is not installed", remedy=INSTALL)


@dataclass(frozen=True)
class Features:
    """Features of trees: values (n, d) per dataset, and which columns are categorical (d,)."""

    sides: tuple[Array, ...]
    words: tuple[bool, ...]


class Trees:
    """A classifier (`kind` "classes") or a regressor; `early`: with early stopping."""

    def __init__(self, kind: str, words: Sequence[bool], seed: int, *, early: bool = True) -> None:
        self.kind, self.words, self.seed = kind, np.asarray(words, bool), seed
        self.early = early

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
            early_stopping=enough and self.early,
            validation_fraction=0.1 if enough and self.early else None,
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
    features: Features,
    weights: Array,
    others: Array,
    *,
    groups: tuple[np.ndarray | None, np.ndarray | None] = (None, None),
    seed: int = 0,
) -> tuple[float, float]:
    """Cross-validated accuracy of classifying rows by their dataset, and its standard error.

    The classes are balanced, so 0.5 is chance. `weights` (n,) of the first, `others` (m,) of the
    second. `groups`: the number of a group for each row, (n,) and (m,), where rows of a group share
    values (windows of one series) and so must be in one fold.
    """
    random = np.random.default_rng([seed, 5])
    count = min(MAX_CLASSIFIED_ROWS, len(weights), len(others))
    rows = [random.permutation(len(each))[:count] for each in (weights, others)]
    x = np.concatenate([side[r] for side, r in zip(features.sides, rows, strict=True)])
    label = np.repeat([1, 0], count)
    weight = np.concatenate([_mean_one(w[r]) for w, r in zip((weights, others), rows, strict=True)])
    order = np.arange(count)
    numbers = [order if g is None else g[r] for g, r in zip(groups, rows, strict=True)]
    fold = np.concatenate(numbers) % TREE_FOLDS
    right = np.zeros(len(label))
    for k in range(TREE_FOLDS):
        train, test = fold != k, fold == k
        # stopping early loses weak evidence that is spread over many columns
        trees = Trees("classes", features.words, seed, early=False)
        trees.fit(x[train], label[train], weight[train])
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
