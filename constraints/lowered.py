"""Nodes that exist only after a formula has met its layout: what `resolve` and `lower` produce."""

from __future__ import annotations

import math
from dataclasses import dataclass

from constraints import formula as f
from constraints.terms import Name, Step, Term, add

NUMBERS, PIXELS = "#", "*"  # domains of a quantifier besides steps: plain numbers; every pixel


@dataclass(frozen=True, eq=False, repr=False)
class Option(Term):
    """The weight of one category of a signal."""

    signal: Name
    index: int


@dataclass(frozen=True, eq=False, repr=False)
class Moving(f.Formula):
    """A resolved `Until`: relative to `here`, with the name of the step it binds."""

    kind: str
    left: f.Formula
    right: f.Formula
    first: int
    last: int | None
    past: bool
    here: Step
    variable: str


@dataclass(frozen=True, eq=False, repr=False)
class Atom(f.Formula):
    """low <= Σ coefficient·term <= high.

    `slack`: how far outside a verdict still counts as met. `open_low`, `open_high`: the bound
    itself does not count. `integer`: the sum is a whole number for data that keep to their kind.
    """

    coefficients: tuple[float, ...]
    terms: tuple[Term, ...]
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    slack: float = 0.0
    integer: bool = False
    k: float | None = None

    @property
    def equality(self) -> bool:
        return self.low == self.high

    def readable(self) -> str:
        """As a person would write it."""
        pairs = zip(self.coefficients, self.terms, strict=True)
        total = str(add(*(_times(c, t) for c, t in pairs)))
        if self.equality:
            return f"{total} = {self.low:g}"
        left = "" if self.low == -math.inf else f"{self.low:g} {'<' if self.open_low else '<='} "
        right = "" if self.high == math.inf else f" {'<' if self.open_high else '<='} {self.high:g}"
        return left + total + right


def _times(coefficient: float, term: Term) -> Term:
    if coefficient == 1:
        return term
    return -term if coefficient == -1 else coefficient * term
