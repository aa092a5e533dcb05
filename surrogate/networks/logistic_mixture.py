"""Mixtures of logistic distributions, truncated to an interval and seen through intervals.

A count n is the interval [n - 1/2, n + 1/2] of a real number z (Salimans et al. 2017, PixelCNN++,
arXiv:1701.05517), a real value is z itself; z has the density Σ_k π_k logistic(z; μ_k, s_k), cut
off outside the support [low, high] that laws leave it. With σ the logistic function,

    log (σ(b) - σ(a)) = log σ(b) + log σ(-a) + log(1 - e^(a-b)),

which keeps its precision in both tails. The density of a component relative to the mass of its
support is computed about the support's own end, so that it stays right where the support lies far
out in the tail: there the distribution is exponential, and a common shift changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

MIN_SCALE = 0.02  # of a component, in units of what is drawn: a count fills 1
MAX_REACH = 1e4  # scales from the location beyond which an end is moved to this distance
TAIL = 30.0  # scales from the location beyond which a logistic is exponential
MAX_END = 1e20  # of an interval, in place of infinity
MIN_WIDTH = 1e-12  # of an interval, in scales
LOG_2 = 0.6931471805599453


def log_mass(low: Tensor, high: Tensor, width: Tensor | None = None) -> Tensor:
    """log(σ(high) - σ(low)) for low <= high, elementwise; `width`: high - low, if it is known
    more precisely."""
    width = (high - low if width is None else width).clamp_min(MIN_WIDTH)
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
        return (z.unsqueeze(-1) - self.location) * torch.exp(-self.log_scale)

    def _width(self, low: Tensor, high: Tensor) -> Tensor:
        """(high - low)/s_k, without the cancellation of two standardised ends."""
        width = (high.clamp_max(MAX_END) - low.clamp_min(-MAX_END)).unsqueeze(-1)
        return width * torch.exp(-self.log_scale)

    def log_interval(self, low: Tensor, high: Tensor) -> Tensor:
        """log P(low <= z <= high), (...), of ends (...)."""
        a, b = (self._standard(end).clamp(-MAX_REACH, MAX_REACH) for end in (low, high))
        parts = log_mass(a, b, self._width(low, high))
        return torch.logsumexp(self.log_weights + parts, -1)

    def log_density(self, z: Tensor) -> Tensor:
        """log p(z), (...)."""
        at = self._standard(z).clamp(-MAX_REACH, MAX_REACH)
        parts = logsigmoid(at) + logsigmoid(-at) - self.log_scale
        return torch.logsumexp(self.log_weights + parts, -1)

    def log_truncated(self, z: Tensor, low: Tensor, high: Tensor) -> Tensor:
        """log p(z | low <= z <= high), (...), for z in the interval."""
        first, last, shift = self._support(low, high)
        at = (self._standard(z) - shift).clamp(-MAX_REACH, MAX_REACH)
        density = logsigmoid(at) + logsigmoid(-at) - self.log_scale
        mass = log_mass(first, last, self._width(low, high))
        weights = self.log_weights
        return torch.logsumexp(weights + density, -1) - torch.logsumexp(weights + mass, -1)

    def log_share(self, low: Tensor, high: Tensor, within: tuple[Tensor, Tensor]) -> Tensor:
        """log P(low <= z <= high | within), (...), for an interval in `within`."""
        first, last, shift = self._support(*within)
        a, b = ((self._standard(end) - shift).clamp(-MAX_REACH, MAX_REACH) for end in (low, high))
        part = log_mass(a, b, self._width(low, high))
        mass = log_mass(first, last, self._width(*within))
        weights = self.log_weights
        return torch.logsumexp(weights + part, -1) - torch.logsumexp(weights + mass, -1)

    def _support(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The ends of an interval in scales, (..., K), moved towards the location where both lie
        beyond the tail, and by how much."""
        a, b = self._standard(low), self._standard(high)
        shift = ((a - TAIL).clamp_min(0) - (-TAIL - b).clamp_min(0)).detach()
        first, last = (a - shift).clamp_min(-MAX_REACH), (b - shift).clamp_max(MAX_REACH)
        return first.clamp_max(MAX_REACH), last.clamp_min(-MAX_REACH), shift

    def sample(self, low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
        """A draw for each interval [low, high] (B,), from the mixture cut to it; float64 (B,).

        `uniform` (2, B) chooses the component and the point in it.
        """
        first, last, shift = self._support(low, high)
        mass = log_mass(first, last, self._width(low, high))
        share = torch.softmax(self.log_weights + mass, -1).cumsum(-1)
        chosen = (share < uniform[0, :, None].to(share) * share[:, -1:]).sum(-1, keepdim=True)
        chosen = chosen.clamp_max(share.shape[1] - 1)
        location, log_scale, a, b, moved = (
            each.expand_as(share).gather(1, chosen)[:, 0].double()
            for each in (self.location, self.log_scale, first, last, shift)
        )
        return location + torch.exp(log_scale) * (moved + _truncated(a, b, uniform[1]))


def _truncated(low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
    """Standard logistic draws in [low, high], by inversion in the tail where numbers are exact."""
    flip = low > 0
    a, b = torch.where(flip, -high, low), torch.where(flip, -low, high)
    first, last = torch.sigmoid(a), torch.sigmoid(b)
    p = first + uniform * (last - first)
    z = torch.log(p.clamp_min(1e-300)) - torch.log1p(-p.clamp_max(1 - 1e-16))
    z = torch.minimum(torch.maximum(z, a), b)
    return torch.where(flip, -z, z)
