"""Euler-Maruyama against its own exact moments, and the whole sampler against known data."""

from __future__ import annotations

import pytest
import torch

from surrogate.diffusion.schedule import SCHEDULES, VE, schedule
from surrogate.errors import ModelError
from surrogate.sampling import langevin, predictor_corrector
from tests.surrogate.analytic import assert_moments, gaussian, generator, toy, toy_distance

N = 20_000
every = pytest.mark.parametrize("name", SCHEDULES)
ONE = torch.ones((), dtype=torch.float64)


@every
def test_steps_have_the_moments_of_euler_maruyama(name: str) -> None:
    """For Gaussian data each step is linear: mean and variance follow a recursion."""
    data, noise, steps, least = gaussian(), schedule(name), 25, 0.2
    values = data.covariance.values
    end = float(noise.time_of(least * ONE))
    times = torch.linspace(1, end, steps + 1, dtype=torch.float64)
    alpha, sigma = noise(ONE)
    middle, variances = alpha * data.mean, alpha**2 * values + sigma**2
    for t, h in zip(times, -times.diff(), strict=False):
        alpha, sigma = noise(t)
        drift, diffusion = noise.drift_and_diffusion(t)
        pull = 1 / (alpha**2 * values + sigma**2)  # the score is -pull (x - α m)
        factor = 1 - drift * h - diffusion * h * pull
        shift = data.covariance.apply(diffusion * h * pull, alpha * data.mean[None])[0]
        middle = data.covariance.apply(factor, middle[None])[0] + shift
        variances = factor**2 * variances + diffusion * h
    alpha, _ = noise(times[-1])
    x = data.sample(N, generator(), sigma=float(noise.ratio(ONE)))
    made = predictor_corrector(data, x, noise, generator(1), steps=steps, least=least)
    assert_moments(made, middle / alpha, data.covariance.matrix(variances) / alpha**2)


@every
def test_gaussian(name: str) -> None:
    data, noise = gaussian(), schedule(name)
    x = noise.ratio(ONE) * torch.randn(5000, 6, generator=generator())
    made = predictor_corrector(data, x, noise, generator(1), steps=150).double()
    covariance = data.covariance.matrix(data.covariance.values)
    assert_moments(made, data.mean, covariance, slack=0.03)


@every
@pytest.mark.parametrize(("steps", "correctors", "final"), [(200, 0, 0), (80, 1, 20)])
def test_toy(name: str, steps: int, correctors: int, final: int) -> None:
    noise = schedule(name)
    x = noise.ratio(ONE) * torch.randn(N, 1, generator=generator())
    made = predictor_corrector(
        toy(), x, noise, generator(1), steps=steps, correctors=correctors, final=final
    )
    distance, allowed = toy_distance(made)
    assert distance <= allowed


def test_correctors_repair_few_steps() -> None:
    def distance(correctors: int) -> float:
        x = 50 * torch.randn(N, 1, generator=generator())
        return toy_distance(
            predictor_corrector(toy(), x, VE(), generator(1), steps=15, correctors=correctors)
        )[0]

    assert distance(8) < distance(0) / 2


def test_final_steps_are_langevin_steps_at_the_least_level() -> None:
    x = 50 * torch.randn(10, 6, generator=generator(), dtype=torch.float64)
    source = generator(1)
    made = predictor_corrector(gaussian(), x, VE(), source, steps=5, least=0.1)
    expected = langevin(gaussian(), made, torch.tensor(0.1), 3, source)
    found = predictor_corrector(gaussian(), x, VE(), generator(1), steps=5, least=0.1, final=3)
    torch.testing.assert_close(found, expected)


def test_bad_settings() -> None:
    x = torch.zeros(2, 6)
    with pytest.raises(ModelError, match="steps >= 1"):
        predictor_corrector(gaussian(), x, VE(), generator(), steps=0)
    for least in (0.0, 60.0):
        with pytest.raises(ModelError, match=f"not 5 steps to {least}"):
            predictor_corrector(gaussian(), x, VE(), generator(), steps=5, least=least)
