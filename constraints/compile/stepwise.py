"""Stepwise formulas: conjunctions whose parts each depend on the state at one step.

Such a formula is a predicate on the state for each step, on which an exact solver of a Markov
process can condition: S(0) = 95 and (forall t: I(t) <= 20) and (S(25) = 30 or S(25) = 40).
Observations that each depend on the state at one step are likelihoods of it.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.families import Observation
from constraints.ast.lowered import Atom
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Count, Name, Step
from constraints.ast.walk import descend
from constraints.compile.program import Program

Predicate = Callable[[dict[str, Tensor]], Tensor]  # values (n,) by signal to verdicts (n,)
Density = Callable[[dict[str, Tensor]], Tensor]  # values (n,) by signal to densities (n,)


def stepwise(program: Program) -> dict[int, list[Predicate]] | None:
    """The predicates of each step that has any; None if a part depends on several steps."""
    whole = program.lowered
    found: dict[int, list[Predicate]] = {}
    for part in whole.parts if isinstance(whole, f.And) else (whole,):
        steps = _steps(part)
        if steps is None:
            return None
        for step in steps:
            found.setdefault(step, []).append(_predicate(program, part))
    return found


def stepwise_likelihoods(program: Program) -> dict[int, list[Density]] | None:
    """The likelihoods of the observations of each step that has any; None if one depends on
    several steps."""
    found: dict[int, list[Density]] = {}
    for node in program.observations:
        steps = _steps(node)
        if steps is None:
            return None
        found.setdefault(steps[0], []).append(_density(program, node))
    return found


def _density(program: Program, node: Observation) -> Density:
    own = program.restated(f.TRUE, observations=(node,))

    def density(values: dict[str, Tensor]) -> Tensor:
        return own.log_density(_constant_series(own, values))[:, 0].exp()

    return density


def _constant_series(program: Program, values: dict[str, Tensor]) -> dict[str, Tensor]:
    steps = program.layout.steps
    return {
        name: torch.as_tensor(values[name])[:, None].expand(-1, steps) for name in program.needed
    }


def _predicate(program: Program, part: f.Formula) -> Predicate:
    """The predicate of a part that depends on one state: its verdict on a constant series."""
    own = program.restated(part, observations=())

    def holds(values: dict[str, Tensor]) -> Tensor:
        return own.verdict(_constant_series(own, values))

    return holds


def _steps(part: f.Formula) -> list[int] | None:
    """The steps at which a part reads series, each on its own; None if it relates several."""
    if isinstance(part, f.Quantifier) and part.kind == "forall":
        first, last = part.first, part.last
        if part.region is not None or first is None or last is None:
            return None
        if first.base is not None or last.base is not None:
            return None
        if _reads(part.body) != {(part.variable, 0)}:
            return None
        return list(range(first.offset, last.offset + 1))
    reads = _reads(part)
    if reads is None or len(reads) != 1:
        return None
    base, offset = next(iter(reads))
    return None if base is not None else [offset]


def _reads(node: Node) -> set[tuple[str | None, int]] | None:
    """The steps at which series are read, as (variable, offset); None for other terms."""
    found: set[tuple[str | None, int]] = set()
    for each in descend(node):
        match each:
            case Aggregate() | Count() | f.Quantifier() | f.Until():
                return None
            case At(Name(), Step(base, offset, None)):
                found.add((base, offset))
            case At() | Apply("delta" | "cumsum"):
                return None
            case Atom(terms=terms) if any(isinstance(term, Step) for term in terms):
                return None  # it depends on the number of the step
    return found
