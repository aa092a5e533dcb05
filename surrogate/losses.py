"""Objectives of score models, per sample: denoising, sliced, and their mixture.

With x = x0 + σn the denoising loss is λ(σ)·mean (D(x, σ) - x0)², λ = (σ² + s²)/(σs)² with s the
data's scale, which makes all noise levels count alike (Karras et al., 2022, arXiv:2206.00364). The
sliced loss needs no clean point: σ²·(vᵀ∇(vᵀs) + ½(vᵀs)²) for random directions v (Song et al.,
2019, arXiv:1905.07088). Both are least at the true score. Noise levels are drawn log-normally or
log-uniformly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from surrogate.denoise import Denoiser, expand
from surrogate.errors import ModelError

Levels = Callable[[int, torch.Generator, Tensor], Tensor]


@dataclass(frozen=True)
class LogNormal:
    """log σ ~ N(mean, spread²), kept within what a sampler visits."""

    mean: float = -0.8
    spread: float = 1.4
    low: float = 0.002
    high: float = 80.0

    def __call__(self, count: int, generator: torch.Generator, like: Tensor) -> Tensor:
        """`count` noise levels: (count,)."""
        z = torch.randn(count, generator=generator, device=generator.device).to(like)
        return (self.mean + self.spread * z).exp().clamp(self.low, self.high)


@dataclass(frozen=True)
class LogUniform:
    """log σ uniform between two levels."""

    low: float = 0.01
    high: float = 50.0

    def __call__(self, count: int, generator: torch.Generator, like: Tensor) -> Tensor:
        u = torch.rand(count, generator=generator, device=generator.device).to(like)
        return (math.log(self.low) + u * math.log(self.high / self.low)).exp()


@dataclass(frozen=True)
class Loss:
    """`sliced`: the share of sliced score matching; `draws`: noise levels for each sample."""

    levels: Levels = LogNormal()
    draws: int = 1
    sliced: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ModelError(f"draws must be >= 1, not {self.draws}")
        if not 0 <= self.sliced <= 1:
            raise ModelError(f"sliced is a share between 0 and 1, not {self.sliced}")

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
        weight = (sigma**2 + self.scale**2) / (sigma * self.scale) ** 2
        error = (denoiser(noisy, sigma) - clean).square()
        return weight * error.flatten(1).mean(1)


def slicing(denoiser: Denoiser, noisy: Tensor, sigma: Tensor, generator: torch.Generator) -> Tensor:
    """The sliced score matching loss at noisy points: (B,)."""
    x = noisy.detach().requires_grad_()
    direction = torch.randn(x.shape, generator=generator, device=generator.device).to(x)
    with torch.enable_grad():
        along = (denoiser.score(x, sigma) * direction).flatten(1).sum(1)
        (slope,) = torch.autograd.grad(along.sum(), x, create_graph=True)
    curvature = (slope * direction).flatten(1).sum(1)
    size = math.prod(x.shape[1:])
    return sigma**2 * (curvature + 0.5 * along.square()) / size
