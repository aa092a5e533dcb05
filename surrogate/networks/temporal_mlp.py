"""The temporal MLP: a mixer of patches of time (after Tolstikhin et al., 2021, arXiv:2105.01601).

A series (C, T) is cut into patches of consecutive steps, all channels together, small enough that
one linear map reads a patch. Blocks alternate between mixing the features within each patch and
mixing the patches; every block knows the noise level. A short series is a single patch, and the
network is then a residual perceptron on all of it; a thousand steps are some tens of patches.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from surrogate.networks.embedding import Block, NoiseEmbedding

PATCH = 256  # numbers that a patch holds at most (a single step of many channels may exceed it)


def patching(channels: int, steps: int) -> tuple[int, int]:
    """(patches, steps in each) for a series: as few as possible, as even as possible."""
    longest = max(1, PATCH // channels)
    patches = math.ceil(steps / longest)
    return patches, math.ceil(steps / patches)


class TemporalMLP(nn.Module):
    """(B, C, T) to (B, C, T); `width` None is chosen so that the cost grows slowly with length."""

    def __init__(self, channels: int, steps: int, width: int | None = None, depth: int = 4) -> None:
        super().__init__()
        self.shape = channels, steps
        self.patches, self.patch = patching(channels, steps)
        if width is None:
            width = max(64, 32 * round(256 / math.sqrt(self.patches) / 32))
        self.noise = NoiseEmbedding(width)
        self.enter = nn.Linear(channels * self.patch, width)
        self.leave = nn.Linear(width, channels * self.patch)
        self.within = nn.ModuleList(Block(width, width) for _ in range(depth))
        self.across = nn.ModuleList(
            Block(self.patches, width) for _ in range(depth if self.patches > 1 else 0)
        )
        # where in time a patch lies: the maps in and out are shared by all of them
        self.place = nn.Parameter(0.02 * _waves(self.patches, width))
        self.norm = nn.LayerNorm(width)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        channels, steps = self.shape
        batch, extra = len(x), self.patches * self.patch - steps
        cut = pad(x, (0, extra)).reshape(batch, channels, self.patches, self.patch)
        hidden = self.enter(cut.transpose(1, 2).reshape(batch, self.patches, -1)) + self.place
        features = self.noise(noise)
        for i, block in enumerate(self.within):
            hidden = block(hidden, features)
            if self.patches > 1:
                hidden = self.across[i](hidden.transpose(1, 2), features).transpose(1, 2)
        out: Tensor = self.leave(self.norm(hidden)).reshape(
            batch, self.patches, channels, self.patch
        )
        out = out.transpose(1, 2).reshape(batch, channels, -1)
        return out[..., :steps]


def _waves(patches: int, width: int) -> Tensor:
    """Sines and cosines of the patch's number: (patches, width)."""
    at = torch.arange(patches)[:, None] / max(patches, 1)
    turns = torch.arange(1, width // 2 + 1)[None]
    angles = math.pi * at * turns
    return torch.cat([angles.sin(), angles.cos(), torch.zeros(patches, width % 2)], 1)
