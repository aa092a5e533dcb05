"""The method `twisted`: independent batches of particles, and more particles for hard scenarios.

The particles of one batch share ancestors, so the standard error of log Z comes from the variance
between independent batches. A run with a small effective sample size, few distinct ancestors or
batches that disagree is repeated with twice the particles and 1.5 times the noise levels; problems
that remain after the last attempt are reported.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from constraints.errors import Setting
from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.schedule import karras
from surrogate.errors import SamplingError
from surrogate.guidance import smc
from surrogate.guidance.methods.twisted import PARTICLES_PER_SAMPLE, TwistedSettings, particles_for
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.posterior import Posteriors
from surrogate.guidance.rejuvenation import MOVES, rejuvenate
from surrogate.guidance.twisted import Particles, twisted
from surrogate.random import Sampling, stream
from surrogate.sampling.steps import SIGMA_MAX

PARTICLE_SIGMA_MIN = 0.01  # the last noise level before the clean point
SIGMA_VISIBLE = 10.0  # noise level below which data of unit variance stand out from the noise
BATCHES = 4
ATTEMPTS = 3
MIN_ESS_PER_SAMPLE = 1 / 3  # of the particles at the end, below which a run is repeated
MIN_DISTINCT_ANCESTORS = 100  # of all batches, or a 20th of the particles
MAX_LOG_DISAGREEMENT = 1.0  # between batches' estimates of log P


def answer(question: Question[TwistedSettings]) -> Outcome:
    """Samples by twisted particles."""
    settings, samples = question.settings, question.samples
    particles = settings.particles or particles_for(samples)
    steps = settings.steps
    posteriors = Posteriors(question.scenario)
    spent = 0
    for attempt in range(ATTEMPTS):
        batches = _run(question, particles, steps, attempt, posteriors)
        spent += sum(len(batch.x) for batch in batches) * steps
        problems = _problems(batches, samples)
        if not problems or attempt == ATTEMPTS - 1:
            break
        particles, steps = 2 * particles, steps * 3 // 2
        question.say(f"{'; '.join(problems)}: again with {particles:,} particles, {steps} steps")
    log_weights = torch.cat([batch.log_weights for batch in batches])
    if not bool(log_weights.isfinite().any()):
        raise SamplingError(
            "no particle meets the scenario, which is improbable or contradicts the model",
            value=len(log_weights),
            remedy=[
                "try more ",
                Setting("particles"),
                " or ",
                Setting("steps"),
                ", or ask for less",
            ],
        )
    ess = float(smc.ess(log_weights))
    log_zs = torch.tensor([batch.log_z for batch in batches], dtype=torch.float64)
    log_z = float(smc.log_mean_exp(log_zs))
    counts = [len(batch.x) for batch in batches]
    first = torch.tensor([0, *counts[:-1]]).cumsum(0)
    ancestors = torch.cat([b.ancestors + n for b, n in zip(batches, first, strict=True)])
    x, log_weights, ancestors = _select(
        question, torch.cat([batch.x for batch in batches]), log_weights, ancestors
    )
    made = Outcome(
        x=x,
        log_weights=log_weights,
        ancestors=ancestors,
        particles=sum(counts),
        steps=steps,
        evaluations=spent + (0 if settings.weighted else MOVES * len(x)),
        met=sum(batch.met for batch in batches) / len(batches),
        ess=ess,
        min_ess=min(batch.min_ess / len(batch.x) for batch in batches),
        log_probability=log_z,
        log_probability_error=float(torch.exp(log_zs - log_z).std()) / math.sqrt(len(batches)),
        batches=log_zs.tolist(),
        warnings=problems,
    )
    if made.ancestor_ess < min(samples, 1000) / 10:
        few = (
            f"the samples descend from few particles: the effective number of ancestors is "
            f"{made.ancestor_ess:.0f}"
        )
        made.warnings = [*problems, few]
    return made


def levels(covariance: Covariance, steps: int, last: float = PARTICLE_SIGMA_MIN) -> Tensor:
    """Noise levels σ_T > ... > `last` > 0, (steps + 1,).

    While noise hides the data the reverse kernel is exact for any step size: the first step leads
    from the greatest level to that at which the direction of largest variance stands out.
    """
    widest = float(covariance.values.max()) ** 0.5
    visible = min(max(SIGMA_VISIBLE, 2 * widest), SIGMA_MAX / 2)
    below = karras(steps - 1, last, visible).double()
    return torch.cat([below.new_tensor([SIGMA_MAX]), below])


def _run(
    question: Question[TwistedSettings],
    particles: int,
    steps: int,
    attempt: int,
    posteriors: Posteriors,
) -> list[Particles]:
    """Independent batches with `particles` particles in all."""
    decoder = question.scenario.prior.decoder
    last = PARTICLE_SIGMA_MIN if decoder is None else decoder.handover
    sigmas = levels(question.scenario.covariance, steps, last)
    progress = question.counted(BATCHES * steps)
    size = math.ceil(particles / BATCHES)
    return [
        twisted(
            question.scenario,
            size,
            sigmas,
            stream(question.seed, Sampling.PARTICLES, attempt, j),
            progress,
            jacobian=question.settings.jacobian,
            posteriors=posteriors,
        )
        for j in range(BATCHES)
    ]


def _select(
    question: Question[TwistedSettings], x: Tensor, log_weights: Tensor, ancestors: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The requested number of samples, weighted, or resampled and moved (MCMC): x (n, D), their
    log-weights (n,) and ancestors (n,)."""
    generator = stream(question.seed, Sampling.SELECTION)
    if question.settings.weighted:
        alive = log_weights.isfinite().nonzero()[:, 0]
        rows = alive[torch.randperm(len(alive), generator=generator)[: question.samples]]
        return x[rows], log_weights[rows] - log_weights[rows].max(), ancestors[rows]
    rows = smc.systematic(log_weights, question.samples, generator)
    rows = rows[torch.randperm(len(rows), generator=generator)]
    x = x[rows]
    if question.scenario.prior.decoder is None:
        x = rejuvenate(question.scenario, x, generator)
    return x, torch.zeros(len(x), dtype=torch.float64), ancestors[rows]


def _problems(batches: list[Particles], samples: int) -> list[str]:
    """What is wrong with a run, in words."""
    count = sum(len(batch.x) for batch in batches)
    found = []
    ancestors = sum(batch.distinct_ancestors for batch in batches)
    if ancestors < min(MIN_DISTINCT_ANCESTORS, count // 20):
        found.append(f"only {ancestors} distinct ancestors are left")
    ess = float(smc.ess(torch.cat([batch.log_weights for batch in batches])))
    if ess < min(samples, count / PARTICLES_PER_SAMPLE) * MIN_ESS_PER_SAMPLE:
        found.append(f"the effective sample size of {count:,} particles is {ess:.0f}")
    each = torch.tensor([batch.log_z for batch in batches])
    if not bool(each.isfinite().all()):
        found.append("in some batches no particle met the scenario")
    elif float(each.max() - each.min()) > MAX_LOG_DISAGREEMENT:
        factor = math.exp(min(float(each.max() - each.min()), 700.0))
        shown = f"{factor:.1f}" if factor < 1000 else f"{factor:.0e}"
        found.append(f"batches disagree on the probability by a factor of {shown}")
    return found
