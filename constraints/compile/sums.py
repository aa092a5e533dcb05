"""Formulas without columns that are sums of others: `count = casual + registered`.

A statement about such a column is restated about its terms: `count >= 100` becomes
`casual + registered >= 100`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom
from constraints.ast.nodes import Node
from constraints.ast.terms import Const, Name, Term, add
from constraints.compile.program import Program
from constraints.compile.rewrite import Rewriting, rewritten


@dataclass(frozen=True)
class DependentSum:
    """constant + Σ weight·x of other columns."""

    weights: Mapping[str, float]
    constant: float = 0.0

    def term(self, instance: int | None) -> Term:
        parts = [weight * Name(name, instance) for name, weight in self.weights.items()]
        return add(*parts, Const(self.constant)) if self.constant else add(*parts)


def without_sums(program: Program, sums: Mapping[str, DependentSum]) -> Program:
    """The same statement about the terms of the sums."""
    if not set(sums) & program.needed:
        return program
    return rewritten(program, _WithoutSums(sums), program.layout)


class _WithoutSums(Rewriting):
    def __init__(self, sums: Mapping[str, DependentSum]) -> None:
        self.sums = sums

    def atom(self, atom: Atom) -> f.Formula:
        """The atom with its sums multiplied out; true or false where all terms cancel."""
        total: dict[tuple[object, ...], tuple[float, Term]] = {}
        constant = 0.0

        def put(coefficient: float, term: Term) -> None:
            before = total.get(term.key, (0.0, term))[0]
            total[term.key] = (before + coefficient, term)

        for coefficient, term in zip(atom.coefficients, atom.terms, strict=True):
            if isinstance(term, Name) and term.name in self.sums:
                own = self.sums[term.name]
                constant += coefficient * own.constant
                for name, weight in own.weights.items():
                    put(coefficient * weight, Name(name, term.instance))
            else:
                put(coefficient, self.inside(term))
        parts = [(c, t) for c, t in total.values() if c]
        moved = replace(atom, low=atom.low - constant, high=atom.high - constant)
        if not parts:
            inside = moved.low - moved.slack <= 0 <= moved.high + moved.slack
            edge = (moved.open_low and moved.low == 0) or (moved.open_high and moved.high == 0)
            return f.TRUE if inside and not edge else f.FALSE
        return replace(
            moved, coefficients=tuple(c for c, _ in parts), terms=tuple(t for _, t in parts)
        )

    def term(self, node: Node) -> Term | None:
        if isinstance(node, Name) and node.name in self.sums:
            return self.sums[node.name].term(node.instance)
        return None
