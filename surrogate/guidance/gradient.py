"""The paper's guidance: the score plus the gradient of the constraint at the noisy point.

s̃(x_t, t) = s(x_t, t) + g ∇c(x_t) for x_t = α x_0 + σ_t n, with g linear in time, 1 - t, or by the
signal-to-noise ratio, α²/√(α⁴ + σ_t²); sampled by Euler-Maruyama with Langevin correctors, and many
Langevin steps at the end (Scassola et al. 2023, "Conditioning score-based generative models by
neuro-symbolic constraints", algorithm 1). In coordinates in which data keep their scale, x = x_t/α
at σ = σ_t/α, a guided score is the denoiser D + σ² g α ∇c(αx), and goes into any sampler.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Generator, Tensor

from constraints import compiled, conjunction
from surrogate.diffusion.denoise import Denoiser, expand
from surrogate.diffusion.schedule import Schedule, SubVP
from surrogate.errors import ModelError
from surrogate.guidance.methods.gradient import WEIGHT_SCHEDULES, GradientSettings
from surrogate.guidance.outcome import Outcome, Question, S
from surrogate.guidance.scenario import SOFT_RULES, Scenario
from surrogate.random import Sampling, stream
from surrogate.sampling import langevin, predictor_corrector
from surrogate.sampling.steps import Progress

SIGMA_END = 0.01  # noise level at which sampling ends: below it, rounding dominates
Value = Callable[[Tensor], Tensor]  # samples like the model's, (B · instances, *shape), to c (B,)


@dataclass(frozen=True)
class Gradient(Denoiser):
    """A denoiser guided by ∇c; `weight` is one of WEIGHT_SCHEDULES, `strength` is λ."""

    denoiser: Denoiser
    value: Value
    weight: str = "snr"
    strength: float = 1.0
    schedule: Schedule = field(default_factory=SubVP)

    def __post_init__(self) -> None:
        check_weight(self.weight)

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        level = expand(sigma, x)
        alpha, g = signal_and_weight(self.weight, level, self.schedule)
        scale = self.strength * g * alpha * level**2
        return self.denoiser(x, sigma) + scale * gradient(self.value, alpha * x)


def check_weight(weight: str) -> None:
    if weight not in WEIGHT_SCHEDULES:
        raise ModelError(f"unknown schedule {weight!r}", value=weight, allowed=WEIGHT_SCHEDULES)


def signal_and_weight(weight: str, level: Tensor, schedule: Schedule) -> tuple[Tensor, Tensor]:
    """α and g at noise levels σ_t/α, like them."""
    t = schedule.time_of(level)
    alpha, _ = schedule(t)
    return alpha, 1 - t if weight == "linear" else torch.rsqrt(1 + (level / alpha) ** 2)


def gradient(value: Value, x: Tensor) -> Tensor:
    """∇c, like x; 0 where it is not a number."""
    with torch.enable_grad():
        at = x.detach().requires_grad_()
        total = value(at).sum()
        if not total.requires_grad:  # a formula that always holds, or never
            return torch.zeros_like(x)
        (found,) = torch.autograd.grad(total, at)
    return torch.nan_to_num(found, 0.0, 0.0, 0.0)


def soft_value(scenario: Scenario) -> Value:
    """c of points like the model's: the formula's and the rules' log-values.

    Evaluated with every evaluation of the network: in its precision, all rules as one program.
    """
    decode, program, semantics = scenario.prior.codec.decode, scenario.program, scenario.semantics
    grouped, instances = scenario.grouped, scenario.instances
    if not scenario.rules:
        return lambda x: program(grouped(decode(x)), semantics)
    every = conjunction(*(rule.formula for rule in scenario.rules.values()))
    rules = compiled(every, scenario.sample_layout)

    def value(x: Tensor) -> Tensor:
        signals = decode(x)
        of_rules = rules(signals, SOFT_RULES).reshape(-1, instances).sum(1)
        return program(grouped(signals), semantics) + of_rules

    return value


# --- sampling -------------------------------------------------------------------------------------


@torch.no_grad()
def guided(
    scenario: Scenario,
    count: int,
    generator: Generator,
    *,
    weight: str = "snr",
    strength: float = 1.0,
    steps: int = 1000,
    correctors: int = 2,
    final: int = 2000,
    last: float = SIGMA_END,
    progress: Progress | None = None,
) -> Tensor:
    """Samples (count, D) by the paper's algorithm, which ends at the noise `last`; `progress`
    counts `steps` + `final`."""
    prior, schedule = scenario.prior, SubVP()
    denoiser = Gradient(prior.denoiser, soft_value(scenario), weight, strength, schedule)
    noise = torch.randn((scenario.instances * count, *prior.shape), generator=generator)
    x = float(schedule.ratio(torch.ones(()))) * noise.to(prior.device)
    x = predictor_corrector(
        denoiser,
        x,
        schedule,
        generator,
        steps=steps,
        correctors=correctors,
        least=last,
        progress=progress,
    )
    return scenario.joined(final_langevin(denoiser, x, final, generator, last, progress))


def final_langevin(
    denoiser: Gradient,
    x: Tensor,
    steps: int,
    generator: Generator,
    last: float = SIGMA_END,
    progress: Progress | None = None,
) -> Tensor:
    """Points (B, *shape) after `steps` of Langevin dynamics at the noise level `last`.

    With so little noise the guided score approximates that of the conditional distribution.
    """
    x = langevin(denoiser, x, torch.tensor(last), steps, generator, progress=progress)
    return x.double().cpu()


def outcome_of(
    sampler: Callable[..., Tensor],
    question: Question[S],
    *,
    steps: int,
    langevin: int,
    cost: int,
    **settings: object,
) -> Outcome:
    """Samples of a question by `guided` or another sampler with its arguments; `cost`: evaluations
    of the network for each sample, without the `langevin` steps at the end."""
    x = sampler(
        question.scenario,
        question.samples,
        stream(question.seed, Sampling.GUIDANCE),
        steps=steps,
        final=langevin,
        progress=question.counted(steps + langevin),
        **settings,
    )
    return Outcome.gradient_guided(question, x, steps, cost + langevin)


def answer(question: Question[GradientSettings]) -> Outcome:
    """Samples by the paper's guidance."""
    own = question.settings
    return outcome_of(
        guided,
        question,
        steps=own.steps,
        langevin=own.langevin,
        cost=own.steps * (1 + own.correctors),
        weight=own.schedule,
        strength=own.strength,
        correctors=own.correctors,
    )
