"""The conditional distributions of a row's values: p(column | columns before it, noisy row).

A network, the trunk, reads the noisy row once; small heads, one for each column, read what it
tells, the noisy row itself, and the columns drawn before.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surrogate.kinds.noising import contexts
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.drawn_columns import DrawnColumns
from surrogate.networks.head import Dropout, Head
from surrogate.networks.residual_mlp import ResidualMLP

CONTEXT = 64  # features that heads get of the noisy row
HEAD_WIDTH = 128
TRUNK_WIDTH, TRUNK_DEPTH = 192, 2


class Conditionals(nn.Module):
    """The parameters of each column's distribution, and the intervals that laws leave it."""

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

    def context(self, noisy: Tensor, sigma: Tensor) -> Tensor:
        """What noisy rows (B, D) at noise levels (B,) tell all heads: (B, n)."""
        made, shrunk = contexts(self.trunk, noisy, sigma)
        return torch.cat([made, shrunk], 1)

    def head(
        self, j: int, context: Tensor, seen: Sequence[Tensor], dropout: Dropout | None = None
    ) -> Tensor:
        """Parameters of the j-th value, (B, outputs), by features of those before it."""
        out: Tensor = self.heads[j](torch.cat([context, *seen], 1), dropout)
        return out

    def interval(self, j: int, known: Sequence[Tensor], like: Tensor) -> tuple[Tensor, Tensor]:
        """The interval (B,) that laws leave to the j-th value, given those before it."""
        drawn, site = self.drawn, self.drawn.sites[j]
        if drawn.support is None or site.name not in drawn.bound:
            return torch.full_like(like, -torch.inf), torch.full_like(like, torch.inf)
        now = {own.name: y for own, y in zip(drawn.sites, known, strict=False)}
        return drawn.support.interval(site.name, now, None, like)
