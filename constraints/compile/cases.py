"""Cases: a formula as a disjunction of conjunctions (disjunctive normal form), where these are few.

A sampler that can meet conjunctions only meets any formula case by case. Cases may overlap. Only
`or` and `exists` are divided, never a negation formed: a comparison with a missing value holds no
more than its opposite, so that `a or b` is not `a or (not a and b)`.
"""

from __future__ import annotations

import math
from itertools import product

from constraints.ast import formulas as f
from constraints.ast.terms import Step
from constraints.compile.program import Program
from constraints.compile.simplify import all_of, quantified

MAX_CASES = 32


def cases(program: Program, limit: int = MAX_CASES) -> list[Program]:
    """Conjunctions of which some holds if and only if the formula does, at most `limit`.

    What would make more of them stays undivided, as a part of each.
    """
    found = _Division(program, limit).cases(program.lowered)
    return [program.restated(case) for case in found] or [program]


class _Division:
    def __init__(self, program: Program, limit: int) -> None:
        self.program, self.limit = program, limit

    def cases(self, node: f.Formula) -> list[f.Formula]:
        """The cases of a lowered formula; none of one that never holds."""
        found = [node]
        match node:
            case f.Or(parts):
                found = [case for part in parts for case in self.cases(part)]
            case f.And(parts):
                found = self.conjunction(parts)
            case f.Quantifier():
                found = self.quantifier(node)
        found = _minimal(found)
        return found if len(found) <= self.limit else [node]

    def conjunction(self, parts: tuple[f.Formula, ...]) -> list[f.Formula]:
        """All ways to choose a case of each part; parts of most cases stay whole if need be."""
        choices = [self.cases(part) for part in parts]
        while math.prod(map(len, choices)) > self.limit:
            i = max(range(len(parts)), key=lambda i: len(choices[i]))
            choices[i] = [parts[i]]
        return [all_of(chosen) for chosen in product(*choices)]

    def quantifier(self, node: f.Quantifier) -> list[f.Formula]:
        """`exists` is a disjunction over its steps, `forall` a conjunction."""
        steps, inner = self.program.steps_of(node), self.cases(node.body)
        if steps is None or (node.kind == "forall" and len(inner) == 1):
            return [node]
        exists = node.kind == "exists"
        count = len(steps) * len(inner) if exists else len(inner) ** len(steps)
        if count > self.limit:
            return [node]

        def at(t: int) -> list[f.Formula]:
            here = Step(None, t)
            return [quantified("forall", node.variable, here, here, case, None) for case in inner]

        if exists:
            return [case for t in steps for case in at(t)]
        return [all_of(chosen) for chosen in product(*map(at, steps))]


def _minimal(found: list[f.Formula]) -> list[f.Formula]:
    """Without cases that never hold, that are repeated, or that another one contains."""
    parts = {
        case: frozenset(case.parts if isinstance(case, f.And) else (case,))
        for case in found
        if case != f.FALSE
    }
    return [case for case, own in parts.items() if not any(each < own for each in parts.values())]
