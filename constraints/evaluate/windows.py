"""Sliding windows with gradients written by hand.

Autograd through a doubling scheme spends most of its time on slices; these functions keep the
comparison of each level and walk the levels back. Along the last axis, (..., n) to
(..., n - width + 1), in O(n log width).
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import pad

_LOG_HALF = -math.log(2.0)
_MIN_LOG_PROBABILITY = -80.0  # e^x has a reciprocal in float32 down to here
_CERTAIN = -1e-30  # the log-probability that stands for certainty, where 0 has no finite gradient


def window_sums(x: Tensor, width: int) -> Tensor:
    """Sums over windows by doubling: exact to rounding, unlike differences of a running total."""
    count = x.shape[-1] - width + 1
    block, size, found, start = x, 1, None, 0
    while True:
        if width & size:
            piece = block[..., start : start + count]
            found, start = piece if found is None else found + piece, start + size
        if 2 * size > width:
            assert found is not None
            return found
        block = block[..., : block.shape[-1] - size] + block[..., size:]
        size *= 2


def _spread(grad: Tensor, width: int) -> Tensor:
    """The transpose of `window_sums`: each entry goes to all of its window."""
    return window_sums(pad(grad, (width - 1, width - 1)), width)


class SlidingSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, width: int) -> Tensor:
        ctx.width = width
        return window_sums(x, width)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _spread(grad, ctx.width), None


class SlidingMax(torch.autograd.Function):
    """The gradient goes to the first entry of a window that attains its maximum."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, width: int) -> Tensor:
        levels: list[tuple[int, Tensor]] = []
        size = 1
        while size < width:
            shift = min(size, width - size)  # the last windows overlap
            left, right = x[..., : x.shape[-1] - shift], x[..., shift:]
            levels.append((shift, left >= right))
            x, size = torch.maximum(left, right), size + shift
        ctx.shifts = [shift for shift, _ in levels]
        ctx.save_for_backward(*(first for _, first in levels))
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        for shift, first in zip(reversed(ctx.shifts), reversed(ctx.saved_tensors), strict=True):
            left = grad * first
            wider = pad(left, (0, shift))
            wider[..., shift:] += grad - left
            grad = wider
        return grad, None


def _log1mexp(x: Tensor) -> Tensor:
    """log(1 - e^x) for x < 0 in two branches, without a graph."""
    near, far = torch.expm1(x).neg_().log_(), torch.exp(x).neg_().log1p_()
    return torch.where(x > _LOG_HALF, near, far)


class LogOrSums(torch.autograd.Function):
    """log(1 - Π(1 - e^x)) over the last axis (width 0) or its windows, down to x = -80."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, width: int) -> Tensor:
        x = x.clamp(_MIN_LOG_PROBABILITY, _CERTAIN)
        other = _log1mexp(x)
        total = window_sums(other, width) if width else other.sum(-1)
        value = _log1mexp(total)
        ctx.width = width
        ctx.save_for_backward(x - other, total - value)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        odds, rest = ctx.saved_tensors
        grad = grad * rest.exp()
        spread = _spread(grad, ctx.width) if ctx.width else grad[..., None]
        return spread * odds.exp(), None
