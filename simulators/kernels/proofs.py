"""What can be proved about a rate before running: it is never negative, and it stops in time.

A kernel whose rates are all proved leaves out its checks; the others test every rate at every
event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulators.kernels.program import Program
from simulators.rates import Apply, Expression, Name, Number

UNKNOWN, NON_NEGATIVE, POSITIVE = 0, 1, 2


def proved(program: Program, constants: np.ndarray) -> bool:
    """All rates are finite and >= 0 in every state, and no reaction can make a count negative."""
    signs = dict.fromkeys(program.variables[: program.species], NON_NEGATIVE)
    lowest = constants.min(axis=0)
    for index, value in enumerate(lowest):
        signs[f"#{index}"] = POSITIVE if value > 0 else NON_NEGATIVE if value == 0 else UNKNOWN
    return all(
        sign(rate, signs) >= NON_NEGATIVE
        and all(
            vanishes(rate, program.variables[variable], count)
            for variable, by in change.items()
            for count in range(-by)
        )
        for rate, change in zip(program.rates, program.changes, strict=True)
    )


def sign(expression: Expression, signs: Mapping[str, int]) -> int:
    """What is known for whole variables >= 0; UNKNOWN also when it may not be finite."""
    if isinstance(expression, Number):
        return (
            POSITIVE if expression.value > 0 else NON_NEGATIVE if expression.value == 0 else UNKNOWN
        )
    if isinstance(expression, Name):
        return signs.get(expression.name, UNKNOWN)
    parts = expression.arguments
    if expression.operator == "*":
        return min(
            (sign(part, signs) for part in _without_falling(_factors(expression))),
            default=NON_NEGATIVE,
        )
    if expression.operator == "/":
        return sign(parts[0], signs) if sign(parts[1], signs) == POSITIVE else UNKNOWN
    if expression.operator == "+":
        found = [sign(part, signs) for part in parts]
        return max(found) if min(found) >= NON_NEGATIVE else UNKNOWN
    if expression.operator in ("min", "sqrt"):
        return min(sign(part, signs) for part in parts)
    if expression.operator == "max":
        return max(sign(part, signs) for part in parts)
    if expression.operator == "piecewise":
        return min(sign(parts[0], signs), sign(parts[2], signs))
    return UNKNOWN


def vanishes(expression: Expression, name: str, count: int) -> bool:
    """It is exactly zero wherever variable `name` equals `count`."""
    if isinstance(expression, Number):
        return expression.value == 0
    if isinstance(expression, Name):
        return expression.name == name and count == 0
    parts = expression.arguments
    if expression.operator == "-" and parts == (Name(name), Number(float(count))):
        return True
    if expression.operator == "*":
        return any(vanishes(part, name, count) for part in parts)
    if expression.operator == "/":
        return vanishes(parts[0], name, count)
    if expression.operator in ("+", "-"):
        return all(vanishes(part, name, count) for part in parts)
    if expression.operator == "piecewise":
        return vanishes(parts[0], name, count) and vanishes(parts[2], name, count)
    return False


def _factors(expression: Expression) -> list[Expression]:
    if isinstance(expression, Apply) and expression.operator == "*":
        return [factor for part in expression.arguments for factor in _factors(part)]
    return [expression]


def _without_falling(factors: Sequence[Expression]) -> list[Expression]:
    """Factors without those of falling products X(X-1)(X-2)..., which are >= 0 for whole X >= 0."""
    left = list(factors)
    for base in [factor for factor in factors if isinstance(factor, Name)]:
        less = 1.0
        while (next_one := Apply("-", (base, Number(less)), 1)) in left:
            left.remove(next_one)
            less += 1.0
        if less > 1.0:
            left.remove(base)
    return left
