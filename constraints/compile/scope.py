"""The scope of a subformula: bound variables, their ranges of steps, the step called `now`."""

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
from constraints.compile.reading_errors import no_time_grid
from constraints.errors import FormulaError, Remedy, Setting
from constraints.layout.signals import Layout

MAX_WINDOW_STEPS = 1_000_000  # steps in a window
MAX_TERM_VALUES = 100_000  # combinations of the bound variables of a row, a column or a class


@dataclass(frozen=True)
class Scope:
    """Bound variables, their ranges of steps, and the step called `now`."""

    variables: Mapping[str, str] = field(default_factory=dict)  # as written -> as renamed
    ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    pixels: frozenset[str] = frozenset()  # renamed variables that are pixels
    here: Step = START  # the step that relative windows count from
    now: Step | None = (
        None  # the step at which a bare series is read; None: a bare series is an error
    )
    level: int = 0  # number of variables bound around


@dataclass(frozen=True)
class Times:
    """Steps on a layout's grid; `end`: the rule outside it (see `resolve`)."""

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
                raise no_time_grid(None, self.layout)
            return Step(None, self.layout.steps - 1 + node.offset)
        if node.base == NOW:
            return scope.here.shifted(node.offset)
        if node.base not in scope.variables:
            raise FormulaError(
                f"the time variable {node.base} is not bound",
                value=node.base,
                remedy=f"write forall {node.base}: ... or exists {node.base}: ...",
            )
        return Step(scope.variables[node.base], node.offset)

    def number(self, node: Step, scope: Scope) -> Term:
        """A step used as a number."""
        if node.base == NOW and scope.now is None:
            raise FormulaError(
                "now has no value here: it is the step that always, eventually and the like move",
                value=NOW,
                remedy='a signal of that name is written "now"',
            )
        step = self.step(node, scope)
        if step.base in scope.pixels:
            raise FormulaError(
                f"{node} is a pixel, not a number",
                value=str(node),
                remedy=f"read an image at it, as in image({node})",
            )
        return Const(step.offset) if step.base is None else step

    def range(self, step: Step, scope: Scope) -> tuple[int, int]:
        """The least and the greatest step, over all values of its variable."""
        low, high = scope.ranges.get(step.base or "", (0, 0))
        return low + step.offset, high + step.offset

    def window(
        self, first: Step, last: Step, scope: Scope, what: str, *, clip: bool
    ) -> tuple[int, int]:
        """The range of a variable over a window, which must not be empty.

        Only a window that begins right after its end, as [1, end] on a grid of one step, may be.
        """
        low, high = self.range(first, scope)[0], self.range(last, scope)[1]
        if clip and self.end == "clip":
            low, high = max(low, 0), min(high, self.layout.steps - 1)
        if high + 1 < low:
            raise self.empty_window(what, first, last)
        if high - low > MAX_WINDOW_STEPS:
            raise FormulaError(
                f"{what}: a window spans at most {MAX_WINDOW_STEPS:,} steps, not {high - low:,}",
                value=high - low,
                remedy="shorten the window",
            )
        return low, high

    def empty_window(self, what: str, first: Step, last: Step) -> FormulaError:
        """Error for a window without steps."""
        return FormulaError(
            f"{what}: the window [{first}, {last}] is empty on this grid",
            value=f"[{first}, {last}]",
            remedy=f"the steps are 0..{self.layout.steps - 1}",
        )

    def inside(self, step: Step, series: Node, scope: Scope) -> Step:
        """The step, if it stays on the grid or `end` is a rule for steps outside it."""
        low, high = self.range(step, scope)
        last = self.layout.steps - 1
        if self.end in ("weak", "strong") or 0 <= low <= high <= last:
            return step
        reached = high if high > last else low
        side = f"past the last step, {last}" if high > last else "before the first step, 0"
        if step.base is None:
            raise FormulaError(
                f"{series}({reached}) is {side}",
                value=reached,
                remedy=f"the steps are 0..{last}, the last is called `end`",
            )
        remedy: list[str | Setting] = ["shorten the window (`end` is the last step), or use "]
        if self.end is None:
            remedy += [Setting("end", "clip"), " (windows keep to steps that exist), "]
        remedy += [Setting("end", "weak"), " (what lies outside counts as met) or "]
        remedy += [Setting("end", "strong"), " (as not met)"]
        raise FormulaError(
            f"{series} is read at step {reached}, {side}", value=reached, remedy=remedy
        )


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
    """All values of a term made of numbers and bound variables: a row, a column or a class.

    `what` names the term in errors.
    """
    bound = sorted({node.base for node in descend(term) if isinstance(node, Step) and node.base})
    if not all(name in scope.ranges for name in bound):
        raise _not_whole(term, what)
    ranges = [range(scope.ranges[name][0], scope.ranges[name][1] + 1) for name in bound]
    count = math.prod(len(each) for each in ranges)
    if count > MAX_TERM_VALUES:
        raise FormulaError(
            f"{what} has at most {MAX_TERM_VALUES:,} values, not {count:,}",
            value=count,
            remedy="shorten the windows of its variables",
        )
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
                raise FormulaError(f"{what} divides by 0", value=str(term))
            return float(_ARITHMETIC[function](*parts))
        case _:
            raise _not_whole(term, what)
    return found


def _not_whole(term: Term, what: str) -> FormulaError:
    remedy: Remedy = "write a whole number, a variable bound by forall or exists, or a sum of these"
    return FormulaError(f"{what} is not a whole number", value=str(term), remedy=remedy)
