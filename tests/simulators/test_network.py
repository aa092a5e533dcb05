"""Networks: what they mean, what they refuse, and that they survive being written down."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators import Event, InputError, Reaction, ReactionNetwork, models, rates
from simulators.conservation import conservation_laws


def sir(**changes: Any) -> ReactionNetwork:
    parts: dict[str, Any] = {
        "name": "sir",
        "species": {"S": "N - 5", "I": 5, "R": 0},
        "parameters": {"beta": 1.5, "gamma": 0.5, "N": 100},
        "reactions": [
            Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
            Reaction("recovery", "I -> R", "gamma"),
        ],
        "population": "N",
    }
    return ReactionNetwork(**{**parts, **changes})


@pytest.mark.parametrize(
    ("equation", "state", "rate"),
    [
        ("0 -> X", {"X": 7}, 3.0),
        ("X -> 0", {"X": 7}, 3.0 * 7),
        ("2X -> Y", {"X": 7, "Y": 0}, 3.0 * 7 * 6 / 2),
        ("3 X -> Y", {"X": 7, "Y": 0}, 3.0 * 7 * 6 * 5 / 6),
        ("2 X + Y -> 0", {"X": 7, "Y": 4}, 3.0 * 7 * 6 / 2 * 4),
        ("X + X -> Y", {"X": 7, "Y": 0}, 3.0 * 7 * 6 / 2),
    ],
)
def test_a_constant_is_mass_action_with_combinatorics(
    equation: str, state: dict[str, int], rate: float
) -> None:
    network = ReactionNetwork("n", {"X": 0, "Y": 0}, {"k": 3.0}, [Reaction("r", equation, "k")])
    have = {"Y": 0, **state, "k": 3.0}
    assert rates.evaluate(network.propensities[0], have) == pytest.approx(rate)
    short = {**have, "X": 0, "Y": 0}
    if network.reactions[0].sides[0]:
        assert rates.evaluate(network.propensities[0], short) == 0


def test_mean_field_uses_powers() -> None:
    network = ReactionNetwork("n", {"X": 0}, {"k": 3.0}, [Reaction("r", "2 X -> 0", "k")])
    assert rates.evaluate(network.mean_field[0], {"X": 7.0, "k": 3.0}) == pytest.approx(3 * 49 / 2)


def test_a_law_with_species_is_kept_and_mass_action_can_be_switched_off() -> None:
    reactions = [Reaction("a", "X -> 0", "k*X^2"), Reaction("b", "X -> 0", "k", mass_action=False)]
    network = ReactionNetwork("n", {"X": 0}, {"k": 3.0}, reactions)
    assert [str(law) for law in network.propensities] == ["k*X^2", "k"]


def test_a_coefficient_that_switches_with_time_or_comes_from_a_rule_is_mass_action_too() -> None:
    reactions = [
        Reaction("a", "X -> 0", "piecewise(k, time < 5, 0)"),
        Reaction("b", "X -> 0", "twice"),
    ]
    network = ReactionNetwork("n", {"X": 1}, {"k": 2}, reactions, rules={"twice": "2*k"})
    wanted = ["piecewise(k, time < 5, 0)*X", "2*k*X"]
    assert [str(law) for law in network.propensities] == wanted


def test_numpy_numbers_are_numbers() -> None:
    import numpy as np

    network = ReactionNetwork("n", {"X": np.int64(5)}, {}, [Reaction("r", "X -> 0", np.float32(2))])
    assert str(network.propensities[0]) == "2*X"


def test_rules_are_written_out_whatever_their_order() -> None:
    network = ReactionNetwork(
        "n",
        {"X": 1},
        {"k": 2},
        [Reaction("r", "X -> 0", "b*k")],
        rules={"b": "a + 1", "a": "X*2"},
    )
    assert str(network.propensities[0]) == "(X*2 + 1)*k"


def test_a_description_gives_an_equal_network_back() -> None:
    for network in [sir(), *(models.get(name) for name in models.MODELS)]:
        assert ReactionNetwork.from_dict(json.loads(json.dumps(network.to_dict()))) == network
        assert pickle.loads(pickle.dumps(network)) == network
        assert hash(network) == hash(ReactionNetwork.from_dict(network.to_dict()))


def test_printing_shows_all_there_is() -> None:
    text = str(sir(events=[Event("import", "time >= 2", {"R": "R + 1"})], population=None))
    for part in ("S + I -> 2 I", "beta*S*I/N", "gamma*I", "N = 100", "when time >= 2"):
        assert part in text
    assert "conserved   S + I + R" in str(sir())


def test_a_network_cannot_be_changed() -> None:
    network = sir()
    with pytest.raises(AttributeError):
        network.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        network.parameters["beta"] = 3.0  # type: ignore[index]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"species": {}}, "no species"),
        ({"species": {"S": -1, "I": 5, "R": 0}}, "whole number"),
        ({"species": {"S": 1.5, "I": 5, "R": 0}}, "whole number"),
        ({"species": {"S": "Q", "I": 5, "R": 0}}, "'Q' is no parameter (have: beta, gamma, N)"),
        ({"species": {"time": 1, "I": 5, "R": 0}}, "reserved"),
        ({"species": {"S S": 1, "I": 5, "R": 0}}, "not a name"),
        ({"parameters": {"beta": 1, "gamma": float("nan"), "N": 1}}, "finite"),
        ({"parameters": {"beta": 1, "gamma": 1, "N": 1, "S": 2}}, "used twice"),
        ({"reactions": [Reaction("r", "S -> Q", "beta")]}, "unknown species 'Q'"),
        ({"reactions": [Reaction("r", "S -> I", "betta*S")]}, "did you mean 'beta'"),
        ({"reactions": [Reaction("r", "S -> I", "S < 3")]}, "not a number"),
        ({"reactions": [Reaction("r", "S - I", "beta")]}, "'->'"),
        ({"reactions": [Reaction("r", "S <-> I", "beta")]}, "as two"),
        ({"reactions": [Reaction("r", "S -> 2.5 I", "beta")]}, "cannot read"),
        (
            {"reactions": [Reaction("r", "S->I", "beta"), Reaction("r", "I->S", "beta")]},
            "two reactions or two events are named 'r'",
        ),
        ({"rules": {"a": "b", "b": "a"}}, "circle"),
        ({"rules": {"a": "S < 1"}}, "condition"),
        ({"events": [Event("e", "S + 1", {"S": 1})]}, "not a condition"),
        ({"events": [Event("e", "S > 1", {"Q": 1})]}, "unknown species or parameter"),
        ({"population": "M"}, "unknown parameter"),
        ({"start": "somewhere"}, "unknown start 'somewhere'"),
        ({"until": 0.0}, "until"),
        ({"until": "5"}, "until"),
        ({"points": 2.5}, "points"),
        ({"species": {"S": float("inf"), "I": 5, "R": 0}}, "inf is not finite"),
        ({"reactions": [Reaction("r", "S -> I", float("nan"))]}, "nan is not finite"),
        ({"reactions": [Reaction("r", None, "beta")]}, "'->'"),
    ],
)
def test_bad_networks_are_refused_with_the_reason(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        sir(**changes)
    assert says in str(caught.value)


def test_an_event_that_assigns_a_species_breaks_its_laws() -> None:
    closed = {"population": None, "start": "fixed"}
    assert [str(law) for law in sir(**closed).conservation_laws] == ["S + I + R"]
    event = Event("e", "time > 1", {"R": "0"})
    assert sir(**closed, events=[event]).conservation_laws == ()


def test_each_conserved_moiety_has_one_law() -> None:
    changes = [{"E": -1, "S": -1, "ES": 1}, {"E": 1, "ES": -1, "P": 1}]
    laws = conservation_laws(("E", "S", "ES", "P"), changes)
    assert len(laws) == 2
    for law in laws:
        for change in changes:
            assert sum(w * change.get(name, 0) for name, w in law.coefficients.items()) == 0


@given(
    st.lists(st.dictionaries(st.sampled_from("ABCDE"), st.integers(-3, 3), max_size=5), max_size=6)
)
def test_laws_are_a_basis_of_what_is_conserved(changes: list[dict[str, int]]) -> None:
    import numpy as np

    laws = conservation_laws(tuple("ABCDE"), changes)
    matrix = np.array(
        [[change.get(name, 0) for name in "ABCDE"] for change in changes] or [[0] * 5]
    )
    vectors = np.array([[law.coefficients.get(n, 0) for n in "ABCDE"] for law in laws]).reshape(
        -1, 5
    )
    assert not (vectors @ matrix.T).any()
    assert len(laws) == 5 - np.linalg.matrix_rank(matrix)
    assert np.linalg.matrix_rank(vectors) == len(laws) if laws else True


def test_the_representation_is_one_short_line() -> None:
    assert repr(models.sir()) == "ReactionNetwork('sir': S, I, R; 3 parameters, 2 reactions)"
    ring = [Reaction(f"r{i}", f"A{i} -> 0", 1) for i in range(100)]
    large = ReactionNetwork("ring", {f"A{i}": 1 for i in range(100)}, {}, ring)
    assert len(repr(large)) < 120
    assert len(large._repr_html_()) < 10_000


def test_notebooks_show_a_table_with_text_escaped() -> None:
    network = ReactionNetwork(
        "<b>", {"X": 1}, {"k": 2}, [Reaction("<script>", "X -> 0", "k*X")], title="a & b"
    )
    shown = network._repr_html_()
    assert "<th style" in shown
    assert "X -&gt; 0 at k*X" in shown
    assert "&lt;script&gt;" in shown
    assert "a &amp; b" in shown
    assert "<script>" not in shown


def test_descriptions_that_call_the_number_of_grid_times_steps_are_read() -> None:
    described = models.sir().to_dict()
    described["steps"] = described.pop("points")
    assert ReactionNetwork.from_dict(described) == models.sir()
