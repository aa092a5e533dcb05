"""Programs with observations: what is stated has verdicts, what is observed has log-densities."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from constraints import (
    FormulaError,
    ImpossibleError,
    Layout,
    LogLTN,
    LogProbabilistic,
    Signal,
    compiled,
)
from constraints.compile.readings import places
from constraints.compile.sums import DependentSum, without_sums

STEPS = 6
LAYOUT = Layout(
    (
        Signal("S", "series", (STEPS,), integer=True),
        Signal("I", "series", (STEPS,), integer=True),
        Signal("rho", "column", ()),
    ),
    times=tuple(range(STEPS)),
    parameters={"N": 100.0},
)
OBSERVED = "7 ~ poisson(rho*I(3)) and 12.5 ~ normal(N/10 + delta(S)(2), 0.5)"


def data(samples: int = 50) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    series = {
        name: torch.randint(0, 20, (samples, STEPS), generator=generator).double() for name in "SI"
    }
    return series | {"rho": torch.rand(samples, generator=generator, dtype=torch.float64)}


def test_log_densities_are_those_of_the_terms() -> None:
    batch = data()
    found = compiled(OBSERVED, LAYOUT).log_density(batch)
    change = batch["S"][:, 2] - batch["S"][:, 1]
    expected = [
        stats.poisson(batch["rho"] * batch["I"][:, 3]).logpmf(7),
        stats.norm(10 + change, 0.5).logpdf(12.5),
    ]
    torch.testing.assert_close(found, torch.from_numpy(np.array(expected)).T)


def test_soft_values_add_log_densities_and_verdicts_do_not() -> None:
    batch = data()
    stated, both = (
        compiled("max(I) <= 15", LAYOUT),
        compiled(f"max(I) <= 15 and {OBSERVED}", LAYOUT),
    )
    for semantics in (LogProbabilistic(), LogProbabilistic(k=math.inf), LogLTN()):
        added = both.log_density(batch).sum(1)
        torch.testing.assert_close(both(batch, semantics), stated(batch, semantics) + added)
    assert torch.equal(both.verdict(batch), stated.verdict(batch))
    assert torch.equal(both.robustness(batch), stated.robustness(batch))
    assert both.has_verdict
    assert not compiled(OBSERVED, LAYOUT).has_verdict


def test_values_are_differentiable() -> None:
    batch = data(4)
    rho = batch["rho"].requires_grad_()
    program = compiled("7 ~ poisson(rho*I(3))", LAYOUT)
    (gradient,) = torch.autograd.grad(program(batch).sum(), rho)
    torch.testing.assert_close(gradient, 7 / rho - batch["I"][:, 3])


def test_a_missing_value_has_no_likelihood() -> None:
    signals = (Signal("age", "column", (), optional=True), Signal("size", "column", ()))
    batch = {"age": torch.tensor([1.0, math.nan]), "size": torch.tensor([1.0, 2.0])}
    found = compiled("3 ~ normal(age + size, 1)", Layout(signals)).log_density(batch)
    assert float(found[0, 0]) == pytest.approx(stats.norm(2, 1).logpdf(3))
    assert float(found[1, 0]) == -math.inf


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("3 ~ poisson(I(9))", FormulaError, "past the last step"),
        ("3 ~ poisson(I)", FormulaError, "does not say when"),
        ("3 ~ poisson(Q(1))", FormulaError, "unknown signal or function 'Q'"),
        ("3 ~ binomial(0.5*I(1), 0.3)", FormulaError, "not a whole number for all data"),
        ("3 ~ normal(I(1), N - 100)", FormulaError, "the sd of normal is 0"),
        ("3 ~ uniform(4, N)", ImpossibleError, "likelihood 0 for all data"),
        ("3 ~ uniform(2, 1)", FormulaError, "the lower end comes first"),
        ("3 ~ binomial(2, 0.5)", ImpossibleError, "likelihood 0 for all data"),
    ],
)
def test_what_means_nothing_for_the_data_is_refused(
    text: str, error: type[FormulaError], message: str
) -> None:
    with pytest.raises(error, match=message):
        compiled(text, LAYOUT)


def test_observations_are_rewritten_with_the_formula() -> None:
    columns = Layout.columns("a b total")
    own = compiled("3 ~ normal(total, 1) and total <= 5", columns)
    moved = without_sums(own, {"total": DependentSum({"a": 1.0, "b": 2.0}, 0.5)})
    assert moved.needed == {"a", "b"}
    values = {name: torch.tensor([each]) for name, each in (("a", 1.0), ("b", 0.5), ("total", 9.0))}
    assert float(moved.log_density(values)) == pytest.approx(stats.norm(2.5, 1).logpdf(3))


TERMS = [
    ("I(3)", {9}),
    ("rho", {12}),
    ("S(2) + rho*I(0)", {2, 6, 12}),
    ("delta(S)(2)", {1, 2}),
    ("cumsum(I)(2)", {6, 7, 8}),
    ("sum(I, 1, 3)", {7, 8, 9}),
    ("mean(I(3) - S)", {0, 1, 2, 3, 4, 5, 9}),
    ("max(delta(S), 2, 3)", {1, 2, 3}),
    ("count(I > S, 1, 2)", {1, 2, 7, 8}),
    ("count(exists t in [now, now + 1]: I(t) > 3, 0, 1)", {6, 7, 8}),
    ("count(I > 3 until S > 2, 4, 5)", set(range(12))),
    ("time(2)", set()),
]


@pytest.mark.parametrize(("text", "expected"), TERMS)
def test_places_are_the_numbers_that_a_term_reads(text: str, expected: set[int]) -> None:
    program = compiled(f"3 ~ normal({text}, 1)", LAYOUT)
    (node,) = program.observations
    found = places(node, LAYOUT)
    assert set(found) == expected
    flat = LAYOUT.flatten(data(20))
    before = program.log_density(flat)
    for place in set(range(LAYOUT.size)) - set(found):  # nothing else matters
        other = flat.clone()
        other[:, place] += 100
        torch.testing.assert_close(program.log_density(other), before)


def test_places_of_an_instance_come_after_those_of_the_one_before() -> None:
    both = replace(LAYOUT, instances=2)
    (node,) = compiled("3 ~ normal(I[2](3), 1)", both).observations
    assert places(node, both) == [LAYOUT.size + 9]
