"""Kernels: the same trajectory in every lane, thread and chunk; the right law in every kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import solve_ivp

from simulators import Event, InputError, Reaction, ReactionNetwork, models, rates, simulate
from simulators.engine import Engine
from simulators.kernels import lanes
from simulators.kernels.codegen.build import compile_kernel
from simulators.start import Start


def fill(network: ReactionNetwork, samples: int, *, first: int = 0, **options: Any) -> np.ndarray:
    """(samples, V, T) straight from a kernel."""
    start = Start(network, samples=first + samples, seed=options.get("seed", 0))
    engine = Engine(network, start, network.times, **options)
    out = np.empty((samples, len(network.variables), network.points))
    engine.fill(first, out)
    return out


def test_one_lane_many_lanes_and_checks_give_the_same_bits() -> None:
    network = models.esirs()
    engine = Engine(network, Start(network, samples=100), network.times)
    wanted = np.empty((100, 3, 30))
    engine.fill(0, wanted)
    constants = engine.program.constant_values(network.parameters, 1)
    for width, checked in [(1, False), (4, False), (32, True)]:
        run = compile_kernel(
            lanes.source(engine.program, frozenset(), lanes=width, checked=checked)
        )
        out = np.empty_like(wanted)
        report, where = np.zeros(2, np.int64), np.zeros(4)
        initial = engine.start.states(0, 100)
        flag = np.zeros(1, np.bool_)
        run(np.uint64(0), 0, initial, constants, network.times, out, report, where, 10**9, flag)
        assert (out == wanted).all(), (width, checked)


@given(threads=st.integers(1, 4), first=st.integers(0, 150), count=st.integers(1, 100))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_threads_and_slices_change_nothing(
    whole: np.ndarray, threads: int, first: int, count: int
) -> None:
    part = simulate(models.esirs(), count, seed=3, first=first, threads=threads)
    assert (np.stack([part.S, part.I, part.R], axis=1) == whole[first : first + count]).all()


@pytest.fixture(scope="module")
def whole() -> np.ndarray:
    return fill(models.esirs(), 250, seed=3)


@pytest.mark.parametrize("kernel", ["lanes", "graph", "tau"])
def test_seeds_differ_and_repeat(kernel: str) -> None:
    method = "tau" if kernel == "tau" else "direct"
    options: dict[str, Any] = {"method": method, "kernel": kernel}
    first = fill(models.esirs(), 40, seed=1, **options)
    assert (first == fill(models.esirs(), 40, seed=1, **options)).all()
    assert (first != fill(models.esirs(), 40, seed=2, **options)).any()
    assert (first[20:] == fill(models.esirs(), 20, seed=1, first=20, **options)).all()


PURE_DEATH = ReactionNetwork(
    "death", {"X": 30}, {"mu": 0.7}, [Reaction("d", "X -> 0", "mu")], until=2.0, points=5
)


@pytest.mark.parametrize("kernel", ["lanes", "graph"])
def test_pure_death_is_binomial(kernel: str) -> None:
    made = fill(PURE_DEATH, 40_000, kernel=kernel)[:, 0]
    for step, time in enumerate(PURE_DEATH.times[1:], start=1):
        law = stats.binom(30, np.exp(-0.7 * time))
        counts = np.bincount(made[:, step].astype(int), minlength=31)
        expected = law.pmf(np.arange(31)) * len(made)
        keep = expected > 10
        rest = [counts[~keep].sum()], [expected[~keep].sum()]
        got = np.concatenate([counts[keep], rest[0]])
        want = np.concatenate([expected[keep], rest[1]])
        want *= got.sum() / want.sum()
        assert stats.chisquare(got, want).pvalue > 1e-4


def test_many_reactions_agree_between_lanes_and_graph() -> None:
    """A ring of 12 species: the same marginals from two different algorithms."""
    size = 12
    names = [f"A{i}" for i in range(size)]
    reactions = [
        Reaction(f"r{i}", f"{names[i]} -> {names[(i + 1) % size]}", "k") for i in range(size)
    ]
    network = ReactionNetwork(
        "ring", dict.fromkeys(names, 10), {"k": 1.0}, reactions, until=1.0, points=2
    )
    made = {kernel: fill(network, 4_000, kernel=kernel)[:, :, 1] for kernel in ("lanes", "graph")}
    for values in made.values():
        assert (values.sum(axis=1) == 10 * size).all()
        error = np.abs(values.mean(axis=0) - 10) / (values.std(axis=0) / np.sqrt(len(values)))
        assert error.max() < 4.5
    ratio = made["lanes"].var() / made["graph"].var()
    assert abs(ratio - 1) < 0.05


def test_the_graph_kernel_is_chosen_for_large_networks_and_those_with_events_or_time() -> None:
    def chosen(network: ReactionNetwork) -> str | None:
        return Engine(network, Start(network), network.times).kernel

    many = [Reaction(f"r{i}", "X -> 0", f"{i + 1}*X") for i in range(100)]
    assert chosen(models.esirs()) == "lanes"
    assert chosen(ReactionNetwork("n", {"X": 1}, {}, many)) == "graph"
    switch = [Reaction("r", "X -> 0", "X*piecewise(1, time < 2, 0)")]
    assert chosen(ReactionNetwork("n", {"X": 1}, {}, switch)) == "graph"
    event = [Event("e", "X > 3", {"X": 0})]
    assert chosen(ReactionNetwork("n", {"X": 1}, {}, many[:2], events=event)) == "graph"
    call = [Reaction("r", "X -> 0", "X*exp(-X)")]
    assert chosen(ReactionNetwork("n", {"X": 1}, {}, call)) == "lanes"


def test_library_calls_in_rates_agree_between_kernels() -> None:
    """Saturating death: the scalar form of the lanes and the graph draw the same trajectories."""
    law = "piecewise(5*exp(-1/X)*X^0.5, X > 0, 0)"
    network = ReactionNetwork("n", {"X": 50}, {}, [Reaction("r", "X -> 0", law)], until=2, points=4)
    made = {kernel: fill(network, 2_000, kernel=kernel)[:, 0] for kernel in ("lanes", "graph")}
    assert (made["lanes"] == made["graph"]).all()


def test_tau_leaping_has_no_visible_bias_in_the_mean() -> None:
    """20,000 people: mean within 5 standard errors and 0.5 % of exact, sd within 10 %."""
    options: dict[str, Any] = {"initial": {"S": 19_000, "I": 1_000}, "parameters": {"N": 20_000}}
    exact = simulate(models.esirs(), 400, **options, times=[0, 0.5, 1.5, 3.2])
    leaps = simulate(models.esirs(), 2_000, **options, times=[0, 0.5, 1.5, 3.2], method="tau")
    for name in "SIR":
        a, b = exact[name].values[:, 1:].astype(float), leaps[name].values[:, 1:].astype(float)
        error = np.sqrt(a.var(axis=0) / len(a) + b.var(axis=0) / len(b))
        assert (np.abs(a.mean(axis=0) - b.mean(axis=0)) < 5 * error + 0.005 * a.mean(axis=0)).all()
        # the sd of 400 exact trajectories is itself known to 3.5 %
        assert (np.abs(b.std(axis=0) / a.std(axis=0) - 1) < 0.1 + 3 * 0.035).all()
    total = leaps.S.astype(int) + leaps.I + leaps.R
    assert (total == 20_000).all()


def test_tau_leaping_on_small_counts_falls_back_to_single_events() -> None:
    made = fill(PURE_DEATH, 20_000, method="tau")[:, 0]
    assert made.min() >= 0
    for step, time in enumerate(PURE_DEATH.times[1:], start=1):
        law = stats.binom(30, np.exp(-0.7 * time))
        error = law.std() / np.sqrt(len(made))
        assert abs(made[:, step].mean() - law.mean()) < 5 * error


@pytest.mark.parametrize("name", ["esirs", "lotka_volterra", "schloegl", "toggle_switch"])
def test_the_mean_field_follows_scipy(name: str) -> None:
    network = models.get(name)
    data = simulate(network, 1, initial="fixed", method="ode")
    names = list(network.species)
    parameters = dict(network.parameters)

    def slope(time: float, x: np.ndarray) -> np.ndarray:
        have = {**parameters, **dict(zip(names, x, strict=True)), "time": time}
        total = np.zeros(len(names))
        for reaction, law in zip(network.reactions, network.mean_field, strict=True):
            for species, by in reaction.change.items():
                total[names.index(species)] += by * float(rates.evaluate(law, have))
        return total

    start = Start(network, "fixed").states(0, 1)[0]
    solved = solve_ivp(
        slope, (0, network.until), start, "LSODA", network.times, rtol=1e-10, atol=1e-10
    )
    for species, line in zip(names, solved.y, strict=True):
        np.testing.assert_allclose(data[species].values[0], line, rtol=1e-4, atol=1e-3)


def test_the_mean_field_takes_flowing_time_and_switches() -> None:
    law = "X*piecewise(0, time < 1, 0.5 + 0.5*cos(time))"
    network = ReactionNetwork(
        "n", {"X": 100}, {}, [Reaction("r", "X -> 0", law)], until=3, points=7
    )
    made = simulate(network, 1, method="ode").X.values[0]
    time = np.maximum(network.times, 1)
    exact = 100 * np.exp(-(0.5 * (time - 1) + 0.5 * (np.sin(time) - np.sin(1))))
    np.testing.assert_allclose(made, exact, rtol=1e-5)


def test_parameters_that_vary_reach_each_trajectory() -> None:
    rate = np.array([0.0, 0.5, 5.0])
    data = simulate(PURE_DEATH, 3, initial={"X": 1000}, parameters={"mu": rate}, times=[0, 1])
    assert data.mu.values.tolist() == rate.tolist()
    for kernel_value, mu in zip(data.X.values[:, 1], rate, strict=True):
        law = stats.binom(1000, np.exp(-mu))
        assert abs(kernel_value - law.mean()) <= 5 * law.std()


def test_unknown_methods_and_kernels_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown method .*direct, tau, ode"):
        simulate(models.esirs(), 1, method="exact")
    network = models.esirs()
    with pytest.raises(InputError, match=r"unknown kernel .*lanes, graph"):
        Engine(network, Start(network), network.times, kernel="gpu")
