"""Intervals of values under laws, against all states of small networks of whole numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from constraints.physics.linear_laws import LinearLaw
from surrogate.kinds.support import Support
from surrogate.kinds.trajectories.conservation import Relation

SIZE = 4  # counts are from 0 to SIZE
State = dict[str, int]
SPECIES = ("A", "B", "C")


def states() -> list[State]:
    every = product(range(SIZE + 1), repeat=len(SPECIES))
    return [dict(zip(SPECIES, values, strict=True)) for values in every]


def holds(law: LinearLaw, now: State, before: State | None) -> bool:
    if before is None:
        if law.before or law.when_zero is not None:
            return True
        before = {}
    if law.when_zero is not None and before[law.when_zero] != 0:
        return True
    value = law.constant + sum(weight * now[name] for name, weight in law.now.items())
    return value + sum(weight * before[name] for name, weight in law.before.items()) >= -1e-9


def support(laws: Sequence[LinearLaw], relations: Sequence[Relation] = ()) -> Support:
    dependent = {relation.dependent for relation in relations}
    order = [name for name in SPECIES if name not in dependent]
    ranges = {name: (0.0, float(SIZE)) for name in SPECIES}
    return Support(order, laws, relations, ranges, frozenset(SPECIES))


def interval(found: Support, name: str, now: State, before: State | None) -> tuple[int, int]:
    def tensors(values: State) -> dict[str, torch.Tensor]:
        return {k: torch.tensor([float(v)], dtype=torch.float64) for k, v in values.items()}

    like = torch.zeros(1, dtype=torch.float64)
    low, high = found.interval(
        name, tensors(now), None if before is None else tensors(before), like
    )
    return int(low), int(high)


def assert_exact(
    found: Support, possible: list[State], before: State | None, order: Sequence[str]
) -> None:
    """At every prefix of a lawful state, the interval is from the least to the greatest value that
    lawful states with this prefix have."""
    for j, name in enumerate(order):
        prefixes = {tuple(state[k] for k in order[:j]) for state in possible}
        for prefix in prefixes:
            now = dict(zip(order[:j], prefix, strict=True))
            values = {
                state[name] for state in possible if all(state[k] == v for k, v in now.items())
            }
            assert interval(found, name, now, before) == (min(values), max(values)), (name, now)


@st.composite
def difference_laws(draw: st.DrawFn) -> LinearLaw:
    """x_i(t) - x_j(t) or ±x_i(t) alone, with one value of the step before and a constant."""
    first, second = draw(st.permutations(SPECIES))[:2]
    now = draw(st.sampled_from([{first: 1.0, second: -1.0}, {first: 1.0}, {first: -1.0}]))
    before = draw(st.sampled_from([{}, {first: 1.0}, {first: -1.0}, {second: 1.0}]))
    when = draw(st.sampled_from([None, None, *SPECIES]))
    return LinearLaw(now, before, float(draw(st.integers(-2, 4))), when)


@settings(max_examples=60)
@given(st.lists(difference_laws(), max_size=4), st.sampled_from(states()), st.booleans())
def test_every_end_can_be_completed_and_nothing_lawful_is_excluded(
    laws: list[LinearLaw], before: State, first: bool
) -> None:
    past = None if first else before
    possible = [s for s in states() if all(holds(law, s, past) for law in laws)]
    assume(possible)
    assert_exact(support(laws), possible, past, SPECIES)


@settings(max_examples=60)
@given(st.lists(difference_laws(), max_size=3), st.sampled_from(states()), st.integers(0, 8))
def test_a_dependent_species_finds_its_place(
    laws: list[LinearLaw], before: State, total: int
) -> None:
    """C = total - A - B has a range of its own, which A and B must respect."""
    relation = Relation("C", {"A": 1.0, "B": 1.0}, float(total))
    possible = [
        s
        for s in states()
        if sum(s.values()) == total and all(holds(law, s, before) for law in laws)
    ]
    assume(possible)
    found = support(laws, [relation])
    for j, name in enumerate(("A", "B")):
        for state in possible:
            now = {k: state[k] for k in ("A", "B")[:j]}
            low, high = interval(found, name, now, before)
            assert low <= state[name] <= high  # nothing lawful is excluded
    if not laws:
        assert_exact(found, possible, before, ("A", "B"))


def test_a_total_of_each_trajectory_bounds_its_species() -> None:
    found = support([], [Relation("C", {"A": 1.0, "B": 1.0}, "N")])
    assert interval(found, "A", {"N": 3}, None) == (0, 3)
    assert interval(found, "B", {"N": 3, "A": 1}, None) == (0, 2)
    assert interval(found, "A", {"N": 11}, None) == (3, 4)  # B and C take 8 at most


def test_a_law_with_a_condition_binds_only_at_zero() -> None:
    """B(t-1) = 0 implies A(t) = A(t-1)."""
    law = LinearLaw({"A": 1.0}, {"A": -1.0}, 0.0, "B")
    found = support([law, law.opposite()])
    assert interval(found, "A", {}, {"A": 3, "B": 0, "C": 1}) == (3, 3)
    assert interval(found, "A", {}, {"A": 3, "B": 1, "C": 1}) == (0, SIZE)
    assert interval(found, "A", {}, None) == (0, SIZE)


def test_laws_about_the_step_before_do_not_bind_at_the_first() -> None:
    found = support([LinearLaw({"A": -1.0}, {"A": 1.0})])  # A never grows
    assert interval(found, "A", {}, None) == (0, SIZE)
    assert interval(found, "A", {}, {"A": 2, "B": 0, "C": 0}) == (0, 2)


@pytest.mark.parametrize("weight", [0.1, 1 / 3, 7.0])
def test_scaling_a_law_changes_nothing(weight: float) -> None:
    """Bounds of whole numbers do not slip by rounding: A + B <= 3."""
    found = support([LinearLaw({"A": -weight, "B": -weight}, {}, 3 * weight)])
    assert interval(found, "A", {}, None) == (0, 3)
    assert interval(found, "B", {"A": 2}, None) == (0, 1)


def test_a_law_under_a_condition_bounds_the_variable_drawn_last() -> None:
    """2 <= A implies C = 1."""
    given = LinearLaw({"A": 1.0}, constant=-2.0)
    law = LinearLaw({"C": 1.0}, constant=-1.0, given=given)
    found = support([law, law.opposite()])
    for a in range(SIZE + 1):
        expected = (1, 1) if a >= 2 else (0, SIZE)
        assert interval(found, "C", {"A": a, "B": 0}, {"A": 0, "B": 0, "C": 0}) == expected
        assert interval(found, "C", {"A": a, "B": 0}, None) == expected
    assert interval(found, "A", {}, None) == (0, SIZE)


def test_a_condition_on_a_later_variable_does_not_bind() -> None:
    law = LinearLaw({"A": 1.0}, constant=-3.0, given=LinearLaw({"C": 1.0}, constant=-2.0))
    assert interval(support([law]), "A", {}, None) == (0, SIZE)


def test_a_condition_on_a_dependent_variable_is_one_on_the_others() -> None:
    """B = 4 - A; 3 <= B implies C = 0."""
    relation = Relation("B", {"A": 1.0}, 4.0)
    law = LinearLaw({"C": -1.0}, given=LinearLaw({"B": 1.0}, constant=-3.0))
    found = support([law], [relation])
    for a in range(SIZE + 1):
        assert interval(found, "C", {"A": a}, None) == ((0, 0) if a <= 1 else (0, SIZE))
