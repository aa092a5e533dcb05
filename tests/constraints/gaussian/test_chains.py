"""Gaussian chains that stay within bounds."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import multivariate_normal, norm
from torch import Tensor

from constraints import Layout, LogProbabilistic, compiled, parse
from constraints.gaussian.chains import stays
from constraints.gaussian.expectation import log_expectation

STEPS = 12


def covariance(length: float) -> Tensor:
    at = torch.arange(STEPS, dtype=torch.float64)
    return torch.exp(-(at[:, None] - at[None]).abs() / length)


def chain(mean: Tensor, matrix: Tensor, low: float, high: float) -> Tensor:
    return stays(mean, matrix.diagonal(), matrix.diagonal(1), low, high)


@pytest.mark.parametrize("bounds", [(-math.inf, 0.7), (-0.2, math.inf), (-1.0, 1.5)])
def test_uncorrelated_values_are_exact(bounds: tuple[float, float]) -> None:
    mean = torch.linspace(-1, 1, STEPS, dtype=torch.float64)[None]
    matrix = torch.diag(torch.linspace(0.5, 2, STEPS, dtype=torch.float64))
    deviations = matrix.diagonal().sqrt()
    shares = norm.cdf((bounds[1] - mean[0]) / deviations) - norm.cdf(
        (bounds[0] - mean[0]) / deviations
    )
    expected = torch.from_numpy(shares).log().sum()
    torch.testing.assert_close(chain(mean, matrix, *bounds)[0], expected)


@pytest.mark.parametrize("length", [1.0, 4.0, 30.0])
@pytest.mark.parametrize(
    ("level", "low", "high"),
    [(0.0, -math.inf, 1.0), (1.0, -math.inf, 0.5), (-1.0, 0.0, math.inf), (0.2, -1.0, 1.2)],
)
def test_chains_are_close_to_the_exact_probability(
    length: float, level: float, low: float, high: float
) -> None:
    matrix = covariance(length)
    found = chain(torch.full((1, STEPS), level).double(), matrix, low, high)
    law = multivariate_normal([level] * STEPS, matrix.numpy(), maxpts=200_000, seed=1)
    exact = law.cdf([high] * STEPS, lower_limit=[low] * STEPS)
    assert float(found) == pytest.approx(math.log(exact), abs=0.15)


def test_the_gradient_is_the_shift_of_the_posterior_mean() -> None:
    """C∇log P is how far the mean moves, given that the chain stays."""
    matrix = covariance(5.0)
    mean = torch.full((1, STEPS), 0.3, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(chain(mean, matrix, -math.inf, 0.5).sum(), mean)
    factor = torch.linalg.cholesky(matrix)
    noise = torch.randn(
        200_000, STEPS, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    y = 0.3 + noise @ factor.T
    moved = y[(y <= 0.5).all(1)].mean(0) - 0.3
    torch.testing.assert_close(matrix @ slope[0], moved, atol=0.08, rtol=0.1)


def test_far_tails_are_finite() -> None:
    matrix = covariance(3.0)
    for level in (-500.0, -40.0, 40.0, 500.0):
        mean = torch.full((2, STEPS), level, dtype=torch.float64, requires_grad=True)
        value = chain(mean, matrix, -1.0, 1.0)
        (slope,) = torch.autograd.grad(value.sum(), mean)
        assert bool(value.isfinite().all())
        assert bool(slope.isfinite().all())


@pytest.mark.parametrize(
    "text", ["forall t: a(t) <= 1", "exists t: a(t) >= 1.5", "forall t in [2, 9]: 0 <= a(t) <= 2"]
)
def test_expectations_of_quantifiers_use_chains(text: str) -> None:
    layout = Layout.series("a", STEPS)
    matrix = covariance(4.0)
    program = compiled(parse(text), layout)
    hard = LogProbabilistic(k=math.inf)
    mean = torch.full((1, STEPS), 0.4, dtype=torch.float64)
    noise = torch.randn(
        200_000, STEPS, generator=torch.Generator().manual_seed(0), dtype=torch.float64
    )
    y = mean + noise @ torch.linalg.cholesky(matrix).T
    exact = program.verdict(y).double().mean().log()
    assert float(log_expectation(program, mean, matrix, hard)) == pytest.approx(
        float(exact), abs=0.1
    )
