"""Mixtures of logistic distributions, truncated to an interval and seen through intervals.

A count n is the interval [n - 1/2, n + 1/2] of a real number z (Salimans et al. 2017, PixelCNN++,
arXiv:1701.05517), a real value is z itself; z has the density Σ_k π_k logistic(z; μ_k, s_k), cut
off outside the support [low, high] that laws leave it. With σ the logistic function,

    log (σ(b) - σ(a)) = log σ(b) + log σ(-a) + log(1 - e^(a-b)),

which keeps its precision in both tails.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

MIN_SCALE = 0.02  # of a component, in units of what is drawn: a count fills 1
MAX_REACH = 40.0  # scales from the location beyond which a bound is as good as none
MAX_END = 1e20  # of an interval, in place of infinity
LOG_2 = 0.6931471805599453


def log_mass(low: Tensor, high: Tensor) -> Tensor:
    """log(σ(high) - σ(low)) for low <= high, elementwise."""
    width = (high - low).clamp_min(1e-12)
    # log(1 - e^-w), by its accurate branch on either side of log 2
    rest = torch.where(
        width < LOG_2,
        torch.log(-torch.expm1(-width.clamp_max(1.0))),
        torch.log1p(-torch.exp(-width.clamp_min(0.1))),
    )
    return logsigmoid(high) + logsigmoid(-low) + rest


@dataclass(frozen=True)
class LogisticMixture:
    """`log_weights`, `location`, `log_scale`: (..., K) each; weights are normalised."""

    log_weights: Tensor
    location: Tensor
    log_scale: Tensor

    def _standard(self, z: Tensor) -> Tensor:
        """(z - μ_k)/s_k of z (...): (..., K)."""
        z = z.clamp(-MAX_END, MAX_END)  # infinity times the gradient 0 would be no number
        found = (z.unsqueeze(-1) - self.location) * torch.exp(-self.log_scale)
        return found.clamp(-MAX_REACH, MAX_REACH)

    def log_interval(self, low: Tensor, high: Tensor) -> Tensor:
        """log P(low <= z <= high), (...), of ends (...)."""
        parts = log_mass(self._standard(low), self._standard(high))
        return torch.logsumexp(self.log_weights + parts, -1)

    def log_density(self, z: Tensor) -> Tensor:
        """log p(z), (...)."""
        at = self._standard(z)
        parts = logsigmoid(at) + logsigmoid(-at) - self.log_scale
        return torch.logsumexp(self.log_weights + parts, -1)

    def sample(self, low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
        """A draw for each interval [low, high] (B,), from the mixture cut to it; float64 (B,).

        `uniform` (2, B) chooses the component and the point in it.
        """
        a, b = self._standard(low), self._standard(high)
        share = torch.softmax(self.log_weights + log_mass(a, b), -1).cumsum(-1)
        chosen = (share < uniform[0, :, None].to(share) * share[:, -1:]).sum(-1, keepdim=True)
        chosen = chosen.clamp_max(share.shape[1] - 1)
        location, log_scale, first, last = (
            each.expand_as(share).gather(1, chosen)[:, 0].double()
            for each in (self.location, self.log_scale, a, b)
        )
        scale = torch.exp(log_scale)
        return location + scale * _truncated(first, last, uniform[1])


def _truncated(low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
    """Standard logistic draws in [low, high], by inversion in the tail where numbers are exact."""
    flip = low > 0
    a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
    first, last = torch.sigmoid(a), torch.sigmoid(b)
    p = first + uniform * (last - first)
    z = torch.log(p.clamp_min(1e-300)) - torch.log1p(-p.clamp_max(1 - 1e-16))
    z = torch.minimum(torch.maximum(z, a), b)
    return torch.where(flip, -z, z)
