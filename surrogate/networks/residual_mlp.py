"""A residual multilayer perceptron on flat samples (B, D), for tables (He et al. 2016).

The blocks are those of `embedding`, modulated by the noise level.
"""

from __future__ import annotations

import math

from torch import Tensor, nn

from surrogate.networks.embedding import Block, NoiseEmbedding, at_least_one


def fitting_width(size: int) -> int:
    """The default width for rows of `size` numbers: twice as many, between 256 and 1024."""
    return min(1024, max(256, 32 * math.ceil(2 * size / 32)))


class ResidualMLP(nn.Module):
    """(B, D) to (B, outputs): linear in, `depth` blocks of `width`, linear out, initially zero.

    `outputs`: D unless given.
    """

    def __init__(
        self, size: int, width: int | None = None, depth: int = 4, outputs: int | None = None
    ) -> None:
        super().__init__()
        width = fitting_width(size) if width is None else width
        at_least_one(size=size, width=width, depth=depth)
        self.noise = NoiseEmbedding()
        self.enter = nn.Linear(size, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, outputs or size)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        """The network's output at x (B, D) and c_noise (B,) or (1,): (B, outputs)."""
        features = self.noise(noise)
        hidden = self.enter(x)
        for block in self.blocks:
            hidden = block(hidden, features)
        out: Tensor = self.leave(self.norm(hidden))
        return out
