"""Formulas about trajectories of which only the first steps are known: online monitoring.

Steps up to `known` have happened; of the others, each signal lies within the bounds of its layout.
For a formula φ with robustness ρ and a prefix x_0..x_k

    achieved(x)   <= inf ρ(φ, x y) over all continuations y
    optimistic(x) >= sup ρ(φ, x y)

(robust satisfaction intervals; Deshmukh et al., Robust online monitoring of signal temporal logic,
2017), both exact where every atom reads one value and each value is read once, and ρ itself at the
last step. Formulas are in negation normal form, so both ends fold like margins: the evaluator takes
a batch of 3 B samples, the lower ends of all values, the upper ends, and a forecast of the
continuation. What grows with its arguments needs no change; here is what does not.

With the forecast a prefix has a `level`: the past counts by its truth, the future by its forecast,

    level of an atom = ∞ if it holds whatever comes, -∞ if it cannot hold, else its margin under the
                       forecast,

folded by min and max. It is ∞ (-∞) only where the formula holds (fails) whatever comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from itertools import product
from typing import Any

import torch
from torch import Tensor

from constraints.ast.aggregates import aggregates
from constraints.ast.lowered import Atom
from constraints.ast.terms import Aggregate, Apply, Count, Term
from constraints.ast.words import NOW
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.folds import SUM
from constraints.evaluate.frames import Frame
from constraints.evaluate.image_values import TENSOR_FUNCTIONS
from constraints.evaluate.semantics import Boolean, Robustness
from constraints.evaluate.values import Values

GREATEST = 1e300  # of the margins of a forecast: infinite ones would count as certain


class Margins(Robustness):
    """Robustness whose atoms are judged one by one: each may be decided or not."""

    margins = False


class Levels(Margins):
    """The values of formulas are levels, (B,)."""


class Prefix(Evaluator):
    """Values of terms and formulas for 3 B samples: lower ends, upper ends, forecasts.

    A value of one sample, a constant, stands for all three.
    """

    def under(self, semantics: Any) -> Values:
        return Prefix(self.layout, self.tensors, semantics, self.end)

    def three(self, *parts: Tensor) -> Tensor:
        """Lower ends, upper ends and forecasts of B samples as one batch."""
        size = len(self.like) // 3
        spread = together(*parts)
        return torch.cat([part.expand(size, *part.shape[1:]) for part in spread])

    # atoms

    def judged(self, node: Atom, y: Tensor, frame: Frame) -> Tensor:
        low, high, guess = ends(y)
        certain, possible = _decided(node, low, high)
        if isinstance(self.semantics, Boolean):
            return self.three(certain, possible, self.semantics.atom(guess, node))
        margin = self.semantics.atom
        if isinstance(self.semantics, Levels):
            level = margin(guess, node).clamp(-GREATEST, GREATEST)
            return torch.where(certain, math.inf, torch.where(possible, level, -math.inf))
        open_ = torch.isnan(low) | torch.isnan(high)
        achieved = torch.minimum(margin(low, node), margin(high, node))
        achieved = torch.where(open_, -math.inf, achieved)
        centre = _centre(node)
        best = low.nan_to_num(-math.inf, math.inf, -math.inf)
        best = torch.minimum(
            torch.maximum(best.new_tensor(centre), best),
            high.nan_to_num(math.inf, math.inf, -math.inf),
        )
        optimistic = torch.where(torch.isinf(best), math.inf, margin(best, node))
        optimistic = torch.where(possible, optimistic, torch.clamp(optimistic, max=0.0))
        return self.three(achieved, optimistic, margin(guess, node))

    # terms

    def scaled(self, coefficient: float, value: Tensor) -> Tensor:
        value = super().scaled(coefficient, value)
        return _swapped(value) if coefficient < 0 else value

    def term(self, node: Term, frame: Frame) -> Tensor:
        match node:
            case Apply("neg", (argument,)):
                return _swapped(-self.term(argument, frame))
            case Apply("abs", (argument,)):
                value = self.term(argument, frame)
                if len(value) == 1:
                    return value.abs()
                low, high, guess = ends(value)
                far = torch.maximum(low.abs(), high.abs())
                near = torch.where(
                    (low <= 0) & (high >= 0), 0.0, torch.minimum(low.abs(), high.abs())
                )
                return torch.cat([near, far, guess.abs()])
            case Apply("*" | "/" | "pow" as function, arguments):
                values = [self.term(each, frame) for each in arguments]
                return reduce(lambda x, y: _corners(function, x, y), values)
            case Count(body, first, last):
                assert first is not None
                assert last is not None
                counter = self.under(Boolean())

                def truth(inner: Frame) -> Tensor:
                    return counter.formula(body, inner).to(self.like.dtype)

                return self.over(SUM, NOW, first, last, body, truth, frame, counted=True)
        return super().term(node, frame)

    def series(self, node: Term) -> Tensor:
        match node:
            case Apply("delta", (body,)) if node.key not in self._series:
                steps = self.layout.steps
                x = self.term(body, Frame().alone(NOW, 0, steps)).expand(-1, steps)
                change = x[:, 1:] + _swapped(-x[:, :-1])
                self._series[node.key] = torch.nn.functional.pad(change, (1, 0))
        return super().series(node)

    def call(self, node: Apply, frame: Frame) -> Tensor:
        """A function of the layout: of unknown shape, so nothing is known before its arguments."""
        value = super().call(node, frame)
        if len(value) == 1:
            return value
        function = self.layout.function(node.function)
        assert function is not None
        settled: Tensor | None = None
        for each in node.arguments:
            given = self.argument(each, frame, function.whole)
            low, high, _ = ends(given)
            same = (low == high).reshape(len(low), -1).all(1)
            settled = same if settled is None else settled & same
        assert settled is not None
        low, high, guess = ends(value)
        settled = settled.reshape(-1, *(1,) * (low.ndim - 1))
        low, high = torch.where(settled, low, -math.inf), torch.where(settled, high, math.inf)
        return torch.cat(together(low, high, guess))

    def aggregate(self, node: Aggregate, frame: Frame) -> Tensor:
        entry = aggregates()[node.kind]
        value = super().aggregate(node, frame)
        if isinstance(entry.fold, str) or entry.monotone or len(value) == 1:
            return value
        assert node.first is not None
        assert node.last is not None
        at = frame.index(node.first), frame.index(node.last)
        x, _, inside = self.window(*at, node.body, frame)
        low, high, _ = ends(x)
        settled = ((low == high) | ~inside).all(-1)
        found = [torch.full_like(settled, -math.inf, dtype=x.dtype)]
        found.append(torch.full_like(settled, math.inf, dtype=x.dtype))
        if entry.averages:
            found = [
                torch.where(inside, low, math.inf).amin(-1),
                torch.where(inside, high, -math.inf).amax(-1),
            ]
        ours = ends(value)
        low, high = (torch.where(settled, ours[i], found[i]) for i in (0, 1))
        return torch.cat(together(low, high, ours[2]))

    def extreme(self, kind: str, x: Tensor, at: Tensor, inside: Tensor) -> Tensor:
        """The first and the last step that can be the argmax (argmin), and that of the forecast."""
        guess = super().extreme(kind, ends(x)[2], at, inside)
        if len(x) == 1:
            return guess
        x = x if kind == "argmax" else _swapped(-x)
        low, high, _ = ends(torch.where(inside, x, -math.inf))
        none = torch.full_like(low[..., :1], -math.inf)
        before = torch.cat([none, low.cummax(-1).values[..., :-1]], -1)
        after = torch.cat([low.flip(-1).cummax(-1).values.flip(-1)[..., 1:], none], -1)
        can = inside & ((high > before) | torch.isinf(before)) & (high >= after)
        steps = at.expand(can.shape)
        first = torch.where(can, steps, math.inf).amin(-1)
        last = torch.where(can, steps, -math.inf).amax(-1)
        return torch.cat(together(first, last, guess))


def together(*parts: Tensor) -> list[Tensor]:
    """Tensors broadcast against each other."""
    return list(torch.broadcast_tensors(*parts))  # type: ignore[no-untyped-call]


def ends(value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The lower ends, the upper ends and the forecasts of a batch of three parts."""
    if len(value) == 1:
        return value, value, value
    low, high, guess = value.chunk(3)
    return low, high, guess


