"""MCMC moves that make copies distinct and leave the conditional distribution invariant.

A sample is noised to a small σ and a clean point is drawn from the posterior N(D, C_σ) given the
equations: Gibbs sampling between x_0 and x_0 + σn, with a Metropolis step for the weights of the
GHK simulator (`truncated`) and for verdicts.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.guidance import truncated
from surrogate.guidance.posterior import Posterior, Posteriors
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
        proposed, own, other = _propose(posteriors.at(level, mean), mean, x, generator)
        found = scenario.log_value(proposed)
        log_acceptance = found + own - value - other
        accepted = torch.rand(len(x), generator=generator, dtype=x.dtype).log() < log_acceptance
        x = torch.where(accepted[:, None], proposed, x)
        value = torch.where(accepted, found, value)
    return x


def _propose(
    posterior: Posterior, mean: Tensor, x: Tensor, generator: Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """New points that meet the equations (B, D), their log-weights, and those of x: (B,) each."""
    scenario, equations = posterior.scenario, posterior.equations
    white = torch.randn(mean.shape, generator=generator, dtype=mean.dtype)
    made = mean + posterior.covariance.apply(posterior.values.sqrt(), white)
    own = other = mean.new_zeros(len(mean))
    if len(equations):
        factor = posterior.exact_factor()
        ends = truncated.shrunk(equations.low, equations.high)
        at = mean @ equations.rows.mT
        u, own = truncated.box(at, factor, *ends, generator)
        gain = torch.cholesky_solve(posterior.loaded, factor)
        made = made + (u - made @ equations.rows.mT) @ gain
        other = truncated.weight_of(x @ equations.rows.mT, at, factor, *ends)
    return scenario.within(made), own, other
