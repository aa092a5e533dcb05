"""The conditional distributions of a row's values given any others: p(column | known columns).

One network sees the columns that are known, the others masked, and gives the parameters of every
column that is not (Uria, Murray & Larochelle 2014, arXiv:1310.1757; Hoogeboom et al. 2022,
arXiv:2110.02037). It learns from random sets of known columns, of every size alike. So what
equations settle can be drawn first, and the rest from p(rest | given): an amortised posterior.

Distributions are placed about a linear regression on the known columns, in the coordinates of
`regression`: for Gaussians that is all, and the network learns what differs from it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Generator, Tensor, nn

from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.drawn_columns import DrawnColumns
from surrogate.kinds.tables.regression import Regression
from surrogate.kinds.tables.sites import SHARP, Number
from surrogate.networks.head import Dropout
from surrogate.networks.masked_mlp import MaskedMLP

WIDTH, DEPTH = 256, 3
MASKS = 64  # different sets of known columns in a training step
NEIGHBOURS = 0.5  # share of these in which the unknown columns are neighbours
DROPOUT = 0.0


class AnyOrder(nn.Module):
    """See the module. `drawn`: the columns, with sharper distributions."""

    def __init__(
        self, codec: TableCodec, width: int | None = None, depth: int | None = None
    ) -> None:
        super().__init__()
        self.drawn = DrawnColumns(codec, SHARP)
        sites = self.drawn.sites
        self.regression = Regression(sites)
        order = torch.tensor([site.at.start for site in sites]).argsort()
        self._place = order.argsort()  # in the table
        inputs = sum(site.features + 1 for site in sites) + 2 * self.regression.size
        outputs = sum(site.outputs for site in sites)
        self.network = MaskedMLP(inputs, outputs, width or WIDTH, depth or DEPTH)
        bias = [s.normal_bias() if isinstance(s, Number) else torch.zeros(s.outputs) for s in sites]
        if not self.network.leave.bias.is_meta:  # of a model that is restored
            with torch.no_grad():
                self.network.leave.bias.copy_(torch.cat(bias))

    def measure(self, clean: Tensor) -> None:
        """Estimate the regression from encoded rows (B, D)."""
        self.regression.measure(self.drawn.values(clean))

    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        """-log p of a value that is not known, given those that are, averaged over them: (B,)."""
        y = self.drawn.values(clean.cpu())
        known = self._masks(len(clean), generator)
        dropout = Dropout(DROPOUT, generator) if torch.is_grad_enabled() and DROPOUT else None
        heads = self.heads(y, known, dropout)
        log_p = torch.stack(
            [site.log_prob(h, v) for site, h, v in zip(self.drawn.sites, heads, y, strict=True)], 1
        )
        return -(log_p * ~known).sum(1) / (~known).sum(1)

    def _masks(self, count: int, generator: Generator) -> Tensor:
        """Which columns (B, columns) are known; never all. Rows share `MASKS` sets.

        n columns are not, with a probability in proportion to 1/n: in half of the sets any, in the
        others neighbours in the table, such as parameters beside their data.
        """
        size, several = len(self.drawn.sites), min(MASKS, count)
        shares = 1 / torch.arange(1, size + 1)
        unknown = 1 + torch.multinomial(shares, several, True, generator=generator)[:, None]
        rank = torch.rand((several, size), generator=generator).argsort(1)
        first = torch.randint(size, (several, 1), generator=generator)
        place = (self._place - first) % size
        near = torch.rand((several, 1), generator=generator) < NEIGHBOURS
        known = torch.where(near, place, rank) >= unknown
        return known.repeat(math.ceil(count / several), 1)[:count]

    def heads(
        self, y: Sequence[Tensor], known: Tensor, dropout: Dropout | None = None
    ) -> list[Tensor]:
        """The parameters of all columns, (B, outputs) each, given those that are known (B, n); the
        values y (B,) of others are not read."""
        sites, parts = self.drawn.sites, list[Tensor]()
        for j, (site, value) in enumerate(zip(sites, y, strict=True)):
            seen = known[:, j, None].float()
            parts += [seen * site.seen(value), seen]
        filled, spread = self.regression(y, known)
        out = self.network(torch.cat([*parts, filled, spread], 1), dropout)
        heads = list(out.split([site.outputs for site in sites], 1))
        for j, site in enumerate(sites):
            place = self.regression.place(j)
            if isinstance(site, Number) and place is not None:
                heads[j] = site.about(heads[j], filled[:, place], spread[:, place])
        return heads


class Ordered:
    """Its distributions in an order of drawing: see `drawing.Distributions`."""

    exact = True

    def __init__(self, own: AnyOrder, order: Sequence[int]) -> None:
        """`order`: the numbers of the columns."""
        self.own, self._order = own, list(order)
        self.drawn = own.drawn.reordered(order)

    def read(self, noisy: Tensor, sigma: float) -> Tensor:
        return torch.zeros(len(noisy), 0)

    def head(
        self, j: int, context: Tensor, seen: Sequence[Tensor], known: Sequence[Tensor]
    ) -> Tensor:
        count = len(context)
        y = [torch.zeros(count, dtype=torch.float64)] * len(self._order)
        mask = torch.zeros(count, len(y), dtype=torch.bool)
        for i, value in zip(self._order, known, strict=False):
            y[i], mask[:, i] = value, True
        return self.own.heads(y, mask)[self._order[j]]
