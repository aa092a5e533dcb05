"""The stated error of log Z holds the truth as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.mixture_25 import run
from surrogate.guidance.evidence import combined, level_counts

BATCHES = 4


def test_half_of_the_batches_have_fewer_and_half_have_more_noise_levels() -> None:
    assert level_counts(40, BATCHES) == [27, 60, 27, 60]
    assert level_counts(3, 2) == [3, 5]


@pytest.mark.parametrize(("noise", "slope"), [(0.05, 0.0), (0.02, 4.0), (0.1, 10.0), (0.3, 1.0)])
def test_the_interval_holds_the_truth_where_the_bias_falls_with_the_levels(
    noise: float, slope: float
) -> None:
    """log Z of a batch is off by slope/n, and by chance. The spread of four batches of 40 levels
    would hold the truth in none of the runs for noise .02 and slope 4."""
    rng = np.random.default_rng(1)
    counts = level_counts(40, BATCHES)
    held = 0
    for _ in range(1_000):
        log_zs = [slope / n + noise * rng.standard_normal() - 3.0 for n in counts]
        found = combined(log_zs, counts)
        held += abs(found.value + 3.0) <= 1.96 * found.error
    assert held >= 900


def test_batches_that_disagree_widely_state_their_own_spread() -> None:
    """exp(log Z_j - log Z) has a standard deviation of at most 2: an error of 1."""
    log_zs = [-1283.0, -1550.0, -1290.0, -1400.0]
    assert combined(log_zs, level_counts(40, BATCHES)).error >= np.std(log_zs, ddof=1)


def test_a_batch_without_any_particle_leaves_the_error_open() -> None:
    found = combined([-3.0, -math.inf, -3.1, -3.0], level_counts(40, BATCHES))
    assert found.error == math.inf
    assert found.value == pytest.approx(math.log(np.mean(np.exp([-3.0, -3.1, -3.0, -np.inf]))))


def test_the_interval_holds_the_closed_form_of_a_mixture_of_25() -> None:
    """`python -m benchmarks.mixture_25 --runs 100` has 100 of them for each number of rows."""
    settings = {"method": "twisted", "pilot_samples": 50, "particles": 2_000}
    found = [run(8, d_y, seed, 300, **settings) for d_y in (1, 2, 4) for seed in (200, 201, 202)]
    misses = [abs(each["log_p"] - each["truth"]) > 1.96 * each["error"] for each in found]
    assert sum(misses) <= 2
    assert np.median([each["error"] for each in found]) < 0.3
