"""The conditional distributions of a row's values: p(column | columns before it, noisy row).

A network, the trunk, reads the noisy row once; small heads, one for each column, read what it
tells, the noisy row itself, and the columns drawn before.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surrogate.kinds.noising import BLIND, contexts
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.drawn_columns import DrawnColumns
from surrogate.networks.head import Dropout, Head
from surrogate.networks.residual_mlp import ResidualMLP

CONTEXT = 64  # features that heads get of the noisy row
HEAD_WIDTH = 128
TRUNK_WIDTH, TRUNK_DEPTH = 192, 2


class Conditionals(nn.Module):
    """The parameters of each column's distribution."""

    exact = False

    def __init__(
        self, codec: TableCodec, width: int | None = None, depth: int | None = None
    ) -> None:
        super().__init__()
        self.drawn = DrawnColumns(codec)
        (size,) = codec.shape
        self.trunk = ResidualMLP(size, TRUNK_WIDTH, depth or TRUNK_DEPTH, CONTEXT)
        self.heads = nn.ModuleList()
        inputs = CONTEXT + size
        for site in self.drawn.sites:
            self.heads.append(Head(inputs, site.outputs, width or HEAD_WIDTH, linear=True))
            inputs += site.features

    def read(self, noisy: Tensor, sigma: float) -> Tensor:
        """The context of rows that are drawn (B, n); without a noisy row all have the same."""
        blind = math.isinf(sigma)
        some = torch.zeros_like(noisy[:1]) if blind else noisy
        made = self.context(some, torch.full((len(some),), BLIND if blind else sigma))
        return made.expand(len(noisy), -1)

    def context(self, noisy: Tensor, sigma: Tensor) -> Tensor:
        """What noisy rows (B, D) at noise levels (B,) tell all heads: (B, n)."""
        made, shrunk = contexts(self.trunk, noisy, sigma)
        return torch.cat([made, shrunk], 1)

    def head(
        self,
        j: int,
        context: Tensor,
        seen: Sequence[Tensor],
        known: Sequence[Tensor] = (),
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Parameters of the j-th value, (B, outputs), by features of those before it; their values
        `known` are not read."""
        out: Tensor = self.heads[j](torch.cat([context, *seen], 1), dropout)
        return out
