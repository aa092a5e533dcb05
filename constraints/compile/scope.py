"""What stands around a place in a formula: bound variables, their ranges, the meaning of `now`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

from constraints.ast.nodes import Node
from constraints.ast.terms import Apply, Const, Step, Term
from constraints.ast.walk import START, descend
from constraints.ast.words import END, NOW
from constraints.errors import FormulaError
from constraints.layout.signals import Layout

MAX_WINDOW_STEPS = 1_000_000  # steps in a window


@dataclass(frozen=True)
class Scope:
    """What stands around a place: bound variables, their ranges, and the meaning of `now`."""

    variables: Mapping[str, str] = field(default_factory=dict)  # as written -> as renamed
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    pixels: frozenset[str] = frozenset()  # renamed variables that are pixels
    here: Step = START  # what windows are relative to
    now: Step | None = None  # where a bare series is read; None: nowhere
    level: int = 0


@dataclass(frozen=True)
class Times:
    """Steps of a layout's grid, and what to do outside it (`end`, see `resolve`)."""

    layout: Layout
    end: str | None

    def step(self, node: Step, scope: Scope) -> Step:
        """A step in terms of renamed variables and step 0."""
        if node.time is not None:
            return Step(None, self.layout.step_at(node.time))
        if node.base is None:
            return node
        if node.base == END:
            if not self.layout.steps:
                example = "age >= 40"
                if self.layout.images:
                    example = f"forall p: {self.layout.images[0].name}(p) >= 0, over pixels"
                raise FormulaError(
                    "these signals have no time grid: leave out always, forall t, `end` and the "
                    f"like, as in {example}"
                )
            return Step(None, self.layout.steps - 1 + node.offset)
        if node.base == NOW:
            return scope.here.shifted(node.offset)
        if node.base not in scope.variables:
            raise FormulaError(
                f"the time variable {node.base} is not bound: write forall {node.base}: ... or "
                f"exists {node.base}: ..."
            )
        return Step(scope.variables[node.base], node.offset)

    def number(self, node: Step, scope: Scope) -> Term:
        """A step used as a number."""
        if node.base == NOW and scope.now is None:
            raise FormulaError(
                "now is a step that always, eventually and the like move; a signal of that name "
                'is written "now"'
            )
        step = self.step(node, scope)
        if step.base in scope.pixels:
            raise FormulaError(f"{node} is a pixel and has no number")
        return Const(step.offset) if step.base is None else step

    def range(self, step: Step, scope: Scope) -> tuple[int, int]:
        low, high = scope.ranges.get(step.base or "", (0, 0))
        return low + step.offset, high + step.offset

    def window(
        self, first: Step, last: Step, scope: Scope, what: str, *, clip: bool
    ) -> tuple[int, int]:
        """The range of a variable over a window, which must not be empty from the outset.

        Except that a window may begin right after its end, as [1, end] does on a grid of one step.
        """
        low, high = self.range(first, scope)[0], self.range(last, scope)[1]
        if clip and self.end == "clip":
            low, high = max(low, 0), min(high, self.layout.steps - 1)
        if high + 1 < low:
            raise FormulaError(f"{what}: the window [{first}, {last}] is empty on this grid")
        if high - low > MAX_WINDOW_STEPS:
            raise FormulaError(
                f"{what}: a window spans at most {MAX_WINDOW_STEPS:,} steps, not {high - low:,}"
            )
        return low, high

    def inside(self, step: Step, series: Node, scope: Scope) -> Step:
        """The step, if it stays on the grid or the formula says what to do where it does not."""
        low, high = self.range(step, scope)
        last = self.layout.steps - 1
        if self.end in ("weak", "strong") or 0 <= low <= high <= last:
            return step
        reached = high if high > last else low
        side = f"past the last step, {last}" if high > last else "before the first step, 0"
        if step.base is None:
            raise FormulaError(
                f"{series}({reached}) is {side}; the steps are 0..{last}, the last is called `end`"
            )
        advice = 'end="weak" (outside counts as met) or "strong" (as not met)'
        if self.end is None:
            advice = 'end="clip" (windows keep to steps that exist), "weak" (outside counts as '
            advice += 'met) or "strong" (as not met)'
        raise FormulaError(
            f"{series} is read at step {reached}, {side}; shorten the window (`end` is the last "
            f"step), or say what to do there: {advice}"
        )


_WHOLE = "is a whole number, a variable bound by forall or exists, or a sum of these"
MAX_TERM_VALUES = 100_000  # of the bound variables of a term, together
_ARITHMETIC: Mapping[str, Callable[..., float]] = {
    "+": lambda *parts: math.fsum(parts),
    "neg": operator.neg,
    "*": operator.mul,
    "/": operator.truediv,
    "abs": abs,
    "max": max,
    "min": min,
}


def values(term: Term, scope: Scope, what: str) -> list[float]:
    """All values of a whole number that is made of numbers and bound variables."""
    bound = sorted({node.base for node in descend(term) if isinstance(node, Step) and node.base})
    if not all(name in scope.ranges for name in bound):
        raise FormulaError(f"{what} {_WHOLE}")
    ranges = [range(scope.ranges[name][0], scope.ranges[name][1] + 1) for name in bound]
    if math.prod(len(each) for each in ranges) > MAX_TERM_VALUES:
        raise FormulaError(f"{what} takes more than {MAX_TERM_VALUES:,} values")
    found = {_value(term, dict(zip(bound, at, strict=True)), what) for at in product(*ranges)}
    return sorted(found)


def _value(term: Term, at: Mapping[str, int], what: str) -> float:
    match term:
        case Const(value):
            found = value
        case Step(base, offset):
            found = float(offset + (at[base] if base else 0))
        case Apply(function, arguments) if function in _ARITHMETIC:
            parts = [_value(each, at, what) for each in arguments]
            if function == "/" and not parts[1]:
                raise FormulaError(f"{what} divides by 0")
            return float(_ARITHMETIC[function](*parts))
        case _:
            raise FormulaError(f"{what} {_WHOLE}")
    return found
