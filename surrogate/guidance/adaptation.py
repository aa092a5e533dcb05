"""Adaptation of a particle filter to what it is to meet, before its particles are drawn.

Sharp observations and equations leave little of what plain draws show: a look-ahead ĝ_t that is
learned from these extrapolates, and of parameters θ drawn from the prior few survive. Two things
are learned near the posterior instead, in rounds:

1. θ ~ q, and a tempered step: the weights w = p(θ)/q(θ) ĝ_0(θ, x_0) after the first step to the
   power α, the largest α <= 1 that leaves enough of them effective, select particles, which go on
   as plain draws. From these come the next ĝ and the next q, until α = 1 (population Monte Carlo
   with tempered weights, Koblents and Míguez 2015).
2. The filter is run to some steps t_1 < t_2 < ... in turn. After t_i its particles are near the
   posterior; their θ is perturbed, so that copies differ, and they go on as plain draws, from which
   ĝ_t is learned anew for t >= t_i, and q too (the iterated auxiliary particle filter of Guarniero,
   Johansen and Lee 2017). The conditions after t_i have had no influence on what is drawn after
   it, so that what is learned is the model's own.

Whatever ĝ and q are, the weights of the filter are exact (`sequential`); these only decide how many
particles carry them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Generator, Tensor

from surrogate.guidance import smc
from surrogate.guidance.cases import Case
from surrogate.guidance.scenario import Scenario
from surrogate.kinds.decoder import NO_SIGNAL, Filter, Fork

ROUNDS = 6  # at most, of the first kind
FORKS = 8  # steps at which the filter is left
DRAWS = 1_000  # particles of each
MIN_SELECTED = 0.2  # effective share of the particles that tempered weights leave
MIN_DISTINCT = 20  # ancestors, below which q stays as it is
BISECTIONS = 40


class Selection:
    """Systematic resampling by log-weights (N,) to the power `power`, which it chooses."""

    def __init__(self, generator: Generator) -> None:
        self.generator, self.power = generator, 1.0

    def __call__(self, log_weights: Tensor) -> Tensor:
        count = len(log_weights)
        if not bool(log_weights.isfinite().any()):
            return torch.arange(count)
        self.power = tempering(log_weights, MIN_SELECTED * count)
        return smc.systematic(_to_power(log_weights, self.power), count, self.generator)


def tempering(log_weights: Tensor, min_ess: float) -> float:
    """The largest α in (0, 1] with which the weights to the power α have this ESS."""
    low, high = 0.0, 1.0
    if float(smc.ess(log_weights)) >= min_ess:
        return high
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if float(smc.ess(_to_power(log_weights, middle))) >= min_ess:
            low = middle
        else:
            high = middle
    return low


@torch.no_grad()
def adapted(
    scenario: Scenario,
    case: Case,
    generator: Generator,
    progress: Callable[[float], None] = lambda share: None,
) -> Case:
    """A case with a look-ahead and a proposal of the first numbers that suit its posterior."""
    decoder, lookahead = scenario.prior.decoder, case.lookahead
    assert decoder is not None
    assert lookahead is not None
    for _ in range(ROUNDS):
        x, _, power = _forked(scenario, case, 0, generator)
        lookahead = lookahead.relearned(x, 0)
        case = replace(case, lookahead=lookahead, proposal=decoder.proposal(x))
        if power == 1.0:
            break
    progress(1 / (FORKS + 1))
    last = lookahead.last
    steps = sorted({round(last * i / (FORKS + 1)) for i in range(1, FORKS + 1)} - {0})
    for i, step in enumerate(steps):
        x, distinct, _ = _forked(scenario, case, step, generator)
        lookahead = lookahead.relearned(x, step)
        own = decoder.proposal(x) if distinct >= MIN_DISTINCT else case.proposal
        case = replace(case, lookahead=lookahead, proposal=own)
        progress((i + 2) / (len(steps) + 1))
    return case


def _forked(
    scenario: Scenario, case: Case, step: int, generator: Generator
) -> tuple[Tensor, int, float]:
    """Particles that leave the filter after a step (DRAWS, *shape), their distinct ancestors, and
    the power of the weights that they were selected by."""
    zero = torch.zeros(DRAWS, dtype=torch.float64)
    selection = Selection(generator)
    fork = Fork(step, selection, generator)
    filtering = smc.resampling(generator), case.lookahead, case.proposal, fork
    particles = Filter(zero, zero[:, None].expand(-1, case.pins.total), *filtering)
    nothing = torch.zeros(DRAWS, scenario.size, dtype=torch.float64)
    x, draw = scenario.decode(nothing, NO_SIGNAL, generator, particles, case.pins)
    return scenario.shaped(x), smc.distinct(draw.rows), selection.power


def _to_power(log_weights: Tensor, power: float) -> Tensor:
    return torch.where(log_weights.isfinite(), power * log_weights, -torch.inf)
