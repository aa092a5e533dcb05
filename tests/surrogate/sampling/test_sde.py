"""The full-covariance kernel is exact for Gaussian data, whatever the steps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.schedule import karras
from surrogate.errors import ModelError
from surrogate.sampling import reverse_sde
from surrogate.sampling.reverse_step import ReverseStep
from tests.surrogate.analytic import assert_moments, gaussian, generator, toy, toy_distance

N = 20_000


@given(high=st.floats(0.01, 100), share=st.floats(0, 0.999), dim=st.integers(1, 6))
@settings(max_examples=50, derandomize=True)
def test_a_step_keeps_the_marginal(high: float, share: float, dim: int) -> None:
    """N(m, C + σ_t²) goes to N(m, C + σ_s²): what is left of the old spread and the new add up."""
    data = gaussian(dim)
    values, vectors = data.covariance.values, data.covariance.vectors
    sigma, below = torch.tensor([high, high * share], dtype=torch.float64)
    x = data.mean + vectors.mT  # one point along each eigenvector
    step = ReverseStep.between(sigma, below)
    mean = step.mean(x, data(x, sigma))
    variances = step.variances(data.covariance.posterior(sigma))
    kept = ((mean - data.mean) * vectors.mT).sum(1)
    torch.testing.assert_close(kept**2 * (values + sigma**2) + variances, values + below**2)


@pytest.mark.parametrize("steps", [1, 3, 10])
def test_gaussian_with_any_number_of_steps(steps: int) -> None:
    data = gaussian()
    x = data.sample(N, generator(), sigma=50.0)
    made = reverse_sde(data, x, karras(steps, 0.1, 50), data.covariance, generator(1))
    assert_moments(made, data.mean, data.covariance.matrix(data.covariance.values))


def test_path_forgets_the_start() -> None:
    """Draws from one start are draws of the data, unlike those of an ODE."""
    data = gaussian()
    x = data.mean.expand(N, -1) + 50
    made = reverse_sde(data, x, karras(8, 0.1, 500), data.covariance, generator(1))
    covariance = data.covariance.matrix(data.covariance.values)
    assert_moments(made, data.mean, covariance, slack=0.01)


def test_last_step_draws_from_the_belief() -> None:
    data = gaussian()
    sigmas = torch.tensor([0.8, 0.0], dtype=torch.float64)
    x = torch.ones(N, 6, dtype=torch.float64)
    made = reverse_sde(data, x, sigmas, data.covariance, generator())
    assert_moments(made, data(x, sigmas[0])[0], data.posterior(0.8))


def test_toy() -> None:
    """One covariance fits neither mode, so that it takes many steps; their error falls as 1/n."""
    x = 80 * torch.randn(N, 1, generator=generator())
    covariance = Covariance(toy().sample(5000, generator(2)).var(0).reshape(1, 1))
    distances = []
    for steps in (40, 320):
        made = reverse_sde(toy(), x, karras(steps, 0.002, 80), covariance, generator(1))
        distance, allowed = toy_distance(made)
        distances.append(distance)
    assert distances[1] <= allowed
    assert distances[0] > 2 * distances[1]


def test_covariance_of_other_data() -> None:
    with pytest.raises(ModelError, match="6 coordinates cannot act on a batch of shape"):
        reverse_sde(
            toy(), torch.zeros(3, 1), karras(3, 0.1, 50), Covariance(torch.eye(6)), generator()
        )
