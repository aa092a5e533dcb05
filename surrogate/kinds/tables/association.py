"""The association of pairs of columns, and how far two tables differ in it.

For two columns of numbers the correlation r; for a number and a word the correlation ratio
η² = Σ_k p_k (mean_k - mean)² / variance; for two words Cramér's V² = (Σ p_ij² / (p_i p_j) - 1) /
(min(K, L) - 1). Besides these coefficients, the total variation D = ½ Σ|p_ij - q_ij| between the
contingency tables of any two columns (numbers in quantile bins), which also detects differences
that leave r, η and V unchanged.

All of them are functions of the second moments Σ w f fᵀ of the features f = (1, numbers,
indicators), so one matrix product computes all pairs of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from surrogate.evaluation.distances import Measure
from surrogate.evaluation.weights import Array
from surrogate.kinds.tables.align import Column

MAX_INDICATED_WORDS = 15  # most frequent words of a column with an indicator; the rest share one
MIN_INDICATED_ROWS = 20  # rows of both tables that a word with its own indicator has
QUANTILE_BINS = 5  # indicators of a column of numbers
MAX_MOMENT_COST = 2e9  # rows times features², at most
MAX_ASSOCIATED_ROWS = 20_000
MIN_COLUMN_VARIANCE = 1e-9  # of a standardised column; one with less counts as constant
ASSOCIATION_NAMES = ("correlation", "correlation_ratio", "cramers_v", "contingency")


@dataclass(frozen=True)
class Association(Measure):
    """Mean absolute differences over pairs of columns, in the order of ASSOCIATION_NAMES; NaN where
    there are no such pairs.

    `numbers`: how many columns are numbers; they come first. `starts`: the first indicator of each
    column, (d,).
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
        varies = variance > MIN_COLUMN_VARIANCE
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


def numbers_first(columns: Sequence[Column]) -> list[Column]:
    """The columns in the order that `Association` expects."""
    return sorted(columns, key=lambda each: each.kind == "word")


def features(columns: Sequence[Column]) -> tuple[Association, tuple[Array, ...]]:
    """The measure of columns in the order of `numbers_first`, and the features (n, F) per table."""
    numbers = [each for each in columns if each.kind != "word"]
    scaled = [standardised(each) for each in numbers]
    groups = [_indicators(each) for each in columns]
    widths = [group[0].shape[1] for group in groups]
    starts = tuple(np.concatenate([[0], np.cumsum(widths)[:-1]]).astype(int).tolist())
    sides = []
    for k, values in enumerate(columns[0].sides):
        parts = [np.ones((len(values), 1))]
        parts += [each[k][:, None] for each in scaled]
        sides.append(np.concatenate([*parts, *(group[k] for group in groups)], 1))
    return Association(len(numbers), starts), tuple(sides)


def affordable_rows(columns: Sequence[Column]) -> int:
    """Rows of each table that the moments are computed from."""
    wide = sum(
        1 + (MAX_INDICATED_WORDS + 2 if each.kind == "word" else QUANTILE_BINS + 2)
        for each in columns
    )
    return int(min(MAX_ASSOCIATED_ROWS, max(1_000, MAX_MOMENT_COST / wide**2)))


def standardised(column: Column) -> tuple[Array, ...]:
    """Values (n,) per table, standardised over all tables; missing ones are 0."""
    rescaled = column.rescaled()
    both = np.concatenate(rescaled.sides)
    known = both[~np.isnan(both)]
    mean, deviation = (float(known.mean()), float(known.std())) if known.size else (0.0, 0.0)
    if deviation <= 1e-12 * float(np.abs(known).max(initial=0.0)):
        return tuple(np.zeros(len(side)) for side in rescaled.sides)
    return tuple(np.nan_to_num((side - mean) / deviation, nan=0.0) for side in rescaled.sides)


def _indicators(column: Column) -> tuple[Array, ...]:
    """Indicators (n, K) per table of the word or bin of a value, or of a missing value."""
    if column.kind == "word":
        # counted over both tables: words that are frequent in one may be so by chance
        often = column.word_counts()
        place = np.full(len(column.words), MAX_INDICATED_WORDS)
        chosen = [
            k
            for k in np.argsort(-often, kind="stable")[:MAX_INDICATED_WORDS]
            if often[k] >= MIN_INDICATED_ROWS
        ]
        place[chosen] = np.arange(len(chosen))
        codes = [np.where(np.isnan(s), -1, place[_filled(s)]) for s in column.sides]
    else:
        known = column.right[~np.isnan(column.right)]
        levels = np.linspace(0, 1, QUANTILE_BINS + 1)[1:-1]
        cuts = np.unique(np.quantile(known, levels)) if known.size else known
        codes = [np.where(np.isnan(s), -1, np.searchsorted(cuts, s, "left")) for s in column.sides]
    present = np.unique(np.concatenate(codes))
    return tuple((each[:, None] == present).astype(np.float64) for each in codes)


def _filled(codes: Array) -> np.ndarray:
    return np.nan_to_num(codes, nan=0.0).astype(np.int64)
