"""What small networks learn of distributions that are known."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from surrogate.diffusion.denoise import Denoiser, Preconditioned
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.losses import LogNormal, Loss
from surrogate.diffusion.schedule import karras
from surrogate.diffusion.training import Settings, Trainer
from surrogate.sampling import dpm_solver
from tests.surrogate.analytic import assert_moments, generator, toy, toy_distance
from tests.surrogate.diffusion.small_runs import Pool, untrained

LEVELS = LogNormal(-1.0, 1.2)
TOP = 10.0  # the noise level at which sampling starts


def learn(samples: Tensor, loss: Loss, steps: int) -> Preconditioned:
    denoiser = untrained(samples.shape[1])
    settings = Settings(
        steps=steps, batch=512, rate=5e-3, warm_up=30, check_every=steps // 4, average=0.99
    )
    best = Trainer(denoiser, Pool(samples[1000:]), samples[:1000], loss, settings).run()
    denoiser.load_state_dict(best, strict=False)
    return denoiser


def draw(denoiser: Denoiser, count: int, size: int) -> Tensor:
    noise = math.hypot(TOP, 1) * torch.randn(count, size, generator=generator(3))
    return dpm_solver(denoiser, noise, karras(30, 0.01, TOP).float())


@pytest.mark.parametrize(("sliced", "slack"), [(0.0, 0.08), (0.5, 0.08), (1.0, 0.15)])
def test_learns_a_gaussian(sliced: float, slack: float) -> None:
    mean, covariance = torch.tensor([0.3, -0.2]), torch.tensor([[1.0, 0.8], [0.8, 1]])
    data = GaussianDenoiser(mean, covariance)
    learned = learn(data.sample(20_000, generator()), Loss(LEVELS, sliced=sliced), 240)
    assert_moments(draw(learned, 4000, 2), mean, covariance, slack)
    # and it is much nearer to the truth than what it started from
    for sigma in torch.tensor([0.3, 0.7, 2.0]):
        x = data.sample(4000, generator(4), float(sigma))
        with torch.no_grad():
            exact = data(x, sigma)
            off, start = ((d(x, sigma) - exact).square().mean() for d in (learned, untrained(2)))
        assert off < 0.25 * start


@pytest.mark.parametrize(
    ("loss", "steps", "margin"),
    [(Loss(LEVELS), 400, 0.06), (Loss(LEVELS, draws=4, sliced=1), 300, 0.2)],
    ids=["denoising", "sliced"],
)
def test_learns_two_clusters(loss: Loss, steps: int, margin: float) -> None:
    """Sliced score matching finds how much each weighs slowly: the score hardly depends on it."""
    shift, scale = 0.5, 3.6
    samples = (toy().sample(50_000, generator()) - shift) / scale
    learned = learn(samples, loss, steps)
    found = scale * draw(learned, 5000, 1) + shift
    distance, allowed = toy_distance(found)
    assert distance < allowed + margin
    nothing, _ = toy_distance(scale * draw(untrained(1), 5000, 1) + shift)
    assert nothing > allowed + 0.35  # the bounds mean something
    for near, centre, deviation in ((found < 0, -3, 0.5), (found > 0.5, 4, 1)):
        cluster = found[near]
        assert abs(cluster.mean() - centre) < 0.25 * deviation + 0.1
        assert abs(cluster.std() - deviation) < 0.35 * deviation
