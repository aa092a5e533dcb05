"""The noisy points that decoders learn from, and how their trunks read them.

Levels σ are log-uniform; a share of the points has the level BLIND, at which the noisy point is 0
and tells nothing: there a decoder is an autoregressive model of the data.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Generator, Tensor

SIGMA_LOW, SIGMA_HIGH = 0.1, 4.0  # noise levels that decoders learn to start from
BLIND_SHARE = 0.4  # of training samples without any noisy point
BLIND = 1e6  # a noise level as good as infinite
MAX_EMBEDDED_SIGMA = 20.0


def noised(clean: Tensor, generator: Generator) -> tuple[Tensor, Tensor]:
    """Clean points (B, *shape) at random noise levels, and the levels (B,)."""
    uniform = torch.rand((2, len(clean)), generator=generator)
    sigma = SIGMA_LOW * (SIGMA_HIGH / SIGMA_LOW) ** uniform[0]
    blind = uniform[1] < BLIND_SHARE
    noise = torch.randn(clean.shape, generator=generator)
    around = [1] * (clean.ndim - 1)
    moved = clean + sigma.reshape(-1, *around) * noise
    noisy = torch.where(blind.reshape(-1, *around), 0.0, moved)
    return noisy, torch.where(blind, BLIND, sigma)


def contexts(
    trunk: Callable[[Tensor, Tensor], Tensor], noisy: Tensor, sigma: Tensor
) -> tuple[Tensor, Tensor]:
    """What a trunk tells of noisy points (B, *shape) at levels (B,), (B, ...), and the points
    shrunk to what they tell of themselves.

    At the level BLIND they tell nothing: they must be 0, and share one context.
    """
    shrunk = noisy / (1 + sigma**2).reshape(-1, *[1] * (noisy.ndim - 1))
    blind = sigma >= BLIND
    last = blind.nonzero()[:1, 0]  # stands for all of them
    read = torch.cat([(~blind).nonzero()[:, 0], last])
    level = sigma[read].clamp_max(MAX_EMBEDDED_SIGMA).log() / 4
    made = trunk(shrunk[read], level)
    place = torch.where(blind, len(read) - 1, (~blind).cumsum(0) - 1)
    return made[place], shrunk
