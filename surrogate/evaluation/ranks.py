"""Ranks of truths among posterior draws: uniform where the posterior is calibrated.

Draw θ* ~ p(θ), y ~ p(y | θ*) and θ_1, ..., θ_L ~ q(θ | y). Where q is the posterior, the rank of
θ* among θ_1, ..., θ_L is uniform on 0, ..., L, for any function of θ in its place (Talts et al.
2018, "Validating Bayesian inference algorithms with simulation-based calibration"). With ties of
counts broken at random and a uniform number in place of each rank's cell,

    u = (number below + U (number of ties + 1)) / (L + 1)

is exactly uniform on [0, 1], and the central interval of probability p holds the truth where
|u - 1/2| <= p / 2.

Three tests look at u_1, ..., u_N: χ² of equal cells; the mean, which a biased posterior shifts; the
variance, which is above 1/12 where the posterior is too narrow. The band of an ECDF holds all of it
with a stated probability (Säilynoja, Bürkner and Vehtari 2022, "Graphical test for discrete
uniformity and its applications in goodness-of-fit evaluation and multiple sample comparison").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]

LEVELS = (0.5, 0.8, 0.95)  # probabilities of central intervals
MAX_CELLS = 20  # of a histogram
CELL_COUNT = 10  # ranks expected in a cell
BAND_LEVEL = 0.95
MAX_BAND_POINTS = 100
BISECTIONS = 25
TESTS = 3


def randomised_ranks(truth: Array, draws: Array, random: Array) -> Array:
    """u (Q,) of truths (Q,) among draws (L, Q); `random` (Q,): uniform numbers."""
    below = (draws < truth).sum(0)
    ties = (draws == truth).sum(0)
    found: Array = (below + random * (ties + 1)) / (len(draws) + 1)
    return found


@dataclass(frozen=True)
class Uniformity:
    """How uniform u_1, ..., u_N are."""

    count: int
    chi_square: float
    """p-value of χ²."""
    mean: float
    """1/2 of uniform ones; above, where truths lie above their posteriors."""
    spread: float
    """Variance over 1/12; above 1 where posteriors are too narrow."""
    p_value: float
    """Of χ², mean and variance together (Bonferroni)."""
    distance: float
    """The largest distance of their ECDF from the diagonal (Kolmogorov and Smirnov)."""

    @classmethod
    def of(cls, u: Array) -> Uniformity:
        count = len(u)
        if count < 2:
            return cls(count, 1.0, 0.5, 1.0, 1.0, 0.0)
        chi_square = float(stats.chisquare(cell_counts(u)).pvalue) if cells(count) > 1 else 1.0
        mean, spread = float(u.mean()), float(12 * np.mean((u - 0.5) ** 2))
        about_mean = 2 * stats.norm.sf(abs(mean - 0.5) * math.sqrt(12 * count))
        about_spread = 2 * stats.norm.sf(abs(spread - 1) / 12 * math.sqrt(180 * count))
        least = min(chi_square, about_mean, about_spread)
        distance = float(stats.kstest(u, "uniform").statistic)
        return cls(count, chi_square, mean, spread, min(1.0, TESTS * least), distance)


def cells(count: int) -> int:
    """How many cells a histogram of so many ranks has."""
    return max(1, min(MAX_CELLS, count // CELL_COUNT))


def cell_counts(u: Array) -> NDArray[np.int64]:
    """Ranks in each of equal cells."""
    return np.histogram(u, cells(len(u)), (0.0, 1.0))[0]


def coverage(u: Array, level: float) -> float:
    """The share of truths in the central interval of this probability."""
    return float(np.mean(np.abs(u - 0.5) <= level / 2)) if len(u) else math.nan


def coverage_error(level: float, count: int) -> float:
    """The binomial standard error of that share, where it is `level`."""
    return math.sqrt(level * (1 - level) / max(count, 1))


def ecdf_band(count: int, level: float = BAND_LEVEL) -> tuple[Array, Array, Array]:
    """Points z (K,) and the ends (K,) of a band that holds the ECDF of `count` uniform numbers at
    all of them with probability `level`.

    At z the ends are quantiles γ/2 and 1 - γ/2 of Binomial(count, z) / count, with γ by bisection.
    The numbers up to z_1, z_2, ... are sums of independent Poisson ones given their total, so that
    the probability of a band is a product of convolutions.
    """
    points = min(count, MAX_BAND_POINTS)
    z = np.arange(1, points) / points
    low, high = 0.0, 1.0 - level
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        inside = _inside(count, points, *_ends(count, z, middle)) >= level
        low, high = (middle, high) if inside else (low, middle)
    ends = _ends(count, z, low)
    return z, ends[0] / count, ends[1] / count


def _ends(count: int, z: Array, tail: float) -> tuple[Array, Array]:
    law = stats.binom(count, z)
    return np.asarray(law.ppf(tail / 2)), np.asarray(law.ppf(1 - tail / 2))


def _inside(count: int, points: int, low: Array, high: Array) -> float:
    """The probability that the numbers (K - 1,) of `count` up to k / K lie within low..high."""
    numbers = np.arange(count + 1)
    step = stats.poisson.pmf(numbers, count / points)
    law = np.zeros(count + 1)
    law[0] = 1.0
    for least, most in zip(low, high, strict=True):
        law = np.convolve(law, step)[: count + 1]
        law[(numbers < least) | (numbers > most)] = 0.0
    last = np.convolve(law, step)[count]
    return float(last / stats.poisson.pmf(count, count))
