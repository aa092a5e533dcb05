"""The master equation against closed forms, brute force and its own draws."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg, stats

from simulators import InputError, Reaction, ReactionNetwork, SimulationError, models
from simulators.exact import chain
from simulators.exact.conditions import Conditions, Likelihood
from simulators.exact.master_equation import MasterEquation

ESIRS = models.esirs()
TINY = {"N": 3}
TINY_TIMES = [0.0, 0.3, 0.5, 1.2]


def death(count: int = 20) -> ReactionNetwork:
    return ReactionNetwork(
        name="death",
        species={"X": count},
        parameters={"mu": 0.7},
        reactions=[Reaction("die", "X -> 0", "mu")],
        until=2,
        points=5,
    )


def flip(up: float, down: float, points: int = 5) -> ReactionNetwork:
    return ReactionNetwork(
        name="flip",
        species={"A": 1, "B": 0},
        parameters={"up": up, "down": down},
        reactions=[Reaction("up", "A -> B", "up"), Reaction("down", "B -> A", "down")],
        until=float(points - 1),
        points=points,
    )


# --- known answers --------------------------------------------------------------------------------


def test_the_bridge_of_the_paper() -> None:
    solver = MasterEquation(ESIRS, {"S": 95, "I": 5})
    assert len(solver.states) == 5151
    assert solver.truncation_error == 0
    assert solver.probability({25: "S = 30"}) == pytest.approx(0.06819, abs=5e-6)
    uniform = MasterEquation(ESIRS)
    bridge = {0: "S = 95 and I = 5", 25: "S = 30"}
    expected = solver.log_probability({25: "S = 30"}) - np.log(5151)
    assert uniform.log_probability(bridge) == pytest.approx(expected, rel=1e-10)


def test_few_infected_at_all_times() -> None:
    solver = MasterEquation(ESIRS)
    assert solver.probability({"all": "I <= 20"}) == pytest.approx(3.257e-4, abs=5e-8)
    marginals = solver.marginals({"all": "I <= 20"})
    assert marginals.attrs["log_probability"] == pytest.approx(np.log(3.257e-4), abs=2e-4)
    assert float(marginals.I.sel(value=slice(21, None)).max()) == 0


def test_pure_death_is_binomial() -> None:
    solver = MasterEquation(death())
    exact = [stats.binom.pmf(np.arange(21), 20, np.exp(-0.7 * t)) for t in solver.times]
    # relative to each entry, deep in the tails too
    np.testing.assert_allclose(solver.marginals().X, exact, rtol=1e-11)


def test_many_jumps_in_one_step() -> None:
    solver = MasterEquation(death(1000), times=[0.0, 1.0])
    exact = stats.binom.pmf(np.arange(1001), 1000, np.exp(-0.7))
    np.testing.assert_allclose(solver.marginals().X[1], exact, rtol=1e-8, atol=1e-250)


def test_a_two_state_chain_has_its_closed_form() -> None:
    solver = MasterEquation(flip(0.8, 0.3))
    up = 0.8 / 1.1 * (1 - np.exp(-1.1 * solver.times))
    np.testing.assert_allclose(solver.marginals().B.sel(value=1), up, rtol=1e-12, atol=1e-15)
    p_up, p_down = 0.8 / 1.1 * (1 - np.exp(-1.1)), 0.3 / 1.1 * (1 - np.exp(-1.1))
    path = (1 - p_up) * p_up * (1 - p_down) * p_down
    assert solver.probability({1: "A=1", 2: "B=1", 3: "B=1", 4: "A=1"}) == pytest.approx(path)


def test_tiny_probabilities_do_not_underflow() -> None:
    solver = MasterEquation(flip(1e-12, 3e-12, points=61))
    where = {step: "A = 0" if step % 2 else "A = 1" for step in range(61)}
    jump = -np.expm1(-4e-12)
    exact = 30 * (np.log(0.25 * jump) + np.log(0.75 * jump))
    assert exact < -1600
    assert solver.log_probability(where) == pytest.approx(exact, rel=1e-12)
    assert solver.probability(where) == 0
    assert solver.conditions(where).holds(solver.draw(20, where)).all()


def test_immigration_and_death_is_poisson() -> None:
    solver = MasterEquation(models.birth_death())
    marginals = solver.marginals()
    for step, mean in enumerate(100 * (1 - np.exp(-0.1 * solver.times))):
        exact = stats.poisson.pmf(marginals.value, mean)
        assert 0.5 * np.abs(marginals.X[step] - exact).sum() <= solver.truncation_error


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8, 1e-12])
def test_the_truncation_error_bounds_the_true_error(tolerance: float) -> None:
    times = np.linspace(0, 10, 6)
    solver = MasterEquation(models.birth_death(), times=times, tolerance=tolerance)
    assert 0 < solver.truncation_error <= tolerance
    marginals = solver.marginals()
    for step, mean in enumerate(100 * (1 - np.exp(-0.1 * times))):
        kept = np.asarray(marginals.X[step])
        exact = stats.poisson.pmf(marginals.value, mean)
        outside = stats.poisson.sf(marginals.value[-1], mean)
        error = 0.5 * (np.abs(kept - exact).sum() + outside)
        assert error <= solver.truncation_error + 1e-14


def test_rare_events_beyond_the_default_tolerance() -> None:
    times = [0.0, 10.0]
    exact = stats.poisson.logsf(139, 100 * (1 - np.exp(-1)))
    sharp = MasterEquation(models.birth_death(), times=times, tolerance=1e-40)
    assert sharp.log_probability({1: "X >= 140"}) == pytest.approx(exact, rel=1e-9)
    coarse = MasterEquation(models.birth_death(), times=times, tolerance=1e-3)
    missing = np.exp(exact) - coarse.probability({1: "X >= 140"})
    assert 0 <= missing <= coarse.truncation_error
    with pytest.raises(SimulationError, match="smaller tolerance"):
        coarse.marginals({1: "X >= 140"})


def test_a_grid_of_one_time_is_the_start() -> None:
    solver = MasterEquation(models.birth_death(), {"X": 4}, times=[2.0])
    assert solver.marginals().X.values[0, 4] == 1
    assert (solver.draw(3).X == 4).all()


def test_reactions_without_effect_change_nothing() -> None:
    idle = Reaction("meet", "A -> A", 5.0)
    network = ReactionNetwork(
        name="idle", species={"A": 6, "B": 0}, reactions=[Reaction("go", "A -> B", 0.7), idle]
    )
    exact = stats.binom.pmf(np.arange(7), 6, np.exp(-0.7))
    solver = MasterEquation(network, times=[0.0, 1.0])
    np.testing.assert_allclose(solver.marginals().A[1], exact, rtol=1e-12)


def test_branching_without_bound() -> None:
    yule = ReactionNetwork(
        name="yule",
        species={"X": 1},
        parameters={"b": 1.0},
        reactions=[Reaction("split", "X -> 2 X", "b")],
        until=3,
        points=4,
    )
    solver = MasterEquation(yule)
    marginals = solver.marginals()
    for step, t in enumerate(solver.times):
        exact = stats.geom.pmf(marginals.value, np.exp(-t))
        assert 0.5 * np.abs(marginals.X[step] - exact).sum() <= solver.truncation_error


def test_bistable_models_are_within_reach() -> None:
    toggle = MasterEquation(models.toggle_switch(), times=np.linspace(0, 10, 6))
    assert 0 < toggle.truncation_error <= 1e-9
    marginals = toggle.marginals()
    np.testing.assert_allclose(marginals.U, marginals.V, atol=2e-9)  # the two genes are alike
    above = toggle.probability({5: "U > V"})
    assert 0.4 < above < 0.5
    both = Conditions({5: "U > V"}, toggle.network, toggle.times).holds(
        toggle.draw(2000, {5: "U>V"})
    )
    assert both.all()
    schloegl = MasterEquation(models.schloegl(), times=[0.0, 1.0, 2.0])
    assert 0 < schloegl.truncation_error <= 1e-9
    last = np.asarray(schloegl.marginals().X[-1])
    assert last[:250].sum() > 0.1  # both levels are taken
    assert last[400:].sum() > 0.1


# --- brute force ----------------------------------------------------------------------------------


class BruteForce:
    """All paths of a small network on its grid, with their probabilities, by dense exponentials."""

    def __init__(self, solver: MasterEquation) -> None:
        states = [tuple(int(x) for x in state) for state in solver.states]
        place = {state: at for at, state in enumerate(states)}
        beta, gamma, omega, epsilon, n = (solver.parameters[k] for k in ESIRS.parameters)
        generator = np.zeros((len(states), len(states)))
        for at, (s, i, r) in enumerate(states):
            for rate, target in [
                (beta * s * i / n + epsilon * s, (s - 1, i + 1, r)),
                (gamma * i, (s, i - 1, r + 1)),
                (omega * r, (s + 1, i, r - 1)),
            ]:
                if rate > 0:
                    generator[at, place[target]] += rate
                    generator[at, at] -= rate
        moves = [linalg.expm(generator * h) for h in np.diff(solver.times)]
        self.paths = np.array(list(product(range(len(states)), repeat=len(solver.times))))
        self.chances = np.full(len(self.paths), 1 / len(states))
        for step, move in enumerate(moves):
            self.chances *= move[self.paths[:, step], self.paths[:, step + 1]]
        self.states = solver.states

    def trajectories(self) -> dict[str, np.ndarray]:
        visited = self.states[self.paths]
        return {name: visited[:, :, v] for v, name in enumerate("SIR")}


CONDITIONS: list[dict[Any, Any]] = [
    {},
    {3: "S = 1"},
    {0: "I = 0", 2: "R >= 1"},
    {"all": "I <= 2"},
    {1: ["S > 0", lambda x: x["I"] != 1], "all": "R < 3", 3: "I = 2"},
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_forward_backward_is_the_sum_over_paths(where: dict[Any, Any]) -> None:
    solver = MasterEquation(ESIRS, parameters=TINY, times=TINY_TIMES)
    brute = BruteForce(solver)
    good = solver.conditions(where).holds(brute.trajectories())
    total = brute.chances[good].sum()
    assert solver.probability(where) == pytest.approx(total, rel=1e-11)
    marginals = solver.marginals(where)
    for step in range(4):
        weights = np.bincount(brute.paths[good, step], brute.chances[good], len(solver.states))
        np.testing.assert_allclose(
            solver.joint(step, where), weights / total, rtol=1e-9, atol=1e-13
        )
        for v, name in enumerate("SIR"):
            column = np.bincount(solver.states[:, v], weights / total, 4)
            np.testing.assert_allclose(marginals[name][step], column, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("jumps", [300.0, 1.0])
def test_draws_follow_the_law_of_paths(
    where: dict[Any, Any], jumps: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chain, "MAX_MEAN_JUMPS", jumps)  # 1: every step is drawn in several parts
    solver = MasterEquation(ESIRS, parameters=TINY, times=TINY_TIMES)
    brute = BruteForce(solver)
    good = solver.conditions(where).holds(brute.trajectories())
    expected = 40_000 * brute.chances[good] / brute.chances[good].sum()
    drawn = solver.draw(40_000, where, seed=1)
    assert solver.conditions(where).holds(drawn).all()
    place = {tuple(state): at for at, state in enumerate(solver.states.tolist())}
    label = np.zeros(40_000, dtype=int)
    for step in range(4):
        column = np.stack([drawn[name][:, step] for name in "SIR"], axis=1).tolist()
        label = label * len(place) + [place[tuple(state)] for state in column]
    observed = np.bincount(label, minlength=len(brute.paths))[good]
    assert pooled_chi_square(observed, expected) > 1e-4


def pooled_chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """p-value, cells with fewer than five expected taken together."""
    rare = expected < 5
    seen = np.append(observed[~rare], observed[rare].sum())
    wanted = np.append(expected[~rare], expected[rare].sum())
    if wanted[-1] < 5:
        assert seen[-1] < 30
        seen, wanted = seen[:-1], wanted[:-1] * seen[:-1].sum() / wanted[:-1].sum()
    if len(wanted) < 2:
        return 1.0
    return float(stats.chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue)


# --- draws ----------------------------------------------------------------------------------------


def test_draws_agree_with_conditional_marginals() -> None:
    solver = MasterEquation(ESIRS, {"S": 95, "I": 5})
    where = {25: "S = 30", 10: "I >= 30"}
    marginals, drawn = solver.marginals(where), solver.draw(5000, where, seed=3)
    assert drawn.S.dims == ("sample", "time")
    assert np.issubdtype(drawn.S.dtype, np.integer)
    assert ((drawn.S + drawn.I + drawn.R) == 100).all()
    assert solver.conditions(where).holds(drawn).all()
    p_values = []
    for name in "SIR":
        for step in range(1, 30):
            expected = 5000 * np.asarray(marginals[name][step])
            observed = np.bincount(drawn[name][:, step], minlength=101)
            assert not observed[expected == 0].any()
            p_values.append(pooled_chi_square(observed, expected))
    assert min(p_values) > 1e-3 / len(p_values)


def test_a_draw_depends_on_the_seed_and_its_number_only(monkeypatch: pytest.MonkeyPatch) -> None:
    solver = MasterEquation(ESIRS, parameters={"N": 20})
    where = {29: "S = 10"}
    many = solver.draw(50, where, seed=5)
    xr.testing.assert_equal(solver.draw(7, where, seed=5), many.isel(sample=slice(7)))
    monkeypatch.setattr(chain, "MAX_HELD_BYTES", 3000.0)  # most messages are computed again
    xr.testing.assert_equal(solver.draw(50, where, seed=5), many)
    assert not solver.draw(50, where, seed=6).equals(many)


def test_draws_carry_rules_and_account_for_themselves() -> None:
    network = ReactionNetwork(
        name="ruled",
        species={"X": 4, "Y": 0},
        parameters={"k": 1.0},
        reactions=[Reaction("go", "X -> Y", "k")],
        rules={"twice": "2*Y"},
        until=2,
        points=3,
    )
    drawn = MasterEquation(network).draw(10, {2: "twice >= 4"}, seed=9)
    assert (drawn.twice == 2 * drawn.Y).all()
    assert drawn.attrs["where"] == "step 2: twice >= 4"
    assert drawn.attrs["surrogate_seed"] == "9"
    assert "log_probability" in drawn.attrs
    assert drawn.attrs["truncation_error"] == 0


# --- laws -----------------------------------------------------------------------------------------

SMALL = MasterEquation(ESIRS, parameters={"N": 8}, times=np.linspace(0, 2, 6))


@settings(max_examples=30)
@given(
    step=st.integers(0, 5),
    name=st.sampled_from("SIR"),
    level=st.integers(-1, 9),
    other=st.integers(0, 8),
)
def test_complementary_conditions_add_up_to_one(
    step: int, name: str, level: int, other: int
) -> None:
    yes, no = f"{name} <= {level}", f"not {name} <= {level}"
    total = SMALL.probability({step: yes}) + SMALL.probability({step: no})
    assert total == pytest.approx(1, rel=1e-12)
    given_other = {3: f"I >= {other}"}
    parts = [SMALL.probability({**given_other, 3: [f"I >= {other}", p]}) for p in (yes, no)]
    assert sum(parts) == pytest.approx(SMALL.probability(given_other), rel=1e-12)


@settings(max_examples=20)
@given(step=st.integers(0, 5), low=st.integers(0, 8))
def test_mass_and_population_are_conserved(step: int, low: int) -> None:
    marginals = SMALL.marginals({step: f"S >= {low}"})
    for name in "SIR":
        np.testing.assert_allclose(marginals[name].sum("value"), 1, rtol=1e-12)
    means = sum((marginals[name] * marginals.value).sum("value") for name in "SIR")
    np.testing.assert_allclose(means, 8, rtol=1e-12)


@settings(max_examples=20)
@given(step=st.integers(0, 5), a=st.integers(0, 8), b=st.integers(0, 8))
def test_a_list_of_predicates_is_their_conjunction(step: int, a: int, b: int) -> None:
    text = SMALL.log_probability({step: f"S <= {a} and I >= {b}"})
    assert SMALL.log_probability({step: [f"S <= {a}", f"I >= {b}"]}) == text


# --- likelihoods ----------------------------------------------------------------------------------


def test_a_likelihood_weighs_states_once() -> None:
    """By Bayes at the observed steps, from answers that hold no likelihood there."""
    solver = MasterEquation(ESIRS, parameters={"N": 12})
    counts = np.arange(13)

    def thinned(y: int) -> Likelihood:
        return Likelihood(lambda values: stats.binom.pmf(y, values["I"], 0.4))

    first, both = {5: thinned(2)}, {5: thinned(2), 14: thinned(3)}
    prior = solver.marginals()["I"].values[5]
    weighted = prior * stats.binom.pmf(2, counts, 0.4)
    assert solver.probability(first) == pytest.approx(weighted.sum(), rel=1e-9)
    smoothed = solver.marginals(first)["I"].values
    np.testing.assert_allclose(smoothed[5], weighted / weighted.sum(), atol=1e-12)
    next_weighted = smoothed[14] * stats.binom.pmf(3, counts, 0.4)
    expected = weighted.sum() * next_weighted.sum()
    assert solver.probability(both) == pytest.approx(expected, rel=1e-9)
    found = solver.marginals(both)["I"].values[14]
    np.testing.assert_allclose(found, next_weighted / next_weighted.sum(), atol=1e-12)
    draws = solver.draw(20_000, both, seed=1)["I"].values[:, 14]
    shares = np.bincount(draws, minlength=13) / 20_000
    np.testing.assert_allclose(shares, found, atol=5 * np.sqrt(0.25 / 20_000))


def test_a_likelihood_and_a_condition_stand_together() -> None:
    solver = MasterEquation(ESIRS, parameters={"N": 12})
    sure = {5: Likelihood(lambda values: (values["I"] <= 3).astype(float))}
    assert solver.log_probability(sure) == pytest.approx(solver.log_probability({5: "I <= 3"}))
    mixed = {5: ["S >= 2", Likelihood(lambda values: 0.5 * (values["I"] <= 3))]}
    expected = 0.5 * solver.probability({5: "S >= 2 and I <= 3"})
    assert solver.probability(mixed) == pytest.approx(expected)


def test_what_is_no_likelihood_is_refused() -> None:
    solver = MasterEquation(ESIRS, parameters={"N": 3})
    with pytest.raises(InputError, match="finite and not negative"):
        solver.probability({1: Likelihood(lambda values: values["I"] - 1.0)})
    given = Conditions({1: Likelihood(lambda values: values["I"] / 3)}, ESIRS)
    with pytest.raises(InputError, match="neither holds nor fails"):
        given.holds({"S": np.zeros((2, 30)), "I": np.zeros((2, 30)), "R": np.zeros((2, 30))})
