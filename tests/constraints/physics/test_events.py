"""While the trigger of an event holds, parameters have the values that it set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from constraints import Formula
from constraints.physics.rules import from_network
from simulators import Event, Reaction, ReactionNetwork, simulate
from tests.constraints.network_descriptions import describe, holds

LOCK = Event("lock", "I > 30", {"beta": 0.1})
OPEN = Event("open", "I < 10", {"beta": 0.5})


def epidemic(events: Sequence[Event], infected: int = 5) -> ReactionNetwork:
    return ReactionNetwork(
        name="epidemic",
        species={"S": 95, "I": infected, "R": 0},
        parameters={"beta": 0.5, "gamma": 0.2, "N": 100},
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        events=list(events),
        until=30,
        points=31,
    )


def rules(network: ReactionNetwork) -> dict[str, Formula]:
    found = from_network(describe(network))
    return {name: rule for name, rule in found.items() if "while" in name}


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ([LOCK], ["beta = 0.1 while I >= 31"]),
        ([Event("lock", "I >= 0.3*N", {"beta": 0.1})], ["beta = 0.1 while I >= 30"]),
        ([Event("lock", "70 > S", {"beta": 0.1})], ["beta = 0.1 while S <= 69"]),
        ([LOCK, OPEN], ["beta = 0.1 while I >= 31"]),  # I < 10 holds at the start
        (
            [LOCK, Event("strict", "I > 40", {"gamma": 0.3})],
            ["beta = 0.1 while I >= 31", "gamma = 0.3 while I >= 41"],
        ),
        ([LOCK, Event("strict", "I > 40", {"beta": 0.05})], []),  # both may hold
        ([LOCK, Event("later", "time > 9", {"beta": 0.2})], []),
        ([LOCK, OPEN, Event("import", "time > 9", {"I": "I + 5"})], []),
        ([Event("lock", "I > 30", {"beta": "beta/2"})], []),
        ([Event("lock", "I > 30", {"S": 10})], []),
        ([Event("lock", "I > 30 and S > 10", {"beta": 0.1})], []),
    ],
)
def test_a_value_is_proved_where_no_other_event_can_replace_it(
    events: list[Event], names: list[str]
) -> None:
    assert list(rules(epidemic(events))) == names


def test_a_trigger_that_holds_at_the_start_proves_nothing() -> None:
    assert not rules(epidemic([LOCK], infected=40))


@pytest.mark.parametrize("events", [[LOCK], [LOCK, OPEN]])
def test_simulations_obey_the_rules(events: list[Event]) -> None:
    data = simulate(epidemic(events), samples=2_000, seed=0)
    fired = (data.beta < 0.2).any("time").values
    assert fired.mean() > 0.4
    (rule,) = rules(epidemic(events)).values()
    values = {"I": data.I.values, "beta": data.beta.values}
    assert all(holds(rule, values, integer=False))
    values["beta"] = np.full_like(values["beta"], 0.5)
    reached = (values["I"] > 30).any(1)
    assert holds(rule, values, integer=False) == (~reached).tolist()
