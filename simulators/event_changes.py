"""How events change counts, as far as conservation laws go.

The assignments V := V + floor(S/2), S := S - floor(S/2) change V and S by amounts that are linear
in quantities q_k, here floor(S/2): Δx = Σ_k d_k q_k. A law w that has w·d_k = 0 for every k is
conserved, as if each d_k were the change of a reaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from simulators.rates import Apply, Expression, Name, Number

_ONE = Number(1.0)


def event_changes(sets: Mapping[str, Expression]) -> list[Mapping[str, int | Fraction]]:
    """The changes d_k, one for each quantity, that assignments to species are made of."""
    found: dict[Expression, dict[str, int | Fraction]] = {}
    for species, value in sets.items():
        change = _linear(value)
        change[Name(species)] = change.get(Name(species), Fraction(0)) - 1
        for quantity, by in change.items():
            if by:
                found.setdefault(quantity, {})[species] = by
    return list(found.values())


def fixed_time(trigger: Expression) -> float | None:
    """The time at which a trigger turns true for good; None where that depends on the state."""
    match trigger:
        case Apply(">" | ">=", (Name("time"), Number(value))):
            return value
    return None


def _linear(expression: Expression) -> dict[Expression, Fraction]:
    """Quantity -> coefficient; numbers are multiples of 1."""
    match expression:
        case Number(value):
            return {_ONE: Fraction(value)}
        case Apply("+" | "-" | "neg" as operator, parts):
            found: dict[Expression, Fraction] = {}
            for place, part in enumerate(parts):
                sign = -1 if operator == "neg" or (operator == "-" and place) else 1
                for quantity, by in _linear(part).items():
                    found[quantity] = found.get(quantity, Fraction(0)) + sign * by
            return found
        case Apply("*", (Number(factor), part)) | Apply("*", (part, Number(factor))):
            return {quantity: Fraction(factor) * by for quantity, by in _linear(part).items()}
    return {expression: Fraction(1)}