def _swapped(value: Tensor) -> Tensor:
    """A falling function of lower ends is an upper end."""
    if len(value) == 1:
        return value
    low, high, guess = value.chunk(3)
    return torch.cat([high, low, guess])


def _decided(node: Atom, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Whether an atom holds for all values between the ends, and whether it may hold for some."""
    verdict = Boolean().atom
    certain = verdict(low, node) & verdict(high, node) & ~torch.isnan(low) & ~torch.isnan(high)
    least, most = node.low - node.slack, node.high + node.slack
    below = high <= least if node.open_low and math.isfinite(least) else high < least
    above = low >= most if node.open_high and math.isfinite(most) else low > most
    return certain, ~(below | above)


def _centre(node: Atom) -> float:
    """The value of greatest margin."""
    if math.isinf(node.low):
        return -math.inf
    return math.inf if math.isinf(node.high) else (node.low + node.high) / 2


def _corners(function: str, x: Tensor, y: Tensor) -> Tensor:
    """A product, quotient or power: extreme at the corners of a box, wherever it is defined."""
    apply: Callable[..., Tensor] = TENSOR_FUNCTIONS[function]
    if len(x) == len(y) == 1:
        return apply(x, y)
    (a, b, guess), (c, d, other) = ends(x), ends(y)
    found = torch.stack(together(*(apply(p, q) for p, q in product((a, b), (c, d)))))
    settled = (a == b) & (c == d)
    if function == "*":
        found = found.nan_to_num(0.0, math.inf, -math.inf)  # 0 times infinity, at an end, is 0
        settled = torch.zeros_like(settled)
    low, high = found.amin(0), found.amax(0)
    if function == "/":
        wild = (c <= 0) & (d >= 0)
        low, high = torch.where(wild, -math.inf, low), torch.where(wild, math.inf, high)
    if function == "pow":
        whole = (c == d) & (c == c.round()) & (c >= 0)
        low = torch.where(whole & (a < 0) & (b > 0) & (c > 0), torch.minimum(low, low * 0), low)
        wild = (a < 0) & ~whole | (a <= 0) & (b >= 0) & (c < 0)
        low, high = torch.where(wild, math.nan, low), torch.where(wild, math.nan, high)
    exact = apply(a, c)
    unknown = torch.isnan(a) | torch.isnan(b) | torch.isnan(c) | torch.isnan(d)
    low, high = (torch.where(unknown, math.nan, each) for each in (low, high))
    low, high = torch.where(settled, exact, low), torch.where(settled, exact, high)
    return torch.cat(together(low, high, apply(guess, other)))
