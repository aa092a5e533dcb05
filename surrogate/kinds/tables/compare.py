"""How good a table of samples is, beside real rows: each column, what goes together, whether trees
tell the rows apart, whether rows were memorised, and whether the samples can be learned from.

For a column, D = ½ Σ|p - q| between histograms, words and what is missing having bins of their own.
All distances stand beside their noise floors (see `distances`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surrogate.evaluation import distances
from surrogate.evaluation.distances import Array, Histogram, Measure
from surrogate.evaluation.result import Evaluation, Measured, Privacy, histograms, measured
from surrogate.kinds.signals import Data
from surrogate.kinds.tables.align import Column, Rows, shared
from surrogate.kinds.tables.association import NAMES, affordable, arranged, features
from surrogate.kinds.tables.boosting import FEWEST, INSTALL, Features, installed, told_apart
from surrogate.kinds.tables.privacy import privacy
from surrogate.kinds.tables.train_on_synthetic import predicted, usefulness

EVERY = "all columns"
RARE = 5  # rows of both sides: words that have fewer share a bin
CLASSIFIED = 128  # features that the simple classifier sees


@dataclass(frozen=True)
class Binned(Measure):
    """D of each column from the bins of its values; `starts`: the first bin of each, of `bins`."""

    starts: tuple[int, ...]
    bins: int

    def sums(self, x: Array, weights: Array) -> Array:
        """The weight in each bin, (bins,), of codes (n, d)."""
        each = np.repeat(weights, x.shape[1])
        return np.bincount(x.ravel().astype(np.int64), each, self.bins).astype(np.float64)

    def between(self, p: Array, q: Array) -> Array:
        """(d,)."""
        sizes = np.diff([*self.starts, self.bins])
        total = (np.repeat(np.add.reduceat(each, self.starts), sizes) for each in (p, q))
        apart = np.abs(p / next(total) - q / next(total))
        return np.asarray(np.minimum(0.5 * np.add.reduceat(apart, self.starts), 1.0))


def binned(columns: Sequence[Column]) -> tuple[Binned, Array, Array]:
    """The measure and the codes (n, d) and (m, d); only bins that hold something are counted."""
    starts, parts, bins = [], [], 0
    cut = len(columns[0].left)
    for column in columns:
        both = np.concatenate(_codes(column.tame()))
        kinds, codes = np.unique(both, return_inverse=True)
        starts.append(bins)
        parts.append(codes + bins)
        bins += len(kinds)
    every: Array = np.stack(parts, 1).astype(np.float64)
    return Binned(tuple(starts), bins), every[:cut], every[cut:]


def _codes(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Bins of the values of both sides, (n,) and (m,); -1 for what is missing."""
    if column.kind == "word":
        # words of a row or two make a distance that no split of the reference foretells
        place = np.where(column.often() < RARE, len(column.words), np.arange(len(column.words)))
        left, right = (
            np.where(np.isnan(each), -1, place[np.nan_to_num(each, nan=0.0).astype(np.int64)])
            for each in (column.left, column.right)
        )
        return left, right
    known = [each[~np.isnan(each)][:, None] for each in (column.left, column.right)]
    made = [np.full(len(each), -1) for each in (column.left, column.right)]
    one_sided = not all(len(each) for each in known)
    histogram = None if one_sided else Histogram.of(known[0], known[1], whole=column.whole)
    for codes, side, values in zip(made, (column.left, column.right), known, strict=True):
        codes[~np.isnan(side)] = 0 if histogram is None else histogram.codes(values)[:, 0]
    return made[0], made[1]


def compare(
    data: Data, against: Data, seed: int, target: str | None = None, train: Data | None = None
) -> Evaluation:
    """A table of samples against one of real rows; see `evaluation.evaluate`."""
    x, y = Rows(data, "the samples"), Rows(against, "the reference")
    columns, lone = shared(x, y)
    if target is not None:  # refuse what cannot be before the long part
        predicted(columns, target)
    measure, left, right = binned(columns)
    found, floors = _beside(measure, left, right, x.weights, y.weights, seed)
    few = _some(columns, affordable(columns), seed)
    weights = [side.weights[r] for side, r in zip((x, y), few, strict=True)]
    arranged_ = arranged([each.some(few) for each in columns])
    energy, told, judge = _as_wholes(arranged_, weights, seed)
    if installed() and min(len(x.weights), len(y.weights)) >= FEWEST:
        judge = "gradient boosting"
        told = told_apart(Features.of(columns), x.weights, y.weights, seed=seed)
    single = len(columns) == 1
    return Evaluation(
        samples=x.count,
        effective=distances.effective(x.weights),
        reference=y.count,
        times=(),
        variables=tuple(
            histograms(each.name, found[k : k + 1], floors[:, k : k + 1])
            for k, each in enumerate(columns)
        ),
        overall=histograms(EVERY, found, floors),
        autocorrelation=None,
        energy=energy,
        classifier=told,
        consistent=None,
        rules=0,
        satisfied=x.satisfied,
        judge=judge,
        privacy=_privacy(x, y, columns, train, seed),
        usefulness=None
        if target is None
        else usefulness(columns, target, x.weights, y.weights, seed=seed),
        lone=lone,
        **(dict.fromkeys(NAMES) if single else _associations(arranged_, weights, seed)),
    )


def _beside(
    measure: Measure, left: Array, right: Array, weights: Array, others: Array, seed: int
) -> tuple[Array, Array]:
    """The distances (...) and those among splits of the reference, (splits, ...)."""
    found = measure(left, right, weights, others)
    return found, distances.floor(measure, right, others, distances.effective(weights), seed=seed)


def _some(columns: Sequence[Column], most: int, seed: int) -> list[np.ndarray]:
    """Rows of each side, at most so many, drawn at random."""
    random = np.random.default_rng([seed, 3])
    return [np.sort(random.permutation(len(side))[:most]) for side in columns[0].sides]


def _associations(
    columns: Sequence[Column], weights: Sequence[Array], seed: int
) -> dict[str, Measured | None]:
    measure, sides = features(columns)
    found, floors = _beside(measure, sides[0], sides[1], weights[0], weights[1], seed)
    return {
        name: None if np.isnan(found[k]) else measured(found[k], floors[:, k])
        for k, name in enumerate(NAMES)
    }


def _as_wholes(
    columns: Sequence[Column], weights: Sequence[Array], seed: int
) -> tuple[Measured, tuple[float, float], str]:
    """The energy distance, and the accuracy of a simple classifier, of rows as points."""
    measure, sides = features(columns)
    words = 1 + measure.numbers + (*measure.starts, sides[0].shape[1])[measure.numbers]
    chosen = [*range(1, 1 + measure.numbers), *range(words, sides[0].shape[1])]
    left, right = distances.standardise(sides[0][:, chosen], sides[1][:, chosen])
    energy, null = distances.energy_distance(left, right, weights[0], weights[1], seed=seed)
    some = np.unique(np.linspace(0, max(left.shape[1] - 1, 0), CLASSIFIED).astype(np.int64))
    some = some[some < left.shape[1]]
    told = distances.classifier_test(
        left[:, some], right[:, some], weights[0], weights[1], seed=seed
    )
    name = "logistic regression" + ("" if installed() else f"; for a better one: {INSTALL}")
    return measured(energy, null), told, name


def _privacy(x: Rows, y: Rows, columns: Sequence[Column], train: Data | None, seed: int) -> Privacy:
    if train is None:
        return privacy(columns, x.weights, held_out=False, seed=seed)
    three, _ = shared(x, y, Rows(train, "the training rows"))
    return privacy(three, x.weights, held_out=True, seed=seed)
