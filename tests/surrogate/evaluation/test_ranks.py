"""Ranks of truths: uniform if and only if the posterior is calibrated; bands of an ECDF."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from surrogate.evaluation.ranks import (
    Uniformity,
    cell_counts,
    coverage,
    ecdf_band,
    randomised_ranks,
)


def test_ranks_of_counts_are_uniform_in_spite_of_ties() -> None:
    """Truth and draws from one law of four values: u is exactly uniform, whatever L is."""
    random = np.random.default_rng(1)
    truth, draws = random.poisson(0.8, 4_000), random.poisson(0.8, (7, 4_000))
    u = randomised_ranks(truth, draws, random.random(4_000))
    assert stats.kstest(u, "uniform").pvalue > 0.01
    assert u.min() > 0
    assert u.max() < 1


def test_a_rank_counts_what_lies_below() -> None:
    truth, draws = np.array([2.0]), np.array([[1.0], [2.0], [3.0], [4.0]])
    assert randomised_ranks(truth, draws, np.array([0.0])) == pytest.approx(1 / 5)
    assert randomised_ranks(truth, draws, np.array([1.0])) == pytest.approx(3 / 5)


@pytest.mark.parametrize("count", [20, 100])
def test_the_band_holds_uniform_ecdfs_with_its_probability(count: int) -> None:
    z, low, high = ecdf_band(count, 0.9)
    u = np.random.default_rng(2).random((4_000, count))
    ecdf = (u[:, :, None] <= z).mean(1)
    inside = ((ecdf >= low - 1e-12) & (ecdf <= high + 1e-12)).all(1).mean()
    # counts are discrete: the band is the narrowest that holds at least 90 %
    assert 0.9 - 4 * math.sqrt(0.09 / 4_000) < inside < 0.95


def test_uniform_ranks_are_rarely_rejected() -> None:
    u = np.random.default_rng(3).random((1_000, 100))
    rejected = np.mean([Uniformity.of(each).p_value < 0.05 for each in u])
    assert rejected < 0.05 + 4 * math.sqrt(0.05 * 0.95 / 1_000)


@pytest.mark.parametrize(
    ("a", "b", "low", "spread"), [(0.5, 0.5, 0.4, 1.3), (3, 3, 0.4, 0.2), (1, 2, 0.3, 0.6)]
)
def test_ranks_that_are_not_uniform_are_rejected(
    a: float, b: float, low: float, spread: float
) -> None:
    u = np.random.default_rng(4).beta(a, b, 200)
    found = Uniformity.of(u)
    assert found.p_value < 1e-4
    assert found.mean > low
    assert found.spread > spread


def test_coverage_counts_truths_in_central_intervals() -> None:
    u = np.array([0.01, 0.3, 0.5, 0.7, 0.99])
    assert coverage(u, 0.5) == pytest.approx(3 / 5)
    assert coverage(u, 0.98) == pytest.approx(1.0)
    assert cell_counts(np.linspace(0.005, 0.995, 100)).tolist() == [10] * 10
