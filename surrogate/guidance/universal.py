"""Universal guidance (Bansal et al., 2023, arXiv:2302.07121), each part of which can be left out.

forward         the gradient of the constraint at the predicted clean point, through the network
backward        the predicted clean point itself moved uphill, by some steps of ascent
self-recurrence every step is taken several times, noised again in between:
                x + √(σ² - σ_s²) z is at σ what x is at σ_s
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.denoise import Denoiser, expand
from surrogate.guidance.gradient import Value, slope, soft_value, weighted
from surrogate.guidance.scenario import Scenario
from surrogate.model import LEAST, MOST
from surrogate.sampling import langevin
from surrogate.sampling.steps import Progress, walk, white
from surrogate.schedule import VE, karras


@dataclass(frozen=True)
class Universal(Denoiser):
    """A denoiser guided at its clean points; `backward` steps of ascent of size `rate`."""

    denoiser: Denoiser
    value: Value
    forward: bool = True
    backward: int = 0
    strength: float = 1.0
    rate: float = 0.05

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        clean = self.denoiser(x, sigma)
        if self.forward:
            level = expand(sigma, x)
            pull = self.strength * level**2 * weighted("snr", level, VE())
            clean = clean + pull * slope(lambda at: self.value(self.denoiser(at, sigma)), x)
        for _ in range(self.backward):
            clean = clean + self.rate * slope(self.value, clean)
        return clean


@torch.no_grad()
def universal(
    scenario: Scenario,
    count: int,
    generator: Generator,
    *,
    forward: bool = True,
    backward: int = 0,
    recurrence: int = 1,
    strength: float = 1.0,
    steps: int = 200,
    final: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """Samples (count, D): ancestral steps down the noise, each taken `recurrence` times."""
    model = scenario.model
    denoiser = Universal(model.denoiser, soft_value(scenario), forward, backward, strength)
    noise = torch.randn((count, *model.shape), generator=generator)
    x = MOST * noise.to(model.device)
    levels = karras(steps, LEAST, MOST).to(model.device, torch.float32)
    for sigma, below in walk(levels, progress):
        for again in range(recurrence):
            if again:
                x = x + torch.sqrt(sigma**2 - below**2) * white(x, generator)
            clean, r = denoiser(x, sigma), (below / sigma) ** 2
            x = clean + r * (x - clean) + below * torch.sqrt(1 - r) * white(x, generator)
    if final:
        x = langevin(denoiser, x, torch.tensor(LEAST), final, generator)
    return x.double().cpu().flatten(1)
