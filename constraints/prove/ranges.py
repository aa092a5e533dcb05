"""Interval arithmetic: the range of a resolved term, from the known ranges of the signals.

The parameter of an observation whose range has no number in its domain (a standard deviation that
is never positive) has no distribution, whatever the data, and one that is drawn from a range must
lie in its domain throughout; a number beyond the ends of its
distribution (5,000 of at most 763) cannot be observed. Ranges are sound, not tight: two readings
of one signal count as independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from itertools import product

from constraints.ast.aggregates import aggregates
from constraints.ast.families import Observation
from constraints.ast.lowered import CategoryWeight
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.walk import names
from constraints.compile.resolve import resolve
from constraints.errors import FormulaError, ImpossibleError
from constraints.layout.signals import Layout

Interval = tuple[float, float]
EVERYTHING: Interval = (-math.inf, math.inf)


def refuse_impossible_parameters(node: Observation, layout: Layout) -> None:
    """ImpossibleError if a parameter of an observation is outside its domain for all data, or the
    number beyond what it allows."""
    found = resolve(node, layout)
    assert isinstance(found, Observation)
    family = found.distribution.family
    for parameter, term in zip(family.parameters, found.distribution.parameters, strict=True):
        low, high = interval(term, layout)
        if not parameter.domain.meets(low, high):
            raise ImpossibleError(
                f"{node}: the {parameter.name} of {family.name} is {term}, which lies in "
                f"[{low:g}, {high:g}] for all data",
                value=str(term),
                remedy=f"it must be one of the {parameter.domain}",
            )
        inside = parameter.domain.low <= low and high <= parameter.domain.high
        if not inside and _drawn_once(term, layout):
            raise FormulaError(
                f"{node}: the {parameter.name} of {family.name} is {term}, which is drawn from "
                f"[{low:g}, {high:g}]",
                value=str(term),
                remedy=f"all of it must lie among the {parameter.domain}",
            )
    least, most = family.bounds
    if most is not None:
        end = interval(found.distribution.parameters[most], layout)[1]
        if found.value > end:
            raise _unreachable(node, "at most", end)
    if least is not None:
        end = interval(found.distribution.parameters[least], layout)[0]
        if found.value < end:
            raise _unreachable(node, "at least", end)


def _drawn_once(term: Term, layout: Layout) -> bool:
    """Whether a term depends on nothing but numbers that a sample has once, of known ranges, so
    that all of its interval is taken: other intervals may be wider than the values."""
    signals = [layout.find(name) for name in names(term)]
    return bool(signals) and all(
        signal is not None and signal.kind == "column" and math.isfinite(signal.high - signal.low)
        for signal in signals
    )


def _unreachable(node: Observation, side: str, end: float) -> ImpossibleError:
    return ImpossibleError(
        f"{node} cannot be observed: {node.distribution} is {side} {end:g} for all data",
        value=node.value,
        remedy="correct the number, or use another distribution",
    )


def interval(term: Term, layout: Layout) -> Interval:
    """The least and greatest value that a resolved term can have."""

    def go(part: Term) -> Interval:
        return interval(part, layout)

    match term:
        case Const(value):
            return value, value
        case Step(None, offset):
            return float(offset), float(offset)
        case CategoryWeight():
            return 0.0, 1.0
        case Name(name) | At(Name(name)):
            signal = layout.find(name)
            return EVERYTHING if signal is None else (signal.low, signal.high)
        case Count():
            return 0.0, float(layout.steps)
        case Aggregate(kind, body) if aggregates()[kind].averages:
            return go(body)
        case Apply("+", arguments):
            ranges = [go(each) for each in arguments]
            return sum(low for low, _ in ranges), sum(high for _, high in ranges)
        case Apply("neg", (body,)):
            low, high = go(body)
            return -high, -low
        case Apply("*", arguments):
            return reduce(_times, map(go, arguments))
        case Apply("/", (left, right)):
            low, high = go(right)
            return EVERYTHING if low <= 0 <= high else _times(go(left), (1 / high, 1 / low))
        case Apply("max" | "min" as kind, arguments):
            ranges = [go(each) for each in arguments]
            choose: Callable[..., float] = max if kind == "max" else min
            return choose(low for low, _ in ranges), choose(high for _, high in ranges)
        case Apply("abs", (body,)):
            low, high = go(body)
            return max(low, -high, 0.0), max(-low, high)
        case Apply("exp" | "sqrt" | "log" as function, (body,)):
            low, high = go(body)
            return _increasing(function, low), _increasing(function, high)
    return EVERYTHING


def _times(one: Interval, other: Interval) -> Interval:
    ends = [a * b if a and b else 0.0 for a, b in product(one, other)]  # 0 times infinity is 0
    return min(ends), max(ends)


def _increasing(function: str, x: float) -> float:
    if function == "exp":
        return math.exp(x) if x < 700 else math.inf
    if function == "sqrt":
        return math.sqrt(max(x, 0.0))
    if x <= 0:
        return -math.inf
    return math.log(x)
