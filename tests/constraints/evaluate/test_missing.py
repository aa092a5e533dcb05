"""Values that are missing: what is said of them is not met, nor its negation."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from constraints import (
    DataError,
    FormulaError,
    Layout,
    LogLTN,
    LogProbabilistic,
    Signal,
    compiled,
    explain,
    parse,
)
from constraints.gaussian.expectation import log_expectation
from constraints.gaussian.latent import to_latents
from tests.constraints.gaussian.test_latent import Smooth

NAN = math.nan
TABLE = Layout(
    (
        Signal("age", "column", optional=True),
        Signal("pay", "column", optional=True, integer=True),
        Signal("tall", "column"),
    )
)
ROWS = {
    "age": torch.tensor([NAN, 3.0, NAN, 1.0]),
    "pay": torch.tensor([2.0, NAN, NAN, 2.0]),
    "tall": torch.tensor([1.0, 1.0, 1.0, 1.0]),
}
SAID = [
    "age <= 5",
    "not age <= 5",
    "age = 3",
    "age != 3",
    "0 <= age <= 9",
    "age * tall <= 9",
    "age / tall >= -9",
    "abs(age - 2) <= 9",
    "log(age + 3) <= 9",
    "max(age, tall) >= 0",
    "exp(age) * tall >= 0",
    "age ^ 2 >= -1",
    "age = 3 +- 0.5",
]


@pytest.mark.parametrize("text", SAID)
def test_a_missing_value_satisfies_no_statement_about_it(text: str) -> None:
    program = compiled(text, TABLE)
    for row in (0, 2):
        assert not program.verdict(ROWS)[row] or "max" in text  # whose other argument is enough
        assert program.robustness(ROWS)[row] == -math.inf or "max" in text
        assert program(ROWS)[row] < -1e20 or "max" in text
    assert torch.isfinite(program.robustness(ROWS)[[1, 3]]).all()


@pytest.mark.parametrize("text", SAID)
@pytest.mark.parametrize("semantics", [LogProbabilistic(), LogLTN()])
def test_gradients_are_finite_with_missing_values(
    text: str, semantics: LogProbabilistic | LogLTN
) -> None:
    program = compiled(text, TABLE)
    data = {name: x.double().requires_grad_() for name, x in ROWS.items()}
    flat = TABLE.flatten(ROWS).double().requires_grad_()
    values = [
        program(data, semantics),
        program.robustness(data).clamp(min=-9),
        log_expectation(program, flat, torch.eye(3).double(), semantics),
        to_latents(program, {"age": Smooth()}, soft=True)(data, semantics),
    ]
    for value in values:
        inputs = [*data.values(), flat]
        for slope in torch.autograd.grad(value.sum(), inputs, allow_unused=True):
            assert slope is None or torch.isfinite(slope).all()
    assert all(torch.isfinite(value).all() for value in values)


@given(st.lists(st.sampled_from(SAID[:5]), min_size=1, max_size=3), st.booleans())
def test_a_formula_and_its_negation_are_never_both_met(texts: list[str], both: bool) -> None:
    joined = (" and " if both else " or ").join(f"({text})" for text in texts)
    yes, no = (
        compiled(joined, TABLE).verdict(ROWS),
        compiled(f"not ({joined})", TABLE).verdict(ROWS),
    )
    assert not (yes & no).any()
    known = ~ROWS["age"].isnan()
    assert torch.equal(yes | no, known)


def test_a_disjunction_holds_by_the_value_that_is_not_missing() -> None:
    program = compiled("age <= 5 or pay = 2", TABLE)
    assert program.verdict(ROWS).tolist() == [True, True, False, True]
    assert log_expectation(program, TABLE.flatten(ROWS), torch.eye(3))[2] < -1e20


def test_missing_latents_satisfy_no_statement() -> None:
    class Short(Smooth):
        low, high = -1.0, 1.0

    program = to_latents(compiled("age <= 100", TABLE), {"age": Short()})
    assert program.verdict(ROWS).tolist() == [False, True, False, True]
    hard = log_expectation(program, TABLE.flatten(ROWS), torch.eye(3), LogProbabilistic(k=math.inf))
    assert hard[[1, 3]].tolist() == [0, 0]
    assert (hard[[0, 2]] < -1e20).all()


def test_missing_values_in_quantifiers_and_several_instances() -> None:
    layout = Layout(
        (Signal("x", "series", (3,)), Signal("level", "column", optional=True)),
        times=(0.0, 1.0, 2.0),
        instances=2,
    )
    level = torch.tensor([[NAN, 1.0], [1.0, NAN]])
    data = {"x": torch.zeros(2, 2, 3), "level": level}
    for text in (
        "forall t: x[1](t) <= level[1]",
        "exists t: x[1](t) <= level[1]",
        "count(x[1] <= level[1]) >= 1",
        "mean(x[1] - level[1]) <= 0",
    ):
        program = compiled(text, layout)
        assert program.verdict(data).tolist() == [False, True]
        assert program.robustness(data)[0] < 0


def test_nan_in_a_required_column_is_rejected() -> None:
    with pytest.raises(DataError, match="tall holds NaN in 1 of 1 samples"):
        compiled("tall <= 3", TABLE).verdict({"tall": torch.tensor([NAN])})
    with pytest.raises(DataError, match="age holds infinite values in 1 of 2 samples"):
        compiled("age <= 3", TABLE).verdict({"age": torch.tensor([NAN, math.inf])})
    with pytest.raises(FormulaError, match="only a column may lack values"):
        Signal("race", "category", (2,), categories=("a", "b"), optional=True)
    with pytest.raises(FormulaError, match="or hold dates, not a series"):
        Signal("x", "series", (2,), dates=True)


def test_an_explanation_counts_missing_values_as_failures() -> None:
    found = explain(parse("age <= 5 and pay = 2"), TABLE, ROWS)
    assert [row.satisfied for row in found.rows] == [0.25, 0.5, 0.5]
    assert found.rows[0].to_dict()["margin_min"] is None
