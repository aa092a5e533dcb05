"""Draws from the families of distributions, in torch.

Each takes a generator and tensors of parameters that lie within their domains (`families.Domain`)
and have one shape, and returns a number drawn from each distribution, float64 like them. They are
the counterparts of `densities`: what these give a density, those draw.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Generator, Tensor


def poisson(generator: Generator, mean: Tensor) -> Tensor:
    return torch.poisson(mean, generator)


def normal(generator: Generator, mean: Tensor, sd: Tensor) -> Tensor:
    return mean + sd * torch.randn(mean.shape, generator=generator, dtype=mean.dtype)


def lognormal(generator: Generator, mean_of_log: Tensor, sd: Tensor) -> Tensor:
    return normal(generator, mean_of_log, sd).exp()


def binomial(generator: Generator, n: Tensor, p: Tensor) -> Tensor:
    return torch.binomial(n.floor(), p, generator)


def negative_binomial(generator: Generator, mean: Tensor, dispersion: Tensor) -> Tensor:
    """A Poisson count whose mean is drawn from a gamma distribution of that shape."""
    return poisson(generator, mean * _gamma(generator, dispersion) / dispersion)


def student_t(generator: Generator, df: Tensor, location: Tensor, scale: Tensor) -> Tensor:
    """A normal number of precision χ²(df) / df."""
    precision = 2 * _gamma(generator, df / 2) / df
    return normal(generator, location, scale / precision.clamp_min(1e-300).sqrt())


def uniform(generator: Generator, low: Tensor, high: Tensor) -> Tensor:
    return low + (high - low) * torch.rand(low.shape, generator=generator, dtype=low.dtype)


def _gamma(generator: Generator, shape: Tensor) -> Tensor:
    """Of scale 1; torch.distributions draws by the same function, without a generator."""
    found: Tensor = torch._standard_gamma(shape, generator=generator)
    return found
