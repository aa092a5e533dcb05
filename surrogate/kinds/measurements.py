"""Observed numbers as random ones: the same observations, made of other samples.

The statements of observed data (`kinds.observed`) are observations, `76 ~ poisson(0.9*I(3))`, and
equations, `I(3) = 76`. At a sample x each is a random number again: one drawn from the distribution
at x, or the value at x. So observations of known truths are simulated, and what was observed is
compared with what would have been.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import torch
from torch import Generator, Tensor

from constraints import Formula, Layout, Program, compiled, conjunction
from constraints.ast.families import Observation, normal, observe
from constraints.ast.formulas import And, Compare
from constraints.ast.terms import Const, Term

Signals = Mapping[str, Tensor]


class Measurements:
    """The numbers y_1, ..., y_m that statements are about, each Observation or equation."""

    def __init__(self, statements: Mapping[str, Formula], layout: Layout) -> None:
        self.statements, self.layout = dict(statements), layout
        self.parts = {name: measured(each) for name, each in statements.items()}
        self.every = [each for own in self.parts.values() for each in own]

    @property
    def noisy(self) -> list[Observation]:
        """Those that have a distribution."""
        return [each for each in self.every if isinstance(each, Observation)]

    @property
    def exact(self) -> list[Compare]:
        """Those that are met exactly."""
        return [each for each in self.every if isinstance(each, Compare)]

    @property
    def stated(self) -> Tensor:
        """The numbers (m,) that are stated."""
        return torch.tensor([_number(each) for each in self.every], dtype=torch.float64)

    @property
    def simulates(self) -> bool:
        """Whether all distributions can be drawn from."""
        return all(each.distribution.family.sampler is not None for each in self.noisy)

    @cached_property
    def _program(self) -> Program:
        return values_program([_observation(each) for each in self.every], self.layout)

    def parameters(self, signals: Signals) -> list[Tensor]:
        """Parameters (N, J) of each distribution at samples; of an equation the value first."""
        return self._program.parameters(signals)

    def drawn(self, signals: Signals, generator: Generator) -> Tensor:
        """The numbers (N, m) that would be observed of samples."""
        columns = [
            each.distribution.family.draw(generator, *at.unbind(1))
            if isinstance(each, Observation)
            else at[:, 0]
            for each, at in zip(self.every, self.parameters(signals), strict=True)
        ]
        return torch.stack(columns, 1)

    def observed(
        self, parameters: Sequence[Tensor], sample: int, generator: Generator
    ) -> dict[str, Formula]:
        """The statements about one sample, by the parameters at all of them."""
        at = iter(parameters)
        return {
            name: conjunction(*(_restated(each, next(at)[sample], generator) for each in own))
            for name, own in self.parts.items()
        }


def measured(formula: Formula) -> list[Observation | Compare]:
    """The single observations and equations of a statement."""
    own = formula.parts if isinstance(formula, And) else (formula,)
    return [each for each in own if isinstance(each, (Observation, Compare))]


def values_program(observations: Sequence[Observation], layout: Layout) -> Program:
    """The program whose `parameters` are the values of the terms within observations."""
    return compiled(conjunction(*observations), layout)


def as_observation(term: Term) -> Observation:
    """An observation whose first parameter is the term."""
    return observe(0.0, normal(term, 1.0))


def _observation(each: Observation | Compare) -> Observation:
    return each if isinstance(each, Observation) else as_observation(each.terms[0])


def _number(each: Observation | Compare) -> float:
    if isinstance(each, Observation):
        return each.value
    right = each.terms[-1]
    assert isinstance(right, Const)
    return right.value


def _restated(
    each: Observation | Compare, at: Tensor, generator: Generator
) -> Observation | Compare:
    if isinstance(each, Observation):
        number = float(each.distribution.family.draw(generator, *at))
        return Observation(number, each.distribution)
    return each.terms[0].equals(float(at[0]), each.tolerance)
