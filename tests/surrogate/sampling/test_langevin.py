"""Langevin steps: their size, their stationary law, and what they do to the toy."""

from __future__ import annotations

import math

import pytest
import torch

from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.sampling import langevin
from surrogate.sampling.langevin import langevin_step
from tests.surrogate.analytic import assert_moments, gaussian, generator, toy, toy_distance

N = 20_000


def test_a_step_is_the_published_one() -> None:
    x = torch.randn(7, 2, 3, generator=generator(1), dtype=torch.float64)
    score = torch.randn(7, 2, 3, generator=generator(2), dtype=torch.float64)
    z = torch.randn(7, 2, 3, generator=generator(3), dtype=torch.float64)
    norms = [each.reshape(7, 6).norm(dim=1).mean() for each in (z, score)]
    step = 2 * (0.16 * norms[0] / norms[1]) ** 2
    expected = x + step * score + (2 * step).sqrt() * z
    torch.testing.assert_close(langevin_step(x, score, generator(3)), expected)


@pytest.mark.parametrize("snr", [0.16, 0.5])
def test_stationary_law_of_a_gaussian(snr: float) -> None:
    """Variance v/(1 - ε/2v) for N(0, v) in many dimensions, where norms are sharp."""
    v, sigma, dim = 2.0, 0.1, 50
    total = v + sigma**2
    data = GaussianDenoiser(torch.zeros(dim), v * torch.eye(dim))
    # |z|² = dim, |s|² = dim var/total²: ε = 2 snr² total²/var, and var = total/(1 - ε/2 total)
    variance = total * (1 + snr**2)
    x = data.sample(2000, generator(), sigma=sigma)
    made = langevin(data, x, torch.tensor(sigma), 200, generator(1), snr=snr)
    chance = math.sqrt(2 / made.numel())
    assert float(made.var()) == pytest.approx(variance, rel=4.5 * chance + 1e-3)


def test_reaches_a_gaussian_from_elsewhere() -> None:
    data, sigma = gaussian(3), 0.5
    x = torch.full((5000, 3), 2.0, dtype=torch.float64)
    made = langevin(data, x, torch.tensor(sigma), 500, generator())
    noisy = data.covariance.matrix(data.covariance.values + sigma**2)
    assert_moments(made, data.mean, noisy, slack=0.05)  # a finite step widens it by a few %


def test_keeps_the_toy() -> None:
    x = toy().sample(N, generator(), sigma=0.01)
    distance, allowed = toy_distance(langevin(toy(), x, torch.tensor(0.01), 200, generator(1)))
    assert distance <= allowed + 0.01  # the step widens the narrow mode by 2 %
