"""Observations unlike the learned data: rare for data like them, usual for other dynamics."""

from __future__ import annotations

import math

import pandas as pd
import pytest
import torch
from torch import Tensor

import surrogate as sg
from constraints import Layout, observe, poisson, signals
from constraints.layout.signals import Signal
from surrogate.errors import DegenerateError, SamplingError
from surrogate.guidance.unlike import SIGNIFICANCE, Look, extremeness, p_value
from surrogate.kinds.measurements import Measurements

STEPS, TRIALS = 20, 60


def paths(count: int, rate: float, seed: int) -> Tensor:
    """Stationary AR(1) series (count, STEPS) of variance 1 that forget at this rate."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, STEPS, generator=generator, dtype=torch.float64)
    keep, found = math.exp(-rate), [noise[:, 0]]
    for t in range(1, STEPS):
        found.append(keep * found[-1] + math.sqrt(1 - keep**2) * noise[:, t])
    return torch.stack(found, 1)


def flagged(rate: float) -> float:
    simulated, tried = paths(800, 0.1, 1), paths(TRIALS, rate, 2)
    return sum(extremeness(y[None], simulated) < SIGNIFICANCE for y in tried) / TRIALS


def test_data_of_the_same_law_are_rarely_flagged() -> None:
    assert flagged(0.1) < SIGNIFICANCE + 4 * math.sqrt(SIGNIFICANCE / TRIALS)


def test_dynamics_that_are_faster_are_usually_flagged() -> None:
    """χ² of 20 innovations, 3.0 times as large in the mean at four times the rate: 58 ± 15 where
    36 has the p-value 0.0125."""
    assert flagged(0.4) > 0.75


def test_p_values_are_uniform() -> None:
    simulated, tried = paths(400, 0.1, 3), paths(100, 0.1, 4)
    p = torch.tensor([extremeness(y[None], simulated) for y in tried]).sort().values
    noise = math.sqrt(1 / 100 + 1 / 200)  # of the trials, and of the 200 that are ranked
    assert (p - torch.arange(100) / 100).abs().max() < 1.95 * noise  # p = 0.001


def test_observed_counts_are_compared_through_their_noise() -> None:
    layout = Layout((Signal("I", "series", (2,), integer=True),), times=(0.0, 1.0))
    samples = {"I": torch.full((1_000, 2), 50.0)}
    infected = signals("I")
    usual = Measurements({"I": observe(48, poisson(infected[0]))}, layout)
    odd = Measurements({"I": observe(90, poisson(infected[0]))}, layout)
    assert p_value(usual, samples, 0) > 0.3
    assert p_value(odd, samples, 0) < 0.01


def test_a_failed_run_names_the_likely_cause() -> None:
    named = pytest.raises(SamplingError, match=r"unlike what .* 99.5 % .*: no sample")
    with named, Look(0.005).explaining():
        raise SamplingError("no sample")
    with pytest.raises(SamplingError, match=r"^no sample$"), Look(0.5).explaining():
        raise SamplingError("no sample")


def test_sampling_compares_what_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts that jump up and down by 20 between steps leave few particles, and it says why."""
    monkeypatch.setattr("surrogate.guidance.unlike.REFERENCE", 1_000)
    wild = pd.DataFrame({"step": [10, 11, 12, 13], "I": [20, 40, 20, 40]})
    with pytest.raises(DegenerateError, match="unlike what the model has learned"):
        sg.pretrained("esirs").sample(20, given=wild, noise="normal(I, 2)", particles=400, seed=1)
