"""The paper's guidance against its own formulas, and against laws that are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from constraints import LogProbabilistic, parse
from constraints.physics.rules import bounds
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.schedule import VE, Schedule, SubVP
from surrogate.errors import ModelError
from surrogate.guidance.gradient import SIGMA_END, Gradient, gradient, guided, soft_value
from surrogate.guidance.scenario import SOFT_RULES, Scenario
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.random import stream
from tests.surrogate.guidance.bed import Exact

MEAN = torch.tensor([0.5, -1.0]).double()
SPREAD = torch.tensor([[1.0, 0.6], [0.6, 1.5]]).double()
GAUSSIAN = GaussianDenoiser(MEAN, SPREAD)


def quadratic(x: Tensor) -> Tensor:
    return -(x.flatten(1) - 1).square().sum(1)


class Counting(Denoiser):
    """How often it was asked."""

    def __init__(self, denoiser: Denoiser) -> None:
        self.denoiser, self.calls = denoiser, 0

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        self.calls += 1
        return self.denoiser(x, sigma)


def normal(steps: int = 2) -> Exact:
    """Standard normal data of one variable `a`, with their exact score."""
    values = np.random.default_rng(0).normal(size=(2_000, steps))
    data = xr.Dataset({"a": (("sample", "time"), values)}, coords={"time": np.arange(steps) * 1.0})
    codec = TimeSeriesCodec.fit(data)
    mean, scale = codec.mean.flatten(), codec.scale.flatten()
    law = Counting(GaussianDenoiser(-mean / scale, torch.diag(scale**-2)))
    return Exact(codec, law, Covariance.white(steps), {})  # type: ignore[arg-type]


def ratio(schedule: Schedule, t: Tensor) -> Tensor:
    """g(t) as the paper has it: (1 + σ²)^(-1/2), or k/√(k² + (1 - k)²) with k = α²."""
    alpha, sigma = schedule(t)
    if isinstance(schedule, VE):
        return (1 + sigma**2) ** -0.5
    k = alpha**2
    return k / (k**2 + (1 - k) ** 2) ** 0.5


@pytest.mark.parametrize("schedule", [VE(), SubVP()])
@pytest.mark.parametrize("weight", ["snr", "linear"])
@pytest.mark.parametrize("t", [0.05, 0.4, 0.9])
def test_the_guided_score(schedule: Schedule, weight: str, t: float) -> None:
    """s + λ g ∇c at the noisy point itself, in the coordinates of the schedule."""
    at = torch.tensor(t).double()
    alpha, sigma = schedule(at)
    x = torch.randn(50, 2, generator=stream(1)).double()
    made = Gradient(GAUSSIAN, quadratic, weight, strength=3.0, schedule=schedule)
    g = 1 - at if weight == "linear" else ratio(schedule, at)
    wanted = GAUSSIAN.score(x, sigma, alpha) + 3 * g * -2 * (x - 1)
    torch.testing.assert_close(made.score(x, sigma, alpha), wanted, rtol=1e-6, atol=1e-6)


def test_without_noise_the_score_is_that_of_the_conditional_law() -> None:
    """∇ log p(x) e^c(x)."""
    x = torch.randn(50, 2, generator=stream(2)).double()
    sigma = torch.tensor(1e-4).double()
    wanted = -torch.linalg.solve(SPREAD, (x - MEAN).mT).mT - 2 * (x - 1)
    found = Gradient(GAUSSIAN, quadratic).score(x, sigma)
    torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


def test_slopes_are_numbers() -> None:
    x = torch.tensor([[1.0], [0.0]])
    found = gradient(lambda at: at.sqrt().sum(1), x)
    assert found.tolist() == [[0.5], [0.0]]
    assert not found.requires_grad
    assert not x.requires_grad


def test_the_value_is_that_of_the_formula_and_its_rules() -> None:
    rules = {"low": bounds("a", -1, None), "high": bounds("a", None, 2)}
    scenario = Scenario(normal(), parse("a(0) >= 1 or a(1) = 0.5"), rules, hardness=4.0)
    x = torch.randn(20, 1, 2, generator=stream(3))
    flat = scenario.signals(x.flatten(1).double())
    wanted = scenario.program(flat, scenario.semantics)
    for rule in scenario.rules.values():
        wanted = wanted + rule(flat, SOFT_RULES)
    found = soft_value(scenario)(x)
    assert found.dtype == x.dtype
    torch.testing.assert_close(found.double(), wanted, rtol=1e-5, atol=1e-5)
    alone = Scenario(scenario.prior, scenario.program.formula, hardness=4.0)
    wanted = alone.program(flat, alone.semantics)
    torch.testing.assert_close(soft_value(alone)(x).double(), wanted, rtol=1e-5, atol=1e-5)


def test_samples_follow_a_soft_constraint() -> None:
    """p(a) sigmoid(k (a - 1)) by quadrature; Langevin steps are 5 % of the variance, which biases
    it by half of that."""
    model = normal()
    scenario = Scenario(model, parse("a(0) >= 1"), hardness=5.0)
    scenario.semantics = LogProbabilistic(5.0)
    n = 4_000
    x = guided(scenario, n, stream(4), steps=100, correctors=1, final=150)
    found = scenario.signals(x)
    grid = torch.linspace(-6, 8, 4_001).double()
    density = torch.exp(-(grid**2) / 2) * torch.sigmoid(5 * (grid - 1))
    density = density / density.sum()
    mean = float((density * grid).sum())
    deviation = float((density * (grid - mean) ** 2).sum()) ** 0.5
    assert abs(float(found[:, 0].mean()) - mean) < 4 * deviation / n**0.5 + 0.05 * deviation
    assert abs(float(found[:, 0].std()) / deviation - 1) < 4 / (2 * n) ** 0.5 + 0.05
    assert abs(float(found[:, 1].mean())) < 4 / n**0.5
    assert abs(float(found[:, 1].std()) - 1) < 4 / (2 * n) ** 0.5 + 0.05


def test_the_cost_is_as_the_paper_has_it() -> None:
    """A predictor and its correctors at each step, then Langevin steps; all told of."""
    model = normal()
    counting = model.denoiser
    assert isinstance(counting, Counting)
    told: list[int] = []
    scenario = Scenario(model, parse("a(0) >= 1"), hardness=5.0)
    guided(scenario, 3, stream(5), steps=7, correctors=2, final=11, progress=told.append)
    assert counting.calls == 7 * 3 + 11
    assert sum(told) == 7 + 11
    assert math.isclose(SIGMA_END, 0.01)


def test_the_same_seed_gives_the_same_samples() -> None:
    scenario = Scenario(normal(), parse("a(0) >= 1"), hardness=5.0)
    one, two, other = (guided(scenario, 5, stream(k), steps=20, final=5) for k in (6, 6, 7))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_schedules_that_are_none() -> None:
    with pytest.raises(ModelError, match=r"unknown schedule 'cubic' \(have: snr, linear\)"):
        Gradient(GAUSSIAN, quadratic, "cubic")
