"""A particle filter over the values of the decoder, in independent batches: sequential Monte Carlo.

Without a noisy point the decoder is an autoregressive model p(y_1) p(y_2 | y_1) ... of the data. A
linear condition is met by the last value that it concerns, with its probability as a weight; an
observation multiplies the weights once the last value that it depends on is drawn. Particles are
resampled where their effective sample size falls (Gordon, Salmond and Smith 1993). A look-ahead,
learned from plain draws, prepares particles for conditions on later values
(`kinds.trajectories.lookahead`); where it foresees little, few ancestors of the first values are
left. For a past that is given in full the weights are all equal: a forecast. A formula with `or` is
filtered case by case (`cases`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Generator

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.guidance import failure, smc
from surrogate.guidance.adaptation import adapted
from surrogate.guidance.cases import Allocation, Case, cases_of, log_share
from surrogate.guidance.methods.sequential import (
    ENOUGH_ANCESTORS,
    SequentialSettings,
    particles_for,
)
from surrogate.guidance.outcome import Outcome, Progress, Question
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.selection import selected
from surrogate.guidance.twisted import Particles
from surrogate.kinds.decoder import NO_SIGNAL, Filter
from surrogate.random import Sampling, stream
from surrogate.sampling.solvers import AUTOREGRESSIVE

BATCHES = 4
MAX_BATCH = 15_000  # particles drawn at a time
MIN_DISTINCT = 0.02  # share of the particles with descendants, below which the run is warned about
SCOUTS = 1_000  # particles that tell whether the method suits a scenario
MIN_CASE_SCOUTS = 250  # of these in each case
EQUAL_WEIGHTS = 0.95  # effective ancestors, as a share, from which each particle is a sample
MIN_SCOUT_ANCESTORS = 0.005  # effective ancestors, as a share of them, for which it does
ENOUGH_EFFECTIVE = 0.05  # the same, for which nothing is adapted
MIN_ADAPTED_SHARE = 0.02  # of the particles, of a case that is adapted
PREPARING = 0.2  # of the time, for adaptation


@torch.no_grad()
def filtered(scenario: Scenario, case: Case, count: int, generator: Generator) -> Particles:
    """`count` particles of one case."""
    zero = torch.zeros(count, dtype=torch.float64)
    foreseen = zero[:, None].expand(-1, case.pins.total)
    own = case.lookahead, case.proposal
    particles = Filter(zero, foreseen, smc.resampling(generator), *own)
    nothing = torch.zeros(count, scenario.size, dtype=torch.float64)
    x, draw = scenario.decode(nothing, NO_SIGNAL, generator, particles, case.pins)
    verdicts = scenario.satisfied(x)
    log_weights = draw.log_weights + scenario.log_value(x, verdicts) + log_share(scenario, case, x)
    ess = float(smc.ess(log_weights))
    return Particles(x, log_weights, ess, draw.rows, float(verdicts.satisfied.double().mean()))


def batch_of(
    scenario: Scenario, cases: Sequence[Case], counts: Sequence[int], generator: Generator
) -> Particles:
    """Particles of all cases, `counts` of each, whose mean weight is the probability of all."""
    made = [
        filtered(scenario, case, count, generator)
        for case, count in zip(cases, counts, strict=True)
    ]
    total, first = sum(counts), torch.tensor([0, *counts[:-1]]).cumsum(0)
    log_weights = torch.cat(
        [part.log_weights + math.log(total / n) for part, n in zip(made, counts, strict=True)]
    )
    return Particles(
        torch.cat([part.x for part in made]),
        log_weights,
        float(smc.ess(log_weights)),
        torch.cat([part.ancestors + n for part, n in zip(made, first, strict=True)]),
        sum(part.met * n for part, n in zip(made, counts, strict=True)) / total,
    )


def allocated(scenario: Scenario, cases: Sequence[Case], seed: int) -> Allocation:
    """Shares of the particles by the probability and the effective ancestors of a few."""
    count = max(MIN_CASE_SCOUTS, SCOUTS // len(cases))
    generator = stream(seed, Sampling.SEQUENTIAL_SCOUTS)
    found = [filtered(scenario, case, count, generator) for case in cases]
    alive = [each.log_z > -math.inf for each in found]
    ancestors = [
        smc.ancestor_ess(each.log_weights, each.ancestors) / count if some else 0.0
        for each, some in zip(found, alive, strict=True)
    ]
    return Allocation.of([each.log_z for each in found], ancestors)


def settles_first(scenario: Scenario) -> bool:
    """Whether the decoder draws first what the equations of the scenario settle: no pilot is needed
    to know that the method suits."""
    decoder = scenario.prior.decoder
    if decoder is None or not scenario.compares_only:
        return False
    return decoder.settles_first(scenario.pins)


@dataclass(frozen=True)
class Preparation:
    """Cases with their look-aheads and proposals, and what scouts tell of them."""

    cases: list[Case]
    allocation: Allocation
    adapted: bool = False


_PREPARED: WeakKeyDictionary[Scenario, dict[int, Preparation]] = WeakKeyDictionary()


def prepared(scenario: Scenario, seed: int, progress: Progress = lambda share: None) -> Preparation:
    """Cases adapted where scouts with what plain draws tell keep few ancestors, if that helps;
    computed once for a scenario and a seed."""
    known = _PREPARED.setdefault(scenario, {})
    if seed not in known:
        known[seed] = _prepared(scenario, seed, progress)
    return known[seed]


def _prepared(scenario: Scenario, seed: int, progress: Progress) -> Preparation:
    cases = cases_of(scenario, seed)
    plain = Preparation(cases, allocated(scenario, cases, seed))
    if plain.allocation.effective >= ENOUGH_EFFECTIVE or not any(c.lookahead for c in cases):
        return plain
    made = []
    for i, (case, share) in enumerate(zip(cases, plain.allocation.shares, strict=True)):
        if case.lookahead is None or share < MIN_ADAPTED_SHARE:
            made.append(case)
            continue
        done, generator = i / len(cases), stream(seed, Sampling.ADAPTATION, i)
        made.append(
            adapted(
                scenario,
                case,
                generator,
                lambda own, done=done: progress(done + own / len(cases)),  # type: ignore[misc]
            )
        )
    other = Preparation(made, allocated(scenario, made, seed), adapted=True)
    return max(other, plain, key=lambda each: each.allocation.effective)


def suits(scenario: Scenario, seed: int, progress: Progress = lambda share: None) -> bool:
    """Whether plain samples are the decoder's own, and enough particles keep their ancestors: the
    look-ahead foresees what is needed."""
    if settles_first(scenario):
        return True
    prior = scenario.prior
    if prior.decoder is None or prior.default_solver != AUTOREGRESSIVE:
        return False
    if not scenario.hard and not scenario.observes:
        return False
    own = prepared(scenario, seed, progress)
    if not any(case.pins.total for case in own.cases):
        return False
    return own.allocation.effective >= MIN_SCOUT_ANCESTORS


def answer(question: Question[SequentialSettings]) -> Outcome:
    """Samples by sequential particles."""
    scenario, settings = question.scenario, question.settings
    if scenario.prior.decoder is None:
        raise ModelError(
            "this model has no decoder, which the method sequential needs",
            remedy=("use ", Setting("method", "twisted")),
        )
    own = prepared(scenario, question.seed, lambda share: question.progress(PREPARING * share))
    cases, allocation = own.cases, own.allocation
    total = settings.particles
    if total is None and allocation.effective >= EQUAL_WEIGHTS and settles_first(scenario):
        total = question.samples
    total = total or particles_for(question.samples, allocation.effective)
    count = max(BATCHES, math.ceil(total / MAX_BATCH))
    counts = allocation.counts(math.ceil(total / count))
    start = PREPARING if own.adapted else 0.0
    batches = []
    for j in range(count):
        generator = stream(question.seed, Sampling.SEQUENTIAL, j)
        batches.append(batch_of(scenario, cases, counts, generator))
        question.progress(start + (1 - start) * (j + 1) / count)
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
