"""Weighted particles: effective numbers, systematic resampling."""

from __future__ import annotations

import torch
from torch import Generator, Tensor


def effective(log_weights: Tensor) -> float:
    """The effective sample size, (Σw)²/Σw²; 0 if all weights are 0."""
    total = torch.logsumexp(log_weights, 0)
    if not bool(total.isfinite()):
        return 0.0
    return float(torch.exp(2 * total - torch.logsumexp(2 * log_weights, 0)))


def systematic(log_weights: Tensor, count: int, generator: Generator) -> Tensor:
    """Numbers (count,) of particles, each as often as its weight says, rounded up or down."""
    shares = torch.softmax(log_weights, 0)
    start = torch.rand((), generator=generator, dtype=shares.dtype)
    at = (torch.arange(count, dtype=shares.dtype) + start) / count
    ends = shares.cumsum(0)
    return torch.searchsorted(ends / ends[-1], at.to(ends)).clamp_max(len(shares) - 1)
