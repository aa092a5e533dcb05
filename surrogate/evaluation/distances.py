"""Distances between two samples, and what they would be had both come from one law.

A `Measure` compares sums over each sample: the counts of a histogram, p and q, D = ½ Σ|p - q|;
second moments, the mean absolute difference of correlations; products at lags, that of
autocorrelations. Each vanishes like √(1/n + 1/m) for n and m draws of one law, never to 0: its
noise floor is its expectation there. `floor` estimates it from the reference alone, so that bad
samples cannot raise it: the m draws are split at random into disjoint parts of a and b = m - a, in
the proportion of min(n, m) to m, and the distance between the parts is scaled,

    floor = E[distance(a, b)] √(1/n + 1/m) / √(1/a + 1/b).

Splits are exact draws of a and b from the law, without the bias of resampling with replacement; the
scaling is exact but for bins that hold few draws (it is low by 1/(16k) of the share of a bin with
k). Weighted samples count as their effective number, (Σw)² / Σw².

Energy distance: Székely & Rizzo, "Energy statistics", J. Stat. Plan. Inference 143 (2013).
Classifier test: Lopez-Paz & Oquab, "Revisiting classifier two-sample tests", ICLR 2017.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from surrogate.evaluation.weights import Array, effective_sample_size

SPLITS = 20
MAX_ENERGY_SAMPLES = 1_500  # of each dataset in the energy distance, which needs all pairs
PERMUTATIONS = 100
MAX_CLASSIFIED = 5_000  # samples of each dataset that the classifier sees
CLASSIFIER_FOLDS = 5
CLIP = 6.0  # standard deviations beyond which the classifier sees no difference
RIDGE = 1.0


class Measure(ABC):
    """A distance between samples that depends on a sum over each of them."""

    @abstractmethod
    def sums(self, x: Array, weights: Array) -> Array:
        """Σ_i w_i f(x_i) for samples x (n, ...) and weights (n,)."""

    @abstractmethod
    def between(self, p: Array, q: Array) -> Array:
        """The distances of two such sums."""

    def __call__(self, x: Array, y: Array, weights: Array, others: Array) -> Array:
        """The distances of samples x (n, ...) from samples y (m, ...)."""
        return self.between(self.sums(x, weights), self.sums(y, others))


def floor(
    measure: Measure, y: Array, weights: Array, n: float, *, seed: int = 0, splits: int = SPLITS
) -> Array:
    """Distances of n draws from as many as y holds, were both of y's law: (splits, ...).

    `y` (m, ...) with weights (m,); `n` is the effective number of the other sample. The same seed
    gives the same splits, so the floors of several variables of a dataset belong together.
    """
    total = measure.sums(y, weights)
    m, size = len(y), effective_sample_size(weights)
    part = min(max(round(m * min(n, size) / (min(n, size) + size)), 1), m - 1)
    found = []
    for k in range(splits):
        order = np.random.default_rng([seed, k]).permutation(m)
        rows, rest = order[:part], order[part:]
        # the remainder of a total is quicker than a sum, and exact up to rounding
        sums = measure.sums(y[rows], weights[rows])
        noise = 1 / effective_sample_size(weights[rows]) + 1 / effective_sample_size(weights[rest])
        scale = math.sqrt((1 / n + 1 / size) / noise)
        found.append(scale * measure.between(sums, total - sums))
    return np.stack(found)


def with_floor(
    measure: Measure,
    x: Array,
    y: Array,
    weights: Array,
    others: Array,
    *,
    seed: int,
    n: float | None = None,
) -> tuple[Array, Array]:
    """The distances (...) of x from y, and those among splits of y, (splits, ...).

    `n`: the effective size of the sample that x is a part of, if it is not the weights'.
    """
    size = effective_sample_size(weights) if n is None else n
    return measure(x, y, weights, others), floor(measure, y, others, size, seed=seed)


# --- histograms -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Histogram(Measure):
    """D = ½ Σ|p - q| at each step; bin k of step t begins at low[t] + k width[t].

    One more bin on either side takes what lies beyond: a few wild samples do not make all bins
    wide, and so D small. Steps in `edges` have bins of their own, between those numbers.
    """

    low: Array
    width: Array
    bins: int
    whole: bool = False
    edges: Mapping[int, Array] = field(default_factory=dict)

    @classmethod
    def of(cls, x: Array, y: Array, *, whole: bool) -> Histogram:
        """Bins for samples (n, T) by a reference (m, T): unit bins for whole numbers, after
        rounding; for real ones ⌊√n⌋ equal bins over the reference's range, n being the smaller.

        Whole numbers that need more unit bins than there are samples in all have ⌊√n⌋ as well. A
        tail so long that one bin of ⌊√n⌋ holds half of the reference has bins of equal shares.
        """
        low, high = y.min(0).astype(np.float64), y.max(0).astype(np.float64)
        count = math.isqrt(min(len(x), len(y)))
        if not whole:
            width = (high - low) / count
            least = 4 * np.spacing(np.abs(low))  # of a constant: what differs lies beyond
            return cls(low, np.maximum(width, least), count)._by_shares(y)
        low, high = np.rint(low), np.rint(high)
        unit = int((high - low).max(initial=0)) + 1
        if unit <= len(x) + len(y):
            return cls(low, np.ones_like(low), unit, whole)
        return cls(low, np.ceil((high - low + 1) / count), count, whole)._by_shares(y)

    def _by_shares(self, y: Array) -> Histogram:
        """The same, with bins of equal shares of y (m, T) where one would hold half of it."""
        fullest = self.sums(y, np.ones(len(y))).max(1) / len(y)
        edges = {}
        for step in np.flatnonzero(fullest > 0.5).tolist():
            cuts = np.quantile(y[:, step], np.linspace(0, 1, self.bins + 1)[1:-1])
            cuts = np.unique(np.rint(cuts) + 0.5 if self.whole else cuts)
            if len(cuts) > 1:  # else it is a constant, but for a few
                edges[step] = cuts
        return replace(self, edges=edges)

    def codes(self, x: Array) -> NDArray[np.int64]:
        """The bin of each value: (n, T)."""
        values = np.rint(x) if self.whole else x
        with np.errstate(over="ignore"):  # what lies that far beyond is clipped
            place = np.clip((values - self.low) / self.width, -1, self.bins + 1)
        codes = np.floor(place).astype(np.int64) + 1
        if not self.whole:  # the last bin is closed
            codes[(place >= self.bins) & (place <= self.bins * (1 + 1e-9))] = self.bins
        np.minimum(codes, self.bins + 1, out=codes)
        for step, cuts in self.edges.items():
            codes[:, step] = np.searchsorted(cuts, values[:, step], side="right")
        return codes

    def sums(self, x: Array, weights: Array) -> Array:
        """The weight in each bin: (T, bins + 2)."""
        codes = self.codes(x)
        steps = codes.shape[1]
        codes += (self.bins + 2) * np.arange(steps)
        each = np.repeat(weights, steps)
        counts = np.bincount(codes.ravel(), each, steps * (self.bins + 2))
        return counts.astype(np.float64).reshape(steps, self.bins + 2)

    def between(self, p: Array, q: Array) -> Array:
        """D at each step: (T,)."""
        shares = p / p.sum(1, keepdims=True) - q / q.sum(1, keepdims=True)
        return np.asarray(np.minimum(0.5 * np.abs(shares).sum(1), 1.0))  # rounding may go beyond


def histogram_distance(x: Array, y: Array, *, whole: bool) -> Array:
    """D of samples (n, T) from samples (m, T) at each step: (T,)."""
    return Histogram.of(x, y, whole=whole)(x, y, np.ones(len(x)), np.ones(len(y)))


# --- correlations ---------------------------------------------------------------------------------


class Correlation(Measure):
    """Mean |r_ij - s_ij| over the pairs i < j of columns; a constant column has r = 0."""

    def sums(self, x: Array, weights: Array) -> Array:
        """Σ w (1, x)(1, x)ᵀ for standardised columns x (n, d): (d + 1, d + 1)."""
        full = np.column_stack([np.ones(len(x)), x])
        return np.asarray((full * weights[:, None]).T @ full)

    def between(self, p: Array, q: Array) -> Array:
        above = np.triu_indices(len(p) - 1, 1)
        return np.asarray(np.abs(_correlations(p) - _correlations(q))[above].mean())


def _correlations(sums: Array) -> Array:
    mean = sums[0, 1:] / sums[0, 0]
    covariance = sums[1:, 1:] / sums[0, 0] - np.outer(mean, mean)
    variance = np.diag(covariance)
    varies = variance > 1e-12
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, variance, 1.0)), 0.0)
    return np.asarray(covariance * np.outer(scale, scale))


@dataclass(frozen=True)
class Autocorrelation(Measure):
    """Mean |r_l - s_l| over lags l, for each variable, of

    r_l = Σ_i Σ_t d_i(t) d_i(t + l) / Σ_i Σ_t d_i(t)², with d_i(t) = x_i(t) - its mean over time.
    """

    lags: tuple[int, ...]

    @classmethod
    def of(cls, steps: int) -> Autocorrelation:
        """Lags 1, 2, 4, ... up to half of the steps."""
        return cls(tuple(2**k for k in range(max(1, (steps // 2).bit_length()))))

    def products(self, x: Array) -> Array:
        """Σ_t d(t) d(t + l) for l = 0 and each lag: (n, C, 1 + L) of series (n, C, T)."""
        d = x - x.mean(-1, keepdims=True)
        parts = [(d * d).sum(-1)] + [(d[..., lag:] * d[..., :-lag]).sum(-1) for lag in self.lags]
        return np.stack(parts, -1)

    def sums(self, x: Array, weights: Array) -> Array:
        """Σ w of `products`: (C, 1 + L)."""
        return np.tensordot(weights, x, 1)

    def between(self, p: Array, q: Array) -> Array:
        """(C,)."""
        return np.asarray(np.abs(_lagged(p) - _lagged(q)).mean(-1))


def _lagged(sums: Array) -> Array:
    whole = sums[:, :1]
    return np.where(whole > 0, sums[:, 1:] / np.where(whole > 0, whole, 1.0), 0.0)


# --- whole samples --------------------------------------------------------------------------------


def standardise(x: Array, y: Array) -> tuple[Array, Array]:
    """Both with the mean 0 and the deviation 1 of the pooled columns; constant ones are dropped."""
    both = np.concatenate([x, y])
    mean, deviation = both.mean(0), both.std(0)
    varies = deviation > 1e-12 * np.abs(both).max(0, initial=0.0)
    z = (both[:, varies] - mean[varies]) / deviation[varies]
    return z[: len(x)], z[len(x) :]


def energy_distance(
    x: Array, y: Array, weights: Array, others: Array, *, seed: int = 0
) -> tuple[float, Array]:
    """2 E|X - Y| - E|X - X'| - E|Y - Y'| for standardised x (n, d), y (m, d), and its values when
    the points are exchanged at random while the weights stay in place: (PERMUTATIONS,).

    With u the weights of x and minus those of y, each normalised, it is -uᵀMu, M_ij = |z_i - z_j|.
    """
    random = np.random.default_rng([seed, 1])
    rows, rest = (
        _some(len(x), MAX_ENERGY_SAMPLES, random),
        _some(len(y), MAX_ENERGY_SAMPLES, random),
    )
    z = np.concatenate([x[rows], y[rest]])
    u = np.concatenate([_normalised(weights[rows]), -_normalised(others[rest])])
    squares = (z * z).sum(1)
    gram = squares[:, None] + squares - 2 * (z @ z.T)
    np.fill_diagonal(gram, 0.0)
    distances = np.sqrt(np.maximum(gram, 0.0))
    exchanged = np.stack([random.permutation(u) for _ in range(PERMUTATIONS)], 1)
    null = -np.einsum("ip,ip->p", exchanged, distances @ exchanged)
    return max(0.0, float(-u @ distances @ u)), np.maximum(null, 0.0)


def classifier_test(
    x: Array, y: Array, weights: Array, others: Array, *, seed: int = 0
) -> tuple[float, float]:
    """Cross-validated accuracy of telling standardised x (n, d) from y (m, d), and its standard
    error; 0.5 is chance. Both sides count half, whatever their sizes.

    Logistic regression on the columns, their squares and the products of neighbours.
    """
    random = np.random.default_rng([seed, 2])
    rows, rest = _some(len(x), MAX_CLASSIFIED, random), _some(len(y), MAX_CLASSIFIED, random)
    features = _features(np.concatenate([x[rows], y[rest]]))
    label = np.repeat([1.0, 0.0], [len(rows), len(rest)])
    weight = np.concatenate([_normalised(weights[rows]), _normalised(others[rest])])
    weight *= len(weight) / 2
    fold = np.concatenate(
        [random.permutation(len(part)) % CLASSIFIER_FOLDS for part in (rows, rest)]
    )
    right = np.zeros(len(label))
    for k in range(CLASSIFIER_FOLDS):
        train, test = fold != k, fold == k
        slope = _logistic(features[train], label[train], weight[train])
        margin = features[test] @ slope
        right[test] = np.where(margin == 0, 0.5, (margin > 0) == label[test])
    sides = [(right[side], weight[side]) for side in (label == 1, label == 0)]
    shares = [float(np.average(hit, weights=w)) for hit, w in sides]
    # a share of 0 or 1 out of n is not known better than to about 1/n
    noise = [
        max(share * (1 - share), 1 / effective_sample_size(w)) / effective_sample_size(w)
        for share, (_, w) in zip(shares, sides, strict=True)
    ]
    return sum(shares) / 2, math.sqrt(sum(noise)) / 2


def _some(count: int, most: int, random: np.random.Generator) -> NDArray[np.int64]:
    return np.sort(random.permutation(count)[:most])


def _normalised(weights: Array) -> Array:
    return np.asarray(weights / weights.sum())


def _features(z: Array) -> Array:
    """(n, d) -> (n, 3d): a constant, z, z², z_j z_{j+1}."""
    z = np.clip(z, -CLIP, CLIP)
    products = z[:, :-1] * z[:, 1:]
    made = np.column_stack([z, z * z, products])
    deviation = made.std(0)
    made = (made - made.mean(0)) / np.where(deviation > 0, deviation, 1.0)
    return np.column_stack([np.ones(len(z)), made])


def _logistic(x: Array, label: Array, weight: Array) -> Array:
    """Ridge logistic regression by Newton steps, halved while they do not help: (d,)."""
    slope = np.zeros(x.shape[1])
    margin = x @ slope
    loss = _loss(margin, label, weight, slope)
    for _ in range(20):
        chance = 0.5 * (1 + np.tanh(0.5 * margin))
        gradient = x.T @ (weight * (chance - label)) + RIDGE * slope
        curvature = (x * (weight * chance * (1 - chance))[:, None]).T @ x
        curvature[np.diag_indices(len(slope))] += RIDGE
        step = np.linalg.solve(curvature, gradient)
        for k in range(10):
            new = slope - 0.5**k * step
            margin = x @ new
            reached = _loss(margin, label, weight, new)
            if reached <= loss:
                break
        slope, gain, loss = new, loss - reached, reached
        if gain < 1e-4 * len(x):
            break
    return slope


def _loss(margin: Array, label: Array, weight: Array, slope: Array) -> float:
    """Negative log-likelihood with its penalty."""
    each = np.logaddexp(0.0, margin) - label * margin
    return float(weight @ each + 0.5 * RIDGE * slope @ slope)
