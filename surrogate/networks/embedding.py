"""The embedding of the noise level, and residual blocks that it modulates.

A block is x + gate · f(norm(x)·(1 + scale) + shift), where scale, shift and gate are linear in the
embedding and start at zero (adaptive layer norm; Peebles & Xie 2023, arXiv:2212.09748), so an
untrained network is the identity between its input and output maps.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from surrogate.errors import ModelError

FEATURES = 64  # of the noise level, which is one number; more only cost time in every block


class NoiseEmbedding(nn.Module):
    """c_noise (B,) to features (B, FEATURES): sines and cosines, then two layers."""

    frequencies: Tensor

    def __init__(self, waves: int = 32) -> None:
        super().__init__()
        # c_noise = log(σ)/4 spans about [-1.6, 1.1]: from its whole range to details of 1/100
        octaves = torch.exp(torch.linspace(math.log(0.5), math.log(50.0), waves))
        self.register_buffer("frequencies", octaves)
        self.inner = nn.Linear(2 * waves, FEATURES)
        self.outer = nn.Linear(FEATURES, FEATURES)

    def forward(self, noise: Tensor) -> Tensor:
        angles = noise[:, None] * self.frequencies
        waves = torch.cat([angles.sin(), angles.cos()], 1)
        features: Tensor = silu(self.outer(silu(self.inner(waves))))
        return features


class Block(nn.Module):
    """A residual two-layer perceptron on (B, ..., width), modulated by (B, FEATURES) or (1, ...).

    It acts on the last axis, or on the one before it if its length is given as `across`.
    """

    def __init__(self, width: int, across: int | None = None) -> None:
        super().__init__()
        self.across = across
        mixed = across or width
        inside = max(32, 2 * mixed)
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = nn.Linear(FEATURES, 3 * width)
        self.inner = nn.Linear(mixed, inside)
        self.outer = nn.Linear(inside, mixed)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        between = (1,) * (x.ndim - 2)
        shift, scale, gate = (
            part.reshape(len(noise), *between, x.shape[-1])
            for part in self.modulation(noise).chunk(3, -1)
        )
        seen = torch.addcmul(shift, self.norm(x), 1 + scale)
        change = self._perceptron(seen.mT).mT if self.across else self._perceptron(seen)
        return torch.addcmul(x, gate, change)

    def _perceptron(self, x: Tensor) -> Tensor:
        # in place where no gradient needs what was there: memory is what this costs
        out: Tensor = self.outer(silu(self.inner(x), inplace=not torch.is_grad_enabled()))
        return out


def at_least_one(**sizes: int) -> None:
    """ModelError unless every size is a whole number >= 1."""
    for name, size in sizes.items():
        if type(size) is not int or size < 1:
            raise ModelError(
                f"{name} of a network must be a whole number >= 1, not {size!r}", value=size
            )
