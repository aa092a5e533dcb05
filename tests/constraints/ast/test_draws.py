"""Draws from the families of distributions, against scipy's distribution functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from constraints import Family, FamilyParameter, FormulaError, families
from constraints.ast.families import POSITIVE

DRAWS = 4_000
LAWS: list[tuple[str, list[float], Any]] = [
    ("poisson", [7.5], stats.poisson(7.5)),
    ("normal", [3.0, 0.5], stats.norm(3.0, 0.5)),
    ("lognormal", [0.3, 0.7], stats.lognorm(0.7, scale=math.exp(0.3))),
    ("binomial", [20, 0.3], stats.binom(20, 0.3)),
    ("negative_binomial", [4.0, 2.5], stats.nbinom(2.5, 2.5 / 6.5)),
    ("student_t", [4, 1, 2], stats.t(4, 1, 2)),
    ("uniform", [1, 5], stats.uniform(1, 4)),
]


@pytest.mark.parametrize(("name", "parameters", "law"), LAWS)
def test_draws_have_the_distribution_of_scipy(name: str, parameters: list[float], law: Any) -> None:
    family = families()[name]
    own = [torch.full((DRAWS,), float(each), dtype=torch.float64) for each in parameters]
    drawn = family.draw(torch.Generator().manual_seed(1), *own).numpy()
    assert drawn.dtype == np.float64
    grid = np.quantile(drawn, np.linspace(0.02, 0.98, 25))
    empirical = (drawn[:, None] <= grid).mean(0)
    assert np.abs(empirical - law.cdf(grid)).max() < 1.95 / math.sqrt(DRAWS)  # p = 0.001
    assert all(float(value) in family.support for value in drawn[:50])


def test_every_family_can_be_simulated() -> None:
    assert {name for name, *_ in LAWS} == set(families())


def test_draws_are_a_function_of_the_generator_and_broadcast() -> None:
    poisson = families()["poisson"]
    mean = torch.tensor([1.0, 1e6])
    one, two = (poisson.draw(torch.Generator().manual_seed(3), mean) for _ in range(2))
    assert torch.equal(one, two)
    normal = families()["normal"]
    made = normal.draw(torch.Generator(), torch.zeros(5), torch.tensor(2.0))
    assert made.shape == (5,)


def test_a_parameter_outside_its_domain_is_refused() -> None:
    binomial = families()["binomial"]
    with pytest.raises(FormulaError, match=r"the p of binomial is 1.5 in 1 of 2 places"):
        binomial.draw(torch.Generator(), torch.tensor([3.0, 3.0]), torch.tensor([0.5, 1.5]))


def test_a_family_without_a_sampler_says_so() -> None:
    silent = Family("silent", "", (FamilyParameter("sd", POSITIVE),), lambda y, sd: sd)
    with pytest.raises(FormulaError, match="silent cannot be simulated"):
        silent.draw(torch.Generator(), torch.ones(2))
