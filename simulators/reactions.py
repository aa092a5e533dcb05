"""Reactions, which fire at a rate, and events, which fire when a condition turns true."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real

from simulators import rates
from simulators.errors import InputError
from simulators.rates import Expression, Name, Number, apply

_TERM = re.compile(r"(\d+)?\s*\*?\s*([^\W\d]\w*)")


def as_expression(value: str | float | Expression) -> Expression:
    """A number, text or expression as an expression."""
    if isinstance(value, str):
        return rates.parse(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        if not math.isfinite(value):
            raise InputError(f"{value} is not finite, as numbers of a network must be", value=value)
        return Number(float(value))
    if isinstance(value, rates.Number | rates.Name | rates.Apply):
        return value
    raise InputError(f"expected a number or an expression, got {value!r}", value=value)


@dataclass(frozen=True)
class Reaction:
    """`equation` is `A + 2 B -> C`; `rate` its law.

    A rate in which no species occurs, directly or through a rule, is a mass-action coefficient:
    `2 X -> Y` at `k` fires at k·X(X-1)/2. `mass_action=False` keeps it as it is written.
    """

    name: str
    equation: str
    rate: str | float | Expression
    mass_action: bool = True

    @cached_property
    def sides(self) -> tuple[dict[str, int], dict[str, int]]:
        return _sides(self.equation)

    @cached_property
    def change(self) -> dict[str, int]:
        """Net change of each species that changes."""
        reactants, products = self.sides
        net = {
            name: products.get(name, 0) - reactants.get(name, 0) for name in reactants | products
        }
        return {name: value for name, value in net.items() if value}


@dataclass(frozen=True)
class Event:
    """When `trigger` turns true, `assignments` are carried out at that very time.

    `initially` is the trigger's value just before the start: False lets it fire at once.
    Of simultaneous events the higher `priority` goes first, then the one listed first. An event
    that is not `persistent` is dropped if its trigger turns false before its turn comes.
    `values_at_trigger`: the new values are computed when it triggers, not when its turn comes.
    """

    name: str
    trigger: str | Expression
    assignments: Mapping[str, str | float | Expression]
    initially: bool = True
    priority: float = 0.0
    persistent: bool = True
    values_at_trigger: bool = True


def mass_action(constant: Expression, reactants: Mapping[str, int], *, falling: bool) -> Expression:
    """k·Π C(X, m) over the reactants; with `falling=False`, k·Π X^m/m! (large counts)."""
    law = constant
    for name, order in reactants.items():
        for less in range(order):
            factor: Expression = Name(name)
            if less and falling:
                factor = apply("-", factor, Number(float(less)))
            law = apply("*", law, factor)
        for divisor in range(2, order + 1):
            law = apply("/", law, Number(float(divisor)))
    return law


def _sides(equation: str) -> tuple[dict[str, int], dict[str, int]]:
    """`S + I -> 2 I` as two mappings species -> count; `0` or nothing is the empty side."""
    if not isinstance(equation, str) or equation.count("->") != 1 or "<->" in equation:
        raise InputError(
            f"reaction equation {equation!r} needs exactly one '->'",
            value=equation,
            remedy="write a reversible reaction as two",
        )
    sides = []
    for side in equation.split("->"):
        counts: dict[str, int] = {}
        for part in [] if side.strip() in ("", "0") else side.split("+"):
            term = _TERM.fullmatch(part.strip())
            if term is None:
                raise InputError(
                    f"cannot read {part.strip()!r} in equation {equation!r}", value=equation
                )
            counts[term[2]] = counts.get(term[2], 0) + int(term[1] or 1)
        sides.append(counts)
    return sides[0], sides[1]
