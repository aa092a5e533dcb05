"""Whether observations are like those of the learned data, or more extreme.

log P falls with every value that is observed, however ordinary it is, so that it cannot tell.
Samples of the model are observed in the same way, at the same places and through the same noise:
y_1, ..., y_n in R^m, and y is extreme if few of them are as far out. Two distances look at
different things. Mahalanobis' weighs all directions alike, so that it sees dynamics that are too
fast or too smooth: (y - μ)ᵀ C^-1 (y - μ), C shrunk towards its diagonal (Ledoit and Wolf 2004, "A
well-conditioned estimator for large-dimensional covariance matrices"). The distance to the k-th
nearest of them, each number in deviations of its own, sees places between modes and levels that are
off. One half of y_1, ..., y_n is the reference, the other is ranked beside y, so that the
p-value of the more extreme of both distances is exact if y is another sample's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from constraints import Formula
from constraints.explanation import percent
from surrogate.errors import SamplingError
from surrogate.guidance.choice import PILOT_STEPS
from surrogate.guidance.diagnostics import Diagnostics
from surrogate.guidance.prior import Prior
from surrogate.kinds.measurements import Measurements, Signals
from surrogate.random import Sampling, derived, stream

REFERENCE = 4_000  # samples of the model
NEIGHBOUR = 5
SIGNIFICANCE = 0.025  # of p-values, below which a warning is given
RIDGE = 1e-6  # of the correlation matrix: numbers that follow from others have no variance left


@dataclass(frozen=True)
class Look:
    """What the comparison found: the p-value, None where nothing was compared."""

    p_value: float | None = None

    @property
    def warning(self) -> str:
        """A sentence where the observations are unlike all others, else empty."""
        if self.p_value is None or self.p_value >= SIGNIFICANCE:
            return ""
        return (
            "these observations are unlike what the model has learned: more extreme than "
            f"{percent(1 - self.p_value)} of observations simulated from it"
        )

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Errors of a run that finds no samples begin with the warning, their likely cause."""
        try:
            yield
        except SamplingError as problem:
            if not self.warning:
                raise
            raise problem.at(self.warning) from None

    def noted(self, found: Diagnostics) -> Diagnostics:
        """Diagnostics of a run, with the p-value and the warning."""
        warnings = [*found.warnings, *filter(None, [self.warning])]
        return replace(found, unlike=self.p_value, warnings=warnings)


def look(
    prior: Prior, observed: Mapping[str, Formula], seed: int, plain: Tensor | None = None
) -> Look:
    """Compare observed data with those of samples of the model; `plain`: some that are drawn."""
    measurements = Measurements(observed, prior.codec.layout())
    if not measurements.every or not measurements.simulates:
        return Look()
    x = torch.zeros(0, *prior.shape) if plain is None else plain.reshape(-1, *prior.shape)
    if len(x) < REFERENCE:
        own = derived(seed, Sampling.UNLIKE)
        more = prior.draw(REFERENCE - len(x), own, steps=PILOT_STEPS)
        x = torch.cat([x.double(), more.double()])
    return Look(p_value(measurements, prior.codec.signals_of(x), seed))


def p_value(measurements: Measurements, samples: Signals, seed: int) -> float:
    """The share of samples (n, ...) whose observations are at least as extreme as the stated."""
    simulated = measurements.drawn(samples, stream(seed, Sampling.UNLIKE, 0))
    return extremeness(measurements.stated[None], simulated)


def extremeness(y: Tensor, simulated: Tensor) -> float:
    """The p-value of observations (1, m) among simulated ones (n, m)."""
    half = len(simulated) // 2
    reference, ranked = simulated[:half], torch.cat([simulated[half:], y])
    middle, scale = reference.mean(0), reference.std(0)
    # where all are the same, another value is as extreme as can be
    scale = torch.where(scale > 0, scale, 1e-9)
    z, others = (reference - middle) / scale, (ranked - middle) / scale
    each = torch.stack([_mahalanobis(z, others), _neighbour(z, others)])
    tails = torch.stack([_tails(distance) for distance in each]).amin(0)
    return float((tails <= tails[-1]).double().mean())


def _tails(distance: Tensor) -> Tensor:
    """The share of distances (n,) that are as large as each of them."""
    ordered = distance.sort().values
    below = torch.searchsorted(ordered, distance)
    return 1 - below.double() / len(distance)


def _mahalanobis(z: Tensor, others: Tensor) -> Tensor:
    """Squared distances (N,) of points (N, m) from the standardised reference (n, m)."""
    count, size = z.shape
    covariance = z.mT @ z / count
    diagonal = torch.diag(covariance.diagonal())
    # the sampling variance of covariances, over what they are
    noise = ((z.square().mT @ z.square()) / count - covariance.square()) / count
    beyond = ~torch.eye(size, dtype=torch.bool)
    total = (covariance - diagonal).square().sum()
    share = float(noise[beyond].sum() / total) if float(total) > 0 else 1.0
    share = min(max(share, 0.0), 1.0)
    shrunk = (1 - share) * covariance + share * diagonal + RIDGE * torch.eye(size, dtype=z.dtype)
    factor = torch.linalg.cholesky(shrunk)
    found: Tensor = torch.linalg.solve_triangular(factor, others.mT, upper=False).square().sum(0)
    return found


def _neighbour(z: Tensor, others: Tensor) -> Tensor:
    """Distances (N,) of points (N, m) to the k-th nearest of the reference (n, m)."""
    nearest = torch.cdist(others, z).kthvalue(min(NEIGHBOUR, len(z)), 1).values
    return nearest.round(decimals=9)
