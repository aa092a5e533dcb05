"""The particle filter over the values of a decoder, without the diffusion."""

from __future__ import annotations

import math

import numpy as np
import pytest
from torch import Generator

import surrogate as sg
from constraints import parse
from simulators import MasterEquation, models
from surrogate.errors import ModelError
from surrogate.guidance import sequential
from surrogate.guidance.cases import Case, cases_of
from surrogate.guidance.methods.sequential import MAX_PARTICLES, MIN_PARTICLES, particles_for
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.twisted import Particles
from surrogate.model import Surrogate
from surrogate.random import stream


@pytest.fixture(scope="module")
def model() -> Surrogate:
    return sg.pretrained("esirs")


def scenario(model: Surrogate, text: str) -> Scenario:
    return Scenario(model, parse(text))


def filtered(asked: Scenario, particles: int, generator: Generator) -> Particles:
    """Particles of a scenario of one case, without a look-ahead."""
    return sequential.filtered(asked, Case(0, asked.pins), particles, generator)


def test_the_probability_is_that_of_the_master_equation(model: Surrogate) -> None:
    """P(S(3) <= 40 | S(0) = 60, I(0) = 20), by the ratio of two probabilities of the model."""
    exact = MasterEquation(models.esirs(), initial={"S": 60, "I": 20}).probability({3: "S <= 40"})
    start = "S(0) = 60 and I(0) = 20"
    log_z = [
        filtered(scenario(model, text), 4_000, stream(1)).log_z
        for text in (f"{start} and S(3) <= 40", start)
    ]
    error = math.sqrt((1 - exact) / exact / 4_000)
    assert math.exp(log_z[0] - log_z[1]) == pytest.approx(exact, rel=5 * error + 0.1)


def test_a_past_that_is_given_in_full_has_equal_weights(model: Surrogate) -> None:
    given = model.sample(1, seed=3).isel(sample=0)
    steps = range(8)
    text = " and ".join(f"S({t}) = {int(given.S[t])} and I({t}) = {int(given.I[t])}" for t in steps)
    found = filtered(scenario(model, text), 300, stream(2))
    assert found.ess == pytest.approx(300, rel=1e-3)
    assert found.distinct_ancestors == 300
    x = model.codec.to_dataset(found.x.reshape(-1, *model.shape))
    for t in steps:
        assert (x.S.values[:, t] == int(given.S[t])).all()
    assert x.S.values[:, 20].std() > 0
    assert sequential.suits(scenario(model, text), seed=0)


def test_a_rare_late_value_has_the_probability_of_the_master_equation(model: Surrogate) -> None:
    """6 in 10 million; within noise (0.15) and the model's own error (0.17) of log P."""
    rare = scenario(model, "I(20) >= 50")
    assert sequential.suits(rare, seed=0)
    (case,) = cases_of(rare, 0)
    each = [sequential.filtered(rare, case, 4_000, stream(4, k)).log_z for k in range(4)]
    exact = MasterEquation(models.esirs()).log_probability({20: "I >= 50"})
    found = math.log(np.mean(np.exp(each)))
    assert found == pytest.approx(exact, abs=0.5)


def test_particles_are_added_where_few_keep_their_ancestors() -> None:
    assert particles_for(1_000, 0.5) == MIN_PARTICLES
    assert particles_for(100, 0.02) == 25_000
    assert particles_for(1_000, 0.02) == 75_000
    assert particles_for(1_000, 0.0) == MAX_PARTICLES
    assert particles_for(20_000, 0.5) == 120_000


def test_it_needs_a_decoder_and_something_linear(model: Surrogate) -> None:
    assert not sequential.suits(scenario(model, "argmax(I) <= 12"), seed=0)
    without = sg.pretrained("digits")
    with pytest.raises(ModelError, match="no decoder"):
        without.sample(2, where="mean(image) >= 0.1", method="sequential")


def test_samples_meet_the_scenario_and_have_its_law(model: Surrogate) -> None:
    draws = model.sample(1_000, where="S(0) = 60 and I(0) = 20 and S(4) = 55", method="sequential")
    exact = MasterEquation(models.esirs(), initial={"S": 60, "I": 20})
    wanted = exact.draw(1_000, {4: "S = 55"}, seed=1)
    assert bool(draws.satisfied.all())
    for step in (2, 10, 29):
        a, b = draws.I.values[:, step].astype(float), wanted.I.values[:, step].astype(float)
        error = math.hypot(a.std(), b.std()) / math.sqrt(1_000)
        assert abs(a.mean() - b.mean()) < 5 * error
    assert np.isfinite(draws.attrs["surrogate_log_probability_error"])
