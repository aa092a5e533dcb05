"""Particle filters against the master equation, and SMC² against a grid of master equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from simulators import (
    Event,
    Likelihood,
    MasterEquation,
    Reaction,
    ReactionNetwork,
    SimulationError,
    models,
    particle_filter,
)
from simulators.exact.particles import systematic

START = {"S": 95, "I": 5}
COUNTS = {3: 8, 10: 15, 20: 12, 28: 9}  # half of the infected were seen


def thinned(counts: dict[int, int]) -> dict[int, Likelihood]:
    return {
        step: Likelihood(lambda values, seen=seen: stats.binom.pmf(seen, values["I"], 0.5))
        for step, seen in counts.items()
    }


def test_evidence_and_smoothed_marginals_are_those_of_the_master_equation() -> None:
    where = thinned(COUNTS)
    exact = MasterEquation(models.esirs(), initial=START)
    found = particle_filter(models.esirs(), where, 4_000, initial=START, particles=20_000, seed=1)
    error = found.attrs["log_probability_error"]
    assert 0 < error < 0.05
    assert found.attrs["log_probability"] == pytest.approx(
        exact.log_probability(where), abs=4 * error
    )
    truth = exact.marginals(where)
    values = truth["value"].values
    for step in (0, 5, 10, 15, 20, 29):
        p = truth["I"].values[step]
        mean = float((p * values).sum())
        sd = math.sqrt(float((p * values**2).sum()) - mean**2)
        # resampled particles share ancestors: as if they were a quarter as many
        assert abs(float(found.I[:, step].mean()) - mean) <= 4 * sd / math.sqrt(1_000)
        assert float(found.I[:, step].std()) == pytest.approx(sd, rel=0.15, abs=1e-9)


def test_conditions_are_weights_of_zero_and_one() -> None:
    """P(I <= 40 at all steps and S = 30 or 40 at step 25)."""
    where = {"all": "I <= 40", 25: "S = 30 or S = 40"}
    exact = MasterEquation(models.esirs(), initial=START).log_probability(where)
    found = particle_filter(models.esirs(), where, 500, initial=START, particles=16_000)
    assert found.attrs["log_probability"] == pytest.approx(
        exact, abs=4 * found.attrs["log_probability_error"]
    )
    assert (found.I <= 40).all()
    assert set(found.S[:, 25].values.tolist()) == {30, 40}


def test_factors_of_a_trajectory_count_where_they_are_known() -> None:
    """log E[1 / (1 + new infections by step 12)], against plain simulation of as many."""

    def few(values: dict[str, np.ndarray]) -> np.ndarray:
        assert values["S"].shape[1] == 13
        return 1.0 / (1.0 + values["I"][:, 0] + np.abs(values["I"][:, 12] - values["I"][:, 0]))

    found = particle_filter(
        models.esirs(), samples=200, initial=START, paths={12: [few]}, particles=16_000
    )
    from simulators import simulate

    plain = simulate(models.esirs(), 16_000, seed=9, initial=START).I.values
    weights = 1.0 / (1.0 + plain[:, 0] + np.abs(plain[:, 12].astype(float) - plain[:, 0]))
    error = math.hypot(
        found.attrs["log_probability_error"], weights.std() / weights.mean() / math.sqrt(16_000)
    )
    assert found.attrs["log_probability"] == pytest.approx(math.log(weights.mean()), abs=4 * error)


def test_drawn_parameters_have_the_posterior_of_a_grid() -> None:
    """beta ~ U(1, 4): log evidence, mean and deviation by the trapezoidal rule over 61 master
    equations."""
    found = particle_filter(
        models.esirs(), thinned(COUNTS), 4_000, initial=START, parameters={"beta": (1.0, 4.0)},
        particles=16_384, seed=2,
    )  # fmt: skip
    error = found.attrs["log_probability_error"]
    assert found.attrs["log_probability"] == pytest.approx(-9.470955, abs=4 * error)
    assert error < 0.25
    draws = found.attrs["parameter_draws"]
    assert draws > 150
    beta = found.beta.values
    assert beta.mean() == pytest.approx(1.973925, abs=4 * 0.722352 / math.sqrt(draws / 2))
    assert beta.std() == pytest.approx(0.722352, rel=0.2)
    assert (beta >= 1).all()
    assert (beta <= 4).all()


def test_events_happen_once_on_the_way() -> None:
    """What is true from the start triggers then, and not again at each observed time; a lockdown
    holds from one observed time to the next."""
    network = ReactionNetwork(
        name="lockdown",
        species={"S": "N - 10", "I": 10, "R": 0},
        parameters={"beta": 0.5, "gamma": 0.05, "N": 300, "letters": 0},
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        events=[
            Event("lockdown", "I > 40", {"beta": 0.0}),
            Event("letter", "S >= 0", {"letters": "letters + 1"}, initially=False),
        ],
        population="N",
        until=20,
        points=21,
    )
    where = {
        step: Likelihood(lambda values: stats.norm.pdf(40, values["I"], 20)) for step in range(21)
    }
    found = particle_filter(network, where, 200, particles=1_600)
    assert (found.letters == 1).all()
    assert int(found.I.max()) == 41
    closed = found.I.values.max(1) == 41
    assert (found.beta.values[closed, -1] == 0).all()


@pytest.mark.parametrize("parameters", [{}, {"beta": (2.0, 3.0)}])
def test_the_same_seed_gives_the_same_numbers_on_any_threads(
    parameters: dict[str, tuple[float, float]],
) -> None:
    def draw(seed: int, threads: int) -> np.ndarray:
        found = particle_filter(
            models.esirs(), thinned({3: 8, 10: 15}), 50, initial=START, parameters=parameters,
            particles=4_096, seed=seed, threads=threads, points=12, until=1.2,
        )  # fmt: skip
        return np.stack([found.S.values, found.I.values])

    first = draw(5, 1)
    np.testing.assert_array_equal(first, draw(5, 2))
    assert (first != draw(6, 1)).any()


def test_what_no_particle_could_produce_is_refused() -> None:
    where = {5: Likelihood(lambda values: stats.binom.pmf(200, values["I"], 0.5))}
    with pytest.raises(SimulationError, match="none of 160 particles"):
        particle_filter(models.esirs(), where, 10, initial=START, particles=160)


def test_systematic_resampling_keeps_expected_numbers_and_drops_zeros() -> None:
    weights = np.array([[0.0, 0.5, 0.25, 0.25, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]])
    chosen = systematic(weights, 8, np.array([0.3, 0.999999]))
    assert np.bincount(chosen[0], minlength=5).tolist() == [0, 4, 2, 2, 0]
    assert np.bincount(chosen[1], minlength=5).tolist() == [8, 0, 0, 0, 0]
