"""Conservation laws that events respect."""

from __future__ import annotations

import pytest

from simulators import Event, Reaction, ReactionNetwork, simulate

HALF = {"S": "S - floor(S/2)", "V": "V + floor(S/2)"}


def epidemic(events: list[Event]) -> ReactionNetwork:
    return ReactionNetwork(
        name="epidemic",
        species={"S": 90, "I": 10, "R": 0, "V": 0},
        parameters={"beta": 0.5, "gamma": 0.2, "k": 3},
        reactions=[
            Reaction("infection", "S + I -> 2 I", "beta*S*I/100"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        events=events,
        until=10,
        points=11,
    )


@pytest.mark.parametrize(
    ("events", "laws"),
    [
        ([], ["S + I + R", "V"]),
        ([Event("vaccination", "time >= 5", HALF)], ["S + I + R + V"]),
        ([Event("vaccination", "I > 20", HALF)], ["S + I + R + V"]),
        ([Event("moved", "I > 20", {"R": 0, "V": "V + R"})], ["S + I + R + V"]),
        ([Event("pairs", "I > 20", {"S": "S - 2*k", "V": "k + V"})], ["S + I + R + 2*V"]),
        ([Event("dose", "time >= 5", {"V": "V + 50"})], ["S + I + R"]),
        ([Event("wrong", "time >= 5", {"S": "S - 5", "V": "V + 6"})], ["6*S + 6*I + 6*R + 5*V"]),
        (
            [Event("first", "time >= 5", HALF), Event("second", "time >= 7", HALF)],
            ["S + I + R + V"],
        ),
        # at once, the second would move what the first has moved already
        ([Event("first", "time >= 5", HALF), Event("second", "time >= 5", HALF)], []),
        ([Event("first", "time >= 5", HALF), Event("second", "I > 20", HALF)], []),
    ],
)
def test_laws_with_events(events: list[Event], laws: list[str]) -> None:
    assert [str(law) for law in epidemic(events).conservation_laws] == laws


@pytest.mark.parametrize("trigger", ["time >= 5", "I > 20"])
def test_simulations_keep_them(trigger: str) -> None:
    network = epidemic([Event("vaccination", trigger, HALF)])
    data = simulate(network, samples=200, seed=0)
    assert float(data.V.max()) > 0
    assert bool((data[["S", "I", "R", "V"]].astype(int).to_array().sum("variable") == 100).all())
