"""Weights and resampling."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.guidance.smc import ess, log_mean_exp, systematic


def test_the_effective_sample_size_counts_equal_weights() -> None:
    assert ess(torch.zeros(10)) == pytest.approx(10)
    assert ess(torch.tensor([0.0, -math.inf, -math.inf])) == pytest.approx(1)
    assert ess(torch.full((3,), -math.inf)) == 0
    assert ess(torch.tensor([1.0, 1.0, 0.0]).double().log() - 700) == pytest.approx(2)


@settings(max_examples=50)
@given(st.lists(st.floats(-20, 5), min_size=1, max_size=30), st.integers(1, 60), st.integers(0, 99))
def test_every_particle_as_often_as_its_weight_says(
    logs: list[float], count: int, seed: int
) -> None:
    weights = torch.tensor(logs, dtype=torch.float64)
    rows = systematic(weights, count, torch.Generator().manual_seed(seed))
    expected = count * torch.softmax(weights, 0)
    found = torch.bincount(rows, minlength=len(logs))
    assert len(rows) == count
    assert bool(((found - expected).abs() < 1 + 1e-9).all())


def test_particles_without_weight_are_never_chosen() -> None:
    weights = torch.tensor([-math.inf, 0.0, -math.inf, 0.0]).double()
    for seed in range(20):
        rows = systematic(weights, 7, torch.Generator().manual_seed(seed))
        assert set(rows.tolist()) == {1, 3}


def test_independent_populations_are_weighed_and_resampled_by_themselves() -> None:
    weights = torch.randn(4, 6, generator=torch.Generator().manual_seed(0)).double()
    each = torch.stack([ess(row) for row in weights])
    torch.testing.assert_close(ess(weights), each)
    means = torch.stack([row.exp().mean().log() for row in weights])
    torch.testing.assert_close(log_mean_exp(weights), means)
    weights[0, 1:] = -math.inf
    rows = systematic(weights, 9, torch.Generator().manual_seed(1))
    assert rows.shape == (4, 9)
    assert rows[0].tolist() == [0] * 9
