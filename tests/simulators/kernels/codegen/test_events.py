"""Events and rates that switch: at their exact times, in their order, with their exact law."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from simulators import Event, InputError, Reaction, ReactionNetwork, SimulationError, simulate


def still(events: list[Event], **options: Any) -> dict[str, list[float]]:
    """What events alone do to X and k on the grid 0, 1, .., 5; the one reaction never fires."""
    network = ReactionNetwork(
        "still",
        {"X": 10, "Y": 0},
        {"k": 1.0, "off": 0.0},
        [Reaction("never", "X -> Y", "off")],
        events=events,
        until=5,
        points=6,
        **options,
    )
    data = simulate(network, 2)
    assert (data.X.values[0] == data.X.values[1]).all()
    return {str(name): array.values[0].tolist() for name, array in data.data_vars.items()}


def test_a_time_event_fires_once_at_its_time_on_and_off_the_grid() -> None:
    assert still([Event("e", "time >= 2", {"X": "X + 5"})])["X"] == [10, 10, 15, 15, 15, 15]
    assert still([Event("e", "time > 2", {"X": "X + 5"})])["X"] == [10, 10, 10, 15, 15, 15]
    assert still([Event("e", "time > 2.5", {"X": "X + 5"})])["X"] == [10, 10, 10, 15, 15, 15]
    assert still([Event("e", "2*time >= 3 and time < 4", {"X": 0})])["X"] == [10, 10, 0, 0, 0, 0]


def test_a_trigger_that_is_true_at_the_start_fires_only_if_it_was_false_before() -> None:
    assert still([Event("e", "time >= 0", {"X": 3})])["X"][0] == 10
    assert still([Event("e", "time >= 0", {"X": 3}, initially=False)])["X"][0] == 3


def test_events_change_parameters_which_are_then_recorded() -> None:
    made = still([Event("e", "time >= 2", {"k": "k*2.5"})])
    assert made["k"] == [1, 1, 2.5, 2.5, 2.5, 2.5]


def test_simultaneous_events_fire_by_priority_then_in_order() -> None:
    low = Event("low", "time >= 2", {"X": "X*2"}, values_at_trigger=False)
    high = Event("high", "time >= 2", {"X": "X + 1"}, priority=5, values_at_trigger=False)
    assert still([low, high])["X"][2] == 22
    same = Event("same", "time >= 2", {"X": "X + 1"}, values_at_trigger=False)
    assert still([low, same])["X"][2] == 21


def test_values_at_trigger_are_those_before_the_others() -> None:
    first = Event("first", "time >= 2", {"X": "X + 1"}, priority=5)
    second = Event("second", "time >= 2", {"X": "X*2"})
    assert still([first, second])["X"][2] == 20


def test_an_event_can_set_off_another_and_undo_one_that_does_not_persist() -> None:
    flood = Event("flood", "time >= 2", {"X": 100}, priority=1)
    drain = Event("drain", "X > 50", {"X": 7, "Y": 1})
    made = still([flood, drain])
    assert (made["X"][2], made["Y"][2]) == (7, 1)
    close = Event("close", "time >= 2", {"k": 0}, priority=1)
    late = Event("late", "time >= 2 and k > 0", {"X": 0}, persistent=False)
    assert still([close, late])["X"][2] == 10
    kept = Event("late", "time >= 2 and k > 0", {"X": 0})
    assert still([close, kept])["X"][2] == 0


def test_state_events_fire_when_the_state_gets_there() -> None:
    network = ReactionNetwork(
        "births",
        {"X": 0, "resets": 0},
        {"k": 50.0},
        [Reaction("birth", "0 -> X", "k")],
        events=[Event("reset", "X >= 10", {"X": 0, "resets": "resets + 1"})],
        until=4,
        points=9,
    )
    data = simulate(network, 4_000)
    assert data.X.max() == 9
    total = data.X.values.astype(int) + 10 * data.resets.values.astype(int)
    for step, time in enumerate(network.times[1:], start=1):
        law = stats.poisson(50 * time)
        assert abs(total[:, step].mean() - law.mean()) < 5 * law.std() / np.sqrt(4_000)
        assert abs(total[:, step].var() / law.var() - 1) < 5 * np.sqrt(2 / 4_000)


def test_a_rate_that_switches_with_time_is_exact() -> None:
    """Death at rate 1 before 0.73 and 0.2 after: binomial with the integrated rate."""
    law = "X*piecewise(1, time < 0.73, 0.2)"
    network = ReactionNetwork("n", {"X": 40}, {}, [Reaction("d", "X -> 0", law)], until=2, points=5)
    made = simulate(network, 40_000).X.values
    for step, time in enumerate(network.times[1:], start=1):
        survive = np.exp(-(min(time, 0.73) + 0.2 * max(time - 0.73, 0)))
        counts = np.bincount(made[:, step], minlength=41)
        expected = stats.binom(40, survive).pmf(np.arange(41)) * len(made)
        keep = expected > 10
        got = np.append(counts[keep], counts[~keep].sum())
        want = np.append(expected[keep], expected[~keep].sum())
        assert stats.chisquare(got, want * got.sum() / want.sum()).pvalue > 1e-4


@pytest.mark.parametrize("method", ["tau", "ode"])
def test_time_events_in_the_other_methods(method: str) -> None:
    network = ReactionNetwork(
        "n",
        {"X": 1_000_000},
        {"k": 1.0},
        [Reaction("d", "X -> 0", "k")],
        events=[Event("stop", "time >= 0.5", {"k": 0.0})],
        until=2,
        points=5,
    )
    made = simulate(network, 20, method=method)
    assert (made.X.values[:, 2:] == made.X.values[:, 2:3]).all()
    np.testing.assert_allclose(made.X.values[:, 4], 1e6 * np.exp(-0.5), rtol=0.01)
    watched = ReactionNetwork(
        "n", {"X": 10}, {}, [Reaction("d", "X -> 0", 1)], events=[Event("e", "X < 5", {"X": 9})]
    )
    with pytest.raises(InputError, match="triggered by the state"):
        simulate(watched, 1, method=method)


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Event("e", "time >= 1", {"X": "X/3"}), "not a count"),
        (Event("e", "time >= 1", {"X": "-1"}), "not a count"),
        (Event("e", "time >= 1", {"X": "1/(X - 10)"}), "not a count"),
    ],
)
def test_events_that_assign_no_count_stop_the_run(event: Event, says: str) -> None:
    with pytest.raises(SimulationError, match=says):
        still([event])


def test_events_that_chase_each_other_stop_the_run() -> None:
    up = Event("up", "X < 5", {"X": 9})
    down = Event("down", "X > 5", {"X": 1}, initially=False)
    with pytest.raises(SimulationError, match="keep triggering each other"):
        still([up, down])


def test_triggers_that_flow_with_time_are_refused() -> None:
    with pytest.raises(InputError, match="trigger of event 'e' changes continuously"):
        still([Event("e", "sin(time) > 0", {"X": 1})])
