"""Weights and resampling."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.guidance.smc import effective, systematic


def test_effective_numbers() -> None:
    assert effective(torch.zeros(10)) == pytest.approx(10)
    assert effective(torch.tensor([0.0, -math.inf, -math.inf])) == pytest.approx(1)
    assert effective(torch.full((3,), -math.inf)) == 0
    assert effective(torch.tensor([1.0, 1.0, 0.0]).double().log() - 700) == pytest.approx(2)


@settings(deadline=None, max_examples=50)
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
