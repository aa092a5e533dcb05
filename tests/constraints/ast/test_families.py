"""Families of distributions: densities against scipy, domains, a toy family from outside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from constraints import (
    Family,
    FamilyParameter,
    FormulaError,
    Layout,
    binomial,
    compiled,
    conjunction,
    families,
    normal,
    observe,
    parse,
    poisson,
    signals,
)
from constraints.ast.families import POSITIVE, REAL, factored, has_verdict, register, unregister
from constraints.ast.formulas import TRUE

x, I = signals("x I")

SCIPY: list[tuple[str, float, list[float], Any]] = [
    ("poisson", 76, [70.5], stats.poisson(70.5).logpmf),
    ("poisson", 0, [0.0], stats.poisson(0).logpmf),
    ("poisson", 3, [0.0], stats.poisson(0).logpmf),
    ("poisson", 1e6, [1.01e6], stats.poisson(1.01e6).logpmf),
    ("normal", 12.5, [10, 0.5], stats.norm(10, 0.5).logpdf),
    ("lognormal", 2.5, [0.3, 0.7], stats.lognorm(0.7, scale=math.exp(0.3)).logpdf),
    ("binomial", 7, [20, 0.3], stats.binom(20, 0.3).logpmf),
    ("binomial", 0, [20, 0.0], stats.binom(20, 0.0).logpmf),
    ("binomial", 20, [20, 1.0], stats.binom(20, 1.0).logpmf),
    ("binomial", 19, [20, 1.0], stats.binom(20, 1.0).logpmf),
    ("binomial", 21, [20, 0.9], stats.binom(20, 0.9).logpmf),
    ("negative_binomial", 9, [4.0, 2.5], stats.nbinom(2.5, 2.5 / 6.5).logpmf),
    ("negative_binomial", 0, [0.0, 2.5], stats.nbinom(2.5, 1.0).logpmf),
    ("negative_binomial", 4, [4.0, 1e12], stats.poisson(4.0).logpmf),
    ("student_t", 3.0, [4, 1, 2], stats.t(4, 1, 2).logpdf),
    ("student_t", 3.0, [1e12, 1, 2], stats.norm(1, 2).logpdf),
    ("uniform", 3.0, [1, 5], stats.uniform(1, 4).logpdf),
    ("uniform", 6.0, [1, 5], stats.uniform(1, 4).logpdf),
]


@pytest.mark.parametrize(("name", "y", "parameters", "reference"), SCIPY)
def test_log_densities_are_those_of_scipy(
    name: str, y: float, parameters: list[float], reference: Any
) -> None:
    own = [torch.tensor([each], dtype=torch.float64) for each in parameters]
    found = families()[name].log_density(y, *own)
    with np.errstate(divide="ignore"):
        expected = float(reference(y))
    np.testing.assert_allclose(float(found), expected, rtol=1e-9, atol=1e-9)


NUMBER = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, 0.5, -0.0, 1e-300, math.nan, math.inf])


@given(st.sampled_from(sorted(families())), st.integers(0, 1000), st.lists(NUMBER, min_size=3))
@settings(max_examples=300)
def test_densities_and_gradients_are_never_nan(name: str, y: int, numbers: list[float]) -> None:
    family = families()[name]
    count = len(family.parameters)
    y = y + 1  # positive: in every support
    own = [torch.tensor([n], dtype=torch.float64, requires_grad=True) for n in numbers[:count]]
    found = family.log_density(y, *own)
    assert not bool(found.isnan().any())
    assert float(found.detach()) < math.inf
    for gradient in torch.autograd.grad(found.sum(), own, allow_unused=True):
        assert gradient is None or not bool(gradient.isnan().any())


@pytest.mark.parametrize("name", sorted(families()))
def test_gradients_are_derivatives(name: str) -> None:
    family = families()[name]
    inner = {"p": 0.4, "n": 9.3, "low": -1.0, "high": 12.0}
    own = [
        torch.tensor([inner.get(each.name, 2.5)], dtype=torch.float64, requires_grad=True)
        for each in family.parameters
    ]
    assert torch.autograd.gradcheck(lambda *given: family.log_density(4, *given), own)


def test_python_builds_what_text_parses_to() -> None:
    assert observe(76, poisson(0.9 * I[3])) == parse("76 ~ poisson(0.9*I(3))")
    both = observe(12.5, normal(x[3], 0.5)) & (I[0] <= 3) & observe(3, binomial(I[2], 0.5))
    assert both == parse("12.5 ~ normal(x(3), 0.5) and I(0) <= 3 and 3 ~ binomial(I(2), 0.5)")


def test_a_conjunction_is_split_into_statement_and_observations() -> None:
    seen = observe(1, poisson(I[3]))
    stated = I[0] <= 3
    assert factored(seen & stated) == (stated, (seen,))
    assert factored(seen) == (TRUE, (seen,))
    assert factored(stated) == (stated, ())
    assert not has_verdict(seen)
    assert has_verdict(seen & stated)
    assert has_verdict(conjunction(TRUE, TRUE))


@pytest.mark.parametrize(
    "build",
    [
        lambda seen: ~seen,
        lambda seen: seen | (I[0] <= 3),
        lambda seen: (I[0] <= 3).implies(seen),
        lambda seen: seen.given(weight=2.0),
        lambda seen: (seen & (I[0] <= 3)) | (I[0] <= 3),
        lambda seen: seen.until(I[0] <= 3),
    ],
)
def test_observations_stand_only_under_and(build: Any) -> None:
    with pytest.raises(FormulaError, match="has a likelihood and no verdict"):
        build(observe(1, poisson(I[3])))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: observe(1.5, poisson(I[3])), "1.5 cannot be observed under poisson"),
        (lambda: observe(-1, binomial(9, I[3])), "-1 cannot be observed under binomial"),
        (lambda: observe(1, normal(I[3], -2)), "the sd of normal is -2; .* numbers > 0"),
        (lambda: observe(1, binomial(2.5, 0.1)), "the n of binomial is 2.5; .* whole"),
        (lambda: observe(1, poisson(1, 2)), r"poisson has 1 parameter, not 2; write poisson\(mean"),
        (lambda: observe(1, I[3]), r"I\(3\) is not a distribution"),
        (lambda: observe(I[0], poisson(3)), r"I\(0\) is not a plain number"),
    ],
)
def test_what_has_no_distribution_is_refused(build: Any, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        build()


@pytest.fixture
def laplace() -> Iterator[Family]:
    def density(y: float, middle: Tensor, scale: Tensor) -> Tensor:
        return -(y - middle).abs() / scale - torch.log(2 * scale)

    parameters = FamilyParameter("middle", REAL), FamilyParameter("scale", POSITIVE)
    yield register(Family("laplace", "a number with double exponential error", parameters, density))
    unregister("laplace")


def test_a_family_is_one_entry(laplace: Family) -> None:
    formula = observe(3.5, laplace(x[1], 2))
    assert parse(str(formula)) == formula
    batch = {"x": torch.tensor([[0.0, 1.5]], dtype=torch.float64)}
    found = compiled(formula, Layout.series("x", 2)).log_density(batch)
    np.testing.assert_allclose(found, [[stats.laplace(1.5, 2).logpdf(3.5)]])
    with pytest.raises(FormulaError, match="has a family laplace already"):
        register(laplace)
