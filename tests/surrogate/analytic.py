"""Data whose distribution is known, and how far draws may be from it by chance alone."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from surrogate.diffusion.gaussian import GaussianDenoiser, MixtureDenoiser

SIGMAS = 4.5  # standard errors that a fixed seed is allowed


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def gaussian(dim: int = 6, seed: int = 5) -> GaussianDenoiser:
    """Correlated coordinates of unit size, with a mean."""
    root = torch.randn(dim, dim, generator=generator(seed), dtype=torch.float64) / math.sqrt(dim)
    mean = torch.linspace(-1, 1, dim, dtype=torch.float64)
    return GaussianDenoiser(mean, root @ root.mT + 0.05 * torch.eye(dim, dtype=torch.float64))


def toy() -> MixtureDenoiser:
    """Half N(-3, 0.5²), half N(4, 1²), (B, 1)."""
    means, deviations = torch.tensor([[-3.0], [4.0]]), torch.tensor([0.5, 1.0])
    covariances = deviations.square()[:, None, None]
    return MixtureDenoiser(torch.tensor([0.5, 0.5]), means, covariances)


def assert_moments(x: Tensor, mean: Tensor, covariance: Tensor, slack: float = 0.0) -> None:
    """Mean and covariance of draws x (n, D) of a Gaussian, within chance and a relative `slack`."""
    n = len(x)
    variances = covariance.diagonal()
    off = (x.mean(0) - mean).abs()
    assert (off <= SIGMAS * torch.sqrt(variances / n) + slack * variances.sqrt()).all(), off
    scale = torch.outer(variances, variances).sqrt()
    chance = torch.sqrt((scale**2 + covariance**2) / n)
    off = (torch.cov(x.mT) - covariance).abs()
    assert (off <= SIGMAS * chance + slack * scale).all(), off / chance


def toy_distance(x: Tensor) -> tuple[float, float]:
    """L1 histogram distance of draws x (n, 1) from the toy, and what chance allows it.

    A bin's |count/n - p| has the mean √(2v/π) and the variance (1 - 2/π)v, where v = p(1 - p)/n.
    """
    bins, low, high = 56, -6.0, 8.0
    edges = torch.linspace(low, high, bins + 1, dtype=torch.float64)
    below = (torch.special.ndtr((edges + 3) / 0.5) + torch.special.ndtr(edges - 4)) / 2
    below[0], below[-1] = 0, 1  # what lies outside counts in the outermost bins
    p = below.diff()
    inside = x.double().flatten().clamp(low, high)
    found = torch.histc(inside, bins, low, high) / len(x)
    v = p * (1 - p) / len(x)
    floor = torch.sqrt(2 * v / math.pi).sum() / 2
    spread = torch.sqrt((1 - 2 / math.pi) * v.sum()) / 2
    return float((found - p).abs().sum()) / 2, float(floor + SIGMAS * spread)
