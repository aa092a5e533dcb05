"""The paper's guidance: the score plus the gradient of the constraint at the noisy point.

s̃(x, σ) = s(x, σ) + g ∇c(x), with g linear in time, 1 - t, or by the signal-to-noise ratio,
(1 + σ²)^(-1/2); sampled by Euler-Maruyama with Langevin correctors, and many Langevin steps at the
end (Scassola et al. 2023, "Conditioning score-based generative models by neuro-symbolic
constraints", algorithm 1). A guided score is a denoiser, D + σ² g ∇c, and goes into any sampler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from surrogate.denoise import Denoiser, expand
from surrogate.errors import ModelError
from surrogate.guidance.scenario import Scenario
from surrogate.sampling import predictor_corrector
from surrogate.sampling.steps import Progress
from surrogate.schedule import VE, Schedule

WEIGHTS = ("snr", "linear")
Value = Callable[[Tensor], Tensor]  # points like the model's, (B, C, T), to c (B,)


@dataclass(frozen=True)
class Gradient(Denoiser):
    """A denoiser guided by ∇c; `weight` is one of WEIGHTS, `strength` is λ."""

    denoiser: Denoiser
    value: Value
    weight: str = "snr"
    strength: float = 1.0
    schedule: Schedule = field(default_factory=VE)

    def __post_init__(self) -> None:
        if self.weight not in WEIGHTS:
            raise ModelError(f"unknown schedule {self.weight!r} (have: {', '.join(WEIGHTS)})")

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        level = expand(sigma, x)
        pull = self.strength * level**2 * weighted(self.weight, level, self.schedule)
        return self.denoiser(x, sigma) + pull * slope(self.value, x)


def weighted(weight: str, level: Tensor, schedule: Schedule) -> Tensor:
    """g at noise levels, like them."""
    if weight == "linear":
        return 1 - schedule.time_of(level)
    return torch.rsqrt(1 + level**2)


def slope(value: Value, x: Tensor) -> Tensor:
    """∇c, like x; 0 where it is no number."""
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        (found,) = torch.autograd.grad(value(at).sum(), at)
    return torch.nan_to_num(found, 0.0, 0.0, 0.0)


def soft_value(scenario: Scenario) -> Value:
    """c of points like the model's: the formula's and the rules' log-values."""

    def value(x: Tensor) -> Tensor:
        flat = scenario.flat(x.flatten(1).double())
        found = scenario.program(flat, scenario.semantics)
        for rule in scenario.rules.values():
            found = found + rule(flat, scenario.gentle)
        return found.to(x)

    return value


def guided(
    scenario: Scenario,
    count: int,
    generator: Generator,
    *,
    weight: str = "snr",
    strength: float = 1.0,
    steps: int = 1000,
    correctors: int = 0,
    final: int = 2000,
    progress: Progress | None = None,
) -> Tensor:
    """Samples (count, D) by the paper's algorithm."""
    model, schedule = scenario.model, VE()
    denoiser = Gradient(model.denoiser, soft_value(scenario), weight, strength, schedule)
    noise = torch.randn((count, *model.shape), generator=generator)
    x = schedule.sigma_max * noise.to(model.device)
    made = predictor_corrector(
        denoiser,
        x,
        schedule,
        generator,
        steps=steps,
        correctors=correctors,
        final=final,
        progress=progress,
    )
    return made.double().cpu().flatten(1)
