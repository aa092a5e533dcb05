"""Gaussian vectors in a box, by the GHK simulator (Geweke, Hajivassiliou and Keane).

u ~ N(μ, S) with S = LLᵀ is u = μ + L e: each e_i is drawn from a standard normal truncated to the
interval that keeps u_i in the box, given e_1, ..., e_{i-1}. The product of the probabilities of
these intervals is the importance weight of a draw.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from constraints.gaussian.chains import log_interval

MIN_UNIFORM = 1e-300  # uniform draws are clamped here before their logarithm


def standard(low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
    """Standard normal draws in [low, high], by inversion of `uniform`."""
    flip = low > 0
    a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
    share = uniform.clamp(MIN_UNIFORM, 1).log() + log_interval(a, b)
    z = quantile(torch.logaddexp(torch.special.log_ndtr(a), share))
    z = torch.maximum(torch.minimum(z, b), a)
    return torch.where(flip, -z, z)


def quantile(log_share: Tensor) -> Tensor:
    """z with log P(n <= z) = log_share, accurate in the lower tail too."""
    centre: Tensor = torch.special.ndtri(log_share.exp().clamp(1e-15, 1 - 1e-16))
    tail = -torch.sqrt(-2 * log_share.clamp_max(-1.0))
    for _ in range(6):  # Newton's method on the logarithm, which is nearly a parabola there
        value: Tensor = torch.special.log_ndtr(tail)
        slope = torch.exp(-0.5 * tail**2 - 0.5 * math.log(2 * math.pi) - value)
        tail = tail - (value - log_share) / slope
    return torch.where(log_share > math.log(1e-12), centre, tail)


def box(
    mean: Tensor, factor: Tensor, low: Tensor, high: Tensor, generator: Generator
) -> tuple[Tensor, Tensor]:
    """Draws u (B, k) in the box and their log-weights (B,): mean (B, k), factor L (k, k)."""
    made = torch.zeros_like(mean)
    weight = mean.new_zeros(len(mean))
    noise = torch.zeros_like(mean)
    for i in range(mean.shape[1]):
        a, b, centre = _ends(mean, factor, low, high, noise, i)
        weight = weight + log_interval(a, b)
        uniform = torch.rand(len(mean), generator=generator, dtype=mean.dtype).to(mean.device)
        noise[:, i] = standard(a, b, uniform)
        made[:, i] = centre + factor[i, i] * noise[:, i]
    return made, weight


def _ends(
    mean: Tensor, factor: Tensor, low: Tensor, high: Tensor, noise: Tensor, i: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The interval of e_i given e_1, ..., e_{i-1}, and the mean of u_i: (B,) each."""
    centre = mean[:, i] + noise[:, :i] @ factor[i, :i]
    return (low[i] - centre) / factor[i, i], (high[i] - centre) / factor[i, i], centre


def shrunk(low: Tensor, high: Tensor, share: float = 1e-3) -> tuple[Tensor, Tensor]:
    """A box a little smaller, so that u stays inside in single precision."""
    margin = share * (high - low)
    return low + margin, high - margin
