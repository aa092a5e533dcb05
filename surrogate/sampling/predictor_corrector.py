"""Predictor-corrector sampling: the reverse SDE by Euler-Maruyama, with Langevin steps on the way.

With x_t = α x_0 + σ n, f = d log α/dt and g as the schedule says, a step back by h is

x ← x - (f x - g² ∇log p_t(x)) h + g √h z,   z ~ N(0, I).

Before each of them come corrector steps at that level, and at the end more of them at the last
(Song et al. 2021, "Score-based generative modeling through stochastic differential equations",
algorithm 1; Scassola et al. 2023, "Conditioning score-based generative models by neuro-symbolic
constraints", algorithm 1).
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.diffusion.denoise import Denoiser
from surrogate.diffusion.schedule import Schedule
from surrogate.errors import ModelError
from surrogate.sampling.langevin import langevin_step
from surrogate.sampling.steps import Progress, walk, white


@torch.no_grad()
def predictor_corrector(
    denoiser: Denoiser,
    x: Tensor,
    schedule: Schedule,
    generator: Generator,
    *,
    steps: int = 1000,
    correctors: int = 0,
    final: int = 0,
    snr: float = 0.16,
    least: float = 0.01,
    progress: Progress | None = None,
) -> Tensor:
    """x (B, *shape) at the noise level `schedule.ratio(1)`, taken to the `least` in `steps` steps.

    `correctors` Langevin steps go before each of them, `final` after the last. A single-precision
    score (D - x)/σ² is lost in rounding at levels far below 0.01.
    """
    end = float(schedule.time_of(torch.tensor(least, dtype=torch.float64)))
    if steps < 1 or not (least > 0 and end < 1):
        raise ModelError(
            "the reverse SDE takes steps >= 1 down to a noise level > 0 that the schedule has, "
            f"not {steps} steps to {least}",
            value=(steps, least),
        )
    times = torch.linspace(1, end, steps + 1, dtype=torch.float64, device=x.device)
    x = x * schedule(times[0])[0]
    for t, before in walk(times, progress):
        alpha, sigma = schedule(t)
        for _ in range(correctors):
            x = langevin_step(x, denoiser.score(x, sigma, alpha), generator, snr)
        drift, diffusion = schedule.drift_and_diffusion(t)
        h = t - before
        velocity = drift * x - diffusion * denoiser.score(x, sigma, alpha)
        x = x - velocity * h + torch.sqrt(diffusion * h) * white(x, generator)
    alpha, sigma = schedule(times[-1])
    for _ in range(final):
        x = langevin_step(x, denoiser.score(x, sigma, alpha), generator, snr)
    return x / alpha
