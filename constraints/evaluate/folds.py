"""Folds: an operation such as min or sum, over an axis, over sliding windows, over prefixes.

Only `pair` is needed; the rest follows by doubling (windows, O(n log w)) and by Hillis and Steele
(prefixes, O(n log n)), with no loop over steps and no n × n mask.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import reduce

import torch
from torch import Tensor

from constraints.evaluate.log_probability import NEVER, log1mexp
from constraints.evaluate.windows import LogOrSums, SlidingMax, SlidingSum

_SMALL_LOG_PROBABILITY = -8.0  # below it p^2 is negligible, and -log(1 - p) is p
_LOG_OR_LIMIT = -60.0  # results above it are exact although `LogOrSums` clamps at -80


class Fold(ABC):
    """An associative operation with a neutral element."""

    neutral: float = 0.0
    idempotent = False  # x with x is x: windows may overlap
    averages = False  # the number of entries matters: see `recount`

    @abstractmethod
    def pair(self, x: Tensor, y: Tensor) -> Tensor: ...

    def join(self, parts: list[Tensor]) -> Tensor:
        """The fold of tensors that broadcast."""
        return reduce(self.pair, parts)

    def over(self, x: Tensor, dim: int) -> Tensor:
        """The fold along an axis, which is removed."""
        x = x.movedim(dim, -1)
        while x.shape[-1] > 1:
            half = x.shape[-1] // 2
            folded = self.pair(x[..., :half], x[..., half : 2 * half])
            x = torch.cat([folded, x[..., 2 * half :]], -1) if x.shape[-1] % 2 else folded
        return x[..., 0]

    def slide(self, x: Tensor, width: int) -> Tensor:
        """The fold over sliding windows of the last axis: (..., n) to (..., n - width + 1)."""
        count = x.shape[-1] - width + 1
        block, size = x, 1
        found, start = None, 0
        while True:
            if not self.idempotent and width & size:
                piece = block[..., start : start + count]
                found, start = piece if found is None else self.pair(found, piece), start + size
            if 2 * size > width:
                break
            block = self.pair(block[..., : block.shape[-1] - size], block[..., size:])
            size *= 2
        if found is not None:
            return found
        if size == width:
            return block
        return self.pair(block[..., :count], block[..., width - size : width - size + count])

    def recount(self, value: Tensor, assumed: Tensor, actual: Tensor) -> Tensor:
        """An average over `assumed` entries corrected to the `actual` ones that are not neutral."""
        return value

    def scan(self, x: Tensor) -> Tensor:
        """The fold over prefixes of the last axis: entry i folds entries 0..i."""
        shift = 1
        while shift < x.shape[-1]:
            head, folded = x[..., :shift], self.pair(x[..., shift:], x[..., :-shift])
            x, shift = torch.cat([head, folded], -1), 2 * shift
        return x


class Sum(Fold):
    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def over(self, x: Tensor, dim: int) -> Tensor:
        return x.sum(dim)

    def slide(self, x: Tensor, width: int) -> Tensor:
        return _apply(SlidingSum, x, width)

    def scan(self, x: Tensor) -> Tensor:
        return x.cumsum(-1)


SUM = Sum()


class Min(Fold):
    neutral = torch.inf
    idempotent = True

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.minimum(x, y)

    def over(self, x: Tensor, dim: int) -> Tensor:
        return x.min(dim).values  # its gradient is cheaper than that of amin

    def slide(self, x: Tensor, width: int) -> Tensor:
        return -_apply(SlidingMax, -x, width)


class Max(Fold):
    neutral = -torch.inf
    idempotent = True

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.maximum(x, y)

    def over(self, x: Tensor, dim: int) -> Tensor:
        return x.max(dim).values

    def slide(self, x: Tensor, width: int) -> Tensor:
        return _apply(SlidingMax, x, width)


class All(Fold):
    neutral = True
    idempotent = True

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return x & y

    def over(self, x: Tensor, dim: int) -> Tensor:
        return x.all(dim)


class Any(Fold):
    neutral = False
    idempotent = True

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return x | y

    def over(self, x: Tensor, dim: int) -> Tensor:
        return x.any(dim)


class LogOr(Fold):
    """log(1 - Π(1 - p)) of log-probabilities: the disjunction of independent events.

    Where it is not below e^-60 it is log1mexp Σ log1mexp; else pairs are folded as
    max + log(1 + e^(min - max) - e^min), which stays exact down to any log-probability.
    """

    neutral = NEVER

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        high, low = torch.maximum(x, y), torch.minimum(x, y)
        return high + torch.log1p(torch.exp(low - high) * -torch.expm1(high))

    def over(self, x: Tensor, dim: int) -> Tensor:
        x = x.movedim(dim, -1)
        value = _apply(LogOrSums, x, 0)
        return (
            torch.where(value < _LOG_OR_LIMIT, super().over(x, -1), value) if _far(value) else value
        )

    def slide(self, x: Tensor, width: int) -> Tensor:
        if width == 1:
            return x
        value = _apply(LogOrSums, x, width)
        if not _far(value):
            return value
        return torch.where(value < _LOG_OR_LIMIT, super().slide(x, width), value)


@dataclass(frozen=True)
class Mean(Fold):
    """The mean in place of the sum over steps."""

    averages = True

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return x + y

    def over(self, x: Tensor, dim: int) -> Tensor:
        return x.mean(dim)

    def slide(self, x: Tensor, width: int) -> Tensor:
        return SUM.slide(x, width) / width

    def scan(self, x: Tensor) -> Tensor:
        return x.cumsum(-1) / _counts(x)

    def recount(self, value: Tensor, assumed: Tensor, actual: Tensor) -> Tensor:
        return value * (assumed / actual.clamp(min=1))


@dataclass(frozen=True)
class LogMeanExp(Fold):
    """log mean e^(αx) / α: between the mean (α → 0) and the maximum (α → ∞)."""

    alpha: float = 1.0
    neutral = NEVER
    averages = True

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return self.join([x, y])

    def join(self, parts: list[Tensor]) -> Tensor:
        return self.over(torch.stack([part + 0 * sum(parts) for part in parts]), 0)

    def over(self, x: Tensor, dim: int) -> Tensor:
        count = torch.tensor(float(x.shape[dim]), dtype=x.dtype, device=x.device)
        return (torch.logsumexp(self.alpha * x, dim) - count.log()) / self.alpha

    def slide(self, x: Tensor, width: int) -> Tensor:
        return self.over(x.unfold(-1, width, 1), -1)

    def scan(self, x: Tensor) -> Tensor:
        return (torch.logcumsumexp(self.alpha * x, -1) - _counts(x).log()) / self.alpha

    def recount(self, value: Tensor, assumed: Tensor, actual: Tensor) -> Tensor:
        return value + (assumed.log() - actual.clamp(min=1).log()) / self.alpha


@dataclass(frozen=True)
class PowerMean(Fold):
    """-(Σ (-x)^q)^(1/q) of values <= 0: the sum at q = 1, the minimum as q grows."""

    q: float

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return self._root(self._power(x) + self._power(y))

    def over(self, x: Tensor, dim: int) -> Tensor:
        return self._root(self._power(x).sum(dim))

    def slide(self, x: Tensor, width: int) -> Tensor:
        return self._root(SUM.slide(self._power(x), width))

    def scan(self, x: Tensor) -> Tensor:
        return self._root(self._power(x).cumsum(-1))

    def _power(self, x: Tensor) -> Tensor:
        return (-x).clamp(min=1e-9) ** self.q  # a root has no finite slope at 0

    def _root(self, x: Tensor) -> Tensor:
        return -(x ** (1 / self.q))


@dataclass(frozen=True)
class PowerOr(Fold):
    """The disjunction dual to `PowerMean`: log(1 - e^s), s the power mean of log(1 - p)."""

    q: float
    neutral = NEVER

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return self.over(torch.stack((x + 0 * y, y + 0 * x), -1), -1)

    def over(self, x: Tensor, dim: int) -> Tensor:
        x = x.movedim(dim, -1)
        return self._joined(
            x.amax(-1), PowerMean(self.q).over(self._none(x), -1), torch.logsumexp(self.q * x, -1)
        )

    def slide(self, x: Tensor, width: int) -> Tensor:
        return self.over(x.unfold(-1, width, 1), -1)

    def scan(self, x: Tensor) -> Tensor:
        return self._joined(
            x.cummax(-1).values,
            PowerMean(self.q).scan(self._none(x)),
            torch.logcumsumexp(self.q * x, -1),
        )

    def _none(self, x: Tensor) -> Tensor:
        return log1mexp(x.clamp(_SMALL_LOG_PROBABILITY - 12, -1e-6))

    def _joined(self, greatest: Tensor, none: Tensor, small: Tensor) -> Tensor:
        """log(1 - e^none), and for small probabilities, where that cancels, -log(1 - p) = p."""
        return torch.where(greatest > _SMALL_LOG_PROBABILITY, log1mexp(none), small / self.q)


def _apply(function: type[torch.autograd.Function], x: Tensor, width: int) -> Tensor:
    value: Tensor = function.apply(x, width)  # type: ignore[no-untyped-call]
    return value


def _far(value: Tensor) -> bool:
    return value.numel() > 0 and bool(value.detach().amin() < _LOG_OR_LIMIT)


def _counts(x: Tensor) -> Tensor:
    return torch.arange(1, x.shape[-1] + 1, dtype=x.dtype, device=x.device)
