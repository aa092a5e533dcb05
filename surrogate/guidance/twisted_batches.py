"""The method `twisted`: independent batches of particles, and more particles for hard scenarios.

The particles of one batch share ancestors, so the error of log Z comes from independent batches,
half of them with fewer and half with more noise levels (`evidence`). Unless a number of particles
is given, a run with a small effective sample size, few distinct ancestors or batches that disagree
is repeated with twice the particles and 1.5 times the noise levels, if that may be enough; problems
that remain are reported. A run that carries no information (one ancestor left, batches that
disagree by a factor of ten) is degenerate; a scenario that no particle of the first two batches
meets is refused.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import torch
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.schedule import karras
from surrogate.guidance import evidence, failure, smc
from surrogate.guidance.methods.twisted import (
    PARTICLES_PER_SAMPLE,
    TwistedSettings,
    levels_for,
    particles_for,
)
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.posterior import Posteriors
from surrogate.guidance.selection import selected
from surrogate.guidance.twisted import Particles, twisted
from surrogate.random import Sampling, stream
from surrogate.sampling.steps import SIGMA_MAX

PARTICLE_SIGMA_MIN = 0.01  # the last noise level before the clean point
SIGMA_VISIBLE = 10.0  # noise level below which data of unit variance stand out from the noise
BATCHES = 4
ATTEMPTS = 3
SCOUTS = 500  # particles of a batch that finds out whether any particle meets the scenario
MIN_SCOUT_ESS = 2  # below, more particles do not help
MAX_SCOUT_FACTOR = 1e4  # between two such batches' estimates of P, beyond which they do not either
MAX_ESS_GAIN = 4.0  # that repeating a run may well have
MAX_RESCUE_EVALUATIONS = 1_000_000  # of the network, to repeat a run beyond that gain, once
MIN_ESS_PER_SAMPLE = 1 / 3  # of the particles at the end, below which a run is repeated
MIN_DISTINCT_ANCESTORS = 100  # of all batches, or a 20th of the particles
MIN_ESS = 10  # of all particles, or the samples if they are fewer: below, a run is degenerate
MAX_DEGENERATE_FACTOR = 10.0  # between batches' estimates of P, beyond which a run is degenerate


def answer(question: Question[TwistedSettings]) -> Outcome:
    """Samples by twisted particles."""
    settings, samples = question.settings, question.samples
    particles = settings.particles or particles_for(samples)
    attempts = ATTEMPTS if settings.particles is None else 1
    steps = settings.steps or levels_for(question.scenario.prior)
    posteriors = Posteriors(question.scenario)
    spent = _scout(question, particles, steps, posteriors)
    for attempt in range(attempts):
        began = time.monotonic()
        counts = evidence.level_counts(steps, BATCHES)
        batches = list(_run(question, particles, counts, attempt, posteriors))
        spent += sum(len(b.x) * count for b, count in zip(batches, counts, strict=True))
        log_zs = [batch.log_z for batch in batches]
        problems, degenerate = _problems(batches, samples), _degeneracy(batches, samples)
        if not problems or attempt == attempts - 1:
            break
        again = 2 * particles, steps * 3 // 2
        far = MAX_ESS_GAIN * _ess(batches) < _required_ess(particles, samples)
        if (degenerate or far) and (attempt or math.prod(again) > MAX_RESCUE_EVALUATIONS):
            break
        seconds = 3 * (time.monotonic() - began)
        if question.rejection_is_faster(evidence.combined(log_zs, counts).value, seconds):
            break
        particles, steps = again
        question.say(f"{'; '.join(problems)}: again with {particles:,} particles, {steps} steps")
    log_weights = torch.cat([batch.log_weights for batch in batches])
    if not bool(log_weights.isfinite().any()):
        raise failure.no_sample(question.scenario, batches, question.plain)
    log_z = evidence.combined(log_zs, counts)
    sizes = [len(batch.x) for batch in batches]
    first = torch.tensor([0, *sizes[:-1]]).cumsum(0)
    ancestors = torch.cat([b.ancestors + n for b, n in zip(batches, first, strict=True)])
    x, sample_weights, ancestors = selected(
        question, torch.cat([batch.x for batch in batches]), log_weights, ancestors
    )
    made = Outcome(
        x=x,
        log_weights=sample_weights,
        ancestors=ancestors,
        particles=sum(sizes),
        steps=steps,
        evaluations=spent,
        met=sum(batch.met for batch in batches) / len(batches),
        ess=float(smc.ess(log_weights)),
        min_ess=min(batch.min_ess / len(batch.x) for batch in batches),
        log_probability=log_z.value,
        log_probability_error=log_z.error if math.isfinite(log_z.error) else None,
        batches=log_zs,
        warnings=problems,
        degenerate=degenerate,
    )
    if degenerate:
        made.cause = failure.weakest_part(question.scenario, batches, question.plain)
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


def _scout(
    question: Question[TwistedSettings], particles: int, steps: int, posteriors: Posteriors
) -> int:
    """Refuse, after few particles, a scenario of which a long run would be degenerate, if plain
    samples do not meet it or rejection can take the place of particles. The evaluations that this
    took."""
    none = question.plain is not None and not question.plain.accepted
    replaceable = question.draw_seconds is not None
    if not (none or replaceable) or math.ceil(particles / BATCHES) <= 2 * SCOUTS:
        return 0
    counts = evidence.level_counts(steps, 2)
    batches = list(_run(question, 2 * SCOUTS, counts, ATTEMPTS, posteriors))
    hopeless = _ess(batches) < MIN_SCOUT_ESS
    hopeless |= _log_disagreement(batches) > math.log(MAX_SCOUT_FACTOR)
    if hopeless and not question.settings.keep_degenerate:
        raise failure.degenerate(
            _degeneracy(batches, MIN_ESS),
            failure.weakest_part(question.scenario, batches, question.plain),
            particles,
            steps,
        )
    return SCOUTS * sum(counts)


def _run(
    question: Question[TwistedSettings],
    particles: int,
    counts: list[int],
    attempt: int,
    posteriors: Posteriors,
) -> Iterator[Particles]:
    """Independent batches with `particles` particles in all, each with its number of levels; a
    SamplingError if no particle of the first two meets the scenario."""
    handover = question.scenario.handover
    last = PARTICLE_SIGMA_MIN if handover is None else handover
    progress = question.counted(sum(counts))
    size = math.ceil(particles / len(counts))
    failed: list[Particles] = []
    for j, count in enumerate(counts):
        batch = twisted(
            question.scenario,
            size,
            levels(question.scenario.covariance, count, last),
            stream(question.seed, Sampling.PARTICLES, attempt, j),
            progress,
            jacobian=question.settings.jacobian,
            posteriors=posteriors,
        )
        if not bool(batch.log_weights.isfinite().any()):
            failed.append(batch)
        if len(failed) == j + 1 == 2:
            raise failure.no_sample(question.scenario, failed, question.plain)
        yield batch


def _problems(batches: list[Particles], samples: int) -> list[str]:
    """What is wrong with a run, in words."""
    count = sum(len(batch.x) for batch in batches)
    found = []
    ancestors = sum(batch.distinct_ancestors for batch in batches)
    if ancestors < min(MIN_DISTINCT_ANCESTORS, count // 20):
        found.append(f"only {ancestors} distinct ancestors are left")
    ess = _ess(batches)
    if ess < _required_ess(count, samples):
        found.append(f"the effective sample size of {count:,} particles is {ess:.0f}")
    disagreement = _log_disagreement(batches)
    if disagreement == math.inf:
        found.append("in some batches no particle met the scenario")
    elif disagreement > evidence.MAX_LOG_DISAGREEMENT:
        found.append(f"batches disagree on the probability by a factor of {_factor(disagreement)}")
    return found


def _degeneracy(batches: list[Particles], samples: int) -> list[str]:
    """Why a run carries no information, in words; empty if it does."""
    found = []
    ancestors = sum(batch.distinct_ancestors for batch in batches)
    if samples > 1 and ancestors <= len(batches):
        each = "one initial particle" if ancestors == 1 else f"{ancestors} initial particles"
        found.append(f"all particles descend from {each}")
    ess = _ess(batches)
    if ess < min(MIN_ESS, samples):
        found.append(f"the effective sample size is {ess:.1f}")
    disagreement = _log_disagreement(batches)
    if disagreement == math.inf:
        found.append("in some batches no particle met the scenario")
    elif disagreement > math.log(MAX_DEGENERATE_FACTOR):
        found.append(f"batches disagree on the probability by a factor of {_factor(disagreement)}")
    return found


def _required_ess(particles: int, samples: int) -> float:
    """The effective sample size below which a run is repeated."""
    return min(samples, particles / PARTICLES_PER_SAMPLE) * MIN_ESS_PER_SAMPLE


def _ess(batches: list[Particles]) -> float:
    return float(smc.ess(torch.cat([batch.log_weights for batch in batches])))


def _log_disagreement(batches: list[Particles]) -> float:
    """The largest difference between the log Z of batches."""
    each = [batch.log_z for batch in batches]
    return max(each) - min(each) if math.isfinite(min(each)) else math.inf


def _factor(log_factor: float) -> str:
    factor = math.exp(min(log_factor, 700.0))
    return f"{factor:.1f}" if factor < 1000 else f"{factor:.0e}"
