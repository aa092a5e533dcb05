"""Expected likelihoods of observations under a Gaussian, against Monte Carlo and quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats

from constraints import Layout, Signal, compiled
from constraints.gaussian.expectation import log_expectation

LAYOUT = Layout(
    (
        Signal("x", "series", (4,), integer=True),
        Signal("s", "series", (4,)),
    ),
    times=(0.0, 1.0, 2.0, 3.0),
)
MEAN = torch.tensor([20.0, 5, 8, 30, 4, 4.5, 5, 6], dtype=torch.float64)


def covariance(scale: float) -> torch.Tensor:
    noise = torch.Generator().manual_seed(4)
    root = torch.randn(8, 8, generator=noise, dtype=torch.float64) / 3
    return scale * (root @ root.T + 0.1 * torch.eye(8, dtype=torch.float64))


EVERY_FAMILY = [
    "76 ~ poisson(4*x(0))",
    "3 ~ poisson(x(1))",
    "9.5 ~ normal(x(2), 0.5)",
    "12.5 ~ lognormal(0.3*x(2), 0.4)",
    "14 ~ negative_binomial(x(0), 3)",
    "25 ~ student_t(3, x(0), 2)",
    "8 ~ binomial(20, x(3)/60)",
    "9 ~ normal(x(2), s(1))",
    "17 ~ student_t(4, x(0), s(2)/5)",
    "20 ~ negative_binomial(x(0), s(3))",
    "16 ~ poisson(x(0)*s(3)/6)",
]


@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("text", EVERY_FAMILY)
def test_expected_likelihoods_are_those_of_monte_carlo(text: str, scale: float) -> None:
    program, spread = compiled(text, LAYOUT), covariance(scale)
    found = float(log_expectation(program, MEAN[None], spread))
    noise = torch.Generator().manual_seed(7)
    draws = torch.randn(200_000, 8, generator=noise, dtype=torch.float64)
    each = program.log_density(MEAN + draws @ torch.linalg.cholesky(spread).T)[:, 0]
    expected = float(each.logsumexp(0)) - math.log(len(each))
    error = float((each - expected).exp().std()) / math.sqrt(len(each))
    product = 0.01 * scale if "*s(3)" in text else 0.0  # a product is linearised
    assert found == pytest.approx(expected, abs=4 * error + 1e-5 + product)


@pytest.mark.parametrize("scale", [0.01, 1.0])
@pytest.mark.parametrize("text", EVERY_FAMILY)
def test_gradients_are_derivatives_by_the_mean(text: str, scale: float) -> None:
    program, spread = compiled(text, LAYOUT), covariance(scale)
    mean = MEAN.clone()[None].requires_grad_()
    (gradient,) = torch.autograd.grad(log_expectation(program, mean, spread).sum(), mean)
    step = 1e-4 * math.sqrt(scale)
    nearby = MEAN + step * torch.cat([torch.eye(8), -torch.eye(8)]).double()
    values = log_expectation(program, nearby, spread)
    numeric = (values[:8] - values[8:]) / (2 * step)
    slack = 0.02 * scale if "*s(3)" in text else 0.0  # whose variance moves with the mean
    largest = float(gradient.abs().max())
    accuracy = 0.01 if ", s(" in text else 1e-4  # fewer nodes where two parameters vary
    atol = accuracy * largest + 1e-6 + slack
    torch.testing.assert_close(gradient[0], numeric, rtol=0, atol=atol)


@pytest.mark.parametrize("variance", [1e-4, 0.3, 25.0, 1e4])
@pytest.mark.parametrize("mean", [3.0, 40.0, 400.0])
def test_likelihoods_far_from_the_mean_and_far_narrower_are_found(
    mean: float, variance: float
) -> None:
    layout = Layout.columns("x")
    program = compiled("76 ~ poisson(x)", layout)
    found = log_expectation(
        program,
        torch.tensor([[mean]], dtype=torch.float64),
        torch.tensor([[variance]], dtype=torch.float64),
    )
    grid = np.linspace(1e-9, 1500, 300_001)
    if variance < 1e-3:
        grid = np.linspace(max(mean - 1, 1e-9), mean + 1, 100_001)
    logs = stats.poisson.logpmf(76, grid) + stats.norm.logpdf(grid, mean, math.sqrt(variance))
    top = logs.max()
    expected = top + math.log(integrate.trapezoid(np.exp(logs - top), grid))
    assert float(found) == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_a_normal_with_a_linear_mean_is_closed() -> None:
    spread = covariance(2.0)
    program = compiled("9.5 ~ normal(x(2) - 2*s(0), 0.001)", LAYOUT)
    row = torch.tensor([0.0, 0, 1, 0, -2, 0, 0, 0], dtype=torch.float64)
    variance = float(row @ spread @ row) + 1e-6
    found = float(log_expectation(program, MEAN[None], spread))
    assert found == pytest.approx(stats.norm(0.0, math.sqrt(variance)).logpdf(9.5))


def test_mass_beyond_the_end_of_a_domain_is_at_the_end() -> None:
    layout = Layout.columns("x")
    mean, variance = torch.tensor([[0.5]]).double(), torch.tensor([[4.0]]).double()
    found = float(log_expectation(compiled("0 ~ poisson(x)", layout), mean, variance).exp())
    inside = integrate.quad(lambda t: math.exp(-t) * stats.norm(0.5, 2).pdf(t), 0, 20)[0]
    assert found == pytest.approx(inside + stats.norm(0.5, 2).cdf(0), rel=0.01)


def test_the_end_of_a_support_costs_little() -> None:
    spread = covariance(1.0)
    program = compiled("9 ~ uniform(x(2) - 0.5, x(2) + 1.5)", LAYOUT)
    sd = math.sqrt(float(spread[2, 2]))
    share = stats.norm(8, sd).cdf(9.5) - stats.norm(8, sd).cdf(7.5)
    found = float(log_expectation(program, MEAN[None], spread))
    assert found == pytest.approx(math.log(share / 2), abs=0.03)


def test_without_variance_it_is_the_density_itself() -> None:
    program = compiled("76 ~ poisson(4*x(0)) and 9 ~ normal(x(2), s(1))", LAYOUT)
    found = log_expectation(program, MEAN[None], torch.zeros(8, 8, dtype=torch.float64))
    torch.testing.assert_close(found, program.log_density(MEAN[None]).sum(1))


def test_statement_and_observations_multiply() -> None:
    spread = covariance(1.0)
    stated, seen = compiled("x(1) <= 5", LAYOUT), compiled("76 ~ poisson(4*x(0))", LAYOUT)
    both = compiled("x(1) <= 5 and 76 ~ poisson(4*x(0))", LAYOUT)
    parts = sum(log_expectation(each, MEAN[None], spread) for each in (stated, seen))
    torch.testing.assert_close(log_expectation(both, MEAN[None], spread), parts)


def test_an_impossible_observation_has_a_finite_gradient() -> None:
    mean = torch.tensor([[2.0]], dtype=torch.float64, requires_grad=True)
    layout = Layout((Signal("n", "column", (), integer=True),))
    program = compiled("3000 ~ binomial(n, 0.5)", layout)
    value = log_expectation(program, mean, torch.tensor([[1e-6]], dtype=torch.float64))
    (gradient,) = torch.autograd.grad(value.sum(), mean)
    assert float(value.detach()) < -1e20
    assert bool(gradient.isfinite().all())
