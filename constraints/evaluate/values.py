"""Values of terms, and folds of values over the steps or pixels of a variable.

`forall u in [t, t + 5]: body` whose body depends on u alone is evaluated once along the time axis
and folded over sliding windows; a prefix or suffix window becomes a scan. Only a body that depends
on both t and u is laid out over both, as views of the series.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import reduce

import torch
from torch import Tensor
from torch.nn.functional import pad

from constraints.ast import formulas as f
from constraints.ast.aggregates import aggregates
from constraints.ast.lowered import CategoryWeight, ClassProbability, LatentColumn, Pixel, Pixels
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.walk import free
from constraints.ast.words import NOW
from constraints.evaluate.classes import Judged
from constraints.evaluate.folds import SUM, Fold, Max, Mean, Min
from constraints.evaluate.frames import Frame, Index, over_pixels
from constraints.evaluate.image_values import TENSOR_FUNCTIONS, VARIADIC_FUNCTIONS, ImageValues
from constraints.evaluate.semantics import Boolean, Semantics
from constraints.layout.signals import Layout

MAX, MIN = Max(), Min()
_FOLDS: Mapping[str, Fold] = {"max": MAX, "min": MIN, "mean": Mean(), "sum": SUM}


class Values(ImageValues):
    """The values of terms: (B, *sizes) in a frame of axes."""

    def __init__(
        self,
        layout: Layout,
        tensors: Mapping[str, Tensor],
        semantics: Semantics,
        end: str | None = None,
    ) -> None:
        self.layout = layout
        self.tensors = tensors
        self.semantics = semantics
        self.end = end
        self.like = next(iter(tensors.values()))  # constants have its dtype and device
        self._series: dict[tuple[object, ...], Tensor] = {}
        self._images: dict[tuple[object, ...], Tensor] = {}
        self._judged: dict[tuple[object, ...], Judged] = {}
        self._outside: list[Tensor] = []  # masks of places off the grid, for the atom at hand
        self._known: list[Tensor] = []  # and masks (B,) of samples that have the values it reads
        self.lacking = {
            signal.name
            for signal in layout.signals
            if signal.optional and bool(torch.isnan(tensors.get(signal.name, self.like)).any())
        }

    def under(self, semantics: Semantics) -> Values:
        """The same data under another semantics."""
        return type(self)(self.layout, self.tensors, semantics, self.end)

    @abstractmethod
    def formula(self, node: f.Formula, frame: Frame) -> Tensor:
        """The value of a lowered formula: (B, *sizes)."""

    def filled(self, value: float | bool, frame: Frame) -> Tensor:
        dtype = torch.bool if isinstance(value, bool) else self.like.dtype
        shape = (1,) * (1 + len(frame.sizes))
        return torch.full(shape, value, dtype=dtype, device=self.like.device)

    # folding over a window

    def over(
        self,
        fold: Fold,
        variable: str,
        first: Step,
        last: Step,
        node: Node,
        body: Callable[[Frame], Tensor],
        frame: Frame,
        clip: bool = True,
        counted: bool = False,
    ) -> Tensor:
        """`body` folded over the steps first..last of `variable`: (B, *sizes).

        A body that does not change with the variable counts once, unless `counted`.
        """
        low, high = frame.index(first), frame.index(last)
        a, b = low.offset, frame.last(high)
        clip = clip and self.end == "clip"
        if variable not in free(node) and not counted:
            return self.unless_empty(body(frame), fold, low, high, frame, clip)
        still = all(not self.moves(name, frame) for name in free(node) - {variable})
        never_empty = frame.last(low) <= high.offset
        plain = low.axes == high.axes or ((not low.axes or not high.axes) and never_empty)
        if not (still and plain):
            return self.laid_out(fold, variable, low, high, body, frame, clip)
        start, stop = (max(a, 0), min(b, self.layout.steps - 1)) if clip else (a, b)
        if stop < start:
            return self.filled(fold.neutral, frame)
        x = body(frame.alone(variable, start, stop - start + 1))
        if x.shape[-1] == 1:
            x = x.expand(-1, stop - start + 1)
        if not low.axes and not high.axes:
            y = fold.over(x, -1)
            return frame.place(y[:, None], Index(0)) if frame.sizes else y
        windows, at = _windows(low, high, a)
        left, right = start - a, b - stop
        if not left and not right:
            return frame.place(windows(fold, x), at)
        y = windows(fold, _padded(x, left, right, fold.neutral))
        if fold.averages:
            ones = torch.ones_like(x[:1])
            assumed, actual = (pad(ones, (left, right), value=v) for v in (1.0, 0.0))
            y = fold.recount(y, windows(SUM, assumed), windows(SUM, actual))
        return frame.place(y, at)

    def laid_out(
        self,
        fold: Fold,
        variable: str,
        low: Index,
        high: Index,
        body: Callable[[Frame], Tensor],
        frame: Frame,
        clip: bool,
    ) -> Tensor:
        """The general case: an axis of its own for the variable, masked where windows differ."""
        axis = len(frame.sizes)
        if low.axes == high.axes:
            index, size = Index(low.offset, (*low.axes, axis)), high.offset - low.offset + 1
        else:
            index, size = Index(low.offset, (axis,)), frame.last(high) - low.offset + 1
        if size < 1:
            return self.filled(fold.neutral, frame)
        inner = frame.extended(variable, index, size)
        value = body(inner)
        inside: Tensor | None = None
        if low.axes != high.axes:
            at = inner.numbers(index, self.like)
            inside = (at >= inner.numbers(low, self.like)) & (at <= inner.numbers(high, self.like))
        if clip:
            on_grid = inner.inside(index, self.layout.steps, self.like)
            if on_grid is not None:
                inside = on_grid if inside is None else inside & on_grid
        if inside is not None:
            return self.masked(fold, value, inside, -1)
        return fold.over(value.expand(*value.shape[:-1], size), -1)

    def unless_empty(
        self, value: Tensor, fold: Fold, low: Index, high: Index, frame: Frame, clip: bool
    ) -> Tensor:
        """`value` where the window low..high holds a step, else the fold's neutral element."""
        last = self.layout.steps - 1
        inside = low.offset >= 0 and frame.last(high) <= last
        if (inside or not clip) and frame.last(low) <= high.offset:
            return value
        first, final = (frame.numbers(index, self.like) for index in (low, high))
        if clip:
            first, final = first.clamp(min=0), final.clamp(max=last)
        return torch.where(first <= final, value, self.filled(fold.neutral, frame))

    def masked(self, fold: Fold, value: Tensor, inside: Tensor, dim: int) -> Tensor:
        neutral = torch.tensor(fold.neutral, dtype=value.dtype, device=value.device)
        value = torch.where(inside, value, neutral)
        y = fold.over(value, dim)
        if fold.averages:
            count = inside.to(y.dtype).sum(dim)
            y = fold.recount(y, torch.full_like(count, value.shape[dim]), count)
        return y

    def moves(self, name: str, frame: Frame) -> bool:
        """Whether a variable has an axis in the frame."""
        return name in frame.pixels or (
            name in frame.variables and bool(frame.variables[name].axes)
        )

    # terms: (B, *sizes)

    def term(self, node: Term, frame: Frame) -> Tensor:
        match node:
            case Const(number):
                return self.filled(number, frame)
            case Name() | CategoryWeight():
                return frame.place(self.column(node)[:, None], Index(0))
            case LatentColumn(signal, warp):
                return warp.inverse(self.term(signal, frame))
            case Step():
                return frame.numbers(frame.index(node), self.like)
            case At(series, Step(str() as base)) if base in frame.pixels:
                return self.at_pixels(series, base, frame)
            case Pixel():
                return self.pixel(node, frame)
            case ClassProbability():
                return self.judged_as(node, frame).own.exp()
            case At(series, step):
                index = frame.index(step)
                inside = frame.inside(index, self.layout.steps, self.like)
                if inside is not None and self.end in ("weak", "strong"):
                    self._outside.append(inside)
                return frame.place(self.series(series), index)
            case Apply(function, arguments) if function in TENSOR_FUNCTIONS:
                return TENSOR_FUNCTIONS[function](*(self.term(each, frame) for each in arguments))
            case Apply(function, arguments) if function in VARIADIC_FUNCTIONS:
                values = (self.term(each, frame) for each in arguments)
                return reduce(VARIADIC_FUNCTIONS[function], values)
            case Apply():
                value = self.call(node, frame)
                missing = 1 + len(frame.sizes) - value.ndim
                return value.reshape(value.shape + (1,) * missing)
            case Aggregate():
                around, self._outside = self._outside, []  # its window is on the grid
                value = self.aggregate(node, frame)
                self._outside = around
                return value
            case Count(body, first, last):
                assert first is not None
                assert last is not None

                # a margin of 0 does not say whether a strict comparison holds: count verdicts
                counter = self.under(Boolean()) if self.semantics.margins else self

                def truth(inner: Frame) -> Tensor:
                    found = counter.formula(body, inner)
                    return counter.semantics.truth(found).to(self.like.dtype)

                return self.over(SUM, NOW, first, last, body, truth, frame, counted=True)
        raise TypeError(f"{node!r} is not resolved")

    def column(self, node: Name | CategoryWeight) -> Tensor:
        """One value a sample: (B,)."""
        if isinstance(node, CategoryWeight):
            return self.own(node.signal)[:, node.index]
        return self.own(node)

    def own(self, node: Name) -> Tensor:
        """The signal's tensor, of its instance."""
        value = self.tensors[node.name]
        value = value if node.instance is None else value[:, node.instance - 1]
        if node.name not in self.lacking:
            return value
        known = ~torch.isnan(value)
        self._known.append(known)
        return torch.where(known, value, 0.0)  # any number: NaN would spoil gradients

    def series(self, node: Term) -> Tensor:
        """A whole series: (B, T)."""
        match node:
            case Name("time") if self.layout.find("time") is None:
                times = torch.tensor(self.layout.times, dtype=self.like.dtype)
                return times.to(self.like.device)[None]
            case Name():
                return self.own(node)
            case Apply("delta" | "cumsum" as function, (body,)):
                if node.key not in self._series:
                    steps = self.layout.steps
                    x = self.term(body, Frame().alone(NOW, 0, steps)).expand(-1, steps)
                    change = pad(x.diff(dim=1), (1, 0)) if function == "delta" else x.cumsum(1)
                    self._series[node.key] = change
                return self._series[node.key]
            case Apply():
                return self.call(node, Frame())
        raise TypeError(f"{node!r} is not a series")

    def aggregate(self, node: Aggregate, frame: Frame) -> Tensor:
        def body(inner: Frame) -> Tensor:
            return self.term(node.body, inner)

        entry = aggregates()[node.kind]
        scheme = entry.fold
        fold = _FOLDS.get(scheme) if isinstance(scheme, str) else None
        if isinstance(node.region, Pixels):
            if fold is not None:
                return self.over_pixels(fold, NOW, node.region, body, frame)
            assert not isinstance(scheme, str)
            value = body(over_pixels(frame, NOW, node.region, self.layout))
            return scheme(value, None, *node.parameters)
        assert node.first is not None
        assert node.last is not None
        if fold is not None:
            return self.over(fold, NOW, node.first, node.last, node.body, body, frame)
        low, high = frame.index(node.first), frame.index(node.last)
        if scheme == "integral":
            return self.integral(low, high, node.body, frame)
        x, at, inside = self.window(low, high, node.body, frame)
        if isinstance(scheme, str):
            return self.extreme(scheme, x, at, inside)
        every = bool(inside.all())
        return scheme(x, None if every else inside, *node.parameters)

    def integral(self, low: Index, high: Index, body: Term, frame: Frame) -> Tensor:
        """The trapezoidal rule over model time, as a difference of its running total.

        In double precision, or a window after a large stretch would be lost to rounding.
        """
        steps = self.layout.steps
        x = self.term(body, Frame().alone(NOW, 0, steps)).expand(-1, steps).double()
        times = torch.tensor(self.layout.times, dtype=x.dtype, device=x.device)
        panels = (x[:, 1:] + x[:, :-1]) / 2 * times.diff()
        running = pad(panels.cumsum(1), (1, 0))
        return (frame.place(running, high) - frame.place(running, low)).to(self.like.dtype)

    def window(
        self, low: Index, high: Index, body: Term, frame: Frame
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Windows along a last axis: values (B, *sizes, n), their steps, which are inside."""
        axis, steps = len(frame.sizes), self.layout.steps
        if low.axes == high.axes:
            index, size = Index(low.offset, (*low.axes, axis)), high.offset - low.offset + 1
        else:
            index, size = Index(low.offset, (axis,)), frame.last(high) - low.offset + 1
        inner = frame.extended(NOW, index, size)
        x = self.term(body, inner)
        at = inner.numbers(index, self.like)
        first, last = (inner.numbers(bound, self.like) for bound in (low, high))
        inside = (at >= first.clamp(min=0)) & (at <= last.clamp(max=steps - 1))
        return x.expand(*x.shape[:-1], size), at, inside

    def extreme(self, kind: str, x: Tensor, at: Tensor, inside: Tensor) -> Tensor:
        """argmax (argmin): the first step of a window at which its extreme value is attained."""
        x = torch.where(inside, x if kind == "argmax" else -x, -torch.inf)
        place = x.argmax(-1, keepdim=True)
        return at.expand(*place.shape[:-1], x.shape[-1]).gather(-1, place)[..., 0]


def _padded(x: Tensor, left: int, right: int, value: float | bool) -> Tensor:
    if x.dtype == torch.bool:
        return pad(x.to(torch.uint8), (left, right), value=int(value)).to(torch.bool)
    return pad(x, (left, right), value=float(value))


def _windows(low: Index, high: Index, start: int) -> tuple[Callable[[Fold, Tensor], Tensor], Index]:
    """The fold of a series that begins at step `start` over the windows, and its index."""
    if low.axes == high.axes:
        width = high.offset - low.offset + 1
        return (lambda fold, x: fold.slide(x, width)), low.plus(-start)
    if not low.axes:
        return (lambda fold, x: fold.scan(x)), high.plus(-start)
    return (lambda fold, x: fold.scan(x.flip(-1)).flip(-1)), low.plus(-start)
