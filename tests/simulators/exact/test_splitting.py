"""Splitting against exact probabilities: binomial laws, the master equation, and its own laws."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from scipy import stats

from simulators import (
    Event,
    InputError,
    MasterEquation,
    Reaction,
    ReactionNetwork,
    SimulationError,
    Splitting,
    models,
    simulate,
    split,
)
from simulators.exact.splitting import interval
from simulators.exact.weighted_ensemble import Values, bins_of, systematic, within_bins

BIRTH = ReactionNetwork(
    name="pure birth",
    species={"X": 0},
    parameters={"k": 2.0},
    reactions=[Reaction("birth", "0 -> X", "k")],
    until=2,
    points=5,
)


class Above:
    """X >= bound at the last step: the level is the state's margin."""

    names = frozenset({"X"})
    latches: tuple[str, ...] = ()
    remembers: int | None = None

    def __init__(self, bound: float) -> None:
        self.bound = bound

    def level(self, values: Values, known: int, least: Values, flags: np.ndarray) -> np.ndarray:
        return values["X"][:, -1] - self.bound

    def verdict(self, values: Values) -> np.ndarray:
        return np.asarray(values["X"][:, -1] >= self.bound)


class Reached(Above):
    """max(X) >= bound at some moment, remembered by a flag."""

    names = frozenset({"max(X)"})
    latches = ("X",)
    remembers = 1

    def remember(self, flags: np.ndarray, values: Values, step: int) -> np.ndarray:
        return flags | (values["max(X)"] >= self.bound)[:, None]

    def level(self, values: Values, known: int, least: Values, flags: np.ndarray) -> np.ndarray:
        ahead = values["max(X)"]
        ahead = ahead if ahead.ndim == 1 else ahead[:, known + 1 :].max(axis=1, initial=-np.inf)
        last = known == BIRTH.points - 1
        return np.where(flags[:, 0], np.inf, -np.inf if last else ahead - self.bound)


class Deaf(Above):
    """A verdict without a level."""

    def level(self, values: Values, known: int, least: Values, flags: np.ndarray) -> np.ndarray:
        return np.zeros(len(values["X"]))


def test_the_tail_of_a_poisson_law() -> None:
    truth = float(stats.poisson(4.0).sf(13))  # 8e-5
    found = split(BIRTH, Above(14), seed=1, copies=60, threads=1)
    assert found.low <= truth <= found.high
    assert abs(found.probability / truth - 1) < 4 * found.relative_error < 1.2
    assert found.data is not None
    assert (found.data.X[:, -1] >= 14).all()
    assert np.exp(found.data.log_weight).sum() == pytest.approx(1.0)
    assert 1 < found.ess <= found.data.sizes["sample"]
    assert found.ancestors > 10


def test_between_grid_times() -> None:
    network = ReactionNetwork(
        name="birth-death",
        species={"X": 3},
        parameters={"k": 3.0, "d": 1.0},
        reactions=[Reaction("birth", "0 -> X", "k"), Reaction("death", "X -> 0", "d*X")],
        until=4,
        points=5,
    )
    frozen = ReactionNetwork(  # absorbed where X = 11
        name="absorbed",
        species={"X": 3},
        parameters={"k": 3.0, "d": 1.0},
        reactions=[
            Reaction("birth", "0 -> X", "piecewise(k, X < 11, 0)"),
            Reaction("death", "X -> 0", "piecewise(d*X, X < 11, 0)"),
        ],
        until=4,
        points=5,
    )
    truth = MasterEquation(frozen).probability({4: "X = 11"})
    found = split(network, Reached(11), seed=2, copies=40, threads=1)
    assert abs(found.probability / truth - 1) < 4 * found.relative_error < 1.2
    assert found.data is not None
    assert (found.data["max(X)"].max("time") >= 11).all()


def test_the_mean_over_seeds_is_unbiased() -> None:
    truth = float(stats.poisson(4.0).sf(13))
    found = np.concatenate(
        [split(BIRTH, Above(14), seed=s, copies=10, threads=1).replicates for s in range(4)]
    )
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert abs(found.mean() - truth) < 4 * error
    assert error < 0.25 * truth


def test_trajectories_have_the_conditional_law() -> None:
    found = split(BIRTH, Above(10), seed=3, copies=60, threads=1)
    drawn = found.draw(4_000, seed=1)
    law = stats.poisson(4.0)
    counts = np.bincount(drawn.X.values[:, -1], minlength=40)[10:18] / 4_000
    wanted = law.pmf(np.arange(10, 18)) / law.sf(9)
    assert 0.5 * np.abs(counts - wanted).sum() < 0.1  # of 60 copies in each of ten runs
    halfway = drawn.X.values[:, 2]  # binomial given the end
    assert abs(halfway.mean() - drawn.X.values[:, -1].mean() / 2) < 0.4


def test_threads_change_nothing() -> None:
    one, three = (split(BIRTH, Above(10), seed=4, copies=8, threads=n) for n in (1, 3))
    assert (one.replicates == three.replicates).all()
    assert one.data is not None
    assert one.data.identical(three.data.assign_attrs(one.data.attrs))  # type: ignore[union-attr]


