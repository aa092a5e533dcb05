"""The guided sampler against exact answers: mixtures of Gaussian series."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from constraints import parse
from surrogate.diffusion.schedule import karras
from surrogate.evaluation.distances import histogram_distance
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.smc import systematic
from surrogate.guidance.twisted import Particles, twisted
from surrogate.guidance.twisted_batches import levels
from surrogate.random import stream
from tests.surrogate.guidance.bed import Bed

SHORT = [  # for 11 coordinates
    "a(3) = 0.5 +- 0.1 and a(8) = -0.2 +- 0.1",
    "forall t: a(t) <= 0.4",
    "a(9) >= 1.5 or a(9) <= -1.5",
]
SCENARIOS = [  # for 60
    "a(10) = 0.5 +- 0.1 and b(25) = 1 +- 0.1",
    "forall t: a(t) <= 0.8",
    "a(29) >= 2 or a(29) <= -2.5",
    "(forall t: -1.5 <= a(t) <= 1.5) and b(25) = 1 +- 0.2",
    "eventually(a >= 3)",
]


@pytest.fixture(scope="module")
def bed() -> Bed:
    return Bed()


@pytest.fixture(scope="module")
def exact(bed: Bed) -> torch.Tensor:
    return bed.draw(300_000, 5)


def batches(
    scenario: Scenario, count: int, number: int = 2, steps: int = 30, jacobian: str = "gaussian"
) -> list[Particles]:
    sigmas = levels(scenario.prior.covariance, steps)
    return [
        twisted(scenario, count, sigmas, stream(3, j), jacobian=jacobian) for j in range(number)
    ]


@pytest.fixture(scope="module")
def short() -> tuple[Bed, torch.Tensor]:
    bed = Bed("a", 11)
    return bed, bed.draw(300_000, 5)


@pytest.mark.parametrize("text", SCENARIOS)
def test_the_conditional_law_and_its_probability(bed: Bed, exact: torch.Tensor, text: str) -> None:
    check(bed, exact, Scenario(bed.model, parse(text)))


@pytest.mark.parametrize("text", SHORT)
def test_few_coordinates(short: tuple[Bed, torch.Tensor], text: str) -> None:
    bed, exact = short
    check(bed, exact, Scenario(bed.model, parse(text)))


def test_the_jacobian_of_the_network(bed: Bed, exact: torch.Tensor) -> None:
    text = "(forall t: a(t) <= 0.8) and b(25) = 0.5 +- 0.2"
    check(bed, exact, Scenario(bed.model, parse(text)), jacobian="network")


def check(bed: Bed, exact: torch.Tensor, scenario: Scenario, jacobian: str = "gaussian") -> None:
    """Samples at their floor, and the probability within 0.1."""
    signals = bed.signals(exact)
    truth = exact[scenario.program.verdict(signals)]
    log_p = math.log(len(truth) / len(exact))
    found = batches(scenario, 1500, jacobian=jacobian)
    log_z = math.log(sum(math.exp(each.log_z) for each in found) / len(found))
    assert abs(log_z - log_p) < 0.1 + 3 / math.sqrt(len(truth))
    assert min(each.ess for each in found) > 300
    x = torch.cat([each.x for each in found])
    rows = systematic(torch.cat([each.log_weights for each in found]), 1000, stream(1))
    made = x[rows]
    met, kept = scenario.satisfied(made)
    assert bool(met.all())
    assert bool(kept.all())
    n = min(1000, len(truth) // 2)
    reference = truth[n:].numpy()
    distance = histogram_distance(scenario.signals(made[:n]).numpy(), reference, whole=False)
    floor = histogram_distance(truth[:n].numpy(), reference, whole=False)
    assert np.median(distance) < 1.2 * np.median(floor)
    assert distance.max() < 1.5 * floor.max()


@pytest.mark.parametrize(("names", "steps", "at", "above"), [("a b", 30, 20, 3.0), ("a", 11, 7, 3)])
def test_a_rare_event(names: str, steps: int, at: int, above: float) -> None:
    """One in a million, whose probability is a sum of three."""
    bed = Bed(names, steps)
    weights, means, covariances = bed.parts
    level = float(means[:, at].max()) + above
    tails = torch.special.log_ndtr((means[:, at] - level) / covariances[:, at, at].sqrt())
    log_p = float(torch.logsumexp(weights.log() + tails, 0))
    assert -15 < log_p < -13
    found = batches(Scenario(bed.model, parse(f"a({at}) >= {level}")), 1500, steps=80)
    log_z = math.log(sum(math.exp(each.log_z) for each in found) / len(found))
    assert abs(log_z - log_p) < 0.3


def test_what_no_particle_meets(bed: Bed) -> None:
    scenario = Scenario(bed.model, parse("a(3) >= 1 and a(3) <= 1.5 and a(4) >= 200"))
    found = twisted(scenario, 50, karras(10, 0.02, 80.0).double(), stream(0))
    assert found.ess < 5


def test_the_same_seed_gives_the_same_particles(bed: Bed) -> None:
    scenario = Scenario(bed.model, parse("a(3) >= 1"))
    first, second = (
        twisted(scenario, 50, karras(8, 0.02, 80.0).double(), stream(4)) for _ in range(2)
    )
    assert torch.equal(first.x, second.x)
    assert torch.equal(first.log_weights, second.log_weights)
