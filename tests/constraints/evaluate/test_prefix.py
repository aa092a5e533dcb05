"""Monitoring of prefixes against all continuations on small grids, and at the last step."""

from __future__ import annotations

from itertools import product
from random import Random

import pytest
import torch
from torch import Tensor

from constraints import Layout, Signal, compiled
from constraints.compile.prefixes import levels, prefix_margins
from tests.constraints.random_formulas import NAMES, random_formula

STEPS = 4
BOUNDS = (-1.0, 2.0)
LAYOUT = Layout.series(NAMES, STEPS, low=BOUNDS[0], high=BOUNDS[1])
COUNTS = Layout.series("I S", STEPS, integer=True, low=0.0, high=3.0)
REACHES = [("inside", None), ("clip", "clip"), ("beyond", "weak"), ("beyond", "strong")]


def repeated(prefix: dict[str, Tensor], many: int) -> dict[str, Tensor]:
    return {name: value.repeat(many, 1) for name, value in prefix.items()}


@pytest.mark.parametrize(("reach", "end"), REACHES)
def test_no_continuation_leaves_the_interval(reach: str, end: str | None) -> None:
    generator, random = torch.Generator().manual_seed(1), Random(2)
    for _ in range(60):
        formula = random_formula(random, 3, steps=STEPS, reach=reach)
        program = compiled(formula, LAYOUT, end)
        known = random.randrange(STEPS)
        values = torch.rand(3, 200, STEPS, generator=generator, dtype=torch.float64)
        values = BOUNDS[0] + (BOUNDS[1] - BOUNDS[0]) * values
        values[:, 100:] = values[:, 100:].round()  # corners, and ties
        values[:, :, : known + 1] = values[:, :1, : known + 1]
        data = dict(zip(NAMES, values, strict=True))
        achieved, optimistic = prefix_margins(program, data, known)
        margins, verdicts = program.robustness(data), program.verdict(data)
        assert (achieved <= margins + 1e-9).all(), formula
        assert (margins <= optimistic + 1e-9).all(), formula
        level = levels(program, data, known)
        assert verdicts[level == torch.inf].all(), formula
        assert not verdicts[level == -torch.inf].any(), formula


@pytest.mark.parametrize(("reach", "end"), REACHES)
def test_at_the_last_step_nothing_is_open(reach: str, end: str | None) -> None:
    generator, random = torch.Generator().manual_seed(3), Random(4)
    for _ in range(60):
        program = compiled(random_formula(random, 3, steps=STEPS, reach=reach), LAYOUT, end)
        values = torch.randn(3, 20, STEPS, generator=generator, dtype=torch.float64)
        data = dict(zip(NAMES, values, strict=True))
        margins = program.robustness(data)
        for end_ in prefix_margins(program, data, STEPS - 1):
            torch.testing.assert_close(end_, margins)
        level = levels(program, data, STEPS - 1)
        assert torch.isinf(level).all()
        assert ((level > 0) == program.verdict(data)).all()


@pytest.mark.parametrize(
    "text",
    [
        "exists t: I(t) >= 2",
        "forall t: I(t) <= 2",
        "I < 3 until S < 1",
        "I(3) = 2",
        "argmax(I) <= 1",
        "argmin(I) >= 2",
        "count(I > 1) >= 2",
        "sum(I) <= 4 and S(3) >= 1",
        "I(3) * I(0) >= 3",
        "median(I) >= 2",
        "max(delta(I)) >= 2",
        "cumsum(I)(2) >= 5",
    ],
)
@pytest.mark.parametrize("known", range(STEPS))
def test_the_ends_are_met_where_each_value_is_read_once(text: str, known: int) -> None:
    program = compiled(text, COUNTS)
    some = torch.tensor([[1, 2, 0, 3, 2, 1, 3, 0], [0, 1, 3, 2, 2, 1, 0, 3]])
    past = some.reshape(2, 2, STEPS).double()
    every = torch.tensor(list(product(range(4), repeat=STEPS - 1 - known))).double()
    for i, s in product(past[0], past[1]):
        several = "S" in program.needed
        ends = list(product(every, every)) if several and known > 0 else [(e, e) for e in every]
        rows = [(torch.cat([i[: known + 1], a]), torch.cat([s[: known + 1], b])) for a, b in ends]
        data = {"I": torch.stack([a for a, _ in rows]), "S": torch.stack([b for _, b in rows])}
        (achieved, optimistic), margins = (
            prefix_margins(program, data, known),
            program.robustness(data),
        )
        assert (achieved <= margins).all()
        assert (optimistic >= margins).all()
        if not several and "argm" not in text and "count" not in text:
            assert achieved[0] == margins.min(), (text, known)
            assert optimistic[0] == margins.max(), (text, known)
        verdicts, level = program.verdict(data), levels(program, data, known)
        if not several:  # decided as soon as all continuations agree
            assert (level[0] == torch.inf) == bool(verdicts.all()), (text, known)
            assert (level[0] == -torch.inf) == (not verdicts.any()), (text, known)


def test_the_past_counts_by_its_truth_and_the_future_by_its_forecast() -> None:
    data = {"I": torch.tensor([[0.0, 2.0, 1.0, 1.0]]), "S": torch.zeros(1, STEPS)}

    def level(text: str) -> float:
        return float(levels(compiled(text, COUNTS), data, 1))

    assert level("exists t: I(t) >= 3") == -2.0  # not -1: the past peak does not count
    assert level("forall t: I(t) <= 2") == 1.0
    assert level("exists t: I(t) >= 2") == torch.inf
    assert level("forall t: I(t) <= 1") == -torch.inf


def test_what_part_of_the_next_step_has_shown_is_known() -> None:
    program = compiled("I(2) >= 3", COUNTS)
    data = {"I": torch.tensor([[0.0, 1.0, 3.0, 0.0]])}
    assert float(levels(program, data, 1)) == 0.0
    assert float(levels(program, data, 1, {"I": torch.tensor([3.0])})) == torch.inf


def test_parameters_are_known() -> None:
    rate = Signal("beta", "column")
    layout = Layout((*COUNTS.signals, rate), COUNTS.times)
    data = {"I": torch.ones(2, STEPS), "beta": torch.tensor([1.0, 3.0])}
    found = levels(compiled("beta >= 2 and I(3) >= 1", layout), data, 0)
    assert found.tolist() == [-torch.inf, 0.0]
