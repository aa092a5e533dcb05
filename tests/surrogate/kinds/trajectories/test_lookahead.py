"""The look-ahead of a particle filter: it changes which particles survive, and no probability."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from constraints import parse
from simulators import Reaction, ReactionNetwork, simulate
from surrogate.guidance import sequential, smc
from surrogate.guidance.cases import cases_of
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.decoder import NO_SIGNAL
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.model import Surrogate
from surrogate.random import stream
from tests.surrogate.analytic import generator

PARTICLES, BATCHES = 1_000, 8


@pytest.fixture(scope="module")
def model() -> Surrogate:
    """Births and deaths, by a decoder that is not trained: a distribution all the same."""
    network = ReactionNetwork(
        name="births",
        species={"X": 20},
        parameters={"k": 0.2},
        reactions=[Reaction("birth", "-> X", "4"), Reaction("death", "X ->", "k*X")],
        until=4,
        points=9,
    )
    data = simulate(network, samples=300, seed=0)
    own = TimeSeriesCodec.fit(data)
    torch.manual_seed(0)
    made = Surrogate.untrained(own, 0)
    assert made.decoder is not None
    made.decoder.measure(own.encode(data, np.arange(300), generator(0)))
    return made


def plain(model: Surrogate) -> Tensor:
    """X of plain draws, (n, T)."""
    assert model.decoder is not None
    nothing = torch.zeros(40_000, *model.shape)
    clean = model.decoder.draw(nothing, NO_SIGNAL, stream(5)).x
    return model.decoder.sites.values(clean)["X"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "met"),
    [
        ("X(6) >= 28", lambda x: x[:, 6] >= 28),
        ("X(8) = 15", lambda x: x[:, 8] == 15),
        ("X(3) = 22 and X(8) <= 16", lambda x: (x[:, 3] == 22) & (x[:, 8] <= 16)),
        ("X(4) + X(8) >= 52", lambda x: x[:, 4] + x[:, 8] >= 52),
        ("forall t: X(t) <= 24", lambda x: (x <= 24).all(1)),
    ],
)
def test_the_probability_is_that_of_plain_draws(model: Surrogate, text: str, met: object) -> None:
    scenario = Scenario(model, parse(text))
    (case,) = cases_of(scenario, 0)
    assert case.lookahead is not None
    each = [
        sequential.filtered(scenario, case, PARTICLES, stream(1, k)).log_z for k in range(BATCHES)
    ]
    found = torch.tensor(each, dtype=torch.float64).exp()
    share = met(plain(model)).double().mean()  # type: ignore[operator]
    error = math.hypot(
        float(found.std()) / math.sqrt(BATCHES), math.sqrt(float(share * (1 - share)) / 40_000)
    )
    assert float(share) > 1e-3
    assert float(found.mean()) == pytest.approx(float(share), abs=5 * error)


def test_particles_on_their_way_to_a_late_value_survive(model: Surrogate) -> None:
    scenario = Scenario(model, parse("X(8) = 45"))
    (case,) = cases_of(scenario, 0)
    shares = [
        smc.ancestor_ess(found.log_weights, found.ancestors)
        for found in (
            sequential.filtered(scenario, replace(case, lookahead=each), PARTICLES, stream(2))
            for each in (None, case.lookahead)
        )
    ]
    assert shares[1] > 3 * shares[0]


def test_nothing_is_guessed_after_the_last_step(model: Surrogate) -> None:
    scenario = Scenario(model, parse("X(4) >= 25"))
    ahead = cases_of(scenario, 0)[0].lookahead
    assert ahead is not None
    values, sums = {"X": torch.tensor([10.0, 20.0, 30.0]).double()}, torch.zeros(3, 1).double()
    early = ahead.after(3, values, sums)
    assert early[0] < early[1] < early[2] < 0
    assert ahead.after(4, values, sums).tolist() == [0.0, 0.0, 0.0]
    assert ahead.after(8, values, sums).tolist() == [0.0, 0.0, 0.0]


def test_formulas_without_linear_conditions_have_none(model: Surrogate) -> None:
    (case,) = cases_of(Scenario(model, parse("argmax(X) <= 3")), 0)
    assert case.lookahead is None
