"""Cases of a formula: together they hold where it does, with missing values too."""

from __future__ import annotations

from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import one_hot

from constraints import Layout, Program, Signal, compiled
from constraints.ast import formulas as f
from constraints.compile.cases import MAX_CASES, cases
from constraints.gaussian.equations import all_conditions
from tests.constraints.random_formulas import NAMES, STEPS, formulas

SERIES = Layout.series(" ".join(NAMES), STEPS)
COUNTS = Layout.series("S I", 4, integer=True)
TABLE = Layout(
    (
        Signal("age", "column", optional=True),
        Signal("pay", "column", optional=True, integer=True),
        Signal("city", "category", (3,), categories=("Bath", "Bonn", "Brno")),
    )
)
COMPARISONS = (
    "age >= 1",
    "age < 2",
    "age + pay <= 3",
    "pay = 2",
    "pay != 1",
    'city = "Bath"',
    'city != "Bonn"',
    'city in {"Bonn", "Brno"}',
)


def rows(count: int = 400) -> dict[str, torch.Tensor]:
    """Rows of the table, a quarter of the numbers missing."""
    source = torch.Generator().manual_seed(1)

    def whole(below: int) -> torch.Tensor:
        return torch.randint(0, below, (count,), generator=source).double()

    def gaps(y: torch.Tensor) -> torch.Tensor:
        return torch.where(whole(4) == 0, torch.nan, y)

    city = one_hot(whole(3).long(), 3).double()
    return {"age": gaps(whole(30) / 10), "pay": gaps(whole(4)), "city": city}


def sentence(random: Random, depth: int) -> str:
    """A random Boolean formula about the table."""
    if depth == 0:
        return random.choice(COMPARISONS)
    word = random.choice(["and", "or", "implies", "iff", "xor", "not"])
    left, right = (sentence(random, depth - 1) for _ in range(2))
    return f"not ({left})" if word == "not" else f"({left}) {word} ({right})"


def holds(found: list[Program], data: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.stack([case.verdict(data) for case in found]).any(0)


def words(found: list[Program]) -> list[set[str]]:
    """The comparisons of each case."""
    lowered = [case.lowered for case in found]
    parts = [each.parts if isinstance(each, f.And) else (each,) for each in lowered]
    return [{part.readable() for part in each} for each in parts]  # type: ignore[attr-defined]


@given(st.randoms(use_true_random=False), st.integers(1, 3))
def test_some_case_holds_where_the_formula_does_with_missing_values_too(
    random: Random, depth: int
) -> None:
    whole = compiled(sentence(random, depth), TABLE)
    found = cases(whole)
    data = rows()
    assert len(found) <= MAX_CASES
    assert torch.equal(holds(found, data), whole.verdict(data))


@given(formulas(annotated=False), st.integers(1, MAX_CASES))
@settings(max_examples=200)
def test_cases_of_formulas_about_series_hold_together_where_these_do(
    formula: f.Formula, limit: int
) -> None:
    whole = compiled(formula, SERIES)
    found = cases(whole, limit)
    y = 2 * torch.randn(60, SERIES.size, generator=torch.Generator().manual_seed(2)).double()
    data = dict(SERIES.split(y))
    assert len(found) <= limit
    assert torch.equal(holds(found, data), whole.verdict(data))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'age >= 40 and (city != "Bath" or pay = 2)',
            [{"40 <= age", 'city != "Bath"'}, {"40 <= age", "pay = 2"}],
        ),
        ("age >= 4 implies pay <= 2", [{"age < 4"}, {"pay <= 2"}]),
        ("age >= 1 or (age >= 1 and pay = 2)", [{"1 <= age"}]),
        ('city = "Bath" or city = "Bonn"', [{'city in {"Bath", "Bonn"}'}]),
        ("age >= 4 xor pay = 2", [{"4 <= age", "pay < 2"}, {"4 <= age", "2 < pay"}]),
    ],
)
def test_cases_are_conjunctions_of_comparisons(text: str, expected: list[set[str]]) -> None:
    found = words(cases(compiled(text, TABLE)))
    assert found[: len(expected)] == expected
    assert len(found) == len(expected) + ("xor" in text)


def test_exists_is_a_case_for_each_step_and_forall_all_choices() -> None:
    exists = cases(compiled("exists t: I(t) >= 3 and S(t) = 0", COUNTS))
    assert len(exists) == 4
    assert all(all_conditions(case) for case in exists)
    assert len(cases(compiled("forall t: I(t) >= 3 or S(t) = 0", COUNTS))) == 16
    assert len(cases(compiled("forall t: I(t) >= 3 and S(t) = 0", COUNTS))) == 1


def test_what_has_too_many_cases_stays_whole_beside_the_rest() -> None:
    text = "(S(0) = 1 or S(1) = 1) and (forall t: I(t) >= 3 or S(t) = 0)"
    whole = compiled(text, COUNTS)
    assert len(cases(whole, 32)) == 32
    found = cases(whole, 8)
    assert len(found) == 2
    every = torch.randint(0, 4, (2_000, 8), generator=torch.Generator().manual_seed(0)).double()
    data = dict(COUNTS.split(every))
    assert torch.equal(holds(found, data), whole.verdict(data))
