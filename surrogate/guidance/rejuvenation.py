"""MCMC moves that make copies distinct and leave the conditional distribution invariant.

A sample is noised to a small σ and a clean point is drawn from the posterior N(D, C_σ) given the
equations: Gibbs sampling between x_0 and x_0 + σn, with a Metropolis-Hastings step for the weights
of the GHK simulator (`truncated`) and for the value of the formula.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.guidance.posterior import Posteriors
from surrogate.guidance.scenario import Scenario

MOVE_SIGMA = 0.1  # noise of a move, in normalised units
MOVES = 3


@torch.no_grad()
def rejuvenate(
    scenario: Scenario,
    x: Tensor,
    generator: Generator,
    sigma: float = MOVE_SIGMA,
    moves: int = MOVES,
) -> Tensor:
    """Samples (B, D) after some moves."""
    level = torch.tensor(sigma, dtype=torch.float64)
    posteriors = Posteriors(scenario)
    value = scenario.log_value(x)
    for _ in range(moves):
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        mean = scenario.denoised(x + sigma * noise, level)
        posterior = posteriors.at(level, mean)
        draw = posterior.sample(mean, generator)
        proposed = scenario.within(draw.x)
        proposed_value = scenario.log_value(proposed)
        log_acceptance = proposed_value + draw.log_weight - value - posterior.log_weight(x, mean)
        accepted = torch.rand(len(x), generator=generator, dtype=x.dtype).log() < log_acceptance
        x = torch.where(accepted[:, None], proposed, x)
        value = torch.where(accepted, proposed_value, value)
    return x