def test_parameters_that_vary_and_events() -> None:
    network = ReactionNetwork(
        name="a shot of ten",
        species={"X": 0, "Shots": 0},
        parameters={"k": 1.0},
        reactions=[Reaction("birth", "0 -> X", "k")],
        events=[Event("shot", "X >= 5", {"X": "X + 10", "Shots": "Shots + 1"})],
        until=2,
        points=3,
    )
    found = split(network, Above(19), seed=5, parameters={"k": (1.0, 2.0)}, copies=40, threads=1)
    k = np.linspace(1.0, 2.0, 20_001)
    truth = float(stats.poisson(2 * k).sf(8).mean())  # 9 births, once shot
    assert abs(found.probability / truth - 1) < 4 * found.relative_error < 1.2
    assert found.data is not None
    assert (found.data.Shots[:, -1] == 1).all()
    assert found.data.k.shape == found.data.log_weight.shape
    assert float(found.draw(2_000).k.mean()) > 1.7  # mostly fast ones


def test_starts_that_vary() -> None:
    network = models.sir()
    start = {"I": (1, 40)}
    found = split(network, Below(), seed=6, initial=start, copies=20, threads=1)
    plain = simulate(network, 40_000, initial=start, seed=7)
    share = float((plain.I[:, -1] == 0).mean())
    error = np.sqrt(share / 40_000)
    assert abs(found.probability - share) < 4 * (error + found.relative_error * share)


class Below(Above):
    """No infected at the end."""

    names = frozenset({"I"})

    def __init__(self) -> None:
        super().__init__(0)

    def level(self, values: Values, known: int, least: Values, flags: np.ndarray) -> np.ndarray:
        return -values["I"][:, -1]

    def verdict(self, values: Values) -> np.ndarray:
        return np.asarray(values["I"][:, -1] == 0)


def test_levels_that_never_change_are_refused() -> None:
    with pytest.raises(SimulationError, match=r"does not change .*splitting cannot climb"):
        split(BIRTH, Deaf(12), copies=10, threads=1)


def test_what_cannot_happen_has_a_bound() -> None:
    with pytest.warns(UserWarning, match=r"below 3e-05 \(95 % confidence\)"):
        found = split(BIRTH, Above(10_000), copies=5, threads=1)
    assert (found.probability, found.low, found.high) == (0.0, 0.0, 3e-5)
    assert found.data is None
    with pytest.raises(SimulationError, match="no trajectory met the rule"):
        found.draw(10)


def test_after_ctrl_c_the_result_is_of_the_replicates_so_far() -> None:
    calls: list[int] = []

    def stop(done: int, whole: int) -> None:
        calls.append(done)
        if threading.current_thread() is not threading.main_thread() and done == whole - 4:
            import _thread

            _thread.interrupt_main()

    found: Splitting = split(BIRTH, Above(10), seed=1, copies=60, threads=1, progress=stop)
    assert not found.complete
    assert 2 <= len(found.replicates) < 10
    assert found.low < float(stats.poisson(4.0).sf(9)) < found.high


def test_bad_input() -> None:
    given: list[tuple[dict[str, Any], str]] = [
        ({"replicates": 1}, "replicates must be"),
        ({"copies": 0}, "copies must be"),
        ({"times": [0.0]}, "two times"),
        ({"seed": -1}, "seed must be"),
    ]
    for options, message in given:
        with pytest.raises(InputError, match=message):
            split(BIRTH, Above(5), **options)


def test_intervals_hold_the_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2_000):
        low, high = interval(rng.gamma(4.0, 0.01, 10))
        inside += low <= 0.04 <= high
    assert 0.93 < inside / 2_000 < 0.97


def test_bins_follow_levels_and_weights() -> None:
    rng = np.random.default_rng(1)
    level, weights = rng.normal(size=500), rng.random(500)
    bins = bins_of(level, weights, 10)
    order = np.argsort(level)
    assert (np.diff(bins[order]) >= 0).all()
    assert (bins_of(level, 7.0 * weights, 10) == bins).all()  # of relative weights only
    assert set(bins_of(np.zeros(5), np.ones(5), 10)) == {0}
    assert bins_of(np.empty(0), np.empty(0), 10).size == 0


def test_systematic_resampling_keeps_the_weight() -> None:
    weights = np.array([0.1, 0.4, 0.5])
    chosen, each = systematic(weights, 10, 0.5)
    assert each == pytest.approx(0.1)
    assert np.bincount(chosen).tolist() == [1, 4, 5]


def test_bins_far_apart_are_resampled_alike() -> None:
    weights = np.array([0.5, 0.5, 3e-30, 1e-30])
    chosen, each = within_bins(np.array([0, 0, 4, 4]), weights, 4, np.array([0.5, 0.5]))
    assert chosen.tolist() == [0, 0, 1, 1, 2, 2, 2, 3]
    assert each.reshape(2, 4).sum(1) == pytest.approx([1.0, 4e-30])
