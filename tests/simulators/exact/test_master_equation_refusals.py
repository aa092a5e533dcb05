"""What the master equation refuses, and how the error says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from simulators import Event, InputError, Reaction, ReactionNetwork, SimulationError, models
from simulators.errors import UnreachableError
from simulators.exact.conditions import Conditions
from simulators.exact.master_equation import MasterEquation
from simulators.exact.state_space import StateSpace

ESIRS = models.esirs()
SMALL = MasterEquation(ESIRS, parameters={"N": 8}, times=np.linspace(0, 2, 6))


def network(rate: str, equation: str = "X -> 0", **more: Any) -> ReactionNetwork:
    reactions = [Reaction("odd", equation, rate, mass_action=False)]
    return ReactionNetwork(
        name="odd", species={"X": 3}, parameters={"k": 1.0}, reactions=reactions, **more
    )


def test_what_cannot_be_solved_is_refused_by_name() -> None:
    event = Event("pulse", "time > 1", {"X": 5})
    with pytest.raises(InputError, match="event 'pulse'"):
        MasterEquation(network("k*X", events=[event]))
    with pytest.raises(InputError, match="reaction 'odd' depends on time"):
        MasterEquation(network("k*X*time"))
    with pytest.raises(InputError, match="fixed parameters"):
        MasterEquation(network("k*X"), parameters={"k": (1, 2)})


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ("X - 1.5", r"rate of reaction 'odd' is -0.5 at X=1; .*law X - 1.5"),
        ("X/(X - 2)", r"rate of reaction 'odd' is inf at X=2"),
        ("sqrt(X - 3)/0", r"rate of reaction 'odd' is nan at X=3"),
        ("k", r"reaction 'odd' can fire at X=0 and would leave X=-1"),
    ],
)
def test_bad_rates_at_reachable_states(rate: str, message: str) -> None:
    with pytest.raises(SimulationError, match=message):
        MasterEquation(network(rate))


def test_impossible_conditions_name_the_step() -> None:
    solver = MasterEquation(ESIRS, {"S": 95, "I": 5})
    where = {3: "S >= 0", 0: "S = 94"}
    assert solver.log_probability(where) == -np.inf
    with pytest.raises(UnreachableError, match=r"nothing is left at step 0 \(time 0\)"):
        solver.marginals(where)
    with pytest.raises(UnreachableError, match=r"S == 101.*nothing is left at step 7 "):
        solver.draw(5, {7: "S = 101"})


def test_too_many_states_are_refused_with_a_remedy() -> None:
    with pytest.raises(SimulationError, match=r"max_states=100 states: those give .*rejection"):
        MasterEquation(models.toggle_switch(), max_states=100)


def test_a_pass_that_takes_too_long_is_refused_before_it_begins() -> None:
    with pytest.raises(SimulationError, match=r"has 45 states, and a pass .* takes .*rejection"):
        MasterEquation(ESIRS, parameters={"N": 8}, max_seconds=0.0)
    assert SMALL.seconds() > 0


def test_progress_is_told_as_shares_of_named_work() -> None:
    told: list[tuple[str, float]] = []
    solver = MasterEquation(
        models.toggle_switch(),
        until=0.5,
        points=3,
        progress=lambda what, share: told.append((what, share)),
    )
    assert {what.partition(":")[0] for what, _ in told} == {"finding the states"}
    told.clear()
    solver.probability({2: "U > V"})
    assert told[-1] == ("solving the master equation", 1.0)
    assert all(0 <= share <= 1 for _, share in told)


def test_a_finite_space_that_is_too_large_is_projected() -> None:
    whole = MasterEquation(ESIRS, {"S": 95, "I": 5}, times=[0.0, 0.2])
    part = MasterEquation(ESIRS, {"S": 95, "I": 5}, times=[0.0, 0.2], max_states=3000)
    assert len(part.states) < len(whole.states)
    assert 0 < part.truncation_error <= 1e-9
    np.testing.assert_allclose(part.marginals().S[:, :101], whole.marginals().S, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"times": [0.0, 0.0]}, "times must increase"),
        ({"times": []}, "at least one"),
        ({"tolerance": 0.0}, "tolerance must be between 0 and 1"),
    ],
)
def test_bad_arguments_are_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        MasterEquation(ESIRS, **options)


def test_conditions_of_another_grid_are_refused() -> None:
    other = Conditions({2: "S = 3"}, ESIRS, np.linspace(0, 1, 4))
    with pytest.raises(InputError, match="another network or time grid"):
        SMALL.marginals(other)
    with pytest.raises(InputError, match=r"steps are 0\.\.5"):
        SMALL.joint(6)
    with pytest.raises(InputError, match="samples must be"):
        SMALL.draw(0)


def test_spaces_are_found_whole_and_once() -> None:
    space = StateSpace(ESIRS, {**ESIRS.parameters, "N": 30}, np.array([[30, 0, 0]]))
    assert space.close(10_000)
    assert len(np.unique(space.states, axis=0)) == len(space) == 31 * 32 // 2
    assert (space.states.sum(axis=1) == 30).all()
    limited = StateSpace(ESIRS, {**ESIRS.parameters, "N": 30}, np.array([[30, 0, 0]]))
    assert not limited.close(100)
