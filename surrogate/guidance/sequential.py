"""A particle filter over the values of the decoder, in independent batches: sequential Monte Carlo.

Without a noisy point the decoder is an autoregressive model p(y_1) p(y_2 | y_1) ... of the data. A
linear condition is met by the last value that it concerns, with its probability as a weight; an
observation multiplies the weights once the last value that it depends on is drawn. Particles are
resampled where their effective sample size falls (Gordon, Salmond and Smith 1993). A look-ahead,
learned from plain draws, prepares particles for conditions on later values
(`kinds.trajectories.lookahead`); where it foresees little, few ancestors of the first values are
left. For a past that is given in full the weights are all equal: a forecast.
"""

from __future__ import annotations

import math

import torch
from torch import Generator

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.guidance import failure, smc
from surrogate.guidance.methods.sequential import (
    ENOUGH_ANCESTORS,
    SequentialSettings,
    particles_for,
)
from surrogate.guidance.outcome import Outcome, Question
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.selection import selected
from surrogate.guidance.twisted import Particles
from surrogate.kinds.decoder import NO_SIGNAL, Filter, Lookahead
from surrogate.random import Sampling, stream

BATCHES = 4
MAX_BATCH = 15_000  # particles drawn at a time
MIN_DISTINCT = 0.02  # share of the particles with descendants, below which the run is warned about
LOOKAHEAD_DRAWS = 2_000  # plain samples that a look-ahead is learned from
SCOUTS = 1_000  # particles that tell whether the method suits a scenario
MIN_SCOUT_ANCESTORS = 0.005  # effective ancestors, as a share of them, for which it does


def lookahead(scenario: Scenario, seed: int) -> Lookahead | None:
    """A look-ahead learned from plain draws of the decoder."""
    decoder = scenario.prior.decoder
    if decoder is None or not scenario.pins.total:
        return None
    generator = stream(seed, Sampling.LOOKAHEAD)
    nothing = torch.zeros(LOOKAHEAD_DRAWS, *scenario.prior.shape)
    return decoder.lookahead(decoder.draw(nothing, NO_SIGNAL, generator).x, scenario.pins)


@torch.no_grad()
def filtered(
    scenario: Scenario, count: int, generator: Generator, ahead: Lookahead | None = None
) -> Particles:
    """One batch of `count` particles, with a look-ahead if it is given."""
    zero = torch.zeros(count, dtype=torch.float64)
    foreseen = zero[:, None].expand(-1, scenario.pins.total)
    particles = Filter(zero, foreseen, smc.resampling(generator), ahead)
    nothing = torch.zeros(count, scenario.size, dtype=torch.float64)
    x, draw = scenario.decode(nothing, NO_SIGNAL, generator, particles)
    verdicts = scenario.satisfied(x)
    log_weights = draw.log_weights + scenario.log_value(x, verdicts)
    ess = float(smc.ess(log_weights))
    return Particles(x, log_weights, ess, draw.rows, float(verdicts.satisfied.double().mean()))


def ancestor_share(scenario: Scenario, seed: int, ahead: Lookahead | None) -> float:
    """Effective ancestors of a few particles, as a share of them."""
    found = filtered(scenario, SCOUTS, stream(seed, Sampling.SEQUENTIAL_SCOUTS), ahead)
    if not bool(found.log_weights.isfinite().any()):
        return 0.0
    return smc.ancestor_ess(found.log_weights, found.ancestors) / SCOUTS


def suits(scenario: Scenario, seed: int) -> bool:
    """Whether enough particles keep their ancestors: the look-ahead foresees what is needed."""
    if scenario.prior.decoder is None or not scenario.pins.total:
        return False
    share = ancestor_share(scenario, seed, lookahead(scenario, seed))
    return share >= MIN_SCOUT_ANCESTORS


def answer(question: Question[SequentialSettings]) -> Outcome:
    """Samples by sequential particles."""
    scenario, settings = question.scenario, question.settings
    if scenario.prior.decoder is None:
        raise ModelError(
            "this model has no decoder, which the method sequential needs",
            remedy=("use ", Setting("method", "twisted")),
        )
    ahead = lookahead(scenario, question.seed)
    total = settings.particles
    if total is None:
        total = particles_for(question.samples, ancestor_share(scenario, question.seed, ahead))
    count = max(BATCHES, math.ceil(total / MAX_BATCH))
    progress = question.counted(count)
    batches = []
    for j in range(count):
        generator = stream(question.seed, Sampling.SEQUENTIAL, j)
        batches.append(filtered(scenario, math.ceil(total / count), generator, ahead))
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
    enough = min(MIN_DISTINCT * len(log_weights), ENOUGH_ANCESTORS)
    if ess < min(question.samples, 1_000) / 10 or distinct < enough:
        made.warnings = [
            f"few particles carry the scenario: the effective sample size of {len(ancestors):,} is "
            f"{ess:.0f}, with {distinct:,} distinct ancestors; use more particles or twisted"
        ]
    return made
