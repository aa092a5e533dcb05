"""Rules mean what they say, and every trajectory of a built-in model keeps those of its network."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Formula, FormulaError, parse
from constraints.physics.rules import (
    absorbing,
    bounds,
    conserved_total,
    from_network,
    limits,
    max_step,
    monotone,
    non_negative,
)
from simulators import Event, Reaction, ReactionNetwork, models, simulate
from tests.constraints.network_descriptions import broken, describe, holds

SAMPLES = 200


# --- rules by name --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        (non_negative("S"), "forall t: S(t) >= 0"),
        (non_negative("S", "I"), "(forall t: S(t) >= 0) and (forall t: I(t) >= 0)"),
        (conserved_total(["S", "I", "R"], 100), "forall t: S(t) + I(t) + R(t) = 100"),
        (conserved_total("S, I R", "N"), "forall t: S(t) + I(t) + R(t) = N"),
        (conserved_total({"S": 1, "P": 2}, 9), "forall t: S(t) + 2 * P(t) = 9"),
        (conserved_total({"S": 1, "P": -2, "Q": -1}, 0), "forall t: S(t) - 2 * P(t) - Q(t) = 0"),
        (conserved_total({"P": -2, "Q": 0.5}, -1.5), "forall t: -(2 * P(t)) + 0.5 * Q(t) = -1.5"),
        (conserved_total("X", 3), "forall t: X(t) = 3"),
        (bounds("S", 0, 100), "forall t: 0 <= S(t) <= 100"),
        (bounds("S", -1), "forall t: S(t) >= -1"),
        (bounds("S", high=7), "forall t: S(t) <= 7"),
        (monotone("S", "decreasing"), "forall t in [1, end]: S(t) <= S(t - 1)"),
        (monotone("S", "increasing"), "forall t in [1, end]: S(t) >= S(t - 1)"),
        (max_step("S", 5), "forall t: abs(delta(S)(t)) <= 5"),
        (absorbing("S"), "forall t in [1, end]: S(t - 1) = 0 implies S(t) = 0"),
        (absorbing("S", 4), "forall t in [1, end]: S(t - 1) = 4 implies S(t) = 4"),
        (non_negative("t"), 'forall t: "t"(t) >= 0'),  # a species called as the variable is
        (conserved_total(["max", "end"], "t"), 'forall t: "max"(t) + "end"(t) = "t"'),
    ],
)
def test_a_rule_is_the_formula_one_would_write(rule: Formula, text: str) -> None:
    assert rule == parse(text)
    assert parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        (non_negative("S", "I"), ([3, 0], [0, 0]), ([3, 0], [0, -1])),
        (conserved_total({"S": 1, "I": 2}, 5), ([5, 3], [0, 1]), ([5, 3], [0, 2])),
        (conserved_total("S I", "N"), ([5, 4], [0, 1]), ([5, 3], [0, 1])),
        (bounds("S", 0, 4), ([0, 4], [9, 9]), ([0, 5], [9, 9])),
        (bounds("S", 2), ([2, 9], [0, 0]), ([1, 9], [0, 0])),
        (monotone("S", "decreasing"), ([5, 5, 2], [0, 1, 0]), ([5, 2, 3], [0, 0, 0])),
        (monotone("S", "increasing"), ([2, 5, 5], [0, 1, 0]), ([2, 5, 4], [0, 0, 0])),
        (max_step("S", 2), ([9, 7, 8], [0, 5, 0]), ([9, 6, 6], [0, 0, 0])),
        (max_step("S", 2), ([9, 7, 9], [0, 5, 0]), ([6, 6, 9], [0, 0, 0])),
        (absorbing("S"), ([2, 0, 0], [0, 5, 0]), ([2, 0, 1], [0, 0, 0])),
        (absorbing("S", 3), ([0, 1, 3], [0, 5, 0]), ([3, 2, 3], [0, 0, 0])),
    ],
)
def test_rules_accept_valid_and_reject_invalid_trajectories(
    rule: Formula, good: Any, bad: Any
) -> None:
    data = {"S": [good[0], bad[0]], "I": [good[1], bad[1]]}
    assert holds(rule, data, parameters={"N": 5.0}) == [True, False]


def test_a_total_may_differ_between_trajectories() -> None:
    config = describe(models.sir(), parameters={"N": (50, 60)}, initial={"I": 3})
    rule = from_network(config)["S + I + R is constant"]
    data = {"S": [[5, 4], [5, 3], [7, 7]], "I": [[0, 1], [0, 1], [1, 0]], "R": [[0, 0]] * 3}
    assert holds(rule, data) == [True, False, False]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: non_negative(), "no series is named"),
        (lambda: conserved_total([], 3), "a total needs names"),
        (lambda: conserved_total({"S": 0}, 3), "weights other than 0"),
        (lambda: conserved_total(["S", "S"], 3), "occurs twice"),
        (lambda: conserved_total({"S": "x"}, 3), "the weight of S is a number, not 'x'"),
        (lambda: conserved_total("S", math.nan), "nan"),
        (lambda: conserved_total("S", None), "None"),  # type: ignore[arg-type]
        (lambda: bounds("S"), "S has neither a low nor a high bound; give low, high or both"),
        (lambda: bounds("S", 3, 2), r"the bounds of S, \[3, 2\], are empty"),
        (lambda: bounds("S", "a"), "a bound of S is a number, not 'a'"),  # type: ignore[arg-type]
        (lambda: monotone("S", "up"), "unknown direction 'up'.*decreasing, increasing"),
        (lambda: max_step("S", -1), "the largest step of S is a number >= 0, not -1"),
        (lambda: absorbing("S", "a"), "the level of S is a number"),  # type: ignore[arg-type]
        (lambda: non_negative('a"b'), "name"),
    ],
)
def test_invalid_arguments_of_rules_are_rejected(make: Any, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        make()


words = st.from_regex(r"[a-zA-Z_][a-z0-9_]{0,3}", fullmatch=True) | st.sampled_from(["t", "a b"])
numbers = st.floats(-1e6, 1e6)


@settings(max_examples=100)
@given(st.dictionaries(words, numbers.filter(bool), min_size=1, max_size=4), numbers, numbers)
def test_rules_print_as_text_that_reads_back(
    weights: dict[str, float], low: float, high: float
) -> None:
    name = next(iter(weights))
    made = [
        non_negative(*weights),
        conserved_total(weights, low),
        conserved_total(list(weights), name),
        bounds(name, min(low, high), max(low, high)),
        monotone(name, "increasing"),
        max_step(name, abs(low)),
        absorbing(name, high),
    ]
    for rule in made:
        assert parse(str(rule)) == rule


# --- rules of the built-in models -----------------------------------------------------------------

COURSES = {
    "esirs": [],
    "sir": [
        "S never rises",
        "I stays 0",
        "R never falls",
        "I never rises once S = 0",
        "S is constant once I = 0",
        "R is constant once I = 0",
    ],
    "seir": ["S never rises", "R never falls", "S + E never rises", "E never rises once S = 0"],
    "sirs": ["I stays 0", "S never falls once I = 0", "R never rises once I = 0"],
    "lotka_volterra": [
        "prey stays 0",
        "predator stays 0",
        "predator never rises once prey = 0",
        "prey never falls once predator = 0",
    ],
    "birth_death": [],
    "dimerisation": [],
    "toggle_switch": [],
    "schloegl": [],
}
TOTALS = {
    "esirs": ["S + I + R = 100", "S <= 100", "I <= 100", "R <= 100"],
    "sir": ["S + I + R = 763", "S <= 763", "I <= 763", "R <= 763"],
    "dimerisation": ["P + 2 * P2 = 301", "P <= 301", "P2 <= 150"],
    "toggle_switch": [],
}


@pytest.mark.parametrize("name", models.MODELS)
def test_every_trajectory_of_a_model_keeps_its_rules(name: str) -> None:
    data = simulate(models.get(name), SAMPLES, seed=5, threads=1)
    config = json.loads(data.attrs["surrogate_config"])
    found = list(from_network(config))
    species = list(models.get(name).species)
    assert found[: len(species)] == [f"{each} >= 0" for each in species]
    words = ("never", "stays", "once")
    assert [rule for rule in found if any(word in rule for word in words)] == COURSES[name]
    if name in TOTALS:
        assert found[len(species) : len(found) - len(COURSES[name])] == TOTALS[name]
    assert broken(config, data) == []
    for each, (low, high) in limits(config).items():
        assert low <= data[each].min()
        assert data[each].max() <= high


@pytest.mark.parametrize(
    ("method", "kept"),
    [
        ("tau", ["S >= 0", "I >= 0", "R >= 0", "S + I + R = 763", "S <= 763", "I <= 763"]),
        ("ode", ["S + I + R = 763"]),
    ],
)
def test_approximate_methods_have_fewer_rules(method: str, kept: list[str]) -> None:
    data = simulate(models.sir(), SAMPLES, seed=5, threads=1, method=method)
    config = json.loads(data.attrs["surrogate_config"])
    assert list(from_network(config))[: len(kept)] == kept
    words = ("never", "stays", "once")
    assert not any(word in rule for word in words for rule in from_network(config))
    assert broken(config, data, integer=method != "ode") == []
    lowest = {"tau": 0.0, "ode": -math.inf}[method]
    assert {low for low, _ in limits(config).values()} == {lowest}


def planted() -> dict[str, np.ndarray]:
    return {
        "S": np.array([[760, 700, 690, 690]]),
        "I": np.array([[3, 10, 0, 0]]),
        "R": np.array([[0, 53, 73, 73]]),
    }


@pytest.mark.parametrize(
    ("species", "values", "caught"),
    [
        ("S", [760, 700, 690, 690], []),
        ("I", [3, 10, 0, -1], ["I >= 0", "S + I + R = 763", "I stays 0"]),
        ("R", [0, 53, 74, 74], ["S + I + R = 763"]),
        (
            "S",
            [760, 700, 701, 690],
            ["S + I + R = 763", "S never rises", "S is constant once I = 0"],
        ),
        ("R", [0, 53, 73, 74], ["S + I + R = 763", "R is constant once I = 0"]),
        ("R", [1, 0, 73, 73], ["S + I + R = 763", "R never falls"]),
        ("I", [3, 10, 0, 1], ["S + I + R = 763", "I stays 0"]),
        ("I", [3, 764, 0, 0], ["S + I + R = 763", "I <= 763"]),
    ],
)
def test_planted_violations_are_caught(species: str, values: list[int], caught: list[str]) -> None:
    data = planted() | {species: np.array([values])}
    assert broken(describe(models.sir()), data) == caught


ODD = {
    "a catalyst that decays": (
        {"E": 2, "A": 30, "B": 0},
        ["E + A -> E + B", "E -> 0"],
        ["B is constant once E = 0", "A is constant once E = 0", "E never rises"],
        [],
    ),
    "two ways to B": (
        {"E": 2, "A": 30, "B": 0},
        ["E + A -> E + B", "A -> B", "E -> 0"],
        ["E never rises"],
        ["A is constant once E = 0", "B is constant once E = 0"],
    ),
    "a source that never ends": (
        {"A": 1, "B": 5},
        ["0 -> A", "A -> 0", "A + B -> A"],
        ["B never rises"],
        ["B is constant once A = 0"],  # A comes back
    ),
    "a chain": (
        {"A": 9, "B": 0, "C": 0, "D": 0},
        ["A -> B", "B -> C", "C -> D"],
        ["A + B never rises", "D never falls", "A never rises", "B never rises once A = 0"],
        ["A + B + C never rises", "C + D never falls"],  # implied by the others
    ),
    "an open chain": (
        {"A": 0, "B": 0, "C": 0},
        ["0 -> A", "A -> B", "B -> C"],
        ["B + C never falls", "C never falls", "A + B + C never falls"],
        [],
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_networks_keep_their_rules_and_have_no_others(case: str) -> None:
    species, equations, expected, absent = ODD[case]
    reactions = [Reaction(f"r{j}", each, "k") for j, each in enumerate(equations)]
    network = ReactionNetwork("odd", species, {"k": 0.4}, reactions)
    data = simulate(network, 300, seed=2, threads=1, until=8.0)
    config = json.loads(data.attrs["surrogate_config"])
    found = from_network(config)
    assert set(expected) <= set(found)
    assert not set(absent) & set(found)
    assert broken(config, data) == []


def test_what_an_event_sets_takes_no_part_in_conditional_or_combined_rules() -> None:
    reactions = [Reaction("bind", "E + A -> E + B", "k"), Reaction("decay", "E -> 0", "k")]
    for target, kept in (("E", 0), ("A", 1), ("B", 1)):
        events = [Event("dose", "time > 3", {target: f"{target} + 3"})]
        network = ReactionNetwork(
            "odd", {"E": 2, "A": 9, "B": 0}, {"k": 0.4}, reactions, {}, events
        )
        data = simulate(network, 300, seed=2, threads=1, until=8.0)
        config = json.loads(data.attrs["surrogate_config"])
        found = [rule for rule in from_network(config) if "once" in rule]
        assert len([rule for rule in found if "once E = 0" in rule]) == kept
        assert not any(target in rule for rule in found)
        assert broken(config, data) == []
