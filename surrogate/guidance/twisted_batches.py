"""Independent batches of twisted particles, joined; and a ladder of tries for hard scenarios.

One batch cannot tell how wrong its estimate of the probability is, for its particles share their
ancestors: the spread over batches can. A run in which few particles carried the weight, few lines
survived or batches disagree is made again with twice the particles and half as many steps more;
what is still wrong after the last try is said.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.schedule import karras
from surrogate.errors import SamplingError
from surrogate.guidance import truncated
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.rejuvenation import SWEEPS, refresh
from surrogate.guidance.smc import effective, systematic
from surrogate.guidance.twisted import Particles, twisted
from surrogate.model import MOST
from surrogate.random import Sampling, stream

LEAST = 0.01  # the last noise level before the clean point
SEEN = 10.0  # the noise level at which data of one deviation begin to show
BATCHES = 4
TRIES = 3
STEPS = 40
EACH = 3  # particles for each sample
FEWEST = 4_000  # particles, by default
WORTH = 1 / 3  # of a sample's worth that each should have at least


def by_particles(question: Question) -> Outcome:
    """Samples by twisted particles."""
    settings, samples = question.settings, question.samples
    particles = settings.particles or particles_for(samples)
    steps = settings.steps or STEPS
    spent = 0
    for attempt in range(TRIES):
        batches = _run(question, particles, steps, attempt)
        spent += sum(len(batch.x) for batch in batches) * steps
        problems = _problems(batches, samples)
        if not problems or attempt == TRIES - 1:
            break
        particles, steps = 2 * particles, steps * 3 // 2
        question.say(f"{'; '.join(problems)}: again with {particles:,} particles, {steps} steps")
    log_weights = torch.cat([batch.log_weights for batch in batches])
    if not bool(log_weights.isfinite().any()):
        raise SamplingError(
            "no particle meets the scenario, which is improbable or contradicts the model; "
            "try more particles or steps, or ask for less"
        )
    worth = effective(log_weights)
    each = torch.tensor([batch.log_z for batch in batches], dtype=torch.float64)
    log_z = truncated.log_mean(each)
    counts = [len(batch.x) for batch in batches]
    first = torch.tensor([0, *counts[:-1]]).cumsum(0)
    origin = torch.cat([b.lineage + n for b, n in zip(batches, first, strict=True)])
    x, log_weights, origin = _chosen(
        question, torch.cat([batch.x for batch in batches]), log_weights, origin
    )
    made = Outcome(
        x=x,
        log_weights=log_weights,
        origin=origin,
        drawn=sum(counts),
        steps=steps,
        evaluations=spent + (0 if settings.weighted else SWEEPS * len(x)),
        met=sum(batch.met for batch in batches) / len(batches),
        effective=worth,
        least_effective=min(batch.least / len(batch.x) for batch in batches),
        log_probability=log_z,
        log_probability_error=float(torch.exp(each - log_z).std()) / math.sqrt(len(batches)),
        batches=each.tolist(),
        warnings=problems,
    )
    if made.families < min(samples, 1000) / 10:
        few = f"the samples come from few particles, as if from {made.families:.0f} of them"
        made.warnings = [*problems, few]
    return made


def particles_for(samples: int) -> int:
    """How many there are, if nobody says."""
    return max(EACH * samples, FEWEST)


def levels(covariance: Covariance, steps: int) -> Tensor:
    """Noise levels (steps + 1,), the last 0.

    Where the noise drowns the data one step is as good as many, for its kernel is exact: from the
    greatest level it leads to where the widest direction of the data begins to show.
    """
    widest = float(covariance.values.max()) ** 0.5
    seen = min(max(SEEN, 2 * widest), MOST / 2)
    below = karras(steps - 1, LEAST, seen).double()
    return torch.cat([below.new_tensor([MOST]), below])


def _run(question: Question, particles: int, steps: int, attempt: int) -> list[Particles]:
    sigmas = levels(question.scenario.covariance, steps)
    tell = question.counted(BATCHES * steps)
    size = math.ceil(particles / BATCHES)
    return [
        twisted(
            question.scenario,
            size,
            sigmas,
            stream(question.seed, Sampling.PARTICLES, attempt, j),
            tell,
        )
        for j in range(BATCHES)
    ]


def _chosen(
    question: Question, x: Tensor, log_weights: Tensor, origin: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """As many as were asked for: with weights, or of equal weight and told apart."""
    generator = stream(question.seed, Sampling.SELECTION)
    if question.settings.weighted:
        alive = log_weights.isfinite().nonzero()[:, 0]
        rows = alive[torch.randperm(len(alive), generator=generator)[: question.samples]]
        return x[rows], log_weights[rows] - log_weights[rows].max(), origin[rows]
    rows = systematic(log_weights, question.samples, generator)
    rows = rows[torch.randperm(len(rows), generator=generator)]
    x = refresh(question.scenario, x[rows], generator)
    return x, torch.zeros(len(x), dtype=torch.float64), origin[rows]


def _problems(batches: list[Particles], samples: int) -> list[str]:
    """What is wrong with a run, in words."""
    count = sum(len(batch.x) for batch in batches)
    found = []
    ancestors = sum(batch.ancestors for batch in batches)
    if ancestors < min(100, count // 20):
        found.append(f"only {ancestors} lines of particles survived")
    carrying = effective(torch.cat([batch.log_weights for batch in batches]))
    if carrying < min(samples, count / EACH) * WORTH:
        found.append(f"{count:,} particles are worth {carrying:.0f} samples")
    each = torch.tensor([batch.log_z for batch in batches])
    if not bool(each.isfinite().all()):
        found.append("in some batches no particle met the scenario")
    elif float(each.max() - each.min()) > 1.0:
        factor = math.exp(min(float(each.max() - each.min()), 700.0))
        told = f"{factor:.1f}" if factor < 1000 else f"{factor:.0e}"
        found.append(f"batches disagree on the probability by a factor of {told}")
    return found
