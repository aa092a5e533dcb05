"""Formulas about single steps."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from constraints import Layout, compiled, parse
from constraints.compile.stepwise import stepwise, stepwise_likelihoods

LAYOUT = Layout.series("S I", 6, integer=True)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("S(0) = 5 and S(3) = 2", {0, 3}),
        ("forall t: I(t) <= 2", set(range(6))),
        ("forall t in [2, 4]: S(t) + I(t) <= 5", {2, 3, 4}),
        ("S(2) = 1 or I(2) = 3", {2}),
        ("max(I) <= 3 and S(5) >= 1", set(range(6))),
        ("always(I <= 2)", set(range(6))),
    ],
)
def test_formulas_about_single_steps_are_predicates_on_states(text: str, steps: set[int]) -> None:
    """All predicates together are the formula."""
    program = compiled(parse(text), LAYOUT)
    found = stepwise(program)
    assert found is not None
    assert set(found) == steps
    x = torch.randint(0, 6, (3000, 2, 6), generator=torch.Generator().manual_seed(0)).double()
    x = torch.where(
        torch.rand(3000, 1, 1, generator=torch.Generator().manual_seed(1)) < 0.5, x, x % 3
    )
    signals = {"S": x[:, 0], "I": x[:, 1]}
    met = torch.ones(3000, dtype=torch.bool)
    for step, predicates in found.items():
        for predicate in predicates:
            met &= predicate({name: each[:, step] for name, each in signals.items()})
    assert torch.equal(met, program.verdict(signals))
    assert 0 < int(met.sum()) < 3000


@pytest.mark.parametrize(
    "text",
    [
        "S(1) = 5 or S(3) = 2",
        "forall t: I(t) <= S(t)  and (exists t: I(t) >= 3)",
        "forall t in [1, end]: I(t) >= I(t - 1)",
        "mean(I) <= 3",
        "argmax(I) <= 3",
        "S < 3 until I > 2",
    ],
)
def test_formulas_that_relate_steps_are_not_stepwise(text: str) -> None:
    assert stepwise(compiled(parse(text), LAYOUT)) is None


def test_an_observation_is_a_likelihood_of_the_state_at_its_step() -> None:
    program = compiled(parse("S(0) = 3 and 7 ~ poisson(0.5*I(2)) and 1 ~ normal(S(2), 2)"), LAYOUT)
    found = stepwise_likelihoods(program)
    assert found is not None
    assert {step: len(those) for step, those in found.items()} == {2: 2}
    values = {name: torch.tensor([4.0, 20.0], dtype=torch.float64) for name in LAYOUT.names}
    expected = stats.poisson([2.0, 10.0]).pmf(7)
    torch.testing.assert_close(found[2][0](values), torch.from_numpy(expected))
    assert set(stepwise(program) or {}) == {0}  # the statement alone


def test_an_observation_of_several_steps_is_not_stepwise() -> None:
    program = compiled(parse("7 ~ poisson(I(2) + I(3))"), LAYOUT)
    assert stepwise_likelihoods(program) is None
