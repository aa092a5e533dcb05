"""Networks lowered for kernels: rates over state variables and hoisted constants.

Everything that does not change during a trajectory (products and quotients of parameters, above
all) is gathered into constants `#0, #1, ...`, evaluated once by numpy and passed to the kernel. The
kernel's source then depends on the structure of the network alone, not on its parameter values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from simulators import rates
from simulators.errors import InputError, Setting
from simulators.network import ReactionNetwork
from simulators.rates import Apply, Expression, Name, Number, apply
from simulators.reactions import as_expression

MAX_UNROLLED_POWER = 8  # x^n becomes a product up to here: pow() is slow and not vectorised
ZERO, ONE = Number(0.0), Number(1.0)


@dataclass(frozen=True)
class Program:
    """Rates over `variables` and constants, the changes they make, and where time matters.

    `rates`: over variable names, constant names `#i` and, in comparisons only, `time`.
    `stops`: times (expressions of variables and constants) at which a rate or a trigger may jump.
    `latches`: expressions of which the greatest value since the last grid time is recorded.
    """

    variables: tuple[str, ...]
    species: int  # how many of the variables, the first ones, are counts
    constants: tuple[Expression, ...]
    rates: tuple[Expression, ...]
    changes: tuple[dict[int, int], ...]
    triggers: tuple[Expression, ...] = ()
    assignments: tuple[dict[int, Expression], ...] = ()
    stops: tuple[Expression, ...] = ()
    latches: tuple[Expression, ...] = ()

    @property
    def autonomous(self) -> bool:
        """Nothing but reactions changes the state, and no rate depends on time."""
        return not self.triggers and not self.stops

    @cached_property
    def vectorises(self) -> bool:
        """No rate calls a library function, which would keep a loop from vector registers."""
        nodes = (node for rate in (*self.rates, *self.latches) for node in rates.walk(rate))
        calls = (node.operator for node in nodes if isinstance(node, Apply))
        return all(rates.RATE_OPERATORS[operator].vector for operator in calls)

    def constant_values(self, parameters: Mapping[str, Any], count: int) -> np.ndarray:
        """Values of the constants, shape (1, C), or (count, C) when a parameter varies."""
        values = [np.asarray(rates.evaluate(c, parameters), np.float64) for c in self.constants]
        rows = count if any(value.ndim for value in values) else 1
        table = np.empty((rows, len(values)))
        for column, value in enumerate(values):
            table[:, column] = value
        bad = ~np.isfinite(table)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise InputError(
                f"{self.constants[column]} in a rate law is {table[row, column]} "
                "with these parameters",
                value=table[row, column],
                remedy="change the parameters so that it is finite",
            )
        return table


@dataclass
class _Hoist:
    """Replaces maximal parts that no state variable or time touches by constants."""

    moving: frozenset[str]
    exponents: Mapping[str, float]  # values of parameters that are the same for all trajectories
    constants: list[Expression] = field(default_factory=list)

    def constant(self, expression: Expression) -> Expression:
        if isinstance(expression, Number):
            return expression
        if expression not in self.constants:
            self.constants.append(expression)
        return Name(f"#{self.constants.index(expression)}")

    def __call__(self, expression: Expression) -> Expression:
        still = not rates.names(expression) & self.moving
        if still and rates.kind(expression) == "real":
            return self.constant(expression)
        if not isinstance(expression, Apply):
            return expression
        if expression.operator in ("*", "/", "neg", "^"):
            return self.product(expression)
        return apply(expression.operator, *(self(part) for part in expression.arguments))

    def product(self, expression: Expression) -> Expression:
        """coefficient · moving factors / moving divisors, the coefficient a single constant."""
        above: list[Expression] = []
        below: list[Expression] = []
        coefficient: Expression = ONE
        for factor, power in self.factors(expression, 1):
            if rates.names(factor) & self.moving:
                (above if power > 0 else below).append(self.inside(factor))
            elif power > 0:
                coefficient = factor if coefficient == ONE else apply("*", coefficient, factor)
            else:
                coefficient = apply("/", coefficient, factor)
        result = None if coefficient == ONE else self.constant(coefficient)
        for factor in above:
            result = factor if result is None else apply("*", result, factor)
        for divisor in below:
            result = apply("/", ONE if result is None else result, divisor)
        return ONE if result is None else result

    def factors(self, expression: Expression, power: int) -> Iterable[tuple[Expression, int]]:
        if isinstance(expression, Apply):
            parts = expression.arguments
            if expression.operator in ("*", "/"):
                yield from self.factors(parts[0], power)
                yield from self.factors(parts[1], power if expression.operator == "*" else -power)
                return
            if expression.operator == "neg":
                yield Number(-1.0), 1
                yield from self.factors(parts[0], power)
                return
            times = self.whole(parts[1]) if expression.operator == "^" else None
            if times is not None and rates.names(parts[0]) & self.moving:
                for _ in range(times):
                    yield from self.factors(parts[0], power)
                return
        yield expression, power

    def whole(self, exponent: Expression) -> int | None:
        if not rates.names(exponent) <= self.exponents.keys():
            return None
        value = float(rates.evaluate(exponent, self.exponents))
        return int(value) if value in range(1, MAX_UNROLLED_POWER + 1) else None

    def inside(self, factor: Expression) -> Expression:
        """A factor that is not a product: hoist within it."""
        if isinstance(factor, Apply):
            return apply(factor.operator, *(self(part) for part in factor.arguments))
        return factor


def lower(
    network: ReactionNetwork,
    laws: Sequence[Expression],
    fixed: Mapping[str, float],
    *,
    smooth_time: bool = False,
    smooth_methods: Sequence[str] = (),
    latches: Sequence[Expression] = (),
) -> Program:
    """Program for these rate laws; `fixed` are the parameters with one value for all trajectories.

    `smooth_time` lets rates contain time anywhere (the ODE); otherwise only in comparisons, between
    whose switching times the rates are constant and the exact methods stay exact. `smooth_methods`:
    the methods to recommend where time occurs elsewhere.
    """
    moving = frozenset((*network.variables, "time"))
    known = {name: value for name, value in fixed.items() if name not in network.variables}
    hoist = _Hoist(moving, known)
    stops: list[Expression] = []

    def prepare(expression: Expression, where: str, *, smooth: bool = False) -> Expression:
        inlined = rates.substitute(expression, network.inlined_rules)
        try:
            return hoist(_switch(inlined, stops, smooth))
        except _SmoothTime as found:
            raise InputError(
                f"{where} changes continuously with time ({found}); the method takes time only in "
                "comparisons, as in piecewise(a, time < 10, b)",
                value=str(found),
                remedy=("use ", Setting("method", smooth_methods[0])) if smooth_methods else (),
            ) from None

    lowered = tuple(
        prepare(law, f"rate of reaction {reaction.name!r}", smooth=smooth_time)
        for reaction, law in zip(network.reactions, laws, strict=True)
    )
    place = {name: index for index, name in enumerate(network.variables)}
    triggers = tuple(
        prepare(as_expression(event.trigger), f"trigger of event {event.name!r}")
        for event in network.events
    )
    assignments = tuple(
        {
            place[name]: prepare(as_expression(value), f"event {event.name!r}", smooth=True)
            for name, value in event.assignments.items()
        }
        for event in network.events
    )
    latched = tuple(prepare(each, f"latch {each}") for each in latches)
    return Program(
        variables=network.variables,
        species=len(network.species),
        stops=tuple(hoist(stop) for stop in stops),
        rates=lowered,
        changes=tuple(
            {place[name]: by for name, by in reaction.change.items()}
            for reaction in network.reactions
        ),
        triggers=triggers,
        assignments=assignments,
        latches=latched,
        constants=tuple(hoist.constants),
    )


# --- time in rates and triggers -------------------------------------------------------------------


class _SmoothTime(Exception):
    """An expression in which time occurs outside comparisons."""


def _switch(expression: Expression, stops: list[Expression], smooth: bool) -> Expression:
    """Comparisons with time become `time >= stop` or `time < stop`; the stops are collected."""
    if "time" not in rates.names(expression):
        return expression
    if isinstance(expression, Apply):
        if expression.operator in ("<", "<=", ">", ">=", "==", "!="):
            left, right = expression.arguments
            line = _linear(apply("-", left, right))
            if line is not None and expression.operator not in ("==", "!="):
                slope, rest = line
                stop = apply("/", apply("neg", rest), Number(slope))
                rising = (expression.operator in (">", ">=")) == (slope > 0)
                if (expression.operator in (">", "<=")) == (slope > 0):
                    stop = apply("after", stop)  # at the stop itself nothing has changed yet
                if stop not in stops:
                    stops.append(stop)
                return apply(">=" if rising else "<", Name("time"), stop)
        else:
            parts = (_switch(part, stops, smooth) for part in expression.arguments)
            return apply(expression.operator, *parts)
    if smooth:
        return expression
    raise _SmoothTime(expression)


def _linear(expression: Expression) -> tuple[float, Expression] | None:
    """(slope, rest) with expression = slope·time + rest and a numeric slope that is not zero."""
    slope, rest = _line(expression) or (0.0, ZERO)
    return (slope, rest) if slope else None


def _line(expression: Expression) -> tuple[float, Expression] | None:
    if expression == Name("time"):
        return 1.0, ZERO
    if "time" not in rates.names(expression):
        return 0.0, expression
    if not isinstance(expression, Apply) or expression.operator not in ("+", "-", "neg", "*", "/"):
        return None
    lines = [_line(part) for part in expression.arguments]
    if any(line is None for line in lines):
        return None
    (slope, rest), *more = [line for line in lines if line is not None]
    if expression.operator == "neg":
        return -slope, apply("neg", rest)
    other_slope, other = more[0]
    if expression.operator in ("+", "-"):
        sign = 1.0 if expression.operator == "+" else -1.0
        return slope + sign * other_slope, apply(expression.operator, rest, other)
    if expression.operator == "*" and isinstance(rest, Number) and not slope:
        return rest.value * other_slope, apply("*", rest, other)
    if isinstance(other, Number) and not other_slope and other.value:
        factor = other.value if expression.operator == "*" else 1.0 / other.value
        return slope * factor, apply(expression.operator, rest, other)
    return None
