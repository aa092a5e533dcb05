"""A particle filter over the values of the decoder, in independent batches: sequential Monte Carlo.

Without a noisy point the decoder is an autoregressive model p(y_1) p(y_2 | y_1) ... of the data. A
linear condition is met by the last value that it concerns, with its probability as a weight, and
particles are resampled where their effective sample size falls (Gordon, Salmond and Smith 1993).
Nothing looks ahead: a condition on late values alone meets particles that are not prepared for it,
and one on many steps leaves few ancestors of the first ones. For a past that is given in full the
weights are all equal: a forecast.
"""

from __future__ import annotations

import math

import torch
from torch import Generator

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.guidance import failure, smc
from surrogate.guidance.methods.sequential import SequentialSettings, particles_for
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.selection import selected
from surrogate.guidance.twisted import Particles
from surrogate.kinds.decoder import NO_SIGNAL, Filter
from surrogate.random import Sampling, stream

BATCHES = 4
MAX_BATCH = 5_000  # particles drawn at a time
MIN_DISTINCT = 0.02  # share of the particles with descendants, below which the run is warned about
SCOUTS = 500  # particles that tell whether the method suits a scenario
MIN_SCOUT_ANCESTORS = 0.1  # effective ancestors, as a share of them, for which it does


@torch.no_grad()
def filtered(scenario: Scenario, count: int, generator: Generator) -> Particles:
    """One batch of `count` particles."""
    zero = torch.zeros(count, dtype=torch.float64)
    particles = Filter(
        zero, zero[:, None].expand(-1, len(scenario.pins)), smc.resampling(generator)
    )
    nothing = torch.zeros(count, scenario.size, dtype=torch.float64)
    x, draw = scenario.decode(nothing, NO_SIGNAL, generator, particles)
    verdicts = scenario.satisfied(x)
    log_weights = draw.log_weights + scenario.log_value(x, verdicts)
    ess = float(smc.ess(log_weights))
    return Particles(x, log_weights, ess, draw.rows, float(verdicts.satisfied.double().mean()))


def suits(scenario: Scenario, seed: int) -> bool:
    """Whether few particles keep many ancestors: nothing has to be foreseen."""
    if scenario.prior.decoder is None or not len(scenario.pins):
        return False
    found = filtered(scenario, SCOUTS, stream(seed, Sampling.SEQUENTIAL_SCOUTS))
    if not bool(found.log_weights.isfinite().any()):
        return False
    return smc.ancestor_ess(found.log_weights, found.ancestors) >= MIN_SCOUT_ANCESTORS * SCOUTS


def answer(question: Question[SequentialSettings]) -> Outcome:
    """Samples by sequential particles."""
    scenario, settings = question.scenario, question.settings
    if scenario.prior.decoder is None:
        raise ModelError(
            "this model has no decoder, which the method sequential needs",
            remedy=("use ", Setting("method", "twisted")),
        )
    total = settings.particles or particles_for(question.samples)
    count = max(BATCHES, math.ceil(total / MAX_BATCH))
    progress = question.counted(count)
    batches = []
    for j in range(count):
        generator = stream(question.seed, Sampling.SEQUENTIAL, j)
        batches.append(filtered(scenario, math.ceil(total / count), generator))
        progress(1)
    log_weights = torch.cat([batch.log_weights for batch in batches])
    if not bool(log_weights.isfinite().any()):
        raise failure.no_sample(scenario, batches, question.plain)
    each = torch.tensor([batch.log_z for batch in batches], dtype=torch.float64)
    log_z = float(smc.log_mean_exp(each))
    size = len(batches[0].x)
    ancestors = torch.cat([batch.ancestors + j * size for j, batch in enumerate(batches)])
    x = torch.cat([batch.x for batch in batches])
    ess, alive = float(smc.ess(log_weights)), log_weights.isfinite()
    x, chosen_weights, chosen_ancestors = selected(question, x, log_weights, ancestors)
    spread = each.exp().std() / math.sqrt(count) / math.exp(log_z) if log_z > -600 else each.std()
    made = Outcome(
        x=x,
        log_weights=chosen_weights,
        ancestors=chosen_ancestors,
        particles=len(log_weights),
        steps=1,
        evaluations=len(log_weights),
        met=sum(batch.met for batch in batches) / count,
        ess=ess,
        min_ess=min(batch.min_ess / size for batch in batches),
        log_probability=log_z,
        log_probability_error=float(spread) if bool(each.isfinite().all()) else None,
        batches=each.tolist(),
    )
    distinct = smc.distinct(ancestors[alive])
    if ess < min(question.samples, 1_000) / 10 or distinct < MIN_DISTINCT * len(log_weights):
        made.warnings = [
            f"few particles carry the scenario: the effective sample size of {len(ancestors):,} is "
            f"{ess:.0f}, with {distinct:,} distinct ancestors; the method twisted looks ahead"
        ]
    return made
