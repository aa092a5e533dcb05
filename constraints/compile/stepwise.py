"""Stepwise formulas: conjunctions whose parts each depend on the state at one step.

Such a formula is a predicate on the state for each step, on which an exact solver of a Markov
process can condition: S(0) = 95 and (forall t: I(t) <= 20) and (S(25) = 30 or S(25) = 40).
Observations that each depend on the state at one step are likelihoods of it.

What relates several steps is known at the last of them: there a particle filter can weigh by it.
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
from constraints.compile.readings import places

Predicate = Callable[[dict[str, Tensor]], Tensor]  # values (n,) by signal to verdicts (n,)
Density = Callable[[dict[str, Tensor]], Tensor]  # values (n,) by signal to densities (n,)


def known_by_step(
    program: Program,
) -> tuple[dict[int, list[Predicate]], dict[int, list[Density]], dict[int, list[Density]]]:
    """All parts of a program by the step at which they are known: predicates of the state there,
    likelihoods of the state there, and factors of the series up to there, (n, step + 1)."""
    whole = program.lowered
    predicates: dict[int, list[Predicate]] = {}
    likelihoods: dict[int, list[Density]] = {}
    paths: dict[int, list[Density]] = {}
    for part in whole.parts if isinstance(whole, f.And) else (whole,):
        if part == f.TRUE:
            continue
        steps = _steps(part)
        for step in steps or ():
            predicates.setdefault(step, []).append(_predicate(program, part))
        if steps is None:
            paths.setdefault(_last(program, part), []).append(_indicator(program, part))
    for node in program.observations:
        steps = _steps(node)
        found = paths if steps is None else likelihoods
        step = _last(program, node) if steps is None else steps[0]
        found.setdefault(step, []).append(_density(program, node))
    return predicates, likelihoods, paths


def related(program: Program) -> Program | None:
    """What relates several steps, as a program of its own; None if it holds observations."""
    if any(_steps(node) is None for node in program.observations):
        return None
    whole = program.lowered
    parts = whole.parts if isinstance(whole, f.And) else (whole,)
    return program.restated(
        f.conjunction(*(part for part in parts if part == f.TRUE or _steps(part) is None)),
        observations=(),
    )


def _last(program: Program, part: Node) -> int:
    """The last step that a part reads; 0 if it reads no series."""
    ends, place = list[tuple[int, int]](), 0
    for signal in program.layout.signals:
        ends.append((place, signal.size if signal.kind == "series" else 0))
        place += signal.size
    return max(
        (at - start for at in places(part, program.layout) for start, size in ends
         if start <= at < start + size),
        default=0,
    )  # fmt: skip


def _density(program: Program, node: Observation) -> Density:
    own = program.restated(f.TRUE, observations=(node,))

    def density(values: dict[str, Tensor]) -> Tensor:
        return own.log_density(whole_series(own, values))[:, 0].exp()

    return density


def whole_series(program: Program, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """Series that go on as they are, from a state (n,) or from the steps so far (n, k)."""
    steps, found = program.layout.steps, dict[str, Tensor]()
    for name in program.needed & values.keys():
        value = torch.as_tensor(values[name])
        signal = program.layout.find(name)
        if signal is not None and signal.kind == "series":
            past = value[:, None] if value.ndim == 1 else value
            rest = past[:, -1:].expand(-1, steps - past.shape[1])
            value = torch.cat([past, rest], 1)
        found[name] = value
    return found


def _predicate(program: Program, part: f.Formula) -> Predicate:
    """The predicate of a part that depends on one state: its verdict on a constant series."""
    own = program.restated(part, observations=())

    def holds(values: dict[str, Tensor]) -> Tensor:
        return own.verdict(whole_series(own, values))

    return holds


def _indicator(program: Program, part: f.Formula) -> Density:
    holds = _predicate(program, part)
    return lambda values: holds(values).double()


def _steps(part: f.Formula) -> list[int] | None:
    """The steps at which a part reads series, each on its own; None if it relates several."""
    if isinstance(part, f.Quantifier) and part.kind == "forall":
        first, last = part.first, part.last
        if part.region is not None or first is None or last is None:
            return None
        if first.base is not None or last.base is not None:
            return None
        if reads(part.body) != {(part.variable, 0)}:
            return None
        return list(range(first.offset, last.offset + 1))
    found = reads(part)
    if found is None or len(found) != 1:
        return None
    base, offset = next(iter(found))
    return None if base is not None else [offset]


def reads(node: Node) -> set[tuple[str | None, int]] | None:
    """The steps at which series are read, as (variable, offset); None if the node reads windows, or
    depends on the number of a step."""
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
