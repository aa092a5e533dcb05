"""The probability-flow ODE dx/dσ = (x - D(x, σ))/σ: noise to data without further noise.

`dpm_solver`: DPM-Solver++(2M) of Lu et al. 2022, "DPM-Solver++: fast solver for guided sampling of
diffusion probabilistic models", algorithm 2: exact in x, D extrapolated linearly in log σ from the
last two levels; one evaluation a step. `heun`: algorithm 1 of Karras et al. 2022, "Elucidating the
design space of diffusion-based generative models"; two evaluations a step. Both are of second
order, and take x (B, *shape) at the first of `sigmas` (n + 1,) to the last.
"""

from __future__ import annotations

import torch
from torch import Tensor

from surrogate.diffusion.denoise import Denoiser
from surrogate.sampling.steps import Progress, walk


@torch.no_grad()
def dpm_solver(
    denoiser: Denoiser, x: Tensor, sigmas: Tensor, *, progress: Progress | None = None
) -> Tensor:
    last: tuple[Tensor, Tensor] | None = None  # the step before: its length in log σ, its D
    for sigma, below in walk(sigmas, progress):
        denoised = target = denoiser(x, sigma)
        length = torch.log(sigma / below)
        if last is not None and below > 0:
            target = denoised + length / (2 * last[0]) * (denoised - last[1])
        x = target + below / sigma * (x - target)
        last = length, denoised
    return x


@torch.no_grad()
def heun(
    denoiser: Denoiser, x: Tensor, sigmas: Tensor, *, progress: Progress | None = None
) -> Tensor:
    for sigma, below in walk(sigmas, progress):
        slope = (x - denoiser(x, sigma)) / sigma
        ahead = x + (below - sigma) * slope
        if below > 0:
            slope = (slope + (ahead - denoiser(ahead, below)) / below) / 2
            ahead = x + (below - sigma) * slope
        x = ahead
    return x
