"""How the columns of a table go together, and how far two tables differ in that.

For two columns of numbers the correlation r; for a number and a word the correlation ratio
η² = Σ_k p_k (mean_k - mean)² / variance; for two words Cramér's V² = (Σ p_ij² / (p_i p_j) - 1) /
(min(K, L) - 1). Beside these, which are single numbers, D = ½ Σ|p_ij - q_ij| between the tables of
any two columns, numbers in bins of equal shares: it sees what leaves r, η and V as they are.

All of them follow from the second moments Σ w f fᵀ of one vector of features f = (1, numbers,
indicators), so one matrix product makes all pairs of columns at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surrogate.evaluation.distances import Measure
from surrogate.evaluation.weights import Array
from surrogate.kinds.tables.align import Column

WORDS = 15  # of a column that are told apart: the most frequent; the others are one
RARE = 20  # rows of both sides, from which on a word can be one of them
BINS = 5  # of a column of numbers
WORK = 2e9  # rows times features², at most
ROWS = 20_000
MIN_VARIANCE = 1e-9  # of a standardised column; one with less counts as constant
NAMES = ("correlation", "correlation_ratio", "cramers_v", "contingency")


@dataclass(frozen=True)
class Association(Measure):
    """Mean absolute differences over the pairs of columns of each kind, in the order of NAMES; NaN
    where there are no such pairs. `starts`: the first indicator of each column, (d,), columns of
    numbers first, of which there are `numbers`.
    """

    numbers: int
    starts: tuple[int, ...]

    def sums(self, x: Array, weights: Array) -> Array:
        """Σ w f fᵀ for features f (n, F): (F, F)."""
        return np.asarray((x * weights[:, None]).T @ x)

    def between(self, p: Array, q: Array) -> Array:
        """(4,)."""
        a, d = self.numbers, len(self.starts)
        apart = np.abs(self.coefficients(p) - self.coefficients(q))
        pairs = np.triu(np.ones((d, d), bool), 1)
        word = np.arange(d) >= a
        kinds = [~word[:, None] & ~word, ~word[:, None] & word, word[:, None] & word]
        made = [_mean(apart[pairs & kind]) for kind in kinds]
        first = 1 + a
        joint = np.abs(p[first:, first:] / p[0, 0] - q[first:, first:] / q[0, 0])
        return np.array([*made, _mean(0.5 * self._grouped(joint)[pairs])])

    def _grouped(self, cells: Array) -> Array:
        """Sums over the indicators of each pair of columns: (d, d)."""
        return np.asarray(np.add.reduceat(np.add.reduceat(cells, self.starts, 0), self.starts, 1))

    def coefficients(self, sums: Array) -> Array:
        """r, η or V of every two columns, (d, d); 0 for a column that does not vary."""
        a, first = self.numbers, 1 + self.numbers
        moments = sums / sums[0, 0]
        mean = moments[0, 1:first]
        covariance = moments[1:first, 1:first] - np.outer(mean, mean)
        variance = np.diag(covariance)
        varies = variance > MIN_VARIANCE
        inverse = np.where(varies, 1 / np.where(varies, variance, 1.0), 0.0)
        joint = moments[first:, first:]
        share = np.diag(joint)
        some = np.where(share > 0, 1 / np.where(share > 0, share, 1.0), 0.0)
        squares = self._grouped(joint**2 * np.outer(some, some)) - 1
        kinds = np.add.reduceat((share > 0).astype(np.float64), self.starts)
        least = np.minimum.outer(kinds, kinds) - 1
        found = np.sqrt(np.clip(squares / np.maximum(least, 1), 0, 1))
        deviation = moments[first:, 1:first] - np.outer(share, mean)
        ratio = np.add.reduceat(deviation**2 * some[:, None], self.starts, 0) * inverse
        ratio = np.sqrt(np.clip(ratio, 0, 1))[a:]  # (words, numbers)
        found[a:, :a], found[:a, a:] = ratio, ratio.T
        found[:a, :a] = np.clip(covariance * np.sqrt(np.outer(inverse, inverse)), -1, 1)
        return np.asarray(found)


def _mean(values: Array) -> float:
    return float(values.mean()) if values.size else np.nan


def arranged(columns: Sequence[Column]) -> list[Column]:
    """Numbers first, as `Association` has them."""
    return sorted(columns, key=lambda each: each.kind == "word")


def features(columns: Sequence[Column]) -> tuple[Association, tuple[Array, ...]]:
    """The measure for columns that are arranged, and the features (n, F) of each side."""
    numbers = [each for each in columns if each.kind != "word"]
    scaled = [scaled_by(each) for each in numbers]
    groups = [_indicators(each) for each in columns]
    widths = [group[0].shape[1] for group in groups]
    starts = tuple(np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(int).tolist())
    sides = []
    for k, values in enumerate(columns[0].sides):
        parts = [np.ones((len(values), 1))]
        parts += [each[k][:, None] for each in scaled]
        sides.append(np.concatenate([*parts, *(group[k] for group in groups)], 1))
    return Association(len(numbers), starts), tuple(sides)


def affordable(columns: Sequence[Column]) -> int:
    """How many rows of each side the moments are made of."""
    wide = sum(1 + (WORDS + 2 if each.kind == "word" else BINS + 2) for each in columns)
    return int(min(ROWS, max(1_000, WORK / wide**2)))


def scaled_by(column: Column) -> tuple[Array, ...]:
    """With the mean 0 and deviation 1 of all sides together; what is missing is 0: (n,) each."""
    tame = column.tame()
    both = np.concatenate(tame.sides)
    known = both[~np.isnan(both)]
    mean, deviation = (float(known.mean()), float(known.std())) if known.size else (0.0, 0.0)
    if deviation <= 1e-12 * float(np.abs(known).max(initial=0.0)):
        return tuple(np.zeros(len(side)) for side in tame.sides)
    return tuple(np.nan_to_num((side - mean) / deviation, nan=0.0) for side in tame.sides)


def _indicators(column: Column) -> tuple[Array, ...]:
    """1 in the place of the value's word or bin, or of what is missing: (n, K) each."""
    if column.kind == "word":
        # of both sides: those most frequent in one of them are so by chance as well
        often = column.often()
        place = np.full(len(column.words), WORDS)
        chosen = [k for k in np.argsort(-often, kind="stable")[:WORDS] if often[k] >= RARE]
        place[chosen] = np.arange(len(chosen))
        codes = [np.where(np.isnan(s), -1, place[_filled(s)]) for s in column.sides]
    else:
        known = column.right[~np.isnan(column.right)]
        levels = np.linspace(0, 1, BINS + 1)[1:-1]
        cuts = np.unique(np.quantile(known, levels)) if known.size else known
        codes = [np.where(np.isnan(s), -1, np.searchsorted(cuts, s, "left")) for s in column.sides]
    present = np.unique(np.concatenate(codes))
    return tuple((each[:, None] == present).astype(np.float64) for each in codes)


def _filled(codes: Array) -> np.ndarray:
    return np.nan_to_num(codes, nan=0.0).astype(np.int64)
