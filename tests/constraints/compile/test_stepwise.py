"""Formulas about single steps."""

from __future__ import annotations

import pytest
import torch
from scipy import stats

from constraints import Layout, compiled, parse
from constraints.compile.stepwise import known_by_step
from constraints.layout.signals import Signal

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
    found, _, paths = known_by_step(program)
    assert not paths
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
    assert known_by_step(compiled(parse(text), LAYOUT))[2]


def test_an_observation_is_a_likelihood_of_the_state_at_its_step() -> None:
    program = compiled(parse("S(0) = 3 and 7 ~ poisson(0.5*I(2)) and 1 ~ normal(S(2), 2)"), LAYOUT)
    predicates, found, paths = known_by_step(program)
    assert not paths
    assert {step: len(those) for step, those in found.items()} == {2: 2}
    values = {name: torch.tensor([4.0, 20.0], dtype=torch.float64) for name in LAYOUT.names}
    expected = stats.poisson([2.0, 10.0]).pmf(7)
    torch.testing.assert_close(found[2][0](values), torch.from_numpy(expected))
    assert set(predicates) == {0}  # the statement alone


def test_an_observation_of_several_steps_is_not_stepwise() -> None:
    program = compiled(parse("7 ~ poisson(I(2) + I(3))"), LAYOUT)
    _, likelihoods, paths = known_by_step(program)
    assert not likelihoods
    assert set(paths) == {3}


def test_parts_are_known_at_the_last_step_that_they_read() -> None:
    layout = Layout((*LAYOUT.signals, Signal("rho", "column")), times=LAYOUT.times)
    text = "S(1) = 3 and S(2) + I(4) <= 6 and rho >= 0.5 and 7 ~ poisson(rho*I(3))"
    program = compiled(parse(f"{text} and 2 ~ poisson(S(0) - S(2))"), layout)
    predicates, likelihoods, paths = known_by_step(program)
    assert (set(predicates), set(likelihoods)) == ({1}, {3})
    assert {step: len(those) for step, those in paths.items()} == {4: 1, 0: 1, 2: 1}
    series = torch.tensor([[5.0, 3, 3, 3, 2, 0], [5, 3, 1, 1, 1, 0]], dtype=torch.float64)
    rho = torch.tensor([0.4, 0.6], dtype=torch.float64)
    past = {"S": series[:, :5], "I": torch.full((2, 5), 4.0, dtype=torch.float64), "rho": rho}
    assert paths[4][0](past).tolist() == [0.0, 1.0]
    assert paths[0][0]({**past, "S": series[:, :1]}).tolist() == [0.0, 1.0]
    now = {name: each if each.ndim == 1 else each[:, 3] for name, each in past.items()}
    expected = stats.poisson([1.6, 2.4]).pmf(7)
    torch.testing.assert_close(likelihoods[3][0](now), torch.from_numpy(expected))
