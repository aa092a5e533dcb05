"""Sums of species that the assignments of events keep."""

from __future__ import annotations

from fractions import Fraction

import pytest

from constraints.physics.assignments import keep, linear

HALF = {"S": "S - floor(S/2)", "V": "V + floor(S/2)"}
LAW = {"S": 1, "V": 1}


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("S - 5", {"S": 1, "1": -5}),
        ("2*S + 3 - S*2", {"1": 3}),
        ("V + floor(S/2)", {"V": 1, "floor(S/2)": 1}),
        ("-(S - min(S, 10)) + min(S, 10)", {"S": -1, "min(S, 10)": 2}),
        ("floor((S + 1)/2) - ceil((S + 1)/2)", {"floor((S + 1)/2)": 1, "ceil((S + 1)/2)": -1}),
        ("0.5*S", {"S": Fraction(1, 2)}),
        ("S +", None),
        ("floor(S", None),
    ],
)
def test_an_expression_is_linear_in_quantities(text: str, terms: dict[str, int] | None) -> None:
    assert linear(text) == terms


def test_what_one_loses_the_other_gains() -> None:
    assert keep([("I > 20", HALF)], LAW)
    assert keep([("I > 20", HALF)], {"R": 1})
    assert not keep([("I > 20", HALF)], {"S": 1})
    assert not keep([("I > 20", {**HALF, "V": "V + ceil(S/2)"})], LAW)
    assert not keep([("I > 20", {"S": "S - 5"}), ("I > 20", {"V": "V + 5"})], LAW)


def test_events_that_may_fire_at_once_move_a_count_twice() -> None:
    assert keep([("time >= 5", HALF), ("time > 7.5", HALF)], LAW)
    assert not keep([("time >= 5", HALF), ("time > 5", HALF)], LAW)
    assert not keep([("time >= 5", HALF), ("I > 20", HALF)], LAW)
    other = {"A": "A - 1", "B": "B + 1"}
    assert keep([("I > 5", HALF), ("I > 20", other)], {"S": 1, "V": 1, "A": 1, "B": 1})
