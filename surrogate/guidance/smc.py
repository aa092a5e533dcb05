"""Primitives of sequential Monte Carlo: log-mean-exp, effective sample size, systematic resampling.

Log-weights have particles along their last axis; leading axes are independent populations. See
Doucet and Johansen 2009, "A tutorial on particle filtering and smoothing", and Kitagawa 1996 for
systematic resampling.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Generator, Tensor

RESAMPLING_THRESHOLD = 0.5  # ESS, as a share of the particles, below which they are resampled


def log_mean_exp(log_weights: Tensor) -> Tensor:
    """log of the mean weight: (..., N) to (...,)."""
    return log_weights.logsumexp(-1) - math.log(log_weights.shape[-1])


def ess(log_weights: Tensor) -> Tensor:
    """Effective sample size (Σw)²/Σw²: (..., N) to (...,); 0 where all weights are 0."""
    total = log_weights.logsumexp(-1)
    found = torch.exp(2 * total - (2 * log_weights).logsumexp(-1))
    return torch.where(total.isfinite(), found, 0.0)


def systematic(log_weights: Tensor, count: int, generator: Generator) -> Tensor:
    """Systematic resampling: ancestor indices (..., count) of particles with log-weights (..., N).

    Each particle is taken as often as its weight says, rounded up or down.
    """
    probabilities = torch.softmax(log_weights, -1)
    start = torch.rand((*log_weights.shape[:-1], 1), generator=generator, dtype=probabilities.dtype)
    positions = (torch.arange(count, dtype=probabilities.dtype) + start) / count
    ends = probabilities.cumsum(-1)
    found = torch.searchsorted(ends, positions * ends[..., -1:])
    return found.clamp_max(log_weights.shape[-1] - 1)


def resampling(generator: Generator) -> Callable[[Tensor], Tensor | None]:
    """Ancestor indices (N,) of log-weights (N,) whose ESS is below the threshold, else None."""

    def chosen(log_weights: Tensor) -> Tensor | None:
        count = len(log_weights)
        found = float(ess(log_weights))
        if found == 0 or found >= RESAMPLING_THRESHOLD * count:
            return None
        return systematic(log_weights, count, generator)

    return chosen


def distinct(ancestors: Tensor) -> int:
    """Distinct ancestors among indices (N,)."""
    return len(torch.unique(ancestors))


def ancestor_ess(log_weights: Tensor, ancestors: Tensor) -> float:
    """Effective number of ancestors, from log-weights (N,) and ancestor indices (N,)."""
    shares = torch.softmax(log_weights, 0)
    each = torch.zeros(int(ancestors.max()) + 1, dtype=shares.dtype)
    return float(1 / each.index_add(0, ancestors, shares).square().sum())
