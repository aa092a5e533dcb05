"""The reverse diffusion with the covariance of the data: large steps that keep the spread.

Given x at σ_t, believe that the clean point is N(D(x, σ_t), C_σ), C_σ = (C⁻¹ + σ_t⁻²I)⁻¹, C (D, D)
the covariance of the data. Then x at σ_s < σ_t is, with r = σ_s²/σ_t²,

N(D + r (x - D), σ_s² (1 - r) I + (1 - r)² C_σ),

which is exact for Gaussian data whatever the step. At σ_s = 0 it draws from the belief. With C = 0
it is the ancestral sampler of Ho et al. 2020, "Denoising diffusion probabilistic models"; an
optimal covariance is from Bao et al. 2022, "Analytic-DPM".
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.sampling.steps import Progress, walk, white


def kernel(
    x: Tensor, denoised: Tensor, sigma: Tensor, below: Tensor, covariance: Covariance
) -> tuple[Tensor, Tensor]:
    """The step from σ to `below`: its mean (B, *shape), and its variances (D,) along the
    eigenvectors of the data covariance.
    """
    r = (below / sigma) ** 2
    variances = below**2 * (1 - r) + (1 - r) ** 2 * covariance.posterior(sigma)
    return denoised + r * (x - denoised), variances


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
        mean, variances = kernel(x, denoiser(x, sigma), sigma, below, covariance)
        x = mean + covariance.apply(variances.sqrt(), white(x, generator))
    return x
