"""MCMC moves that make copies distinct and leave the conditional distribution invariant.

A decoder gives p(x_0 | x_σ) itself, so a sample can be noised to the decoder's level σ and drawn
again: Gibbs sampling between x_0 and x_σ = x_0 + σn. Under linear conditions (`Pins`) the decoder
draws from q(x_0 | x_σ) = p(x_0 | x_σ) / w(x_0, x_σ) on what they allow, w its weight, and a
Metropolis-Hastings step accepts x_0' with probability

    min(1, w(x_0', x_σ) e^c(x_0') / w(x_0, x_σ) e^c(x_0)),

which leaves p(x_0) e^c(x_0) invariant. Where no decoder takes over there are no moves: a Gaussian
about the denoised estimate is not p(x_0 | x_σ) where the data have structure finer than σ, and a σ
below that only jitters copies.

Numbers that stand at the beginning, such as parameters θ of a trajectory x, are what resampling
impoverishes most. They are moved given the rest by a random walk θ → θ', accepted with probability
min(1, p(θ', x) e^c(θ', x) / p(θ, x) e^c(θ, x)): p is the decoder's product of conditionals.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.guidance.scenario import Scenario
from surrogate.sampling.solvers import AUTOREGRESSIVE

MOVES = 1
FIRST_MOVES = 3  # of the first numbers


@torch.no_grad()
def rejuvenate(scenario: Scenario, x: Tensor, generator: Generator, moves: int = MOVES) -> Tensor:
    """Samples (B, D) after some moves; they stay as they are where no decoder takes over."""
    decoder = scenario.prior.decoder
    if decoder is None or scenario.handover is None:
        return x
    sigma, value = decoder.handover, scenario.log_value(x)
    for _ in range(moves):
        noisy = x + sigma * torch.randn(x.shape, generator=generator, dtype=x.dtype)
        proposed, draw = scenario.decode(noisy, sigma, generator)
        proposed_value = scenario.log_value(proposed)
        own_weight = scenario.decoding_log_weight(x, noisy, sigma)
        log_acceptance = proposed_value + draw.log_weights - value - own_weight
        accepted = torch.rand(len(x), generator=generator, dtype=x.dtype).log() < log_acceptance
        x = torch.where(accepted[:, None], proposed, x)
        value = torch.where(accepted, proposed_value, value)
    return x


@torch.no_grad()
def first_moved(scenario: Scenario, x: Tensor, generator: Generator) -> Tensor:
    """Samples (B, D) after moves of their first numbers, where the decoder has any to move."""
    decoder = scenario.prior.decoder
    own_law = scenario.prior.default_solver == AUTOREGRESSIVE  # whether samples are the decoder's
    if decoder is None or not own_law or scenario.instances > 1:
        return x

    def log_target(x: Tensor) -> Tensor:
        found = scenario.log_value(x) + scenario.log_likelihood(x)
        return found + decoder.log_prob(scenario.shaped(x)).to(found)

    own: Tensor | None = None
    for _ in range(FIRST_MOVES):
        proposed = decoder.perturbed(scenario.shaped(x), generator)
        if proposed is None:
            return x
        there = scenario.joined(proposed)
        own = log_target(x) if own is None else own
        value = log_target(there)
        accepted = torch.rand(len(x), generator=generator, dtype=x.dtype).log() < value - own
        x = torch.where(accepted[:, None], there, x)
        own = torch.where(accepted, value, own)
    return x
