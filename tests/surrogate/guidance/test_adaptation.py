"""Adaptation of the sequential filter: posteriors of statics given sharp observations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from constraints import parse
from simulators import Reaction, ReactionNetwork, simulate
from surrogate.guidance import sequential, smc
from surrogate.guidance.adaptation import adapted, tempering
from surrogate.guidance.cases import cases_of
from surrogate.guidance.rejuvenation import first_moved
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.decoder import NO_SIGNAL
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.model import Surrogate
from surrogate.random import stream
from tests.surrogate.analytic import generator

PARTICLES, BATCHES = 1_000, 8
SEEN = "24 ~ normal(X(2), 3) and 26 ~ normal(X(4), 3) and 4 ~ normal(10*k, 0.5)"


@pytest.fixture(scope="module")
def model() -> Surrogate:
    """Births and deaths with a rate drawn from a range, by a decoder that is not trained."""
    network = ReactionNetwork(
        name="births",
        species={"X": 20},
        parameters={"k": 0.2},
        reactions=[Reaction("birth", "-> X", "4"), Reaction("death", "X ->", "k*X")],
        until=2,
        points=5,
    )
    data = simulate(network, samples=300, seed=0, parameters={"k": (0.1, 0.6)})
    own = TimeSeriesCodec.fit(data)
    torch.manual_seed(0)
    made = Surrogate.untrained(own, 0)
    assert made.decoder is not None
    made.decoder.measure(own.encode(data, np.arange(300), generator(0)))
    return made


def test_an_adapted_filter_has_the_evidence_and_posterior_of_plain_draws(model: Surrogate) -> None:
    scenario = Scenario(model, parse(SEEN))
    assert model.decoder is not None
    plain = model.decoder.draw(torch.zeros(60_000, *model.shape), NO_SIGNAL, stream(5)).x
    weights = scenario.log_likelihood(scenario.joined(plain)).exp()
    k = model.decoder.sites.values(plain)["k"][:, 0]  # type: ignore[attr-defined]
    (case,) = cases_of(scenario, 0)
    own = adapted(scenario, case, stream(0, 1))
    assert own.proposal is not None
    found, means = [], []
    for j in range(BATCHES):
        batch = sequential.filtered(scenario, own, PARTICLES, stream(1, j))
        values = model.decoder.sites.values(scenario.shaped(batch.x))  # type: ignore[attr-defined]
        found.append(batch.log_z)
        means.append(float((torch.softmax(batch.log_weights, 0) * values["k"][:, 0]).sum()))
    z = torch.tensor(found, dtype=torch.float64).exp()
    exact = float(weights.mean())
    noise = float(weights.std()) / math.sqrt(len(weights))
    error = math.hypot(float(z.std()) / math.sqrt(BATCHES), noise)
    assert error < 0.1 * exact
    assert float(z.mean()) == pytest.approx(exact, abs=5 * error)
    share = weights / weights.sum()
    mean = float((share * k).sum())
    spread = float((share.square() * (k - mean).square()).sum().sqrt())
    bound = math.hypot(spread, float(np.std(means)) / math.sqrt(BATCHES))
    assert float(np.mean(means)) == pytest.approx(mean, abs=5 * bound)


def test_moves_leave_the_posterior_of_statics_as_it_is(model: Surrogate) -> None:
    scenario = Scenario(model, parse(SEEN))
    assert model.decoder is not None
    plain = model.decoder.draw(torch.zeros(60_000, *model.shape), NO_SIGNAL, stream(6)).x
    log_weights = scenario.log_likelihood(scenario.joined(plain))
    rows = smc.systematic(log_weights, 2_000, stream(7))
    before = scenario.joined(plain[rows])
    after = first_moved(scenario, before, stream(8))

    def k(x: torch.Tensor) -> torch.Tensor:
        return model.decoder.sites.values(scenario.shaped(x))["k"][:, 0]  # type: ignore

    old, new = k(before), k(after)
    assert float((old != new).double().mean()) > 0.3
    ess = float(smc.ess(log_weights))
    bound = 5 * float(old.std()) * math.sqrt(2 / min(ess, 2_000))
    assert abs(float(old.mean() - new.mean())) < bound
    assert float(new.std() / old.std()) == pytest.approx(1, abs=5 / math.sqrt(min(ess, 2_000)))


def test_weights_are_tempered_to_an_effective_sample_size() -> None:
    log_weights = 20 * torch.randn(1_000, generator=stream(0), dtype=torch.float64)
    power = tempering(log_weights, 200)
    assert float(smc.ess(power * log_weights)) == pytest.approx(200, rel=0.01)
    assert tempering(0.1 * log_weights / 20, 200) == 1.0
