"""A second evaluator of formulas, in plain Python with explicit loops, one sample at a time.

It works on formulas as they are written. First `ReferenceLowering` pushes negation to the
comparisons and unfolds max, min, abs and argmax under an inequality; then `Reference` evaluates the
result with numbers in place of variables. A `Logic` holds the values of comparisons and how they
combine:

    logic           y >= b              all of      some of
    boolean         y >= b              all         any
    robustness      y - b               min         max
    probabilistic   log sigmoid k(y-b)  sum         log(1 - prod(1 - e^v))
    averaged        the same            mean        log mean e^v   (over steps)

What the library does on purpose is done here too: `forall` is split over `and`; a quantifier whose
body does not mention its variable counts once; strict and non-strict inequalities are equally
soft; an equality without a tolerance accepts a small deviation in verdicts and margins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from constraints.ast import formulas as f
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.words import END, NOW
from tests.constraints.reference_lowering import (
    Atom,
    Chain,
    Join,
    Quantified,
    ReferenceLowering,
    Weighted,
    depends,
    inside,
    read_at,
)

FALSE = -1e30  # of a logarithmic logic


class OffGrid(Exception):
    """A reading outside the grid."""


@dataclass(frozen=True)
class Logic:
    atom: Callable[[float, Atom], Any]
    both: Callable[[list[Any]], Any]
    either: Callable[[list[Any]], Any]
    forall: Callable[[list[Any]], Any]
    exists: Callable[[list[Any]], Any]
    true: Any
    false: Any
    weighted: Callable[[Any, float], Any] = lambda value, weight: value
    truth: Callable[[Any], float] = float


def _margin(y: float, atom: Atom) -> float:
    return min(y - (atom.low - atom.slack), atom.high + atom.slack - y)


def log_sigmoid(x: float) -> float:
    return min(x, 0.0) - math.log1p(math.exp(-abs(x)))


def log_or(values: Iterable[float]) -> float:
    """log(1 - prod(1 - e^v)), exact for any v <= 0."""
    found = list(values)
    high = max(found, default=-math.inf)
    if high >= 0 or high == -math.inf:
        return high
    if high < -35:  # products of probabilities are below the last digit: they just add
        return high + math.log(sum(math.exp(v - high) for v in found))
    none = sum(math.log(-math.expm1(v)) if v > -0.7 else math.log1p(-math.exp(v)) for v in found)
    return math.log(-math.expm1(none)) if none > -0.7 else math.log1p(-math.exp(none))


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _log_mean_exp(values: list[float], alpha: float) -> float:
    high = max(values, default=-math.inf)
    if high == -math.inf:
        return high
    total = sum(math.exp(alpha * (v - high)) for v in values)
    return high + math.log(total / len(values)) / alpha


def _soft(k: float) -> Callable[[float, Atom], float]:
    def atom(y: float, atom: Atom) -> float:
        own = k if atom.k is None else atom.k
        low = 0.0 if atom.low == -math.inf else log_sigmoid(own * (y - atom.low))
        return low + (0.0 if atom.high == math.inf else log_sigmoid(own * (atom.high - y)))

    return atom


BOOLEAN = Logic(inside, all, any, all, any, True, False)


def _least(values: list[float]) -> float:
    return min(values, default=math.inf)


def _most(values: list[float]) -> float:
    return max(values, default=-math.inf)


ROBUSTNESS = Logic(_margin, _least, _most, _least, _most, math.inf, -math.inf)


def probabilistic(k: float = 10.0, steps: str = "sum") -> Logic:
    forall = sum if steps == "sum" else _mean
    return Logic(
        _soft(k), sum, log_or, forall, log_or, 0.0, FALSE, lambda v, weight: weight * v, math.exp
    )


def averaged(k: float = 10.0, alpha: float = 1.0) -> Logic:
    def some(values: list[float]) -> float:
        return _log_mean_exp(values, alpha)

    return replace(probabilistic(k, "mean"), either=some, exists=some)


# the walk


class Reference:
    """Values of one formula on single samples: `data` holds a list of numbers a series.

    `end` as in the library: None, "clip", "weak" or "strong".
    """

    def __init__(
        self,
        formula: f.Formula,
        data: Mapping[str, Sequence[float]],
        logic: Logic,
        end: str | None = None,
    ) -> None:
        self.data = data
        self.logic = logic
        self.end = end
        self.steps = len(next(iter(data.values())))
        self.lowering = ReferenceLowering(self.steps)
        self.lowered = self.lowering.formula(formula, True, None)
        self.counted: dict[Any, Any] = {}

    def value(self, now: int = 0) -> Any:
        return self.judge(self.lowered, {NOW: now})

    def trace(self) -> list[Any]:
        return [self.value(now) for now in range(self.steps)]

    # `at`: where the variables stand

    def judge(self, node: Any, at: dict[str, int]) -> Any:
        logic = self.logic
        match node:
            case Atom():
                try:
                    y = sum(c * self.number(term, at, node.k) for c, term in node.parts)
                except OffGrid:
                    return logic.true if self.end == "weak" else logic.false
                if not node.parts:
                    return logic.true if inside(0.0, node) else logic.false
                return logic.atom(y, node)
            case Join(every, []):
                return logic.true if every else logic.false
            case Join(every, parts):
                return (logic.both if every else logic.either)([self.judge(p, at) for p in parts])
            case Weighted(body, weight):
                return logic.weighted(self.judge(body, at), weight)
            case Quantified():
                return self.quantified(node, at)
            case Chain():
                return self.chain(node, at)
        raise TypeError(node)

    def quantified(self, node: Quantified, at: dict[str, int]) -> Any:
        fold = self.logic.forall if node.every else self.logic.exists
        found = self.window(node.first, node.last, at, clip=node.times)
        if not depends(node.body, node.variable):
            found = found[:1]
        return fold([self.judge(node.body, {**at, node.variable: step}) for step in found])

    def chain(self, node: Chain, at: dict[str, int]) -> Any:
        logic, now = self.logic, at[NOW]
        sign = -1 if node.past else 1
        reach = now if node.past else self.steps - 1 - now
        last = reach if node.last is None else node.last
        if self.end == "clip":
            last = min(last, reach)
        found = []
        for far in range(node.first, last + 1):
            right = self.judge(node.right, {**at, NOW: now + sign * far})
            left = [self.judge(node.left, {**at, NOW: now + sign * d}) for d in range(far)]
            if not left:
                found.append(right)
            elif node.every:
                found.append(logic.either([right, logic.exists(left)]))
            else:
                found.append(logic.both([right, logic.forall(left)]))
        return (logic.forall if node.every else logic.exists)(found)

    def window(
        self, first: Step | None, last: Step | None, at: dict[str, int], *, clip: bool = True
    ) -> range:
        a = 0 if first is None else self.step(first, at)
        b = self.steps - 1 if last is None else self.step(last, at)
        if clip and self.end == "clip":
            a, b = max(a, 0), min(b, self.steps - 1)
        return range(a, b + 1)

    def step(self, step: Step, at: dict[str, int]) -> int:
        if step.time is not None:
            return int(step.time)  # the grid is 0, 1, 2, ...
        if step.base is None:
            return step.offset
        return (self.steps - 1 if step.base == END else at[step.base]) + step.offset

    def number(self, term: Term, at: dict[str, int], k: float | None) -> float:
        def go(part: Term) -> float:
            return self.number(part, at, k)

        match term:
            case Const(value):
                return value
            case Step():
                return float(self.step(term, at))
            case Name(name):
                return self.read(name, at[NOW])
            case At(Name(name), step):
                return self.read(name, self.step(step, at))
            case At(Apply("delta" | "cumsum") as series, step):
                return self.number(series, {NOW: self.step(step, at)}, k)
            case At(series, step):
                return self.number(read_at(series, step), at, k)
            case Apply("delta" | "cumsum" as function, (body,)):
                return self.running(function, body, at[NOW], k)
            case Apply(function, arguments):
                return float(POINTWISE[function](*(go(each) for each in arguments)))
            case Aggregate() | Count():
                return self.fold(term, at, k)
        raise TypeError(term)

    def read(self, name: str, step: int) -> float:
        if not 0 <= step < self.steps:
            raise OffGrid
        return self.data[name][step]

    def running(self, function: str, body: Term, now: int, k: float | None) -> float:
        if not 0 <= now < self.steps:
            raise OffGrid
        values = [self.number(body, {NOW: step}, k) for step in range(now + 1)]
        if function == "cumsum":
            return sum(values)
        return values[-1] - values[-2] if now else 0.0

    def fold(self, term: Aggregate | Count, at: dict[str, int], k: float | None) -> float:
        steps = self.window(term.first, term.last, at)
        if isinstance(term, Count):
            if (term.key, k) not in self.counted:
                self.counted[term.key, k] = self.lowering.formula(term.body, True, k)
            body = self.counted[term.key, k]
            own = self.logic
            if own is ROBUSTNESS:  # a margin of 0 does not tell < from <=
                self.logic = BOOLEAN
            found = sum(self.logic.truth(self.judge(body, {**at, NOW: now})) for now in steps)
            self.logic = own
            return found
        values = [self.number(term.body, {**at, NOW: now}, k) for now in steps]
        match term.kind:
            case "mean":
                return sum(values) / len(values)
            case "integral":
                return sum((a + b) / 2 for a, b in pairwise(values))
            case "argmax" | "argmin":
                extreme = max(values) if term.kind == "argmax" else min(values)
                return float(steps[values.index(extreme)])
        return float({"max": max, "min": min, "sum": sum}[term.kind](values))


POINTWISE: Mapping[str, Callable[..., float]] = {
    "+": lambda *parts: sum(parts),
    "neg": lambda a: -a,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "pow": lambda a, b: a**b,
    "abs": abs,
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "max": max,
    "min": min,
}
