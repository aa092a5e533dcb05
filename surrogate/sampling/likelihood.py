"""Exact log-likelihood: the density along the ODE dx/du = x - D(x, σ), u = log σ, of the data.

log p(x) = log N(x_end; 0, (1 + σ_end²) I) + ∫ (dim - tr ∂D/∂x) du,

from the data up to noise in which standardised data vanish (Song et al. 2021, "Score-based
generative modeling through stochastic differential equations", section 4.3). The trace is exact, at
one backward pass a coordinate, or Hutchinson's estimate, the mean of vᵀ(∂D/∂x)v over random signs
v, which are kept for the whole path (Grathwohl et al. 2019, "FFJORD"). Runge-Kutta of order 4.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from surrogate.diffusion.denoise import Denoiser
from surrogate.errors import ModelError
from surrogate.sampling.steps import Progress, walk


def log_likelihood(
    denoiser: Denoiser,
    x: Tensor,
    sigmas: Tensor,
    *,
    probes: int | None = None,
    generator: Generator | None = None,
    progress: Progress | None = None,
) -> Tensor:
    """Log-density of the data at x (B, *shape), (B,); `sigmas` fall, as for sampling.

    Hutchinson's estimate with `probes` draws of `generator`, the exact trace where none are given.
    """
    directions = _directions(x, probes, generator)
    total = x.new_zeros(len(x))
    for above, sigma in reversed(list(walk(sigmas))):
        if sigma > 0:  # below the least level the data are what they are there
            x, change = _rise(denoiser, x, sigma, above, directions)
            total = total + change
        if progress is not None:
            progress(1)
    variance = 1 + float(sigmas[0]) ** 2
    square = (x**2).flatten(1).sum(1) / variance
    return total - (square + x.shape[1:].numel() * math.log(2 * math.pi * variance)) / 2


def _directions(x: Tensor, probes: int | None, generator: Generator | None) -> Tensor:
    """Vectors v (P, B or 1, *shape) for which Σ vᵀJv is the trace of J, or estimates it."""
    if probes is None:
        axes = torch.eye(x.shape[1:].numel(), dtype=x.dtype, device=x.device)
        return axes.reshape(-1, 1, *x.shape[1:])
    if probes < 1 or generator is None:
        raise ModelError(
            f"an estimated trace takes probes >= 1 and a generator, not {probes}", value=probes
        )
    coins = torch.randint(2, (probes, *x.shape), generator=generator, device=x.device)
    return (2 * coins - 1).to(x) / math.sqrt(probes)


def _rise(
    denoiser: Denoiser, x: Tensor, sigma: Tensor, above: Tensor, directions: Tensor
) -> tuple[Tensor, Tensor]:
    """One Runge-Kutta step up in u = log σ: where x goes, and what the log-density loses (B,)."""
    h = torch.log(above / sigma)
    middle = torch.sqrt(sigma * above)
    k1, d1 = _flow(denoiser, x, sigma, directions)
    k2, d2 = _flow(denoiser, x + h / 2 * k1, middle, directions)
    k3, d3 = _flow(denoiser, x + h / 2 * k2, middle, directions)
    k4, d4 = _flow(denoiser, x + h * k3, above, directions)
    return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), h / 6 * (d1 + 2 * d2 + 2 * d3 + d4)


def _flow(
    denoiser: Denoiser, x: Tensor, sigma: Tensor, directions: Tensor
) -> tuple[Tensor, Tensor]:
    """x - D, like x, and its divergence (B,)."""
    trace = x.new_zeros(len(x))
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        denoised = denoiser(x, sigma)
        for v in directions:
            v = v.expand_as(x)
            (pulled,) = torch.autograd.grad(denoised, x, v, retain_graph=True)
            trace = trace + (v * pulled).flatten(1).sum(1)
    return (x - denoised).detach(), x.shape[1:].numel() - trace
