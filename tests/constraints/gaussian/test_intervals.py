"""Hard statements about one sum at a belief: exact, however they are joined."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from constraints import Layout, LogProbabilistic, Signal, compiled
from constraints.ast import formulas as f
from constraints.gaussian.expectation import log_expectation

LAYOUT = Layout((Signal("x", "column"), Signal("n", "column", integer=True)))
HARD = LogProbabilistic(k=math.inf, half_unit=True)
COVARIANCE = torch.tensor([[2.0, 0.3], [0.3, 1.0]], dtype=torch.float64)
MEAN = torch.tensor([[1.0, 2.0], [-4.0, 0.0], [6.0, -3.0]], dtype=torch.float64)


def belief(text: str, mean: torch.Tensor = MEAN) -> torch.Tensor:
    return log_expectation(compiled(text, LAYOUT), mean, COVARIANCE, HARD)


def drawn(random: Random, count: int) -> list[str]:
    made = []
    for _ in range(count):
        low = random.randint(-6, 6) / 2
        made.append(
            random.choice(
                [
                    f"x <= {low}",
                    f"x > {low}",
                    f"x in [{low}, {low + random.randint(1, 6)}]",
                    f"not x in [{low}, {low + 1}]",
                    f"x != {low} +- 0.5",
                    f"abs(x) >= {abs(low)}",
                ]
            )
        )
    return made


@settings(max_examples=100)
@given(st.integers(0, 2**20), st.integers(1, 4))
def test_probabilities_of_unions_are_exact(seed: int, count: int) -> None:
    """The measure of a union of intervals, by what verdicts say between all of their ends."""
    text = " or ".join(drawn(Random(seed), count))
    ends = np.concatenate([[-60], np.arange(-48, 49) / 4, [60]])
    middles = torch.tensor((ends[1:] + ends[:-1]) / 2)
    met = compiled(text, LAYOUT).verdict({"x": middles, "n": 0 * middles}).numpy()
    for mean, found in zip(MEAN[:, 0].tolist(), belief(text).tolist(), strict=True):
        law = norm(mean, math.sqrt(2))
        share = np.diff(law.cdf(ends)) if mean <= 0 else -np.diff(law.sf(ends))
        assert found == pytest.approx(math.log(share[met].sum()), abs=2e-5)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x <= 5 or x <= 7", "x <= 7"),
        ("x in [1, 3] or x in [2, 5]", "x in [1, 5]"),
        ("x >= 1 and x >= 2 and x <= 4 and x in [0, 3]", "x in [2, 3]"),
        ("n >= 2 and n > 2", "n >= 3"),
        ("n in {1, 2, 3}", "n in [1, 3]"),
        ("2 * x <= 4 or 2 * x in [3, 6]", "x <= 3"),
        ("x + n >= 3 and x + n >= 1", "x + n >= 3"),
    ],
)
def test_hard_atoms_about_one_sum_are_joined_as_intervals(text: str, same: str) -> None:
    torch.testing.assert_close(belief(text), belief(same), atol=1e-9, rtol=1e-6)


def test_a_tautology_does_not_change_a_conjunction() -> None:
    assert belief("x <= 5 or x >= 2").tolist() == [0, 0, 0]
    torch.testing.assert_close(belief("(x <= 5 or x >= 2) and n <= 1"), belief("n <= 1"))


def test_probabilities_of_disjoint_intervals_add_up() -> None:
    parts = [belief("x in [5, 6]"), belief("x in [8, 9]")]
    torch.testing.assert_close(belief("x in [5, 6] or x in [8, 9]"), torch.logaddexp(*parts))
    both = belief("x in [5, 6] or x in [8, 9] or n >= 2")
    p, q = torch.logaddexp(*parts).exp(), belief("n >= 2").exp()
    torch.testing.assert_close(both, (p + q - p * q).log())


def test_statements_about_different_sums_and_soft_ones_stay_as_they_are() -> None:
    for text in ("x <= 5 or n <= 7", "(x <= 1) {k=2} or x >= 3", "x >= 1 and n >= 2"):
        program = compiled(text, LAYOUT)
        assert isinstance(program.lowered, (f.And, f.Or))
        one, other = (part for part in program.lowered.parts)
        values = []
        for part in (one, other):
            single = compiled("x <= 0", LAYOUT)
            single.lowered, single.needed, single.cache = part, {"x", "n"}, {}
            values.append(log_expectation(single, MEAN, COVARIANCE, HARD))
        logic = HARD.both if isinstance(program.lowered, f.And) else HARD.either
        joined = logic.join(values)
        torch.testing.assert_close(log_expectation(program, MEAN, COVARIANCE, HARD), joined)


def test_a_contradiction_is_as_unlikely_as_before() -> None:
    found = belief("x <= 1 and x >= 3")
    torch.testing.assert_close(found, belief("x <= 1") + belief("x >= 3"))


@pytest.mark.parametrize("scale", [0.0, 1e-12, 1.0, 1e6])
def test_gradients_of_unions_are_finite(scale: float) -> None:
    program = compiled("(x in [5, 6] or x in [8, 9] or x = 11 +- 0) and n in {1, 4}", LAYOUT)
    mean = (100 * MEAN).requires_grad_()
    value = log_expectation(program, mean, scale * COVARIANCE, HARD)
    (slope,) = torch.autograd.grad(value.clamp(min=-1e40).sum(), mean)
    assert torch.isfinite(slope).all()
