"""Universal guidance part by part, on Gaussian data, where the answers are known."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from constraints import parse
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.schedule import SubVP
from surrogate.errors import ModelError
from surrogate.guidance.gradient import signal_and_weight
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.universal import ASCENT_RATE, Universal, ascend, recurrent_step, universal
from surrogate.random import stream
from tests.surrogate.guidance.test_gradient import Counting, normal

MEAN = torch.tensor([0.5, -1.0]).double()
SPREAD = torch.tensor([[1.0, 0.6], [0.6, 1.5]]).double()
GAUSSIAN = GaussianDenoiser(MEAN, SPREAD)
ALONG = torch.tensor([2.0, -1.0]).double()


def linear(x: Tensor) -> Tensor:
    return x.flatten(1) @ ALONG.to(x)


def quadratic(x: Tensor) -> Tensor:
    return -50 * (x.flatten(1) - 1).square().sum(1)


@pytest.mark.parametrize("sigma", [0.1, 1.0, 10.0])
def test_forward_tilts_as_bayes_does_but_for_its_weight(sigma: float) -> None:
    """Given x the clean point is N(D, C_σ), and under e^(a·x_0) its mean is D + C_σ a."""
    level = torch.tensor(sigma).double()
    x = torch.randn(30, 2, generator=stream(1)).double()
    _, g = signal_and_weight("snr", level, SubVP())
    wanted = GAUSSIAN(x, level) + 3 * g * GAUSSIAN.posterior(sigma) @ ALONG
    found = Universal(GAUSSIAN, linear, strength=3.0)(x, level)
    torch.testing.assert_close(found, wanted)
    assert not found.requires_grad


def test_forward_asks_the_network_once() -> None:
    counting = Counting(GAUSSIAN)
    Universal(counting, linear, backward=5)(torch.zeros(3, 2).double(), torch.ones(()).double())
    assert counting.calls == 1


def test_without_parts_nothing_is_guided() -> None:
    x, level = torch.randn(9, 2, generator=stream(2)).double(), torch.ones(()).double()
    found = Universal(GAUSSIAN, linear, forward=False)(x, level)
    assert torch.equal(found, GAUSSIAN(x, level))


def test_backward_moves_the_clean_point_ascend() -> None:
    """To the top if that is near, and never further than its steps reach."""
    x, level = torch.randn(400, 2, generator=stream(3)).double(), torch.ones(()).double()
    clean = GAUSSIAN(x, level)
    found = Universal(GAUSSIAN, quadratic, forward=False, backward=20)(x, level)
    assert bool((quadratic(found) > quadratic(clean)).all())
    reach = ASCENT_RATE * sum(1 - i / 20 for i in range(20))
    assert float((found - clean).abs().max()) <= reach + 1e-12
    near = (clean - 1).abs().amax(1) < 0.8 * reach
    assert int(near.sum()) > 10
    assert float((found[near] - 1).abs().max()) < ASCENT_RATE / 5
    assert torch.equal(ascend(quadratic, clean, 0), clean)


def test_noising_again_keeps_the_law() -> None:
    """A step taken many times leaves N(m, C + σ_s²) as it is; without new noise it would shrink."""
    n, sigma, below = 40_000, torch.tensor(1.0).double(), torch.tensor(0.98).double()
    generator = stream(4)
    x = GAUSSIAN.sample(n, generator, float(sigma))
    made = recurrent_step(GAUSSIAN, x, sigma, below, 40, generator)
    wanted = SPREAD + float(below) ** 2 * torch.eye(2).double()
    # C_σ is not that of white data, by 0.2 or so, of which (1 - r)² = 0.04² counts, 20 times
    noise = 4 * float(wanted.diagonal().max()) * (2 / n) ** 0.5
    assert float((torch.cov(made.mT) - wanted).abs().max()) < noise + 0.01
    assert float((made.mean(0) - MEAN).abs().max()) < 4 * float((wanted.max() / n) ** 0.5)


def test_recurrence_without_guidance_samples_the_data() -> None:
    """Mean 0, variance 1, independent steps: exactly so for white data."""
    n = 10_000
    scenario = Scenario(normal(), parse("a(0) >= 1"), hardness=5.0)
    x = universal(scenario, n, stream(5), forward=False, recurrence=3, steps=40)
    found = scenario.signals(x)
    assert float(found.mean(0).abs().max()) < 4 / n**0.5
    assert float((torch.cov(found.mT) - torch.eye(2)).abs().max()) < 4 * (2 / n) ** 0.5 + 0.01


def test_guidance_leads_to_the_scenario() -> None:
    scenario = Scenario(normal(), parse("a(0) >= 1"), hardness=5.0)
    plain = universal(scenario, 400, stream(6), forward=False, steps=40)
    assert 0.1 < float(scenario.satisfied(plain)[0].double().mean()) < 0.25
    for parts in ({}, {"forward": False, "backward": 10}, {"backward": 5, "recurrence": 2}):
        x = universal(scenario, 400, stream(6), steps=40, final=10, **parts)  # type: ignore[arg-type]
        assert float(scenario.satisfied(x)[0].double().mean()) > 0.6


def test_the_cost() -> None:
    model = normal()
    counting = model.denoiser
    assert isinstance(counting, Counting)
    told: list[int] = []
    universal(
        Scenario(model, parse("a(0) >= 1"), hardness=5.0),
        3,
        stream(7),
        backward=2,
        recurrence=3,
        steps=5,
        correctors=2,
        final=4,
        progress=told.append,
    )
    assert counting.calls == 5 * (2 + 3) + 4
    assert sum(told) == 5 + 4


def test_settings_that_cannot_be() -> None:
    with pytest.raises(ModelError, match="backward must be a whole number from 0"):
        Universal(GAUSSIAN, linear, backward=-1)
    scenario = Scenario(normal(), parse("a(0) >= 1"), hardness=5.0)
    with pytest.raises(ModelError, match="recurrence must be a whole number from 1"):
        universal(scenario, 3, stream(8), recurrence=0)
