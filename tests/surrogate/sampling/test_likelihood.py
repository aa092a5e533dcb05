"""Log-likelihoods by the ODE against the exact densities."""

from __future__ import annotations

import math

import pytest
import torch

from surrogate.diffusion.gaussian import GaussianDenoiser, MixtureDenoiser
from surrogate.diffusion.schedule import karras
from surrogate.errors import ModelError
from surrogate.sampling import log_likelihood
from tests.surrogate.analytic import gaussian, generator, toy

SIGMAS = karras(60, 0.002, 80)


def standard_gaussian() -> GaussianDenoiser:
    data = gaussian(4)
    return GaussianDenoiser(
        torch.zeros_like(data.mean), data.covariance.matrix(data.covariance.values)
    )


def standard_toy() -> MixtureDenoiser:
    """The toy with mean 0 and variance 1, as models see data."""
    mean, deviation = 0.5, math.sqrt(0.5 * (3.5**2 + 0.25) + 0.5 * (3.5**2 + 1))
    means = (torch.tensor([[-3.0], [4.0]], dtype=torch.float64) - mean) / deviation
    variances = torch.tensor([0.25, 1.0], dtype=torch.float64) / deviation**2
    return MixtureDenoiser(torch.ones(2, dtype=torch.float64), means, variances[:, None, None])


@pytest.mark.parametrize("data", [standard_gaussian(), standard_toy()], ids=["gaussian", "toy"])
def test_exact_trace(data: GaussianDenoiser | MixtureDenoiser) -> None:
    x = data.sample(100, generator())
    found = log_likelihood(data, x, SIGMAS)
    assert not found.requires_grad
    torch.testing.assert_close(found, data.log_prob(x), rtol=0, atol=1e-2)


def test_of_data_that_are_not_standard() -> None:
    """Noise that is large enough hides the mean and variance of any data."""
    x = toy().sample(50, generator()).double()
    found = log_likelihood(toy(), x, karras(80, 0.002, 2000))
    torch.testing.assert_close(found, toy().log_prob(x), rtol=0, atol=1e-2)


def test_white_data_need_no_large_noise() -> None:
    data = GaussianDenoiser(torch.zeros(3).double(), torch.eye(3).double())
    x = data.sample(20, generator())
    found = log_likelihood(data, x, karras(30, 0.002, 2))
    torch.testing.assert_close(found, data.log_prob(x), rtol=0, atol=1e-4)


def test_is_a_density() -> None:
    x = torch.linspace(-2.5, 2.5, 400, dtype=torch.float64)[:, None]
    density = log_likelihood(standard_toy(), x, SIGMAS).exp()
    assert float(torch.trapezoid(density, x[:, 0])) == pytest.approx(1, abs=2e-3)


def test_estimated_trace() -> None:
    """Exact where the Jacobian is diagonal, as v_i² = 1; unbiased where it is not."""
    diagonal = GaussianDenoiser(torch.zeros(4), torch.diag(torch.tensor([0.5, 1, 2, 0.1])))
    x = diagonal.sample(20, generator())
    found = log_likelihood(diagonal, x, SIGMAS, probes=1, generator=generator())
    torch.testing.assert_close(found, diagonal.log_prob(x), rtol=0, atol=1e-2)
    data = standard_gaussian()
    x = data.sample(1, generator()).expand(2000, -1).clone()
    found = log_likelihood(data, x, SIGMAS, probes=2, generator=generator(1))
    chance = float(found.std()) / math.sqrt(len(x))
    assert float(found.mean()) == pytest.approx(float(data.log_prob(x)[0]), abs=4.5 * chance + 1e-2)
    assert chance < 0.05
    again = log_likelihood(data, x, SIGMAS, probes=2, generator=generator(1))
    assert torch.equal(found, again)


def test_any_rank_and_progress() -> None:
    data = standard_gaussian()
    x = data.sample(3, generator())
    done: list[int] = []
    found = log_likelihood(data, x.reshape(3, 2, 2), SIGMAS, progress=done.append)
    torch.testing.assert_close(found, log_likelihood(data, x, SIGMAS))
    assert sum(done) == len(SIGMAS) - 1
    short = log_likelihood(data, x.float(), SIGMAS)
    assert short.dtype == torch.float32
    torch.testing.assert_close(short.double(), found, rtol=0, atol=1e-3)


def test_estimates_need_a_generator() -> None:
    for probes, source in ((3, None), (0, generator())):
        with pytest.raises(ModelError, match="probes >= 1 and a generator"):
            log_likelihood(gaussian(), torch.zeros(1, 6), SIGMAS, probes=probes, generator=source)
