"""A semantics from outside the package: the number of violated atoms, which add up."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from constraints import Layout, Semantics, compiled
from constraints.ast.lowered import Atom, HasClass
from constraints.evaluate.classes import Judged
from constraints.evaluate.folds import Min, Sum


@dataclass(frozen=True)
class Violations:
    """How many atoms are violated: a sum over `and` and `forall`, the least over the others."""

    margins = False
    both = forall = Sum()
    either = exists = Min()

    def atom(self, y: Tensor, atom: Atom) -> Tensor:
        return ((y < atom.low - atom.slack) | (y > atom.high + atom.slack)).to(y.dtype)

    def label(self, judged: Judged, node: HasClass) -> Tensor:
        return (judged.likeliest != node.positive).to(judged.own.dtype)

    def constant(self, truth: bool) -> float:
        return 0.0 if truth else 1.0

    def weighted(self, value: Tensor, weight: float) -> Tensor:
        return weight * value

    def observed(self, value: Tensor, log_density: Tensor) -> Tensor:
        return value

    def truth(self, value: Tensor) -> Tensor:
        return (value == 0).to(value.dtype)


def test_a_semantics_of_ones_own_evaluates_formulas() -> None:
    semantics: Semantics = Violations()
    I = torch.tensor([[1.0, 25.0, 30.0, 2.0], [0.0, 1.0, 2.0, 3.0]])
    layout = Layout.series("I", 4)

    def value(text: str) -> list[float]:
        found: list[float] = compiled(text, layout)({"I": I}, semantics).tolist()
        return found

    assert value("forall t: I(t) <= 20") == [2.0, 0.0]
    assert value("exists t: I(t) >= 28") == [0.0, 1.0]
    assert value("I(0) >= 1 and I(3) >= 5") == [1.0, 2.0]
    assert value("count(I <= 20) >= 3") == [1.0, 0.0]
    assert value("I(0) <= 1 until[0,2] I >= 2") == [0.0, 0.0]
