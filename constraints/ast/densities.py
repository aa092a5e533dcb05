"""Log-densities of the families of distributions, in torch: differentiable and stable in float64.

Each takes the observed number and tensors of parameters that lie within their domains
(`families.Domain`), and returns a tensor like them: -inf where the number is impossible, with a
gradient of 0 there, never NaN.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

_LOG_2_PI = math.log(2 * math.pi)
_STIRLING = 1e4  # from where on a difference of lgamma loses digits, and Stirling's series has all


def poisson(y: float, mean: Tensor) -> Tensor:
    return _times_log(y, mean) - mean - math.lgamma(y + 1)


def normal(y: float, mean: Tensor, sd: Tensor) -> Tensor:
    return -0.5 * ((y - mean) / sd).square() - sd.log() - 0.5 * _LOG_2_PI


def lognormal(y: float, mean_of_log: Tensor, sd: Tensor) -> Tensor:
    return normal(math.log(y), mean_of_log, sd) - math.log(y)


def binomial(y: float, n: Tensor, p: Tensor) -> Tensor:
    """Between whole numbers n the factorials are gamma functions, down to n = y - 1."""
    possible = n > y - 1
    misses = torch.where(possible, n - y, 0.0)
    ways = torch.lgamma(torch.where(possible, n, y) + 1) - torch.lgamma(misses + 1)
    found = ways - math.lgamma(y + 1) + _times_log(y, p)
    certain = (p >= 1) & (misses > 0)
    found = found + misses * torch.log1p(-torch.where(p >= 1, 0.0, p))
    return torch.where(possible & ~certain, found, -math.inf)


def negative_binomial(y: float, mean: Tensor, dispersion: Tensor) -> Tensor:
    """Variance mean + mean² / dispersion; for a dispersion towards infinity it is Poisson."""
    k = dispersion
    found = _log_rising(k, y) - math.lgamma(y + 1) - y * torch.log(k + mean)
    return found + _times_log(y, mean) - k * torch.log1p(mean / k)


def student_t(y: float, df: Tensor, location: Tensor, scale: Tensor) -> Tensor:
    z = (y - location) / scale
    constant = _log_rising(df / 2, 0.5) - 0.5 * torch.log(math.pi * df) - scale.log()
    return constant - 0.5 * (df + 1) * torch.log1p(z.square() / df)


def uniform(y: float, low: Tensor, high: Tensor) -> Tensor:
    inside = (low <= y) & (y <= high) & (low < high)
    return torch.where(inside, -torch.log(torch.where(inside, high - low, 1.0)), -math.inf)


def _times_log(count: float, x: Tensor) -> Tensor:
    """count · log x for x >= 0, where 0 · log 0 is 0."""
    if count == 0:
        return torch.zeros_like(x)
    zero = x <= 0
    return torch.where(zero, -math.inf, count * torch.log(torch.where(zero, 1.0, x)))


def _log_rising(k: Tensor, by: float) -> Tensor:
    """log Γ(k + by) - log Γ(k), without cancellation for large k."""
    large = k > _STIRLING
    small = torch.where(large, 1.0, k)
    big = torch.where(large, k, _STIRLING)
    exact = torch.lgamma(small + by) - torch.lgamma(small)
    series = (big - 0.5) * torch.log1p(by / big) + by * torch.log(big + by) - by
    series = series + (1 / (big + by) - 1 / big) / 12
    return torch.where(large, series, exact)
