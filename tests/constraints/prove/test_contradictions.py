"""What interval reasoning proves impossible, and that it proves nothing else."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import (
    FormulaError,
    ImpossibleError,
    Layout,
    Signal,
    bridge,
    compiled,
    parse,
)
from constraints.prove.contradictions import find, refuse_impossible

COUNTS = Layout.series("S I R", 30, integer=True, low=0, high=100, parameters={"N": 100})
REALS = Layout.series("x y", 8)
TABLE = Layout(
    (
        Signal("race", "category", (3,), categories=("White", "Black", "Other")),
        Signal("age", "column", integer=True, low=17, high=90),
        Signal("height", "column"),
    )
)
TOTAL = parse("forall t: S(t) + I(t) + R(t) = N")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("S25 = 300", ["S25 = 300", "S stays within [0, 100]"]),
        ("I(5) <= 3 and S(2) = 1 and I(5) >= 7", ["I(5) <= 3", "I(5) >= 7"]),
        ("I(3) > 3 and I(3) < 4", ["I(3) > 3", "I(3) < 4"]),
        ("I(3) = 2.5", ["I(3) = 2.5"]),
        ("max(I) <= 20 and (exists t: I(t) >= 30)", ["max(I) <= 20", "exists t: I(t) >= 30"]),
        ("sum(I, 0, 10) <= 300 and min(I) >= 40", ["sum(I, 0, 10) <= 300", "min(I) >= 40"]),
        ("not S(1) >= 0", ["not S(1) >= 0", "S stays within [0, 100]"]),
        ("false and S(1) = 2", ["false"]),
        (
            "abs(delta(S)(3)) <= 2 and S(2) = 5 and S(3) = 9",
            ["abs(delta(S)(3)) <= 2", "S(2) = 5", "S(3) = 9"],
        ),
        (
            "(forall t: I(t) <= 20) and (S(3) = 101 or I(3) = 30)",
            ["forall t: I(t) <= 20", "S(3) = 101 or I(3) = 30", "S stays within [0, 100]"],
        ),
        (
            "(I(1) = 1 or I(1) = 2) and (I(1) = 3 or I(2) = 7) and I(2) <= 6",
            ["I(1) = 1 or I(1) = 2", "I(1) = 3 or I(2) = 7", "I(2) <= 6"],
        ),
        (
            "forall t in [0, 20]: exists u in [t, t + 5]: I(u) > 120",
            [
                "forall t in [0, 20]: exists u in [t, t + 5]: I(u) > 120",
                "I stays within [0, 100]",
            ],
        ),
        (
            "S(3) = 60 and I(3) = 60",
            [
                "S(3) = 60",
                "I(3) = 60",
                "forall t: S(t) + I(t) + R(t) = N",
                "R stays within [0, 100]",
            ],
        ),
        (
            "always(I >= 70) and eventually(S >= 31)",
            [
                "always(I >= 70)",
                "eventually(S >= 31)",
                "forall t: S(t) + I(t) + R(t) = N",
                "R stays within [0, 100]",
            ],
        ),
    ],
)
def test_contradictions_are_found_and_their_parts_named(text: str, named: list[str]) -> None:
    found = find(parse(text), COUNTS, [TOTAL])
    assert found is not None
    assert list(found.parts) == named
    for part in named:
        assert part in str(found)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("race = White and race = Black", 2),
        ("race != White and race != Black and race != Other", 3),
        ("race in {White, Black} and race = Other", 2),
        ("race not in {White, Black} and race in {White, Black}", 2),
        ("race not in {White, Black, Other}", 1),
        ("age > 89 and age < 90", 2),
        ("age >= 100", 2),
        ("height > 3 and height < 3", 2),
        ("height < 3 and height > 5", 2),
    ],
)
def test_contradictions_in_tables_are_found(text: str, parts: int) -> None:
    found = find(parse(text), TABLE)
    assert found is not None
    assert len(found.parts) == parts


def test_category_weights_are_zero_or_one() -> None:
    found = find(parse("race in {White, Black} and race = Other"), TABLE)
    assert found is not None
    told = '(race = "White") + (race = "Black") is at most 0, and must be 1 or more'
    assert found.reason == told
    assert find(parse("race in {White, Black, Other} and race != White"), TABLE) is None


@pytest.mark.parametrize(
    "text",
    [
        "forall t: I(t) <= 20",
        "S(0) = 95 and I(0) = 5 and S(25) = 30",
        "I(3) * I(3) <= -1",  # beyond interval reasoning
        "I(3) >= 3 and I(3) <= 3",
        "S(3) <= S(4) and S(4) <= S(3)",
        "(I < 5) until[0,20] (R > 10)",
        "count(I > 10) >= 3",
        "exists t: I(t) >= 100",
        "(S(1) = 5) {k=7} or false",
    ],
)
def test_satisfiable_formulas_are_not_refuted(text: str) -> None:
    assert find(parse(text), COUNTS, [TOTAL]) is None


def test_equalities_of_real_data_have_their_tolerance() -> None:
    layout = Layout.series("x", 3, low=0, high=10_000)  # whose default tolerance is 10
    assert find(parse("x(1) = 5 and x(1) = 20"), layout) is None
    assert find(parse("x(1) = 5 and x(1) = 30"), layout) is not None
    assert find(parse("x(1) = 5 +- 1 and x(1) = 8 +- 1"), layout) is not None


def test_contradictions_with_rules_for_the_end_of_the_grid() -> None:
    formula = parse("always[0,40](I >= 50) and I(29) <= 3")
    assert find(formula, COUNTS, end="clip") is not None
    assert find(formula, COUNTS, end="weak") is None
    with pytest.raises(FormulaError, match="past the last step"):
        find(formula, COUNTS)


def test_the_error_names_the_parts_and_the_reason() -> None:
    with pytest.raises(ImpossibleError) as raised:
        refuse_impossible(bridge("S0=95,I0=5,S25=300"), COUNTS, [TOTAL])
    assert str(raised.value).splitlines() == [
        "no data can satisfy these together:",
        "  S(25) = 300",
        "  S stays within [0, 100]",
        "S(25) is at most 100, and must be 300 or more; relax one of these parts",
    ]
    assert raised.value.value == ("S(25) = 300", "S stays within [0, 100]")


def test_several_instances_are_kept_apart() -> None:
    layout = Layout.columns("alcohol", instances=2)
    assert find(parse("alcohol[1] > 5 and alcohol[2] < 5"), layout) is None
    assert find(parse("alcohol[1] > 5 and alcohol[1] < 5"), layout) is not None


BOUNDS = st.tuples(
    st.sampled_from(
        ["x(1)", "x(2)", "y(1)", "x(1) + y(1)", "x(1) - x(2)", "max(x)", "sum(y, 0, 2)"]
    ),
    st.sampled_from(["<=", ">=", "<", ">"]),
    st.integers(-6, 6),
)


@settings(max_examples=150)
@given(st.lists(BOUNDS, min_size=1, max_size=6), st.booleans(), st.integers(0, 2**20))
def test_formulas_that_some_data_satisfy_are_never_refuted(
    bounds: list[tuple[str, str, int]], either: bool, seed: int
) -> None:
    """Soundness: where a contradiction is claimed, random data never satisfy the formula."""
    parts = [f"{term} {relation} {value}" for term, relation, value in bounds]
    text = " and ".join(parts)
    if either:
        text = f"({parts[0]} or x(3) >= 2) and {text}"
    formula = parse(text)
    if find(formula, REALS) is None:
        return
    draw = torch.Generator().manual_seed(seed)
    data = {name: torch.randint(-8, 9, (4000, 8), generator=draw).double() for name in "xy"}
    assert not compiled(formula, REALS).verdict(data).any()


@pytest.mark.parametrize(
    ("text", "impossible"),
    [
        ("always(A <= B) and always(A > B)", True),
        ("always(A <= B) and always(A >= B)", False),
        ("always(A - B <= 1) and always(2 * B - 2 * A <= -3)", True),
        ("always(A - B <= 1) and always(2 * B - 2 * A <= -2)", False),
        ("always(A - B < 1) and always(B - A <= -1)", True),
        ("always(A < B) and eventually(A > B + 1)", False),  # not proved
    ],
)
def test_unbounded_sums_of_the_same_readings_are_compared(text: str, impossible: bool) -> None:
    found = find(parse(text), Layout.series("A B", 4))
    assert (found is not None) == impossible
    assert found is None or len(found.parts) == 2
