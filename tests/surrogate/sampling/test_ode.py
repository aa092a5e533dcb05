"""ODE solvers against the exact flow of a Gaussian, and against the toy mixture."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from surrogate.diffusion.denoise import Denoiser
from surrogate.diffusion.schedule import karras
from surrogate.sampling import dpm_solver, heun
from tests.surrogate.analytic import assert_moments, gaussian, generator, toy, toy_distance

Solver = Callable[[Denoiser, Tensor, Tensor], Tensor]
both = pytest.mark.parametrize("solver", [dpm_solver, heun])


class Counting(Denoiser):
    """Counts the evaluations of another denoiser."""

    def __init__(self, inner: Denoiser) -> None:
        self.inner, self.count = inner, 0

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        self.count += 1
        return self.inner(x, sigma)


def flow_error(solver: Solver, steps: int, least: float, final: bool) -> float:
    """Largest error from the exact flow, x - m ∝ √(λ + σ²) along the eigenvectors."""
    data = gaussian()
    most = 50.0
    x = data.sample(200, generator(), sigma=most)
    sigmas = karras(steps, least, most)
    end = 0.0 if final else least
    values = data.covariance.values
    shrink = torch.sqrt((values + end**2) / (values + most**2))
    exact = data.mean + data.covariance.apply(shrink, x - data.mean)
    return float((solver(data, x, sigmas if final else sigmas[:-1]) - exact).abs().max())


@both
def test_few_steps_follow_the_flow(solver: Solver) -> None:
    assert flow_error(solver, 20, 0.01, final=True) < 0.1
    assert flow_error(solver, 100, 0.001, final=True) < 0.01


@both
def test_second_order(solver: Solver) -> None:
    """Twice the steps, a quarter of the error."""
    errors = [flow_error(solver, n + 1, 0.02, final=False) for n in (50, 100, 200)]
    for coarse, fine in pairwise(errors):
        assert 3.3 < coarse / fine < 5


@both
def test_one_step_is_the_denoiser(solver: Solver) -> None:
    data = gaussian()
    x = data.sample(5, generator(), sigma=50.0)
    sigmas = karras(1, 0.01, 50)
    torch.testing.assert_close(solver(data, x, sigmas), data(x, sigmas[0]))


def test_evaluations() -> None:
    x = torch.zeros(2, 6)
    for solver, count in ((dpm_solver, 10), (heun, 19)):
        counted = Counting(gaussian())
        solver(counted, x, karras(10, 0.01, 50))
        assert counted.count == count


@both
def test_gaussian(solver: Solver) -> None:
    data = gaussian()
    x = 50 * torch.randn(20_000, 6, generator=generator(), dtype=torch.float64)
    made = solver(data, x, karras(40, 0.002, 50))
    covariance = data.covariance.matrix(data.covariance.values)
    # the start ignores the mean of the data, at most 1 of 50, and the solver is off by 1 %
    assert_moments(made, data.mean, covariance, slack=0.03)


@both
def test_toy(solver: Solver) -> None:
    x = 80 * torch.randn(20_000, 1, generator=generator())
    distance, allowed = toy_distance(solver(toy(), x, karras(60, 0.002, 80)))
    assert distance <= allowed
