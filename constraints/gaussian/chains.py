"""Probability that a Gaussian Markov chain stays within bounds: log P(low <= y_t <= high, all t).

Assumed-density filtering (Minka 2001, "Expectation propagation for approximate Bayesian inference",
section 2, one forward pass): given that all earlier values stayed within the bounds, the
distribution of y_t is replaced by a Gaussian with the same mean and variance, the moments of a
truncated normal, so that log P is a sum of interval probabilities. Genz 1992 and Botev 2017 compute
the same orthant probabilities by simulation. The result is exact for uncorrelated values; values
that are all equal count once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

MARKOV_TOLERANCE = 0.2  # root mean square difference of correlations from those of a Markov chain
MIN_VARIANCE_SHARE = 1e-3  # of the variance that a value keeps when it is truncated
FAR_BOUND = 30.0  # standard deviations beyond which a bound has no effect
_HALF_LOG_2PI = 0.5 * math.log(2 * math.pi)


def markov(covariance: Tensor) -> bool:
    """Whether neighbours explain the correlations of a Gaussian vector (A,), given its (A, A)."""
    deviations = covariance.diagonal().clamp_min(0).sqrt()
    if not bool((deviations > 0).all()):
        return False
    actual = covariance / (deviations[:, None] * deviations[None])
    steps = actual.diagonal(1)
    if bool((steps <= 0).any()):  # no chain of positive correlations: only nearly independent ones
        return bool((actual - torch.eye(len(actual)).to(actual)).abs().max() < MARKOV_TOLERANCE)
    way = torch.cat([steps.new_zeros(1), steps.log().cumsum(0)])
    implied = torch.exp(-(way[:, None] - way[None]).abs())
    count = len(actual) * (len(actual) - 1)
    return float((actual - implied).square().sum() / count) < MARKOV_TOLERANCE**2


def stays(mean: Tensor, variance: Tensor, neighbours: Tensor, low: float, high: float) -> Tensor:
    """log P (B,): mean (B, A), variance (A,), covariances of neighbours (A - 1,)."""
    total = mean.new_zeros(len(mean))
    centre, spread = mean[:, 0], variance[0].expand(len(mean))
    tiny = torch.finfo(mean.dtype).tiny
    for t in range(mean.shape[1]):
        if t:
            gain = neighbours[t - 1] / variance[t - 1].clamp_min(tiny)
            centre, spread = (
                mean[:, t] + gain * (centre - mean[:, t - 1]),
                (variance[t] - gain**2 * (variance[t - 1] - spread)).clamp_min(
                    1e-9 * variance[t] + tiny
                ),
            )
        log_share, shift, kept = _truncated(centre, spread.sqrt(), low, high)
        total = total + log_share
        centre, spread = centre + shift * spread.sqrt(), kept * spread
    return total


def _truncated(
    centre: Tensor, deviation: Tensor, low: float, high: float
) -> tuple[Tensor, Tensor, Tensor]:
    """A normal truncated to [low, high]: log P of the interval, the shift of the mean in standard
    deviations, and the share of the variance that is left.
    """
    if math.isinf(low) and math.isinf(high):
        return 0 * centre, 0 * centre, torch.ones_like(centre)
    if math.isinf(high):  # y >= low is -y <= -low
        log_share, shift, kept = _truncated(-centre, deviation, -high, -low)
        return log_share, -shift, kept
    b = ((high - centre) / deviation).clamp(-1e4, 1e4)
    if math.isinf(low):
        below: Tensor = torch.special.log_ndtr(b)
        hazard = torch.exp(_log_density(b) - below)
        kept = 1 - b * hazard - hazard**2
        return below, -hazard, kept.clamp(MIN_VARIANCE_SHARE, 1)
    a = ((low - centre) / deviation).clamp(-1e4, 1e4)
    log_share = log_interval(a, b)
    left, right = torch.exp(_log_density(a) - log_share), torch.exp(_log_density(b) - log_share)
    left, right = left.clamp_max(1e4), right.clamp_max(1e4)
    shift = left - right
    kept = 1 + a.clamp_min(-FAR_BOUND) * left - b.clamp_max(FAR_BOUND) * right - shift**2
    return log_share, shift, kept.clamp(MIN_VARIANCE_SHARE, 1)


def _log_density(z: Tensor) -> Tensor:
    return -0.5 * z**2 - _HALF_LOG_2PI


def log_interval(a: Tensor, b: Tensor) -> Tensor:
    """log P(a <= z <= b) of a standard normal, computed in the nearer tail."""
    flip = a > 0
    low, high = torch.where(flip, -b, a), torch.where(flip, -a, b)
    upper: Tensor = torch.special.log_ndtr(high)
    lower: Tensor = torch.special.log_ndtr(low)
    return upper + torch.log1p(-torch.exp(lower - upper).clamp_max(1 - 1e-12))
