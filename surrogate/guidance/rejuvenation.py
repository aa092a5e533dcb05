"""MCMC moves that make copies distinct and leave the conditional distribution invariant.

A decoder gives p(x_0 | x_σ) itself, so a sample can be noised to the decoder's level σ and drawn
again: Gibbs sampling between x_0 and x_σ = x_0 + σn. Under linear conditions (`Pins`) the decoder
draws from q(x_0 | x_σ) = p(x_0 | x_σ) / w(x_0, x_σ) on what they allow, w its weight, and a
Metropolis-Hastings step accepts x_0' with probability

    min(1, w(x_0', x_σ) e^c(x_0') / w(x_0, x_σ) e^c(x_0)),

which leaves p(x_0) e^c(x_0) invariant. Where no decoder takes over there are no moves: a Gaussian
about the denoised estimate is not p(x_0 | x_σ) where the data have structure finer than σ, and a σ
below that only jitters copies.
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor

from surrogate.guidance.scenario import Scenario

MOVES = 1


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
