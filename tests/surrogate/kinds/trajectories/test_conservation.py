"""Relations between species: chosen well, and exact."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.kinds.trajectories.conservation import checked_laws, solve, written

SIR = {"S": 1, "I": 1, "R": 1}


def test_the_last_species_follows_from_the_others() -> None:
    (relation,) = solve([SIR], "SIR", "SIR")
    assert (relation.dependent, relation.weights) == ("R", {"S": 1, "I": 1})
    assert str(relation) == "S + I + R"


def test_one_that_is_asked_for_keeps_its_channel() -> None:
    (relation,) = solve([SIR], "SIR", "SIR", keep={"R"})
    assert relation.dependent == "I"
    (relation,) = solve([SIR], "SIR", "SIR", keep=SIR)
    assert relation.dependent == "R"


def test_a_count_depends_only_with_weight_one() -> None:
    (relation,) = solve([{"P": 1, "P2": 2}], ["P", "P2"], ["P", "P2"])
    assert (relation.dependent, relation.weights) == ("P", {"P2": 2})
    (relation,) = solve([{"A": -3, "B": 6}], "AB", "AB")  # A = 2 B
    assert (relation.dependent, relation.weights) == ("A", {"B": -2})
    assert solve([{"A": 2, "B": 3}], "AB", "AB") == ()
    (relation,) = solve([{"A": 2, "B": 3}], "AB", "")
    assert (relation.dependent, relation.weights["A"]) == ("B", pytest.approx(2 / 3))
    (relation,) = solve([{"A": 2, "B": 3}], "AB", "B")  # a real number may depend on a count
    assert relation.dependent == "A"


def test_laws_that_repeat_each_other_or_lack_species() -> None:
    doubled = {name: 2 * weight for name, weight in SIR.items()}
    assert len(solve([SIR, doubled, {"S": 1, "X": 1}], "SIR", "SIR")) == 1


@given(st.data())
@settings(max_examples=150)
def test_whole_counts_restore_whole_counts(data: st.DataObject) -> None:
    """Whatever the laws: dependent species are exact integer functions of the others."""
    species = "ABCDEF"[: data.draw(st.integers(1, 6))]
    weight = st.integers(-3, 3).filter(bool)
    law = st.dictionaries(st.sampled_from(species), weight, min_size=1)
    laws = data.draw(st.lists(law, max_size=4))
    relations = solve(laws, species, species)
    dependent = {relation.dependent for relation in relations}
    assert len(dependent) == len(relations) <= len(laws)
    numbers = st.lists(st.integers(-50, 50), min_size=3, max_size=3)
    state = {name: np.array(data.draw(numbers), np.int64)[None] for name in species}
    for relation in relations:
        assert not dependent & set(relation.weights)
        assert all(isinstance(weight, int) for weight in relation.weights.values())
        back = relation.restore(state, relation.sum(state))
        assert np.array_equal(back, state[relation.dependent])
    # the relations span nothing but the laws
    rows = [{**r.weights, r.dependent: 1} for r in relations]
    matrix = [[each.get(name, 0) for name in species] for each in [*laws, *rows]] or [[0]]
    rank = np.linalg.matrix_rank(np.array(matrix[: len(laws)] or [[0]]))
    assert np.linalg.matrix_rank(np.array(matrix)) == rank


def test_laws_as_text() -> None:
    assert written({"P": 1, "D": 2, "E": -1}) == "P + 2*D - E"
    assert written({"P": -1}) == "-P"


@pytest.mark.parametrize("laws", ["S", 3, [3], [{}], [{"S": 0}], [{"S": "1"}], [{1: 1}]])
def test_what_is_no_law(laws: Any) -> None:
    with pytest.raises(ModelError, match="conservation law"):
        checked_laws(laws)
