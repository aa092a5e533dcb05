"""Moment matching: exact for a Gaussian, whose denoiser's Jacobian is what the method takes it for.

The model is an exact score of Gaussian images of 4 x 4 pixels, so conditional laws are known.
"""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from constraints import parse
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.schedule import karras
from surrogate.exact import Exact
from surrogate.guidance.moments import Moments, conjugate_gradients, walk_down
from surrogate.guidance.sampler import sample
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.images.codec import ImageCodec
from surrogate.model import Surrogate
from surrogate.sampling.steps import SIGMA_MAX
from tests.surrogate.analytic import SIGMAS, assert_moments, generator

SIDE = 4
SIZE = SIDE * SIDE
MEAN, SCALE = 0.5, 0.05  # of pixels: ten deviations from black and white, so that none is cut


def spread() -> Tensor:
    """Neighbouring pixels are alike: (16, 16)."""
    at = torch.cartesian_prod(torch.arange(SIDE), torch.arange(SIDE)).double()
    return torch.exp(-torch.cdist(at, at) / 2)


class Flat(GaussianDenoiser):
    """A Gaussian's denoiser on images (B, 1, 4, 4)."""

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        flat = super().__call__(x.flatten(1).double(), sigma.double())
        return flat.reshape(x.shape).to(x)


@pytest.fixture(scope="module")
def model() -> Surrogate:
    codec = ImageCodec((1, SIDE, SIDE), (MEAN,), (SCALE,), whole=False)
    law = Flat(torch.zeros(SIZE, dtype=torch.float64), spread())
    return Exact(codec, law, Covariance(spread()), {})  # type: ignore[arg-type]


def moments(model: Surrogate, where: str, jacobian: str, **more: float) -> Moments:
    return Moments(Scenario(model, parse(where)), jacobian, **more)  # type: ignore[arg-type]


def test_conjugate_gradients_solve_each_row_by_a_matrix_of_its_own() -> None:
    roots = torch.randn(3, 6, 6, generator=generator(1), dtype=torch.float64)
    matrices = roots @ roots.mT + 0.1 * torch.eye(6)
    wanted = torch.randn(3, 6, generator=generator(2), dtype=torch.float64)
    found = conjugate_gradients(lambda u: (matrices @ u[..., None])[..., 0], wanted, 40)
    torch.testing.assert_close(found, torch.linalg.solve(matrices, wanted), atol=1e-4, rtol=1e-4)


def test_conjugate_gradients_survive_what_is_not_positive() -> None:
    found = conjugate_gradients(lambda u: -u, torch.ones(2, 3), 5)
    assert torch.equal(found, torch.zeros(2, 3))


@pytest.mark.parametrize("jacobian", ["network", "gaussian"])
def test_the_estimate_given_equations_is_the_exact_one(model: Surrogate, jacobian: str) -> None:
    own = moments(model, "mean(upper) = 0.55 and image(3, 3) = 0.45", jacobian, iterations=10)
    x = 2 * torch.randn(5, SIZE, generator=generator(3))
    sigma = torch.tensor(0.7)
    c_sigma = torch.linalg.inv(torch.linalg.inv(spread()) + torch.eye(SIZE) / 0.49)
    mean = x.double() @ (c_sigma / 0.49)
    rows = own.rows.double()
    joint = rows @ c_sigma @ rows.mT + torch.diag(own.tolerance.double())
    missing = own.wanted.double() - mean @ rows.mT
    exact = mean + torch.linalg.solve(joint, missing.mT).mT @ rows @ c_sigma
    found = own(x, sigma)
    torch.testing.assert_close(found.denoised.double(), mean, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(found.guided.double(), exact, atol=5e-3, rtol=5e-3)


@pytest.mark.parametrize("jacobian", ["network", "gaussian"])
def test_samples_under_equations_have_the_conditional_law(model: Surrogate, jacobian: str) -> None:
    own = moments(model, "mean(upper) = 0.55 and image(3, 3) = 0.45", jacobian)
    sigmas = karras(150, 0.02, SIGMA_MAX)
    found = walk_down(own, 1_500, sigmas, generator(4)).x.double()
    rows, covariance = own.rows.double(), spread()
    joint = rows @ covariance @ rows.mT
    gain = torch.linalg.solve(joint, rows @ covariance).mT
    torch.testing.assert_close(
        found @ rows.mT, own.wanted.double().expand(len(found), -1), atol=1e-4, rtol=1e-4
    )
    # steps are finite: some of the variance is lost
    free = torch.linalg.eigh(covariance - gain @ rows @ covariance).eigenvectors[:, -6:]
    narrowed = free.mT @ (covariance - gain @ rows @ covariance) @ free
    assert_moments(found @ free, (gain @ own.wanted.double()) @ free, narrowed, slack=0.12)


def test_particles_tell_the_probability_of_an_inequality(model: Surrogate) -> None:
    """P(mean(upper) >= mean(lower) + 1.5 deviations of the difference)."""
    weights = torch.cat([torch.ones(SIZE // 2), -torch.ones(SIZE // 2)]).double() / (SIZE // 2)
    deviation = SCALE * math.sqrt(float(weights @ spread() @ weights))
    where = f"mean(upper) >= mean(lower) + {1.5 * deviation}"
    exact = float(torch.special.log_ndtr(torch.tensor(-1.5, dtype=torch.float64)))
    data = sample(model, 400, where, seed=5, method="moments", particles=2400, steps=60).dataset
    assert bool(data.satisfied.all())
    error = data.attrs["surrogate_log_probability_error"]
    assert 0 < error < 0.15
    assert abs(data.attrs["surrogate_log_probability"] - exact) < SIGMAS * error + 0.1
    values = torch.from_numpy(data.image.values.reshape(400, -1)).double()
    above = (values @ weights) / deviation
    # the mean of a normal beyond 1.5 is its hazard there, 1.94, with a deviation of 0.37
    assert abs(float(above.mean()) - 1.94) < SIGMAS * 0.37 / math.sqrt(400) + 0.05


def test_strength_pulls_further(model: Surrogate) -> None:
    sigma, x = torch.tensor(1.0), torch.zeros(1, SIZE)
    pulled = [
        float((own.guided - own.denoised).norm())
        for strength in (0.5, 2.0)
        for own in [moments(model, "mean(image) >= 0.6", "network", strength=strength)(x, sigma)]
    ]
    assert pulled[1] == pytest.approx(4 * pulled[0], rel=1e-3)


def test_a_repeated_step_keeps_the_law(model: Surrogate) -> None:
    own = moments(model, "image(0, 0) = 0.5", "network")
    found = walk_down(own, 800, karras(60, 0.02, SIGMA_MAX), generator(6), recurrence=2).x.double()
    covariance = spread()
    narrowed = covariance - torch.outer(covariance[0], covariance[0])
    assert_moments(found[:, 1:], torch.zeros(SIZE - 1).double(), narrowed[1:, 1:], slack=0.2)


def test_the_same_seed_makes_the_same_images(model: Surrogate) -> None:
    made = [
        sample(model, 3, "mean(image) >= 0.52", seed=seed, steps=10).dataset.image.values
        for seed in (1, 1, 2)
    ]
    assert (made[0] == made[1]).all()
    assert (made[0] != made[2]).any()
