"""What is derived from a description holds for all that its network can do, or is left out."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import FormulaError, parse
from constraints.physics.rules import from_network, limits
from simulators import Event, InputError, Reaction, ReactionNetwork, models, rates
from simulators.dataset import attributes
from simulators.ensemble import make_engine
from tests.constraints.network_descriptions import broken, describe

# --- starts ---------------------------------------------------------------------------------------

PAIRS = ReactionNetwork(  # two laws share species: A + B, the head count, and A - D
    "pairs",
    {"A": "N - 4", "B": 4, "C": "2*m + 1", "D": 9},
    {"N": 20, "m": 3, "k": 1},
    [Reaction("bind", "A + D -> B", "k"), Reaction("part", "B -> A + D", "k")],
    population="N",
)
SPREAD = ReactionNetwork(  # a uniform start, and no parameter that says of how many
    "spread",
    {"A": "m + 4", "B": 4, "C": 0},
    {"m": 3, "k": 1},
    [Reaction("on", "A -> B", "k"), Reaction("back", "B -> A", "k"), Reaction("up", "B -> C", "k")],
    start="uniform",
)
DIMERS = ReactionNetwork(
    "dimers",
    {"A": 8, "B": 4, "AB": "a - 1"},
    {"a": 2, "k": 1},
    [Reaction("bind", "A + B -> AB", "k"), Reaction("part", "AB -> A + B", "k")],
)


@pytest.mark.parametrize("network", [models.sir(), models.esirs(), PAIRS, SPREAD, DIMERS])
@pytest.mark.parametrize(
    "how",
    [
        {},
        {"initial": "uniform"},
        {"initial": "fixed"},
        {"initial": {0: 7}},
        {"initial": {0: 7, 1: 3}},
        {"initial": {1: (3, 9)}},
        {"initial": {0: (3, 9), 1: 5}},
        {"parameters": {"N": 40}},
        {"parameters": {"N": (40, 50)}},
        {"parameters": {"N": (40, 50)}, "initial": {0: 7}},
        {"parameters": {"a": np.arange(1, 51), "m": 5}},
        {"parameters": {"m": np.arange(50)}},
    ],
)
def test_totals_are_those_of_the_starts(network: ReactionNetwork, how: dict[str, Any]) -> None:
    how = dict(how)
    names = list(network.species)
    if isinstance(how.get("initial"), dict):
        how["initial"] = {names[place]: value for place, value in how["initial"].items()}
    given = {k: v for k, v in how.get("parameters", {}).items() if k in network.parameters}
    how["parameters"] = given
    try:
        engine = make_engine(network, 50, seed=3, **how)
    except InputError:  # this network cannot start so
        return
    states = engine.start.states(0, 50)[:, : len(names)]
    config = json.loads(attributes(engine)["surrogate_config"])
    start = {name: states[:, [place, place]] for place, name in enumerate(names)}  # two steps
    assert broken(config, start) == []
    rules = [rule for rule in from_network(config) if "=" in rule or "constant" in rule]
    for law in network.conservation_laws:
        text = str(law).replace("*", " * ")
        totals = states @ np.array([law.coefficients.get(name, 0) for name in names])
        if len(set(totals)) > 1:
            assert f"{text} is constant" in rules
        else:
            assert {f"{text} is constant", f"{text} = {totals[0]:g}"} & set(rules)


def test_a_species_that_nothing_changes_has_no_monotonicity_rule() -> None:
    rules = from_network(describe(PAIRS))
    assert "C = 7" in rules
    assert not any("never" in rule or "stays" in rule for rule in rules)


def test_only_totals_that_are_fixed_bound_a_species() -> None:
    config = describe(DIMERS, initial={"B": (1, 5)})
    totals = [rule for rule in from_network(config) if " = " in rule or "constant" in rule]
    assert totals == ["A - B is constant", "A + AB = 9"]
    assert limits(config) == {"A": (0, 9), "B": (0, math.inf), "AB": (0, 9)}
    enzyme = ReactionNetwork(
        "enzyme",
        {"E": 5, "S": 100, "ES": 0, "P": 0},
        {"k": 1},
        [Reaction("bind", "E + S -> ES", "k"), Reaction("make", "ES -> E + P", "k")],
    )
    highest = {name: high for name, (_, high) in limits(describe(enzyme)).items()}
    assert highest == {"E": 5, "S": 100, "ES": 5, "P": 100}
    config = describe(models.esirs(), parameters={"N": (50, 60)})
    assert "S + I + R is constant" in from_network(config)
    assert {limits(config)[name] for name in "SIR"} == {(0, math.inf)}


def test_a_drawn_parameter_is_bounded_by_its_range_unless_an_event_sets_it() -> None:
    drawn = {"beta": (0.5, 3.0), "gamma": (0.4, 0.4)}
    assert limits(describe(models.sir(), parameters=drawn))["beta"] == (0.5, 3.0)
    assert "gamma" not in limits(describe(models.sir(), parameters=drawn))
    lockdown = replace(models.sir(), events=(Event("lockdown", "I > 150", {"beta": 0.1}),))
    assert "beta" not in limits(describe(lockdown, parameters={"beta": (0.5, 3.0)}))


# --- what may happen, against what is claimed -----------------------------------------------------

RATES = ["k", "k*{x}", "k*{x}*{y}", "k*{x}/(1 + {y})", "k*({x} + {y})", "k*{x}^2", "k + {x}"]
sides = st.lists(st.sampled_from("ABC"), max_size=2)
reactions = st.tuples(
    sides,
    sides,
    st.sampled_from(RATES),
    st.sampled_from("ABC"),
    st.sampled_from("ABC"),
    st.booleans(),
)


@settings(max_examples=60)
@given(st.lists(reactions, min_size=1, max_size=4), st.integers(0, 2**32 - 1), st.booleans())
def test_no_random_walk_through_a_network_breaks_its_rules(
    drawn: list[Any], seed: int, reset: bool
) -> None:
    written = [
        Reaction(
            f"r{j}",
            f"{' + '.join(left) or '0'} -> {' + '.join(right) or '0'}",
            rate.format(x=x, y=y),
            mass_action,
        )
        for j, (left, right, rate, x, y, mass_action) in enumerate(drawn)
    ]
    events = [Event("reset", "time > 3", {"B": 2})] if reset else []
    network = ReactionNetwork(
        "walk", {"A": 3, "B": "m", "C": 0}, {"k": 1, "m": 2}, written, {}, events
    )
    path = walk(network, np.random.default_rng(seed), reset)
    data = {name: path[None, :, place] for place, name in enumerate("ABC")}
    config = describe(network)
    assert broken(config, data) == []
    for stride in (2, 3):  # several reactions within a step of the grid
        assert broken(config, {name: rows[:, ::stride] for name, rows in data.items()}) == []
    for place, (low, high) in enumerate(limits(config).values()):
        assert low <= path[:, place].min()
        assert path[:, place].max() <= high


def walk(network: ReactionNetwork, chance: np.random.Generator, reset: bool) -> np.ndarray:
    """States (40, 3) after one possible firing each, whatever their rates as long as they are > 0.

    Most firings tried are those that take something away, so that counts reach 0.
    """
    state = {"A": 3.0, "B": 2.0, "C": 0.0}
    path = [list(state.values())]
    for step in range(39):
        moves = []
        for reaction, law in zip(network.reactions, network.propensities, strict=True):
            after = {name: n + reaction.change.get(name, 0) for name, n in state.items()}
            rate = rates.evaluate(law, {**state, "k": 1.0, "m": 2.0})
            if rate > 0 and min(after.values()) >= 0:
                moves.append(after)
        if moves:
            moves.sort(key=lambda after: sum(after.values()))
            state = moves[0 if chance.random() < 0.5 else chance.integers(len(moves))]
        if reset and step == 20:
            state = {**state, "B": 2.0}
        path.append(list(state.values()))
    return np.array(path)


@pytest.mark.parametrize(
    ("rate", "mass_action", "absorbs"),
    [
        ("k", True, True),
        ("k", False, False),  # fires whether or not there are any
        ("k*X", True, True),
        ("k*Y", True, False),
        ("k*X*Y/(1 + X)", False, True),
        ("k*X + k*X^2", True, True),
        ("k*X + k*Y", True, False),
        ("k*X^n", True, False),  # n may be 0
        ("k*X^0", True, False),
        ("2*X", False, True),
        ("k*share", True, False),  # what a rule stands for is not looked up
        ("piecewise(k, Y > 2, 0)*X", True, False),  # beyond this language
        ("-(-X)*sqrt(Y)", True, True),
    ],
)
def test_zero_is_absorbing_only_if_every_gain_needs_the_species(
    rate: str, mass_action: bool, absorbs: bool
) -> None:
    network = ReactionNetwork(
        "gain",
        {"X": 5, "Y": 3},
        {"k": 1, "n": 2},
        [
            Reaction("gain", "X -> 2 X", rate, mass_action),
            Reaction("loss", "X -> 0", "k"),
            Reaction("other", "Y -> 0", "k"),
        ],
        rules={"share": "X/(X + Y)"},
    )
    assert ("X stays 0" in from_network(describe(network))) == absorbs


def test_species_set_by_events_have_no_monotonicity_and_no_total() -> None:
    sir = models.sir()
    events = [Event("vaccination", "time > 2", {"S": "S - min(S, 10)", "beta": 0})]
    network = ReactionNetwork(
        "sir", sir.species, sir.parameters, sir.reactions, events=events, population=None
    )
    config = describe(network)
    found = list(from_network(config))
    assert found[:5] == ["S >= 0", "I >= 0", "R >= 0", "I stays 0", "R never falls"]
    assert found[5:] == ["I + R never falls", "R is constant once I = 0"]
    claimed = {**config, "conservation_laws": [{"S": 1, "I": 1, "R": 1}]}  # by the reactions alone
    assert list(from_network(claimed)) == found


# --- descriptions that are incomplete, or none ----------------------------------------------------

SIR = json.dumps(describe(models.sir()))


def test_missing_keys_have_their_defaults() -> None:
    assert from_network({}) == {}
    assert limits({}) == {}
    assert from_network({"network": {}}) == {}
    assert list(from_network({"network": {"species": {"S": "3"}}})) == ["S >= 0"]
    whole = json.loads(SIR)
    rules = from_network(whole)
    few = {"network": {k: whole["network"][k] for k in ("species", "reactions", "parameters")}}
    assert set(from_network(few)) == {
        rule for rule in rules if "=" not in rule or ">=" in rule or "once" in rule
    }
    few["conservation_laws"] = whole["conservation_laws"]
    assert from_network(few) == rules  # the counts of the network add up to N
    for key in whole:
        assert isinstance(from_network({k: v for k, v in whole.items() if k != key}), dict)
    for key in whole["network"]:
        cut = {k: v for k, v in whole["network"].items() if k != key}
        found = from_network({**whole, "network": cut, "conservation_laws": []})
        assert found.items() <= rules.items()


def test_descriptions_with_unknown_keys_give_no_rules() -> None:
    config = json.loads(SIR)
    network = config["network"]
    rules = from_network(config)
    assert from_network({**config, "network": {**network, "rate_rules": {"S": "1"}}}) == {}
    late = [{**reaction, "delay": 3} for reaction in network["reactions"]]
    assert from_network({**config, "network": {**network, "reactions": late}}) == {}
    assert from_network({**config, "network": {**network, "events": [{"name": "e"}]}}) == {}
    old = {key: value for key, value in config.items() if key not in ("exact", "discrete")}
    assert list(from_network({**old, "method": "langevin"})) == ["S + I + R = 763"]
    wrong = {**config, "conservation_laws": [{"S": 1, "I": 1}]}  # the reactions do not respect it
    assert set(from_network(wrong)) == {
        rule for rule in rules if "R =" not in rule and "<=" not in rule
    }
    assert "S + I + R is constant" in from_network({**config, "start": "somewhere"})
    ruled = {**config, "network": {**network, "rules": {"S": "N/2"}}}
    assert "S never rises" not in from_network(ruled)
    rateless = [{"equation": reaction["equation"]} for reaction in network["reactions"]]
    assert "I stays 0" not in from_network(
        {**config, "network": {**network, "reactions": rateless}}
    )
    assert from_network({**config, "comment": "other keys tell of other things"}) == rules


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"network": 3}, "network is a mapping from names, not 3"),
        ({"network": []}, "is a mapping"),
        ({"species": ["S"]}, "species is a mapping"),
        ({"reactions": {"a": 1}}, "reactions is a list"),
        ({"reactions": ["S -> I"]}, "each of the reactions"),
        ({"reactions": [{"name": "a"}]}, "an equation is text such as"),
        ({"reactions": [{"equation": "S -> I -> R"}]}, "S -> I -> R"),
        ({"reactions": [{"equation": "S + -> I"}]}, "an equation"),
        ({"reactions": [{"equation": 3}]}, "equation is text, not 3"),
        ({"reactions": [{"equation": "S -> Q"}]}, "unknown species 'Q'"),
        (
            {"reactions": [{"equation": "S -> I", "rate": []}]},
            r"rate is text, not \[\]",
        ),
        ({"events": [3]}, "each of the events"),
        ({"events": [{"assignments": [3]}]}, "assignments"),
        ({"rules": [3]}, "rules"),
        ({"parameters": "N"}, "parameters"),
        ({"population": 3}, "population"),
        ({"conservation_laws": 3}, "conservation_laws"),
        ({"conservation_laws": [[1]]}, "each of the conservation_laws"),
        ({"conservation_laws": [{}]}, "name: weight pairs"),
        ({"conservation_laws": [{"S": "1"}]}, "the weight of S"),
        ({"conservation_laws": [{"Q": 1}]}, "unknown species 'Q'"),
        ({"initial": [3]}, "initial"),
        ({"start": 3}, "start"),
        ({"method": 3}, "method"),
    ],
)
def test_malformed_descriptions_are_rejected(change: dict[str, Any], message: str) -> None:
    config = json.loads(SIR)
    for key, value in change.items():
        place = config["network"] if key in config["network"] and key != "start" else config
        place[key] = value
    for derive in (from_network, limits):
        with pytest.raises(FormulaError, match=message):
            derive(config)


def test_text_is_not_a_description() -> None:
    nothing: list[Any] = [SIR, None, 3, [{}]]
    for wrong in nothing:
        with pytest.raises(FormulaError, match="give the parsed JSON"):
            from_network(wrong)


scalars = st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.integers()
trees = st.recursive(
    scalars | st.just("S -> I"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["S", "equation", "rate", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@settings(max_examples=300)
@given(st.data())
def test_no_description_raises_another_error_than_formula_error(data: Any) -> None:
    config = json.loads(SIR)
    path = data.draw(st.sampled_from([(), ("network",), ("network", "reactions", 0)]))
    place: Any = config
    for key in path:
        place = place[key]
    place[data.draw(st.sampled_from(sorted(place)))] = data.draw(trees)
    try:
        found = from_network(config)
        limits(config)
    except FormulaError:
        return
    assert all(parse(str(rule)) == rule for rule in found.values())
