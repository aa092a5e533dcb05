"""Langevin dynamics at one noise level: x ← x + ε ∇log p(x) + √(2ε) z, z ~ N(0, I).

The step ε = 2 (r |z|/|∇log p|)², with norms averaged over the batch, makes the drift a fixed share
r of the noise: the corrector of Song et al. 2021, "Score-based generative modeling through
stochastic differential equations", algorithm 4. There is no accept-reject step, so that
the stationary law is that of a finite ε: for N(0, v), of variance v/(1 - ε/2v).
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.diffusion.denoise import Denoiser
from surrogate.sampling.steps import Progress, white


def langevin_step(x: Tensor, score: Tensor, generator: Generator, snr: float = 0.16) -> Tensor:
    """One step from x (B, *shape), where the score is `score`."""
    z = white(x, generator)
    step = 2 * torch.square(snr * _norm(z) / _norm(score))
    return x + step * score + torch.sqrt(2 * step) * z


def _norm(x: Tensor) -> Tensor:
    """The mean norm of a batch, ()."""
    return torch.square(x).flatten(1).sum(1).sqrt().mean()


@torch.no_grad()
def langevin(
    denoiser: Denoiser,
    x: Tensor,
    sigma: Tensor,
    steps: int,
    generator: Generator,
    *,
    snr: float = 0.16,
    progress: Progress | None = None,
) -> Tensor:
    """x (B, *shape) at noise σ () after `steps` steps."""
    for _ in range(steps):
        x = langevin_step(x, denoiser.score(x, sigma), generator, snr)
        if progress is not None:
            progress(1)
    return x
