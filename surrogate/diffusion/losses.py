"""Losses of score models, one number for each sample: denoising, sliced, and their mixture.

Score matching minimises E|ψ - ∇ log p|² without knowing p (Hyvärinen 2005); with Gaussian noise it
becomes denoising (Vincent 2011), and random projections avoid the trace (Song et al. 2019).

With x = x0 + σn the denoising loss is λ(σ)·mean (D(x, σ) - x0)², λ = (σ² + s²)/(σs)² with s the
data's scale, which makes all noise levels count alike (Karras et al., 2022, arXiv:2206.00364); the
mean may weigh the coordinates, see `emphasis`. The sliced loss needs no clean point:
σ²·(vᵀ∇(vᵀψ) + ½|ψ|²)/size for the score ψ and random signs v (Song et al., 2019,
arXiv:1905.07088, with |ψ|² in place of its estimate (vᵀψ)²). All are least at the true score.
Noise levels are drawn log-normally or log-uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from surrogate.diffusion.denoise import Denoiser, expand
from surrogate.errors import ModelError

BLUR = 0.1  # in units of the data's scale
LEAKY = 0.05  # a uniform distribution loses 2.3 % through its two edges
EMPHASIS = 8.0

Levels = Callable[[int, torch.Generator, Tensor], Tensor]


@dataclass(frozen=True)
class LogNormal:
    """log σ ~ N(mean, spread²), kept within what a sampler visits."""

    mean: float = -0.8
    spread: float = 1.4
    low: float = 0.002
    high: float = 80.0

    def __post_init__(self) -> None:
        if not 0 < self.low < self.high < math.inf:
            raise ModelError(
                f"noise levels must satisfy 0 < low < high, not {self.low} and {self.high}",
                value=(self.low, self.high),
            )
        if not (math.isfinite(self.mean) and 0 <= self.spread < math.inf):
            raise ModelError(
                f"noise levels need a mean and a spread >= 0, not {self.mean} and {self.spread}",
                value=(self.mean, self.spread),
            )

    def __call__(self, count: int, generator: torch.Generator, like: Tensor) -> Tensor:
        """`count` noise levels: (count,)."""
        z = torch.randn(count, generator=generator, device=generator.device).to(like)
        return (self.mean + self.spread * z).exp().clamp(self.low, self.high)


@dataclass(frozen=True)
class Loss:
    """`draws`: noise levels for each sample; `sliced`: the share of sliced score matching; `scale`:
    the data's standard deviation; `weights`: of the coordinates' errors, (*shape), mean one;
    `units`: errors (B, *shape) at noise levels (B,) in the units in which they count alike, where
    these are not σs/√(σ² + s²) for all coordinates."""

    levels: Levels = LogNormal()
    draws: int = 1
    sliced: float = 0.0
    scale: float = 1.0
    weights: Tensor | None = None
    units: Callable[[Tensor, Tensor], Tensor] | None = None

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ModelError(f"draws must be >= 1, not {self.draws}", value=self.draws)
        if not 0 <= self.sliced <= 1:
            raise ModelError(
                f"sliced is a share between 0 and 1, not {self.sliced}", value=self.sliced
            )
        if not 0 < self.scale < math.inf:
            raise ModelError(f"scale must be a number > 0, not {self.scale}", value=self.scale)

    def __call__(self, denoiser: Denoiser, clean: Tensor, generator: torch.Generator) -> Tensor:
        """The loss of each draw: clean (B, *shape) to (draws * B,)."""
        clean = clean.repeat(self.draws, *(1 for _ in clean.shape[1:]))
        sigma = self.levels(len(clean), generator, clean)
        noise = torch.randn(clean.shape, generator=generator, device=generator.device).to(clean)
        noisy = clean + expand(sigma, clean) * noise
        value = clean.new_zeros(len(clean))
        if self.sliced < 1:
            value = value + (1 - self.sliced) * self.denoising(denoiser, clean, noisy, sigma)
        if self.sliced > 0:
            value = value + self.sliced * slicing(denoiser, noisy, sigma, generator)
        return value

    def denoising(self, denoiser: Denoiser, clean: Tensor, noisy: Tensor, sigma: Tensor) -> Tensor:
        """The weighted error of denoised points: (B,)."""
        error = denoiser(noisy, sigma) - clean
        weight: Tensor | float = (sigma**2 + self.scale**2) / (sigma * self.scale) ** 2
        if self.units is not None:
            error, weight = self.units(error, sigma), 1.0
        error = error.square()
        if self.weights is not None:
            error = error * self.weights
        return weight * error.flatten(1).mean(1)


def emphasis(clean: Tensor, within: Callable[[Tensor], Tensor], noise: Tensor) -> Tensor:
    """Weights (*shape), mean one, of coordinates whose distribution breaks off at an edge.

    What a network blurs beyond an edge is lost to everything that is asked about it, and the
    density there is wrong by a factor; elsewhere a blur costs next to nothing. `within` brings
    points into their range: the share of points (B, *shape) that it moves after a small blur by
    `noise` shows the edges, and those that lose LEAKY of it or more count EMPHASIS times.
    """
    blurred = clean + BLUR * noise
    moved = (within(blurred) != blurred).to(clean).mean(0)
    weights = 1 + (EMPHASIS - 1) * (moved / LEAKY).clamp(max=1)
    return weights / weights.mean()


def slicing(denoiser: Denoiser, noisy: Tensor, sigma: Tensor, generator: torch.Generator) -> Tensor:
    """The sliced score matching loss at noisy points: (B,)."""
    x = noisy.detach().requires_grad_()
    coins = torch.randint(2, x.shape, generator=generator, device=generator.device)
    signs = (2 * coins - 1).to(x)
    with torch.enable_grad():
        score = denoiser.score(x, sigma)
        (slope,) = torch.autograd.grad((score * signs).sum(), x, create_graph=True)
    each = slope * signs + 0.5 * score.square()
    return sigma**2 * each.flatten(1).mean(1)
