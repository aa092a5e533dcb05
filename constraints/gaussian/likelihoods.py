"""Expected likelihoods of observations under a Gaussian: log E p(y | θ(x)) for x ~ N(mean, C).

The parameters θ(x) of an observation are Gaussian too, to first order: exactly so if they are
linear in x, else linearised at the mean. A normal density with a Gaussian mean has a closed
expectation, N(y; μ, v + s²), and so has the lognormal one (`Family.expected`). Any other is
integrated numerically. With θ = μ + F z, z ~ N(0, I), the leading coordinate z_1 is the direction
in which the location of the distribution moves, and further ones, for observations of which several
parameters depend on x, take Gauss-Hermite nodes.

Along z_1 the integrand may be far narrower than N(0, 1), lie far out in its tail, or have heavy
tails. Finer and finer grids find its peak and the width of that; the rule is trapezoidal in u with
z = peak + width · sinh u, over all that is within e^-30 of the maximum. It converges geometrically
for smooth integrands, as adaptive Gauss-Hermite rules do, but it needs no derivatives and copes
with heavy tails and with the end of a support (where its error is about 1 %). A Gaussian puts mass
beyond the ends of a closed domain (an intensity below 0); that counts as being at the end.

The gradient with respect to μ is that of the Gaussian, E[z p] F⁻¹ / E[p], so densities need none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from constraints.ast.families import Family, Observation
from constraints.evaluate.log_probability import NEVER
from constraints.gaussian.covariances import CovarianceOperator

OUTER_NODES = 8  # Gauss-Hermite nodes of each coordinate but the leading one
FIRST_NODES = 41  # of the grid on which the integrand is found
MAX_ARGUMENT = 9.0  # of sinh: that grid ends at 4,000 standard deviations
MAX_DROP = 30.0  # of the log of the integrand, below its maximum, from where on it is left out
PEAK_DROP = 2.0  # the same of its peak, two standard deviations of a Gaussian
ZOOM_NODES = 13  # of the grids on which the peak is found
MIN_PEAK_NODES = 4  # within the peak, to know its width
MAX_ZOOMS = 8
NODES = 33  # of the rule
LOCATION_WEIGHT = 10.0  # in which proportion the location decides on the leading direction
MIN_VARIANCE = 1e-18  # of a parameter, relative to its square
MIN_VARIANCE_SHARE = 1e-12  # of the leading coordinate's, below which another is left out
_LOG_SQRT_2_PI = 0.5 * math.log(2 * math.pi)

LogDensity = Callable[[Tensor], Tensor]  # z (..., nodes) to log-densities like it


def log_expected_density(
    observation: Observation, means: Tensor, covariance: Tensor, varying: list[int]
) -> Tensor:
    """log E p(y | θ) (B,), differentiable by the means (B, J) of all J parameters θ.

    covariance (B or 1, d, d): of the parameters numbered `varying`, the others are constant.
    """
    family, y = observation.distribution.family, observation.value
    if not varying:
        return observation.log_density(*means.unbind(-1))
    if family.expected is not None and varying == [family.location]:
        return family.expected(y, covariance[:, 0, 0], *means.unbind(-1))
    with torch.no_grad():
        leading = varying.index(family.location) if family.location in varying else 0
        size = means.detach()[:, varying].square().mean(0)
        floor = torch.diag(MIN_VARIANCE * (1 + size))  # a point is a very narrow Gaussian
        factor, inverse = _factors(covariance + floor, leading)
        outer, log_weights = _hermite(factor.shape[-1] - 1)
        start = means.detach()[:, None] + _placed(outer @ factor[:, :, 1:].mT, varying, means)
        direction = _placed(factor[:, None, :, 0], varying, means)  # (B or 1, 1, J)

        def log_density(z: Tensor) -> Tensor:
            theta = start[:, :, None] + direction[:, :, None] * z[..., None]  # (B, outer, nodes, J)
            return observation.log_density(*_within(family, theta))

        z, log_values = integrand(log_density, (len(means), len(outer)), means)
        log_values = log_values + log_weights[:, None]
    # the Gaussian moves with the means, and its values at the nodes with it
    shift = (means - means.detach())[:, varying]
    shift = (inverse @ shift[..., None])[..., 0]  # (B, d), of value 0
    moved = z * shift[:, :1, None] + (shift[:, None, 1:] * outer.to(shift)).sum(-1)[..., None]
    return torch.logsumexp((log_values.clamp_min(NEVER) + moved).flatten(1), 1)


def covariance_of(rows: Sequence[Tensor], spread: CovarianceOperator) -> Tensor:
    """The covariance (B or 1, d, d) of d sums with gradients (B or 1, 1, D) each."""
    if not rows:
        return torch.zeros(1, 0, 0)
    joint = torch.cat(torch.broadcast_tensors(*rows), 1)  # type: ignore[no-untyped-call]
    return spread.through(joint) @ joint.mT


def integrand(
    log_density: LogDensity, shape: tuple[int, int], like: Tensor
) -> tuple[Tensor, Tensor]:
    """Nodes z (*shape, n), and the logs of weight · density · N(z; 0, 1) there, like them.

    The sum of their exponentials is the expected density.
    """

    def values(z: Tensor) -> Tensor:
        return log_density(z) - 0.5 * z.square()

    z = torch.linspace(-MAX_ARGUMENT, MAX_ARGUMENT, FIRST_NODES).to(like).sinh().expand(*shape, -1)
    unit = torch.linspace(0.0, 1.0, ZOOM_NODES).to(like)
    found = values(z)
    low, high, _ = _hull(z, found, MAX_DROP)
    left, right, count = _hull(z, found, PEAK_DROP)
    for _ in range(MAX_ZOOMS):
        z = left + (right - left) * unit
        found = values(z)
        left, right, count = _hull(z, found, PEAK_DROP)
        if bool((count >= MIN_PEAK_NODES).all()):
            break
    peak = z.gather(-1, found.argmax(-1, keepdim=True))
    width = (right - left).clamp_min(torch.finfo(z.dtype).tiny) / 2
    # spacings grow away from the peak: heavy tails need few nodes
    first, last = ((end - peak) / width for end in (low, high))
    first, last = first.asinh(), last.asinh()
    u = first + (last - first) * torch.linspace(0.0, 1.0, NODES).to(like)
    z = peak + width * u.sinh()
    step = (last - first) / (NODES - 1)
    return z, values(z) + u.cosh().log() + (width * step).log() - _LOG_SQRT_2_PI


def _hull(z: Tensor, values: Tensor, drop: float) -> tuple[Tensor, Tensor, Tensor]:
    """The interval (..., 1) of nodes that holds all with values within `drop` of the greatest, one
    node wider on both sides, and how many nodes it has."""
    inside = values >= values.amax(-1, keepdim=True) - drop
    first = inside.int().argmax(-1, keepdim=True)
    last = inside.shape[-1] - 1 - inside.flip(-1).int().argmax(-1, keepdim=True)
    low = z.gather(-1, (first - 1).clamp_min(0))
    high = z.gather(-1, (last + 1).clamp_max(z.shape[-1] - 1))
    return low, high, last - first + 1


def _within(family: Family, theta: Tensor) -> list[Tensor]:
    """Parameters (..., J), one by one, brought to the ends of their closed domains."""
    found = []
    for parameter, each in zip(family.parameters, theta.unbind(-1), strict=True):
        domain = parameter.domain
        low = None if domain.positive or math.isinf(domain.low) else domain.low
        high = None if math.isinf(domain.high) else domain.high
        found.append(each if low is None and high is None else each.clamp(low, high))
    return found


def _placed(values: Tensor, varying: list[int], like: Tensor) -> Tensor:
    """Values (..., d) of the varying parameters among all of them: (..., J)."""
    found = like.new_zeros(*values.shape[:-1], like.shape[-1])
    found[..., varying] = values
    return found


def _factors(covariance: Tensor, location: int) -> tuple[Tensor, Tensor]:
    """F (B, d, r) with F Fᵀ = covariance (B, d, d), leading direction first, and its inverse."""
    scale = covariance.diagonal(dim1=1, dim2=2).sqrt()
    weight = torch.ones_like(scale)
    weight[:, location] = LOCATION_WEIGHT
    correlation = covariance / (scale[:, :, None] * scale[:, None])
    values, vectors = torch.linalg.eigh(correlation * weight[:, :, None] * weight[:, None])
    values, vectors = values.flip(-1).clamp_min(0), vectors.flip(-1)
    kept = int((values > MIN_VARIANCE_SHARE * values[:, :1]).any(0).sum().clamp_min(1))
    root = values[:, :kept].clamp_min(torch.finfo(values.dtype).tiny).sqrt()
    vectors = vectors[..., :kept]
    factor = (scale / weight)[..., None] * vectors * root[:, None]
    inverse = (vectors / root[:, None]).mT * (weight / scale)[:, None]
    return factor, inverse


def _hermite(dimensions: int) -> tuple[Tensor, Tensor]:
    """Nodes (n, dimensions) and log-weights (n,) of N(0, I); one node of weight 1 for none."""
    nodes, weights = _rule()
    if dimensions == 0:
        return torch.zeros(1, 0, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
    grids = torch.meshgrid([nodes] * dimensions, indexing="ij")
    shares = torch.meshgrid([weights.log()] * dimensions, indexing="ij")
    return (
        torch.stack([each.flatten() for each in grids], 1),
        torch.stack([each.flatten() for each in shares], 1).sum(1),
    )


@cache
def _rule() -> tuple[Tensor, Tensor]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(OUTER_NODES)
    return torch.from_numpy(nodes), torch.from_numpy(weights / weights.sum())
