"""Proofs about rates before running: never negative, and zero where a reactant runs out.

A kernel whose rates are all proved leaves out its checks; the others test every rate at every
event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from simulators.kernels.codegen.program import Program
from simulators.rates import Apply, Expression, Name, Number

UNKNOWN, NON_NEGATIVE, POSITIVE = 0, 1, 2
# products of up to MAX_FACTORS constants in this range cannot overflow
MIN_CONSTANT, MAX_CONSTANT = 1e-20, 1e20
MAX_FACTORS = 12


def proved(program: Program, constants: np.ndarray) -> bool:
    """All rates are finite and >= 0 in every state, and no reaction can make a count negative."""
    signs = dict.fromkeys(program.variables[: program.species], NON_NEGATIVE)
    for index, (low, high) in enumerate(
        zip(constants.min(axis=0), constants.max(axis=0), strict=True)
    ):
        if high > MAX_CONSTANT or -low > MAX_CONSTANT or 0 < low < MIN_CONSTANT:
            return False
        signs[f"#{index}"] = POSITIVE if low > 0 else NON_NEGATIVE if low == 0 else UNKNOWN
    return all(
        finite(rate, signs)
        and _degree(rate) <= MAX_FACTORS
        and sign(rate, signs) >= NON_NEGATIVE
        and all(
            vanishes(rate, program.variables[variable], count)
            for variable, by in change.items()
            for count in range(min(-by, 10))
        )
        and min(change.values(), default=0) > -10
        for rate, change in zip(program.rates, program.changes, strict=True)
    )


def finite(expression: Expression, signs: Mapping[str, int]) -> bool:
    """Never infinite and always a number, whatever the state."""
    if isinstance(expression, Number):
        return expression.value == 0 or MIN_CONSTANT <= abs(expression.value) <= MAX_CONSTANT
    if isinstance(expression, Name):
        return expression.name in signs
    parts = expression.arguments
    if expression.operator == "/" and sign(parts[1], signs) < POSITIVE:
        return False
    if expression.operator == "sqrt" and sign(parts[0], signs) < NON_NEGATIVE:
        return False
    tame = {"+", "-", "*", "/", "neg", "min", "max", "abs", "sqrt", "floor", "ceil", "piecewise"}
    compare = {"<", "<=", ">", ">=", "==", "!=", "and", "or", "not", "true", "false"}
    return expression.operator in tame | compare and all(finite(part, signs) for part in parts)


def sign(expression: Expression, signs: Mapping[str, int]) -> int:
    """POSITIVE, NON_NEGATIVE or UNKNOWN, for whole variables >= 0 and finite parts."""
    if isinstance(expression, Number):
        value = expression.value
        return POSITIVE if value > 0 else NON_NEGATIVE if value == 0 else UNKNOWN
    if isinstance(expression, Name):
        return signs.get(expression.name, UNKNOWN)
    parts = expression.arguments
    if expression.operator == "*":
        factors, falling = _without_falling(_factors(expression))
        found = [sign(part, signs) for part in factors]
        return min([*found, NON_NEGATIVE] if falling else found)  # X(X-1) is 0 at 0 and 1
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


def _degree(expression: Expression) -> int:
    """How many leaves are multiplied or divided together, at most."""
    if not isinstance(expression, Apply):
        return 1
    degrees = [_degree(part) for part in expression.arguments]
    return sum(degrees) if expression.operator in ("*", "/") else max(degrees, default=1)


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


def _without_falling(factors: Sequence[Expression]) -> tuple[list[Expression], bool]:
    """Factors without falling products X(X-1)(X-2)..., and whether there were any.

    For whole X >= 0 such a product is >= 0.
    """
    left, falling = list(factors), False
    for base in [factor for factor in factors if isinstance(factor, Name)]:
        less = 1.0
        while (next_one := Apply("-", (base, Number(less)), 1)) in left:
            left.remove(next_one)
            less += 1.0
        if less > 1.0:
            left.remove(base)
            falling = True
    return left, falling
