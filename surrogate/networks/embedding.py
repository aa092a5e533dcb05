"""What the networks share: an embedding of the noise level, and blocks that it modulates.

A block is x + gate · f(norm(x)·(1 + scale) + shift), where scale, shift and gate are linear in the
embedding and start at zero (adaptive layer norm; Peebles and Xie, 2023, arXiv:2212.09748), so that
an untrained network is the identity between its input and output maps.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import silu


class NoiseEmbedding(nn.Module):
    """c_noise (B,) to features (B, width): sines and cosines, then two layers."""

    frequencies: Tensor

    def __init__(self, width: int, waves: int = 32) -> None:
        super().__init__()
        # c_noise = log(σ)/4 spans about [-1.6, 1.1]: from its whole range to details of 1/100
        octaves = torch.exp(torch.linspace(math.log(0.5), math.log(50.0), waves))
        self.register_buffer("frequencies", octaves)
        self.inner = nn.Linear(2 * waves, width)
        self.outer = nn.Linear(width, width)

    def forward(self, noise: Tensor) -> Tensor:
        angles = noise[:, None] * self.frequencies
        waves = torch.cat([angles.sin(), angles.cos()], 1)
        features: Tensor = silu(self.outer(silu(self.inner(waves))))
        return features


class Block(nn.Module):
    """A residual two-layer perceptron on the last axis: (B, ..., width), modulated by (B, E)."""

    def __init__(self, width: int, embedding: int, expansion: int = 2) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width, elementwise_affine=False)
        self.modulation = nn.Linear(embedding, 3 * width)
        self.inner = nn.Linear(width, expansion * width)
        self.outer = nn.Linear(expansion * width, width)
        nn.init.zeros_(self.modulation.weight)
        nn.init.zeros_(self.modulation.bias)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        between = (1,) * (x.ndim - 2)
        shift, scale, gate = (
            part.reshape(len(x), *between, -1) for part in self.modulation(noise).chunk(3, -1)
        )
        change: Tensor = self.outer(silu(self.inner(self.norm(x) * (1 + scale) + shift)))
        out: Tensor = x + gate * change
        return out
