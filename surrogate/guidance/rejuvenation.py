"""Local moves that tell copies apart, and leave the conditional law as it is.

A sample is noised to a small σ and a clean point drawn again from the belief N(D, C_σ) given the
scenario: Gibbs sampling between x_0 and x_0 + σn, with a Metropolis step for what the equations'
simulator weighs and for verdicts.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.guidance import truncated
from surrogate.guidance.posterior import Belief
from surrogate.guidance.scenario import Scenario

SIGMA = 0.1
SWEEPS = 3


@torch.no_grad()
def refresh(
    scenario: Scenario, x: Tensor, generator: Generator, sigma: float = SIGMA, sweeps: int = SWEEPS
) -> Tensor:
    """Samples (B, D) after some moves."""
    level = torch.tensor(sigma, dtype=torch.float64)
    value = scenario.log_value(x)
    for _ in range(sweeps):
        noise = torch.randn(x.shape, generator=generator, dtype=x.dtype)
        mean = scenario.denoised(x + sigma * noise, level)
        belief = scenario.belief(level, mean)
        made, own, other = _drawn(belief, mean, x, generator)
        found = scenario.log_value(made)
        ratio = found + own - value - other
        better = torch.rand(len(x), generator=generator, dtype=x.dtype).log() < ratio
        x = torch.where(better[:, None], made, x)
        value = torch.where(better, found, value)
    return x


def _drawn(
    belief: Belief, mean: Tensor, x: Tensor, generator: Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """New points that meet the equations, their log-weights, and those of the old ones."""
    scenario, equations = belief.scenario, belief.equations
    white = torch.randn(mean.shape, generator=generator, dtype=mean.dtype)
    made = mean + belief.covariance.apply(belief.values.sqrt(), white)
    own = other = mean.new_zeros(len(mean))
    if len(equations):
        factor = belief.exact_factor()
        ends = truncated.shrunk(equations.low, equations.high)
        at = mean @ equations.rows.mT
        u, own = truncated.box(at, factor, *ends, generator)
        made = made + (u - made @ equations.rows.mT) @ torch.cholesky_solve(belief.loaded, factor)
        other = truncated.weight_of(x @ equations.rows.mT, at, factor, *ends)
    return scenario.within(made), own, other
