"""Evaluation of lowered formulas on batches: folds over windows in torch, no loop over steps.

The value of `left until right` at a step is the fold, over distances d, of `right` at d joined with
`left` at every smaller distance, a prefix scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.families import Observation
from constraints.ast.lowered import Atom, BoundUntil, HasClass, Pixels
from constraints.ast.walk import free
from constraints.evaluate.classes import Judged
from constraints.evaluate.folds import Fold
from constraints.evaluate.frames import Frame, Index
from constraints.evaluate.values import MAX, MIN, Values


class Evaluator(Values):
    """One evaluation: a layout, its tensors, a semantics."""

    def formula(self, node: f.Formula, frame: Frame) -> Tensor:
        semantics = self.semantics
        match node:
            case Atom():
                return self.atom(node, frame)
            case HasClass(chance):
                return self.classed(node, self.judged_as(chance, frame))
            case f.And(()) | f.Or(()):
                return self.filled(semantics.constant(isinstance(node, f.And)), frame)
            case f.And(parts):
                return semantics.both.join([self.formula(part, frame) for part in parts])
            case f.Or(parts):
                return semantics.either.join([self.formula(part, frame) for part in parts])
            case f.Annotated(body, _, weight):
                return semantics.weighted(self.formula(body, frame), weight or 1.0)
            case f.Quantifier():
                return self.quantifier(node, frame)
            case BoundUntil():
                return self.until(node, frame)
        raise TypeError(f"{node!r} is not lowered")

    def atom(self, node: Atom, frame: Frame) -> Tensor:
        return self.guarded(lambda: self.judged(node, self.total(node, frame), frame), frame)

    def guarded(self, find: Callable[[], Tensor], frame: Frame) -> Tensor:
        """The value of an atom; where it reads off the grid or a missing value, a constant."""
        around = self._outside, self._known
        self._outside, self._known = [], []
        value = find()
        for inside in self._outside:
            value = torch.where(inside, value, self.filled(self.beyond(), frame))
        for known in self._known:  # a missing value satisfies neither a statement nor its negation
            never = self.filled(self.semantics.constant(False), frame)
            value = torch.where(frame.place(known[:, None], Index(0)), value, never)
        self._outside, self._known = around
        return value

    def parameters(self, node: Observation) -> list[Tensor]:
        """The parameters of an observation's distribution, (B,) or (1,) each, float64."""
        return [self.term(each, Frame()).double() for each in node.distribution.parameters]

    def log_density(self, node: Observation) -> Tensor:
        """log p(y | x) of an observation, (B,) or (1,), float64; -inf where a value is missing."""
        around, self._known = self._known, []
        found = node.log_density(*self.parameters(node))
        for known in self._known:
            found = torch.where(known, found, -torch.inf)
        self._known = around
        return found

    def judged(self, node: Atom, y: Tensor, frame: Frame) -> Tensor:
        """The value of the atom whose sum is y."""
        return self.semantics.atom(y, node)

    def classed(self, node: HasClass, judged: Judged) -> Tensor:
        """The value of the statement that an image is of a class."""
        return self.semantics.label(judged, node)

    def beyond(self) -> float | bool:
        """The value of an atom that reads off the grid."""
        return self.semantics.constant(self.end == "weak")

    def total(self, node: Atom, frame: Frame) -> Tensor:
        """Σ coefficient·term of an atom."""
        parts = zip(node.coefficients, node.terms, strict=True)
        scaled = (self.scaled(c, self.term(term, frame)) for c, term in parts)
        return reduce(torch.add, scaled)

    def scaled(self, coefficient: float, value: Tensor) -> Tensor:
        if coefficient == 1.0:
            return value
        return -value if coefficient == -1.0 else coefficient * value

    def quantifier(self, node: f.Quantifier, frame: Frame) -> Tensor:
        fold = self.fold(node.kind)

        def body(inner: Frame) -> Tensor:
            return self.formula(node.body, inner)

        if isinstance(node.region, Pixels):
            return self.over_pixels(fold, node.variable, node.region, body, frame)
        assert node.first is not None
        assert node.last is not None
        window = (node.variable, node.first, node.last, node.body)
        clip = node.region is None
        atom = node.body
        if self.semantics.margins and isinstance(atom, Atom) and self.end is None:
            one_sided = math.isinf(atom.low) != math.isinf(atom.high)
            if one_sided:  # fold the sums, then take the atom of the extreme one: fewer passes
                greatest = (node.kind == "forall") == math.isinf(atom.low)
                fold = MAX if greatest else MIN

                def extreme() -> Tensor:
                    y = self.over(fold, *window, lambda g: self.total(atom, g), frame)
                    return self.judged(atom, y, frame)

                return self.guarded(extreme, frame)
        return self.over(fold, *window, body, frame, clip)

    def fold(self, kind: str) -> Fold:
        """The fold of a quantifier over its steps."""
        return self.semantics.forall if kind == "forall" else self.semantics.exists

    def until(self, node: BoundUntil, frame: Frame) -> Tensor:
        """right at distance d, with left at all smaller distances, for some d (or the dual)."""
        semantics = self.semantics
        here, steps, axis = frame.index(node.here), self.layout.steps, len(frame.sizes)
        reach = frame.last(here) if node.past else steps - 1 - here.offset
        far = reach if node.last is None else node.last
        if far < node.first:  # no step is that far away
            return self.filled(semantics.constant(node.kind == "forall"), frame)

        def run(part: f.Formula, first: int, last: int) -> tuple[Tensor, Index, Frame]:
            """The operand at distances first..last, nearest first."""
            start = here.offset - last if node.past else here.offset + first
            index = Index(start, (*here.axes, axis))
            inner = frame.extended(node.variable, index, last - first + 1)
            value = self.shifted(part, node.variable, index, inner)
            return value.flip(-1) if node.past else value, index, inner

        right, index, inner = run(node.right, node.first, far)
        chain, link, fold = semantics.forall, semantics.both, semantics.exists
        if node.kind == "forall":
            chain, link, fold = semantics.exists, semantics.either, semantics.forall
        value = right
        if far > 0:
            left, _, _ = run(node.left, 0, far - 1)
            near = 1 if node.first == 0 else 0  # at distance 0 nothing lies in between
            before = chain.scan(left)[..., max(node.first - 1, 0) :]
            value = link.pair(right[..., near:], before)
            if near:
                value = torch.cat([right[..., :1].expand(*value.shape[:-1], 1), value], -1)
        at = inner.numbers(index, self.like)
        ahead, behind = at < steps, at >= 0
        inside: Tensor | None = None
        if self.end == "clip":
            inside = ahead & behind
        elif node.last is None:  # to the end, or back to the start
            inside = behind if node.past else ahead
        if inside is not None and not bool(inside.all()):
            return self.masked(fold, value, inside.flip(-1) if node.past else inside, -1)
        return fold.over(value, -1)

    def shifted(self, part: f.Formula, variable: str, index: Index, frame: Frame) -> Tensor:
        """A formula at the steps of `index`, evaluated once along time where that is enough.

        The last axis has its full size.
        """
        if any(self.moves(name, frame) for name in free(part) - {variable}):
            value = self.formula(part, frame)
            return value.expand(*value.shape[:-1], frame.sizes[-1])
        start, stop = index.offset, frame.last(index)
        x = self.formula(part, frame.alone(variable, start, stop - start + 1))
        return frame.place(x.expand(len(x), stop - start + 1), index.plus(-start))
