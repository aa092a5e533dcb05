"""Conditions: text, functions and lists mean the same, and mistakes are told by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from simulators import InputError, Reaction, ReactionNetwork, models
from simulators.exact.conditions import Conditions

ESIRS = models.esirs()
RULED = ReactionNetwork(
    name="ruled",
    species={"X": 3, "Y": 0},
    parameters={"k": 2.0},
    reactions=[Reaction("go", "X -> Y", "k")],
    rules={"both": "X + k*Y", "clock": "2*time"},
    until=4,
    points=5,
)


def values(**counts: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(count) for name, count in counts.items()}


S, I, R = np.array([30, 40, 50, 30]), np.array([0, 20, 21, 60]), np.array([70, 40, 29, 10])
STATES = values(S=S, I=I, R=R)


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("S = 30", [1, 0, 0, 1]),
        ("S == 30", [1, 0, 0, 1]),
        ("I <= 20", [1, 1, 0, 0]),
        ("S = 30 or S = 40", [1, 1, 0, 1]),
        ("0 <= S + I <= 50", [1, 0, 0, 0]),
        ("not I > N/5", [1, 1, 0, 0]),
        (lambda state: state["S"] == 30, [1, 0, 0, 1]),
        (["S = 30", lambda state: state["I"] > 0], [0, 0, 0, 1]),
        (["S = 30", ["I > 0", "R = 10"]], [0, 0, 0, 1]),
        ([], [1, 1, 1, 1]),
        ("true", [1, 1, 1, 1]),
    ],
)
def test_a_mask_says_which_states_meet_the_predicates_of_a_step(
    predicate: Any, expected: list[int]
) -> None:
    conditions = Conditions({2: predicate}, ESIRS)
    assert conditions.mask(2, STATES).tolist() == [bool(value) for value in expected]
    assert conditions.mask(1, STATES).all()


def test_a_step_and_all_steps_are_taken_together() -> None:
    conditions = Conditions({"all": "I <= 20", np.int64(3): "S = 30"}, ESIRS)
    assert conditions.mask(3, STATES).tolist() == [True, False, False, False]
    assert conditions.mask(4, STATES).tolist() == [True, True, False, False]
    assert conditions.last == 29
    assert conditions.active(0)
    later = Conditions({7: "S = 30"}, ESIRS)
    assert (later.last, later.active(7), later.active(6)) == (7, True, False)
    nothing = Conditions(None, ESIRS)
    assert not nothing
    assert (nothing.last, str(nothing)) == (-1, "nothing")


def test_rules_parameters_and_time_are_known() -> None:
    counts = values(X=[1, 2], Y=[1, 1])
    assert Conditions({0: "both = 4"}, RULED).mask(0, counts).tolist() == [False, True]
    assert Conditions({0: "both = 4"}, RULED, parameters={"k": 3.0}).mask(0, counts).tolist() == [
        True,
        False,
    ]
    varying = {**counts, "k": np.array([3.0, 2.0])}
    assert Conditions({0: lambda v: v["both"] == 4}, RULED).mask(0, varying).all()
    assert Conditions({3: "clock = 6 and time = 3"}, RULED).mask(3, counts).all()


def test_small_unsigned_counts_do_not_wrap() -> None:
    counts = {name: column.astype(np.uint8) for name, column in STATES.items()}
    assert Conditions({0: "S - I < -29"}, ESIRS).mask(0, counts).tolist() == [0, 0, 0, 1]
    assert Conditions({0: "S*I > 255"}, ESIRS).mask(0, counts).tolist() == [0, 1, 1, 1]


def test_trajectories_hold_when_every_step_does() -> None:
    x = np.array([[3, 2, 1, 0, 0], [3, 3, 3, 3, 3], [3, 2, 2, 2, 2]])
    arrays = {"X": x, "Y": 3 - x, "k": np.array([2.0, 2.0, 9.0])}
    conditions = Conditions({0: "X = 3", "all": "X >= 2 or k < 3"}, RULED)
    assert conditions.holds(arrays).tolist() == [True, True, True]
    assert Conditions({4: "X = 3", 1: "Y < 1"}, RULED).holds(arrays).tolist() == [0, 1, 0]
    assert Conditions({"all": "k = 9"}, RULED).holds(arrays).tolist() == [0, 0, 1]
    dims = ("time", "sample")
    data = xr.Dataset(
        {"X": (dims, x.T), "Y": (dims, 3 - x.T), "k": ("sample", arrays["k"]), "both": (dims, x.T)}
    )
    assert (conditions.holds(data) == conditions.holds(arrays)).all()


def test_conditions_are_written_out_for_attributes() -> None:
    def settled(state: dict[str, np.ndarray]) -> Any:
        return state["I"] < 5

    where = {25: ["S = 30 or S = 40", settled], "all": "I <= 20", 0: "S=95"}
    conditions = Conditions(where, ESIRS)
    assert conditions.describe() == {
        "0": ["S == 95"],
        "25": ["S == 30 or S == 40", "<settled>"],
        "all": ["I <= 20"],
    }
    assert str(conditions) == (
        "step 0: S == 95; step 25: (S == 30 or S == 40) and <settled>; every step: I <= 20"
    )


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({30: "S = 1"}, r"step 30 is not on the grid: steps are 0\.\.29"),
        ({-1: "S = 1"}, r"step -1 is not on the grid"),
        ({"25": "S = 1"}, r"grid step 0\.\.29 or \"all\", not '25'"),
        ({True: "S = 1"}, r"not True"),
        ({2.0: "S = 1"}, r"not 2\.0"),
        ({2: "Q = 1"}, r"in 'Q = 1': unknown name 'Q' \(have: S, I, R, beta"),
        ({2: "bets = 1"}, r"did you mean 'beta'\?"),
        ({2: "S + I"}, r"'S \+ I' for step 2 is a number, not a condition"),
        ({2: "S = "}, r"cannot read this expression"),
        ({2: 30}, r"the condition for step 2 is text .* not 30"),
        ("S = 30", r"conditions are a mapping .* not 'S = 30'"),
    ],
)
def test_bad_conditions_are_refused_with_the_reason(where: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Conditions(where, ESIRS)


def test_functions_must_answer_with_booleans_of_the_right_shape() -> None:
    with pytest.raises(InputError, match="must return booleans"):
        Conditions({0: lambda state: state["S"]}, ESIRS).mask(0, STATES)
    with pytest.raises(InputError, match=r"returned shape \(2,\), not \(4,\)"):
        Conditions({0: lambda state: state["S"][:2] > 0}, ESIRS).mask(0, STATES)


def test_trajectories_must_fit() -> None:
    with pytest.raises(InputError, match="unknown variable 'R'"):
        Conditions({0: "S = 1"}, ESIRS).holds({"S": np.zeros((2, 30)), "I": np.zeros((2, 30))})
    short = {name: np.zeros((2, 29)) for name in "SIR"}
    with pytest.raises(InputError, match="do not fit a grid of 30 times"):
        Conditions({0: "S = 1"}, ESIRS).holds(short)


@st.composite
def comparisons(draw: st.DrawFn) -> str:
    term = draw(st.sampled_from(["S", "I", "R", "S + I", "S - R", "2*I", "N - S"]))
    symbol = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
    return f"{term} {symbol} {draw(st.integers(-20, 120))}"


@given(first=comparisons(), second=comparisons())
def test_laws_of_predicates(first: str, second: str) -> None:
    def mask(predicate: Any) -> np.ndarray:
        return Conditions({4: predicate}, ESIRS).mask(4, STATES)

    assert (mask(f"({first}) and ({second})") == mask([first, second])).all()
    assert (mask([first, second]) == (mask(first) & mask(second))).all()
    assert (mask(f"({first}) or ({second})") == (mask(first) | mask(second))).all()
    assert (mask(f"not ({first})") == ~mask(first)).all()
    shown = Conditions({4: first}, ESIRS).describe()["4"][0]
    assert (mask(shown) == mask(first)).all()
