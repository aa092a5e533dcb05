"""Frames: the tensor axes of bound variables, and steps as indices into these axes.

Inside quantifiers a value is a tensor (B, n_1, ..., n_m) with one axis for each variable that is
laid out; an axis on which the value does not depend has size 1. A step is an `Index`: an offset
plus the coordinates of some axes. Reading a series at an index is a view: a slice for one axis, an
unfolded window for two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from constraints.ast.lowered import Pixels
from constraints.ast.terms import Step
from constraints.layout.pixels import mask
from constraints.layout.signals import Layout
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Index:
    """offset + the coordinates of `axes` (in increasing order)."""

    offset: int
    axes: tuple[int, ...] = ()

    def plus(self, offset: int) -> Index:
        return Index(self.offset + offset, self.axes)


@dataclass(frozen=True)
class Frame:
    """The sizes of the axes, the index of each variable, and the domains of pixel variables."""

    sizes: tuple[int, ...] = ()
    variables: Mapping[str, Index] = field(default_factory=dict)
    pixels: Mapping[str, Pixels] = field(default_factory=dict)

    def index(self, step: Step) -> Index:
        if step.base is None:
            return Index(step.offset)
        return self.variables[step.base].plus(step.offset)

    def last(self, index: Index) -> int:
        """The greatest step the index takes."""
        return index.offset + sum(self.sizes[axis] - 1 for axis in index.axes)

    def extended(self, variable: str, index: Index, size: int) -> Frame:
        """The frame with one more axis, and `variable` at `index`, which may use that axis."""
        return Frame((*self.sizes, size), {**self.variables, variable: index}, self.pixels)

    def over(self, variable: str, domain: Pixels, size: int) -> Frame:
        """The frame with one more axis, along which `variable` takes the pixels of a domain."""
        inner = self.extended(variable, Index(0, (len(self.sizes),)), size)
        return Frame(inner.sizes, inner.variables, {**self.pixels, variable: domain})

    def alone(self, variable: str, first: int, size: int) -> Frame:
        """A frame of one axis: `variable` from step `first` on; constant variables are kept."""
        still = {name: index for name, index in self.variables.items() if not index.axes}
        return Frame((size,), {**still, variable: Index(first, (0,))})

    def place(self, x: Tensor, index: Index) -> Tensor:
        """x (B, n) read at the index: (B, *sizes), 1 on axes it does not use.

        Outside 0..n-1 the nearest entry stands in; see `inside`.
        """
        sizes = [self.sizes[axis] for axis in index.axes]
        start, stop = index.offset, self.last(index) + 1
        if start >= 0 and stop <= x.shape[1]:
            part = x[:, start:stop]
        else:
            part = x[:, torch.arange(start, stop, device=x.device).clamp(0, x.shape[1] - 1)]
        for i in range(1, len(sizes)):
            part = part.unfold(-1, 1 + sum(size - 1 for size in sizes[i:]), 1)
        if not sizes:
            part = part[:, 0]
        if len(index.axes) == len(self.sizes):
            return part
        view: list[slice | None] = [slice(None)]
        view += [slice(None) if axis in index.axes else None for axis in range(len(self.sizes))]
        return part[tuple(view)]

    def numbers(self, index: Index, like: Tensor) -> Tensor:
        """The steps themselves: (1, *sizes), 1 on axes the index does not use."""
        count = self.last(index) + 1 - index.offset
        steps = torch.arange(count, dtype=like.dtype, device=like.device)[None]
        return self.place(steps, Index(0, index.axes)) + index.offset

    def inside(self, index: Index, steps: int, like: Tensor) -> Tensor | None:
        """Which places lie on the grid, or None if all do."""
        if index.offset >= 0 and self.last(index) < steps:
            return None
        at = self.numbers(index, like)
        return (at >= 0) & (at < steps)


def over_pixels(frame: Frame, variable: str, domain: Pixels, layout: Layout) -> Frame:
    """The frame with an axis for a variable that takes the pixels of a domain, in all channels."""
    return frame.over(variable, domain, domain.shape[0] * int(mask(domain, layout).sum()))
