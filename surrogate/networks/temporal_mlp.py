"""The temporal MLP: an MLP-Mixer over patches of time (Tolstikhin et al. 2021, arXiv:2105.01601).

A series (C, T) is cut into patches of consecutive steps with all channels, each embedded by one
linear map. Blocks alternate between mixing the features within each patch and mixing the patches;
all are modulated by the noise level. A short series is a single patch, and the network is then a
residual perceptron; a thousand steps make some tens of patches.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from surrogate.networks.embedding import Block, NoiseEmbedding, at_least_one

MAX_SINGLE_PATCH = 256  # numbers of a series up to which it is one patch
PATCH_NUMBERS = 64  # numbers that a patch of a longer series holds
MAX_PATCHES = 64  # the layers that mix them grow with their number squared


def patching(channels: int, steps: int) -> tuple[int, int]:
    """(patches, steps in each) for a series: as few as possible, as even as possible."""
    if channels * steps <= MAX_SINGLE_PATCH:
        return 1, steps
    longest = max(1, PATCH_NUMBERS // channels, math.ceil(steps / MAX_PATCHES))
    patches = math.ceil(steps / longest)
    return patches, math.ceil(steps / patches)


def fitting_width(patches: int, numbers: int) -> int:
    """The default width for patches of `numbers` numbers: 1.25 times as many, within bounds."""
    return min(512, max(256 if patches == 1 else 128, 32 * math.ceil(1.25 * numbers / 32)))


class TemporalMLP(nn.Module):
    """(B, C, T) to (B, `outputs`, T), initially zero; `width` None: chosen by the series' size."""

    def __init__(
        self,
        channels: int,
        steps: int,
        width: int | None = None,
        depth: int = 4,
        outputs: int | None = None,
    ) -> None:
        super().__init__()
        outputs = channels if outputs is None else outputs
        at_least_one(channels=channels, steps=steps, depth=depth, outputs=outputs)
        self.shape, self.outputs = (channels, steps), outputs
        self.patches, self.patch = patching(channels, steps)
        if width is None:
            width = fitting_width(self.patches, channels * self.patch)
        at_least_one(width=width)
        self.noise = NoiseEmbedding()
        self.enter = nn.Linear(channels * self.patch, width)
        self.leave = nn.Linear(width, outputs * self.patch)
        self.within = nn.ModuleList(Block(width) for _ in range(depth))
        self.across = nn.ModuleList(
            Block(width, self.patches) for _ in range(depth if self.patches > 1 else 0)
        )
        # where in time a patch lies: the maps in and out are shared by all of them
        self.place = nn.Parameter(0.02 * _waves(self.patches, width))
        self.norm = nn.LayerNorm(width)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        """The network's output at x (B, C, T) and c_noise (B,) or (1,): (B, outputs, T)."""
        features = self.noise(noise)
        hidden = self.enter(self._cut(x)) + self.place
        for i, block in enumerate(self.within):
            hidden = block(hidden, features)
            if self.across:
                hidden = self.across[i](hidden, features)
        return self._join(self.leave(self.norm(hidden)))

    def _cut(self, x: Tensor) -> Tensor:
        """A series (B, C, T) as patches (B, P, C * steps in each), the last filled with zeros."""
        channels, steps = self.shape
        whole = pad(x, (0, self.patches * self.patch - steps))
        return whole.reshape(len(x), channels, self.patches, self.patch).transpose(1, 2).flatten(2)

    def _join(self, cut: Tensor) -> Tensor:
        """Patches (B, P, outputs * steps in each) as a series: the inverse of `_cut`."""
        parts = cut.reshape(len(cut), self.patches, self.outputs, self.patch).transpose(1, 2)
        return parts.flatten(2)[..., : self.shape[1]]


def _waves(patches: int, width: int) -> Tensor:
    """Sines and cosines of the patch's number: (patches, width)."""
    at = torch.arange(patches)[:, None] / patches
    turns = torch.arange(1, width // 2 + 1)[None]
    angles = math.pi * at * turns
    return torch.cat([angles.sin(), angles.cos(), torch.zeros(patches, width % 2)], 1)
