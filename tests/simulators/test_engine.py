"""Engines: trajectories that go on from given states."""

from __future__ import annotations

import numpy as np
from scipy import stats

from simulators import Event, Reaction, ReactionNetwork
from simulators.engine import Beginning
from simulators.ensemble import advance, make_engine

DEATH = ReactionNetwork(
    name="pure death",
    species={"X": 40},
    parameters={"d": 1.0},
    reactions=[Reaction("death", "X -> 0", "d*X")],
    until=2,
    points=3,
)
ONCE = ReactionNetwork(
    name="restocked when it falls to five",
    species={"X": 10, "Refills": 0},
    parameters={"d": 1.0},
    reactions=[Reaction("death", "X -> 0", "d*X")],
    events=[Event("refill", "X <= 5", {"Refills": "Refills + 1"}, initially=False)],
    until=2,
    points=3,
)


def test_trajectories_in_two_parts_have_the_law_of_whole_ones() -> None:
    engine = make_engine(DEATH, 1, parameters={"d": (0.5, 2.0)})
    rates = np.repeat([0.5, 2.0], 10_000)
    states, now = np.full((20_000, 1), 40.0), {"d": rates}
    first = advance(engine, Beginning(states, now, np.array([0.0, 0.7]), 1), threads=1)
    again = Beginning(first[:, :, -1], now, np.array([0.7, 2.0]), 2, resumed=True)
    last = advance(engine, again, threads=1)[:, 0, -1]
    for rate, found in ((0.5, last[:10_000]), (2.0, last[10_000:])):
        law = stats.binom(40, np.exp(-2 * rate))
        counts = np.bincount(found.astype(int), minlength=41)
        assert np.abs(counts / 10_000 - law.pmf(range(41))).max() < 5 * np.sqrt(0.25 / 10_000)
        assert abs(found.mean() - law.mean()) < 4 * law.std() / 100


def test_events_that_have_happened_do_not_happen_again() -> None:
    engine = make_engine(ONCE, 1)
    states, times = np.array([[4.0, 1.0], [9.0, 0.0]]), np.array([0.5, 50.0])
    parameters = engine.start.parameters(0, 1)
    begin = Beginning(states, parameters, times, 3, resumed=True)
    assert (advance(engine, begin)[:, 1, -1] == [1.0, 1.0]).all()
    fresh = Beginning(states, parameters, times, 3)
    assert (advance(engine, fresh)[:, 1, -1] == [2.0, 1.0]).all()


def test_threads_change_nothing() -> None:
    engine = make_engine(DEATH, 1)
    states, times = np.full((3_000, 1), 40.0), np.array([0.0, 1.0])
    begin = Beginning(states, engine.start.parameters(0, 1), times, 5)
    one, three = (advance(engine, begin, threads=n) for n in (1, 3))
    assert (one == three).all()
