"""Rewriting of lowered formulas: a traversal that replaces atoms and terms.

`dependents` and `gaussian.latent` restate formulas about other columns with it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import fields, replace
from typing import Any

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom
from constraints.ast.nodes import Node
from constraints.ast.terms import Term
from constraints.compile.program import Program
from constraints.compile.simplify import all_of, any_of, quantified
from constraints.layout.signals import Layout


class Rewriting(ABC):
    """A traversal of a lowered formula that replaces some atoms and terms."""

    @abstractmethod
    def atom(self, atom: Atom) -> f.Formula:
        """The formula that replaces an atom; `inside(atom)` replaces only its terms."""

    @abstractmethod
    def term(self, node: Node) -> Term | None:
        """The term that replaces a node; None keeps the node and rewrites its children."""

    def formula(self, node: f.Formula) -> f.Formula:
        match node:
            case Atom():
                return self.atom(node)
            case f.And(parts):
                return all_of(self.formula(part) for part in parts)
            case f.Or(parts):
                return any_of(self.formula(part) for part in parts)
            case f.Quantifier(kind, variable, first, last, body, region):
                return quantified(kind, variable, first, last, self.formula(body), region)
        found: f.Formula = self.inside(node)
        return found

    def inside(self, node: Any) -> Any:
        """The node with everything below it rewritten."""
        if isinstance(node, tuple):
            return tuple(self.inside(item) for item in node)
        if not isinstance(node, Node):
            return node
        other = self.term(node)
        if other is not None:
            return other
        below = {each.name: getattr(node, each.name) for each in fields(node)}
        return replace(node, **{name: self._below(value) for name, value in below.items()})

    def _below(self, value: Any) -> Any:
        return self.formula(value) if isinstance(value, f.Formula) else self.inside(value)


def rewritten(program: Program, rewriting: Rewriting, layout: Layout) -> Program:
    """The program of the rewritten formula, for this layout."""
    observations = tuple(rewriting.inside(each) for each in program.observations)
    return program.restated(rewriting.formula(program.lowered), layout, observations)
