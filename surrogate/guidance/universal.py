"""Universal guidance (Bansal et al., 2023, arXiv:2302.07121), each part of which can be left out.

forward         the gradient of the constraint at the predicted clean point, through the network
backward        the predicted clean point itself moved uphill, by some steps of ascent
self-recurrence every step is taken several times, noised again in between:
                x + √(σ² - σ_s²) z is at σ what x is at σ_s

Langevin steps at the end, where there is hardly any noise, are those of `gradient`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from surrogate.diffusion.denoise import Denoiser, expand
from surrogate.diffusion.schedule import Schedule, SubVP, karras
from surrogate.errors import whole_number
from surrogate.guidance.gradient import Gradient, Value, settled, slope, soft_value, weighted
from surrogate.guidance.scenario import Scenario
from surrogate.model import LEAST, MOST
from surrogate.sampling.langevin import langevin_step
from surrogate.sampling.steps import Progress, walk, white

RATE = 0.05  # of the first step of ascent, in normalised units


@dataclass(frozen=True)
class Universal(Denoiser):
    """A denoiser guided at its clean points; `backward` steps of ascent, `strength` is λ."""

    denoiser: Denoiser
    value: Value
    forward: bool = True
    backward: int = 0
    strength: float = 1.0
    schedule: Schedule = field(default_factory=SubVP)

    def __post_init__(self) -> None:
        whole_number(self.backward, "backward", least=0)

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        clean = self._forward(x, sigma) if self.forward else self.denoiser(x, sigma)
        return uphill(self.value, clean, self.backward)

    def _forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """D + σ² g ∇c(D(x)), from one pass through the network and back."""
        level = expand(sigma, x)
        _, g = weighted("snr", level, self.schedule)
        seen: list[Tensor] = []

        def value(at: Tensor) -> Tensor:
            clean = self.denoiser(at, sigma)
            seen.append(clean.detach())
            return self.value(clean)

        found = slope(value, x)
        return seen[0] + self.strength * g * level**2 * found


def uphill(value: Value, x: Tensor, steps: int, rate: float = RATE) -> Tensor:
    """Points like x after steps of ascent that grow shorter.

    The slope is clipped: it is steep wherever an equality is not met, and flat where rules are.
    """
    for i in range(steps):
        x = x + rate * (1 - i / steps) * slope(value, x).clamp(-1, 1)
    return x


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
    correctors: int = 0,
    final: int = 0,
    progress: Progress | None = None,
) -> Tensor:
    """Samples (count, D): ancestral steps down the noise, each taken `recurrence` times after
    `correctors` Langevin steps; `progress` is told of `steps` + `final`."""
    recurrence = whole_number(recurrence, "recurrence", least=1)
    model = scenario.model
    denoiser = Universal(model.denoiser, soft_value(scenario), forward, backward, strength)
    noise = torch.randn((scenario.instances * count, *model.shape), generator=generator)
    x = MOST * noise.to(model.device)
    levels = karras(steps, LEAST, MOST).to(model.device, torch.float32)
    for sigma, below in walk(levels, progress):
        for _ in range(correctors):
            x = langevin_step(x, denoiser.score(x, sigma), generator)
        x = stepped(denoiser, x, sigma, below, recurrence, generator)
    at_end = Gradient(model.denoiser, denoiser.value, strength=strength)
    return scenario.joined(settled(at_end, x, final, generator, progress=progress))


def stepped(
    denoiser: Denoiser,
    x: Tensor,
    sigma: Tensor,
    below: Tensor,
    recurrence: int,
    generator: Generator,
) -> Tensor:
    """x (B, *shape) at the noise `below`, from σ: an ancestral step, taken `recurrence` times.

    The clean point counts as N(D, σ²/(1 + σ²) I), which is exact for white data; as certain, steps
    would lose variance, and the more so the more often they are taken.
    """
    r = (below / sigma) ** 2
    spread = torch.sqrt(below**2 * (1 - r) + (1 - r) ** 2 * sigma**2 / (1 + sigma**2))
    for again in range(recurrence):
        if again:
            x = x + torch.sqrt(sigma**2 - below**2) * white(x, generator)
        clean = denoiser(x, sigma)
        x = clean + r * (x - clean) + spread * white(x, generator)
    return x
