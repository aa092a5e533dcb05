"""Formulas about latents: the verdict is that of the values they stand for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from constraints import FormulaError, Layout, LogProbabilistic, Signal, compiled
from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, LatentColumn
from constraints.ast.walk import descend
from constraints.gaussian.equations import MAX_EQUATION_WIDTH, split
from constraints.gaussian.expectation import log_expectation
from constraints.gaussian.latent import to_latents

HARD = LogProbabilistic(k=math.inf, half_unit=True)


@dataclass(frozen=True)
class Stairs:
    """Whole numbers: Q(z) = round(2 z) within [least, most], smoothed to 2 z."""

    least: float = -6.0
    most: float = 6.0

    @property
    def low(self) -> float:
        return (self.least - 0.5) / 2

    @property
    def high(self) -> float:
        return (self.most + 0.5) / 2

    span = 2.0

    def inverse(self, z: Tensor) -> Tensor:
        return (2 * z).clamp(self.least, self.most)

    def finished(self, z: Tensor) -> Tensor:
        return (2 * z).round().clamp(self.least, self.most)

    def interval(
        self, low: float, high: float, open_low: bool, open_high: bool
    ) -> tuple[float, float]:
        steps = range(int(self.least), int(self.most) + 1)
        met = [y for y in steps if (y > low if open_low else y >= low)]
        met = [y for y in met if (y < high if open_high else y <= high)]
        return ((met[0] - 0.5) / 2, (met[-1] + 0.5) / 2) if met else (1.0, 0.0)


@dataclass(frozen=True)
class Smooth:
    """Reals: Q(z) = z³ + z, unbounded."""

    low = -math.inf
    high = math.inf
    span = 2.0

    def inverse(self, z: Tensor) -> Tensor:
        return z**3 + z

    finished = inverse

    def interval(
        self, low: float, high: float, open_low: bool, open_high: bool
    ) -> tuple[float, float]:
        return self.solved(low), self.solved(high)

    def solved(self, y: float) -> float:
        if math.isinf(y):
            return y
        low, high = -20.0, 20.0
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if middle**3 + middle < y else (low, middle)
        return high


WARPS = {"age": Stairs(), "height": Smooth()}
TABLE = Layout(
    (
        Signal("age", "column", integer=True, low=-6, high=6, span=4),
        Signal("height", "column", span=10),
        Signal("plain", "column"),
        Signal("race", "category", (3,), categories=("a", "b", "c")),
    ),
    instances=2,
)
DEPTH = 3


def latents(seed: int, count: int = 60) -> Tensor:
    """Flat latents (B, D) of both instances."""
    draw = torch.Generator().manual_seed(seed)
    numbers = 3 * torch.randn(count, 2, 3, generator=draw, dtype=torch.float64)
    codes = torch.randint(0, 3, (count, 2), generator=draw)
    words = torch.nn.functional.one_hot(codes, 3).double()
    return torch.cat([numbers, words], 2).reshape(count, 12)


def values(flat: Tensor) -> dict[str, Tensor]:
    """The finished values that latents stand for."""
    found = TABLE.split(flat)
    return {name: WARPS[name].finished(x) if name in WARPS else x for name, x in found.items()}


def comparison(random: Random) -> str:
    which = random.choice([1, 2])
    age, height, plain = (f"{name}[{which}]" for name in ("age", "height", "plain"))
    relation = random.choice(["<=", "<", ">=", ">", "=", "!="])
    bound = random.randint(-8, 8) / random.choice([1, 2])
    inequality = random.choice(["<=", "<", ">=", ">"])
    return random.choice(
        [
            f"{age} {relation} {bound}",
            f"{random.choice([-2, -1, 0.5, 3])} * {age} {relation} {bound}",
            f"{random.choice([-2, 0.25])} * {height} {inequality} {bound + 0.123}",
            f"{height} = {bound} +- 2",
            f"{age} in {{{random.randint(-7, 7)}, {random.randint(-7, 7)}}}",
            f"abs({age}) {inequality} {abs(bound)}",
            f"{age} not in [{bound - 3}, {bound}]",
            f"{plain} {inequality} {bound + 0.1}",
            f"race[{which}] {random.choice(['=', '!='])} {random.choice('abc')}",
            f"race[{which}] in {{{random.choice('abc')}, {random.choice('abc')}}}",
        ]
    )


def drawn(random: Random, depth: int) -> str:
    if depth == 0 or random.random() < 0.2:
        return comparison(random)
    word = random.choice(["and", "or", "implies", "iff", "xor", "not"])
    if word == "not":
        return f"not ({drawn(random, depth - 1)})"
    return f"({drawn(random, depth - 1)}) {word} ({drawn(random, depth - 1)})"


@settings(max_examples=150)
@given(st.integers(0, 2**20))
def test_the_verdict_on_latents_is_that_on_values(seed: int) -> None:
    text = drawn(Random(seed), DEPTH)
    program = compiled(text, TABLE)
    flat = latents(seed)
    found = to_latents(program, WARPS)
    assert not any(isinstance(node, LatentColumn) for node in descend(found.lowered))
    assert torch.equal(found.verdict(flat), program.verdict(values(flat))), text


@settings(max_examples=60)
@given(st.integers(0, 2**20))
def test_expectations_under_latents_are_finite(seed: int) -> None:
    random = Random(seed)
    text = drawn(random, 2)
    text += f" and age[1] + height[2] * plain[1] <= {random.randint(-3, 3)}"
    mean = latents(seed, 9).requires_grad_()
    covariance = 0.3 * torch.eye(12, dtype=torch.float64)
    for soft, semantics in ((False, HARD), (True, LogProbabilistic(k=2.0))):
        value = log_expectation(
            to_latents(compiled(text, TABLE), WARPS, soft=soft), mean, covariance, semantics
        )
        assert (value <= 1e-6).all()
        assert torch.isfinite(value).all()
        if value.requires_grad:  # which a constant does not
            (slope,) = torch.autograd.grad(value.sum(), mean)
            assert torch.isfinite(slope).all()


def test_sums_of_columns_read_each_through_its_map() -> None:
    program = compiled("height[1] >= height[2] + 1 and log(age[1] + 9) <= 2", TABLE)
    smooth = {"height": WARPS["height"]}
    flat = latents(1, 500)
    found = to_latents(program, smooth)
    named = {node.signal.name for node in descend(found.lowered) if isinstance(node, LatentColumn)}
    assert named == {"height"}
    mapped = {**TABLE.split(flat), "height": smooth["height"].finished(TABLE.split(flat)["height"])}
    assert torch.equal(found.verdict(flat), program.verdict(mapped))
    assert found.needed == program.needed


def test_the_expectation_is_the_probability_of_the_interval() -> None:
    program = to_latents(compiled("2 <= age[1] < 4", TABLE), WARPS)
    mean = torch.zeros(1, 12, dtype=torch.float64)
    found = log_expectation(program, mean, torch.eye(12, dtype=torch.float64), HARD)
    ends = torch.tensor([0.75, 1.75], dtype=torch.float64)  # of what is rounded to 2 or 3
    exact = torch.special.ndtr(ends).diff().log()
    torch.testing.assert_close(found, exact, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("age[1] <= 6", f.TRUE),
        ("age[1] > 6", f.FALSE),
        ("age[1] = 2.5", f.FALSE),
        ("age[1] > 4 and age[1] < 5", f.FALSE),
        ("age[1] <= 6 or height[1] <= 3", f.TRUE),
    ],
)
def test_tautologies_and_contradictions_become_constants(text: str, constant: f.Formula) -> None:
    assert to_latents(compiled(text, TABLE), WARPS).lowered == constant


@pytest.mark.parametrize("none", [(math.inf, math.inf), (0.5, 0.5), (-math.inf, -math.inf)])
def test_an_empty_interval_of_latents_becomes_false(none: tuple[float, float]) -> None:
    class Empty(Stairs):
        def interval(self, *_: float) -> tuple[float, float]:
            return none

    for text in ("age[1] = 3", "age[1] > 3"):
        assert to_latents(compiled(text, TABLE), {"age": Empty()}).lowered == f.FALSE


def test_an_interval_up_to_the_end_of_the_map_is_unbounded() -> None:
    (atom,) = (to_latents(compiled("age[2] >= 5", TABLE), WARPS).lowered,)
    assert isinstance(atom, Atom)
    assert (atom.low, atom.high) == (2.25, math.inf)


def test_soft_atoms_keep_their_units() -> None:
    text = "(age[1] >= 3) {k=2} and height[1] <= 4"
    program = compiled(text, TABLE)
    mixed = to_latents(program, WARPS)
    assert [isinstance(part.terms[0], LatentColumn) for part in mixed.lowered.parts] == [
        True,
        False,
    ]  # type: ignore[attr-defined]
    flat = latents(3)
    logic = LogProbabilistic(k=1.5)
    tensors = TABLE.split(flat)
    through = {k: WARPS[k].inverse(x) if k in WARPS else x for k, x in tensors.items()}
    soft = to_latents(program, WARPS, soft=True)
    torch.testing.assert_close(soft(flat, logic), program(through, logic))


def test_narrow_intervals_are_equations() -> None:
    program = to_latents(compiled("height[1] = 2 and age[2] = 3 and plain[1] <= 1", TABLE), WARPS)
    equations, rest = split(program)
    assert len(equations) == 1  # a step of the staircase is wider than a share of its span
    assert MAX_EQUATION_WIDTH * Stairs.span < 0.5
    smooth = Smooth()
    slack = 1e-3 * 10  # of the span
    torch.testing.assert_close(
        torch.stack([equations.low[0], equations.high[0]]),
        torch.tensor([smooth.solved(2 - slack), smooth.solved(2 + slack)], dtype=torch.float64),
    )
    assert equations.rows[0].nonzero().tolist() == [[1]]
    assert rest is not None
    assert rest.needed == {"age", "plain"}


def test_equalities_without_tolerance_have_a_width() -> None:
    program = to_latents(compiled("height[1] = 2 +- 0 or plain[1] >= 1", TABLE), WARPS)
    value = log_expectation(program, latents(2, 5), torch.eye(12, dtype=torch.float64), HARD)
    assert torch.isfinite(value).all()


def test_only_columns_have_latents() -> None:
    program = compiled("race[1] = a", TABLE)
    with pytest.raises(FormulaError, match="race is a category, and only columns have latents"):
        to_latents(program, {"race": Smooth()})
    with pytest.raises(FormulaError, match="unknown column 'hight'; did you mean 'height'"):
        to_latents(program, {"hight": Smooth()})
