"""Universal guidance (Bansal et al., 2023, arXiv:2302.07121); each part is optional.

forward         the gradient of the constraint at the predicted clean point, through the network
backward        gradient ascent of the predicted clean point itself
self-recurrence every step is taken several times, with noise added in between:
                x + √(σ² - σ_s²) z has the noise level σ if x has σ_s

Langevin steps at the end are those of `gradient`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from surrogate.diffusion.denoise import Denoiser, expand
from surrogate.diffusion.schedule import Schedule, SubVP, karras
from surrogate.errors import whole_number
from surrogate.guidance.gradient import (
    Gradient,
    Value,
    final_langevin,
    gradient,
    outcome_of,
    signal_and_weight,
    soft_value,
)
from surrogate.guidance.methods.universal import UniversalSettings
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.scenario import Scenario
from surrogate.sampling.langevin import langevin_step
from surrogate.sampling.reverse_step import ReverseStep
from surrogate.sampling.steps import SIGMA_MAX, SIGMA_MIN, Progress, walk, white

ASCENT_RATE = 0.05  # of the first step of ascent, in normalised units


@dataclass(frozen=True)
class Universal(Denoiser):
    """A denoiser guided at its clean estimates; `backward` steps of ascent, `strength` is λ."""

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
        return ascend(self.value, clean, self.backward)

    def _forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        """D + σ² g ∇c(D(x)), from one pass through the network and back."""
        level = expand(sigma, x)
        _, g = signal_and_weight("snr", level, self.schedule)
        seen: list[Tensor] = []

        def value(at: Tensor) -> Tensor:
            clean = self.denoiser(at, sigma)
            seen.append(clean.detach())
            return self.value(clean)

        found = gradient(value, x)
        return seen[0] + self.strength * g * level**2 * found


def ascend(value: Value, x: Tensor, steps: int, rate: float = ASCENT_RATE) -> Tensor:
    """Points like x after `steps` of gradient ascent with a decreasing step size.

    The gradient is clipped, for it is steep where an equality is violated.
    """
    for i in range(steps):
        x = x + rate * (1 - i / steps) * gradient(value, x).clamp(-1, 1)
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
    `correctors` Langevin steps; `progress` counts `steps` + `final`."""
    recurrence = whole_number(recurrence, "recurrence", least=1)
    prior = scenario.prior
    denoiser = Universal(prior.denoiser, soft_value(scenario), forward, backward, strength)
    noise = torch.randn((scenario.instances * count, *prior.shape), generator=generator)
    x = SIGMA_MAX * noise.to(prior.device)
    levels = karras(steps, SIGMA_MIN, SIGMA_MAX).to(prior.device, torch.float32)
    for sigma, below in walk(levels, progress):
        for _ in range(correctors):
            x = langevin_step(x, denoiser.score(x, sigma), generator)
        x = recurrent_step(denoiser, x, sigma, below, recurrence, generator)
    at_end = Gradient(prior.denoiser, denoiser.value, strength=strength)
    return scenario.joined(final_langevin(at_end, x, final, generator, progress=progress))


def recurrent_step(
    denoiser: Denoiser,
    x: Tensor,
    sigma: Tensor,
    below: Tensor,
    recurrence: int,
    generator: Generator,
) -> Tensor:
    """x (B, *shape) at the noise level `below`, from σ: `recurrence` ancestral steps.

    The clean point is N(D, σ²/(1 + σ²) I), which is exact for white data; without its variance
    each step would lose some, and recurrence would multiply the loss.
    """
    step = ReverseStep.between(sigma, below)
    deviation = torch.sqrt(step.variances(sigma**2, over=1 + sigma**2))
    for again in range(recurrence):
        if again:
            x = x + torch.sqrt(sigma**2 - below**2) * white(x, generator)
        clean = denoiser(x, sigma)
        x = step.mean(x, clean) + deviation * white(x, generator)
    return x


def answer(question: Question[UniversalSettings]) -> Outcome:
    """Samples by universal guidance."""
    own = question.settings
    passes = 2 if own.forward else 1  # forward guidance has a backward pass of the network
    return outcome_of(
        universal,
        question,
        steps=own.steps,
        langevin=own.langevin,
        cost=passes * own.steps * own.recurrence,
        forward=own.forward,
        backward=own.backward,
        recurrence=own.recurrence,
        strength=own.strength,
    )
