"""The toy of Scassola et al. 2023: ½ N(-3, 0.5²) + ½ N(4, 1), learned by score matching.

A small network learns it from exact draws, by the denoising loss or by the sliced one, and its
samples are compared with exact draws: histograms of ⌊√n⌋ equal bins over the joint range.
"""

from __future__ import annotations

from functools import partial

import fidelity
import numpy as np
import torch
from torch import Tensor

from surrogate.diffusion.denoise import Preconditioned
from surrogate.diffusion.losses import LogNormal, Loss
from surrogate.diffusion.schedule import karras
from surrogate.diffusion.training import Settings, Trainer
from surrogate.evaluation.distances import histogram_distance
from surrogate.networks.residual_mlp import ResidualMLP
from surrogate.random import stream
from surrogate.sampling import dpm_solver

MEANS, DEVIATIONS = torch.tensor([-3.0, 4.0]), torch.tensor([0.5, 1.0])
MEAN, SCALE = 0.5, 12.875**0.5  # of the mixture
SIGMA_MIN, SIGMA_MAX = (
    0.005,
    4.0,
)  # noise levels, in normalised units: from 4 on, two modes look as one
STEPS, BATCH = 8_000, 1_024
REFERENCES, FLOOR, SETS = 20, 40, 8  # many, as there is one histogram only
LOSSES = {"denoising": 0.0, "sliced": 1.0}  # the share of sliced score matching


def draws(n: int, generator: torch.Generator) -> Tensor:
    """Exact draws, (n, 1)."""
    which = torch.randint(2, (n,), generator=generator)
    return (MEANS[which] + DEVIATIONS[which] * torch.randn(n, generator=generator))[:, None]


class Fresh:
    """Normalised exact draws for each step of the training."""

    def batch(self, step: int, size: int) -> Tensor:
        return (draws(size, stream(0, 12, step)) - MEAN) / SCALE


def learned(sliced: float, steps: int) -> Preconditioned:
    """A denoiser of the mixture after `steps` training steps."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        denoiser = Preconditioned(ResidualMLP(1, width=64, depth=2))
    settings = Settings(
        steps=steps,
        batch=BATCH,
        warm_up=min(100, steps // 5),
        check_every=max(1, steps // 10),
        patience=steps,  # fresh draws cannot be learned by heart
    )
    loss = Loss(LogNormal(spread=1.2, low=SIGMA_MIN, high=SIGMA_MAX), sliced=sliced)
    held_out = Fresh().batch(-1, 8_192)
    trainer = Trainer(denoiser, Fresh(), held_out, loss, settings)
    trainer.run()
    with torch.no_grad():
        for name, weight in denoiser.named_parameters():
            weight.copy_(trainer.averages[name])
    return denoiser


def sampled(denoiser: Preconditioned, n: int, seed: int) -> np.ndarray:
    """Samples of what was learned, (n, 1)."""
    noise = torch.randn((n, 1), generator=torch.Generator().manual_seed(seed))
    x = (1 + SIGMA_MAX**2) ** 0.5 * noise  # the law of noisy data, but for what cannot be seen
    return (
        SCALE * dpm_solver(denoiser, x, karras(100, SIGMA_MIN, SIGMA_MAX).float()) + MEAN
    ).numpy()


def measure(name: str, n: int, steps: int = STEPS) -> fidelity.Distances:
    """Samples of n from a model with one of LOSSES against exact ones."""
    model = learned(LOSSES[name], steps)
    samples = [sampled(model, n, seed) for seed in range(SETS)]
    exact = [draws(n, stream(fidelity.SEED, k)).numpy() for k in range(REFERENCES + FLOOR + SETS)]
    return fidelity.compared(
        name,
        exact[:REFERENCES],
        samples,
        exact[REFERENCES:-SETS],
        exact[-SETS:],
        distance=partial(histogram_distance, whole=False),
    )
