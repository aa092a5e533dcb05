"""Exact denoisers against linear algebra, autograd, quadrature and torch.distributions."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal, Normal

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import GaussianDenoiser, MixtureDenoiser
from surrogate.errors import ModelError
from tests.surrogate.analytic import assert_moments, gaussian, generator, toy, toy_distance

LEVELS = torch.tensor([0.01, 0.3, 1.0, 20.0], dtype=torch.float64)


def covariance_of(data: GaussianDenoiser) -> Tensor:
    return data.covariance.matrix(data.covariance.values)


def mixture() -> MixtureDenoiser:
    """Three clusters in the plane."""
    means = torch.tensor([[0.0, 0], [4, 1], [-2, 3]], dtype=torch.float64)
    roots = torch.randn(3, 2, 2, generator=generator(7), dtype=torch.float64)
    covariances = roots @ roots.mT + 0.1 * torch.eye(2, dtype=torch.float64)
    return MixtureDenoiser(torch.tensor([1.0, 2, 3], dtype=torch.float64), means, covariances)


def points(dim: int, n: int = 4) -> Tensor:
    return 3 * torch.randn(n, dim, generator=generator(1), dtype=torch.float64)


@given(seed=st.integers(0, 1000), dim=st.integers(1, 8), sigma=st.floats(0.01, 50))
@settings(max_examples=40, derandomize=True)
def test_gaussian_is_the_textbook_posterior(seed: int, dim: int, sigma: float) -> None:
    data = gaussian(dim, seed)
    c, eye = covariance_of(data), torch.eye(dim, dtype=torch.float64)
    posterior = torch.linalg.inv(torch.linalg.inv(c) + eye / sigma**2)
    torch.testing.assert_close(data.posterior(sigma), posterior)
    x = points(dim)
    expected = (torch.linalg.solve(c, data.mean) + x / sigma**2) @ posterior
    torch.testing.assert_close(data(x, torch.tensor(sigma)), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("data", [gaussian(2), mixture()], ids=["gaussian", "mixture"])
def test_tweedie(data: GaussianDenoiser | MixtureDenoiser) -> None:
    x = points(2).requires_grad_()
    for sigma in (LEVELS, *LEVELS):
        (score,) = torch.autograd.grad(data.log_prob(x, sigma).sum(), x)
        expected = x + score * sigma.square().expand(4)[:, None]
        torch.testing.assert_close(data(x, sigma), expected)


def test_posterior_is_the_jacobian() -> None:
    data = gaussian(3)
    sigma = torch.tensor(0.7, dtype=torch.float64)
    x = points(3, 1)[0]
    jacobian = torch.autograd.functional.jacobian(lambda y: data(y[None], sigma)[0], x)
    torch.testing.assert_close(sigma**2 * jacobian, data.posterior(sigma))


def test_singular_covariances() -> None:
    """A line in space: the limit of thin ellipsoids, down to no noise at all."""
    line = torch.tensor([1.0, 2, -1], dtype=torch.float64)
    data = GaussianDenoiser(torch.ones(3, dtype=torch.float64), torch.outer(line, line))
    thin = torch.outer(line, line) + 1e-9 * torch.eye(3, dtype=torch.float64)
    near = GaussianDenoiser(data.mean, thin)
    for sigma in LEVELS:
        torch.testing.assert_close(data.posterior(sigma), near.posterior(sigma), rtol=0, atol=1e-4)
        x = points(3)
        torch.testing.assert_close(data(x, sigma), near(x, sigma), rtol=0, atol=1e-3)
    on_it = data.sample(50, generator())
    torch.testing.assert_close(data(on_it, torch.zeros(())), on_it)
    assert data.posterior(0.0).abs().max() == 0
    with pytest.raises(ModelError, match="singular covariance has no density"):
        data.log_prob(on_it)
    assert data.log_prob(on_it, 0.1).isfinite().all()


def test_rounding_makes_no_negative_variances() -> None:
    rows = torch.randn(3, 20, generator=generator())
    data = GaussianDenoiser(torch.zeros(20), rows.mT @ rows)
    assert data.covariance.values.min() >= 0
    assert data.sample(5, generator()).isfinite().all()


def test_log_prob() -> None:
    data, clusters = gaussian(), mixture()
    x = points(6)
    known = MultivariateNormal(data.mean, covariance_of(data))
    torch.testing.assert_close(data.log_prob(x), known.log_prob(x))
    means = torch.stack([each.mean for each in clusters.components])
    noise = 0.49 * torch.eye(2, dtype=torch.float64)
    covariances = torch.stack([covariance_of(each) + noise for each in clusters.components])
    family = MixtureSameFamily(
        Categorical(clusters.weights), MultivariateNormal(means, covariances)
    )
    torch.testing.assert_close(clusters.log_prob(points(2), 0.7), family.log_prob(points(2)))


def test_mixture_by_quadrature() -> None:
    """E[x_0 | x] of the toy, summed over a fine grid of x_0."""
    grid = torch.linspace(-15, 15, 60_001, dtype=torch.float64)
    prior = 0.5 * Normal(-3.0, 0.5).log_prob(grid).exp() + 0.5 * Normal(4.0, 1).log_prob(grid).exp()
    x = torch.linspace(-8, 8, 9, dtype=torch.float64)
    for sigma in (0.1, 0.5, 2.0, 30.0):
        weights = prior * Normal(grid, sigma).log_prob(x[:, None]).exp()
        expected = (weights * grid).sum(1) / weights.sum(1)
        found = toy()(x[:, None], torch.tensor(sigma))[:, 0]
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_far_from_every_component() -> None:
    """Where all densities underflow, the widest component wins and nothing is NaN."""
    x = torch.tensor([[1e4], [-1e4]])
    near = torch.tensor(0.1)
    data = toy()
    torch.testing.assert_close(data(x, near), data.components[1](x, near))


def test_one_component_is_a_gaussian() -> None:
    data = gaussian()
    one = MixtureDenoiser(torch.ones(1), data.mean[None], covariance_of(data)[None])
    x = points(6)
    torch.testing.assert_close(one(x, LEVELS), data(x, LEVELS))
    torch.testing.assert_close(one.log_prob(x, LEVELS), data.log_prob(x, LEVELS))


def test_draws() -> None:
    data, n = gaussian(), 20_000
    assert_moments(data.sample(n, generator()), data.mean, covariance_of(data))
    noisy = covariance_of(data) + 4 * torch.eye(6, dtype=torch.float64)
    assert_moments(data.sample(n, generator(), sigma=2.0), data.mean, noisy)
    distance, allowed = toy_distance(toy().sample(n, generator()))
    assert distance <= allowed
    for each in (data, toy()):
        assert torch.equal(each.sample(9, generator(4)), each.sample(9, generator(4)))


@pytest.mark.parametrize("shape", [(4, 6), (4, 2, 3), (4, 1, 2, 3)])
def test_any_rank_and_type(shape: tuple[int, ...]) -> None:
    data = gaussian()
    clusters = MixtureDenoiser(
        torch.ones(2), torch.stack([data.mean, -data.mean]), covariance_of(data).expand(2, 6, 6)
    )
    x = points(6)
    for each in (data, clusters):
        exact = each(x, LEVELS)
        for sigma in (LEVELS, LEVELS.float()):
            found = each(x.reshape(shape).float(), sigma)
            assert found.shape == shape
            assert found.dtype == torch.float32
            torch.testing.assert_close(found.flatten(1).double(), exact, rtol=1e-4, atol=1e-4)
        assert each.log_prob(x.reshape(shape)).shape == (4,)
        assert each(x[:0], LEVELS[0]).shape == (0, 6)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (torch.ones(2, 3), r"shape \(D, D\), not \(2, 3\)"),
        (torch.tensor([[1.0, 0.5], [0.4, 1]]), "symmetric"),
        (torch.tensor([[1.0, math.nan], [math.nan, 1]]), "finite"),
        (torch.tensor([[1.0, 2], [2, 1]]), "no negative eigenvalues, such as -1"),
    ],
)
def test_bad_covariances(matrix: Tensor, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        Covariance(matrix)


def test_bad_shapes_and_weights() -> None:
    eye = torch.eye(2)
    with pytest.raises(ModelError, match=r"mean of shape \(3,\)"):
        GaussianDenoiser(torch.zeros(3), eye)
    with pytest.raises(ModelError, match=r"2 coordinates cannot act on a batch of shape \(4, 3\)"):
        GaussianDenoiser(torch.zeros(2), eye)(torch.zeros(4, 3), torch.ones(()))
    with pytest.raises(ModelError, match="as many weights"):
        MixtureDenoiser(torch.ones(2), torch.zeros(3, 2), eye.expand(3, 2, 2))
    with pytest.raises(ModelError, match="must be positive"):
        MixtureDenoiser(torch.tensor([1.0, -1]), torch.zeros(2, 2), eye.expand(2, 2, 2))
