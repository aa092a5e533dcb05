"""The reverse diffusion with the covariance of the data: large steps that keep the variance.

Each step is that of `reverse_step` with the posterior covariance V = C_σ = (C⁻¹ + σ_t⁻²I)⁻¹ of a
Gaussian with the covariance C (D, D) of the data. With C = 0 it is the ancestral sampler of Ho et
al. 2020, "Denoising diffusion probabilistic models".
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.sampling.reverse_step import ReverseStep
from surrogate.sampling.steps import Progress, walk, white


@torch.no_grad()
def reverse_sde(
    denoiser: Denoiser,
    x: Tensor,
    sigmas: Tensor,
    covariance: Covariance,
    generator: Generator,
    *,
    progress: Progress | None = None,
) -> Tensor:
    """x (B, *shape) at the first of `sigmas` (n + 1,), taken to the last."""
    for sigma, below in walk(sigmas, progress):
        step = ReverseStep.between(sigma, below)
        mean = step.mean(x, denoiser(x, sigma))
        variances = step.variances(covariance.posterior(sigma))
        x = mean + covariance.apply(variances.sqrt(), white(x, generator))
    return x
