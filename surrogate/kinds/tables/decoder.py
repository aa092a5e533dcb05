"""The decoder of tables: p(column | columns before it, noisy row), column by column.

`drawn_columns` has the order, `sites` the distributions, `conditionals` the networks. Rules between
columns truncate the supports of their values, so that every row obeys them.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from surrogate.kinds.conditions import Conditions
from surrogate.kinds.decoder import Decoder, Draw, Filter, Learner, Pins, Uniforms
from surrogate.kinds.noising import BLIND, noised
from surrogate.kinds.tables.any_order import AnyOrder, Ordered
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.conditionals import Conditionals
from surrogate.kinds.tables.drawing import Distributions, Drawing
from surrogate.kinds.tables.drawn_columns import Place
from surrogate.kinds.tables.settled import settled
from surrogate.kinds.weighted import Weighted
from surrogate.networks.head import Dropout

ANY_ORDER = "any_order."  # before the names of its weights
DROPOUT = 0.1  # share of the features of heads
PLAIN_HANDOVER = 0.125  # noise level: the decoder knows least about how columns go together
MAX_REDRAWS = 20  # of rows for which laws leave a later value no place


class TableDecoder(Decoder):
    """See the module."""

    plain_handover = PLAIN_HANDOVER

    def __init__(
        self,
        codec: TableCodec,
        width: int | None = None,
        depth: int | None = None,
        any_order: bool = False,
    ) -> None:
        """`any_order`: with conditionals on any columns, which models of older versions lack."""
        super().__init__()
        self.conditionals = Conditionals(codec, width, depth)
        self.drawn = self.conditionals.drawn
        self.any_order = AnyOrder(codec, width, depth) if any_order else None

    def measure(self, clean: Tensor) -> None:
        if self.any_order is not None:
            self.any_order.measure(clean)

    @property
    def options(self) -> dict[str, bool]:
        return {} if self.any_order is None else {"any_order": True}

    @property
    def learners(self) -> dict[str, Learner]:
        found = super().learners
        return found if self.any_order is None else {**found, ANY_ORDER: self.any_order}

    @property
    def coordinates(self) -> int:
        return self.drawn.coordinates

    def signals(self, y: Tensor) -> dict[str, Tensor]:
        return self.drawn.signals(y)

    # --- learning ---------------------------------------------------------------------------------

    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        clean = clean.cpu()
        noisy, sigma = noised(clean, generator)
        learns = torch.is_grad_enabled()
        dropout = Dropout(DROPOUT, generator) if learns and DROPOUT else None
        return -self._log_likelihood(clean, noisy, sigma, dropout) / len(self.drawn.sites)

    @torch.no_grad()
    def log_prob(self, clean: Tensor) -> Tensor:
        blind = torch.full((len(clean),), BLIND)
        return self._log_likelihood(clean, torch.zeros_like(clean).float(), blind)

    def _log_likelihood(
        self, clean: Tensor, noisy: Tensor, sigma: Tensor, dropout: Dropout | None = None
    ) -> Tensor:
        """log p(x_0 | x_σ), (B,)."""
        own, known = self.conditionals, self.drawn.values(clean)
        context, seen = own.context(noisy, sigma), list[Tensor]()
        total = context.new_zeros(len(clean))
        for j, (site, y) in enumerate(zip(self.drawn.sites, known, strict=True)):
            head = own.head(j, context, seen, dropout=dropout)
            total = total + site.log_prob(head, y)
            if site.name in self.drawn.bound:
                low, high = self.drawn.interval(j, known[:j], y)
                low, high = torch.minimum(low, y), torch.maximum(high, y)
                total = total - site.log_share(head, low, high, True).float()
            seen.append(site.seen(y))
        return total

    # --- drawing ----------------------------------------------------------------------------------

    @torch.no_grad()
    def draw(
        self,
        noisy: Tensor,
        sigma: float,
        generator: Generator,
        pins: Pins | None = None,
        particles: Filter | None = None,
        *,
        total: int | None = None,
    ) -> Draw:
        plain = (pins is None or not pins.total) and particles is None
        pins = pins if pins is not None else Pins.none(self.coordinates)
        groups = self._groups(noisy, pins)
        uniform = Uniforms(generator, len(groups), total)
        made, possible = self._draw(groups, sigma, uniform, pins, particles)
        for _ in range(MAX_REDRAWS if plain else 0):
            if bool(possible.all()):
                break
            again, able = self._draw(groups, sigma, uniform, pins, particles)
            x, fresh = (each.x.reshape(len(groups), -1) for each in (made, again))
            x = torch.where(possible[:, None], x, fresh).reshape(made.x.shape)
            made, possible = Draw(x, made.log_weights, made.rows), possible | able
        if plain:
            return made
        log_weights = made.log_weights.masked_fill(~possible, -torch.inf)
        return Draw(made.x, log_weights, made.rows)

    def _draw(
        self,
        groups: Tensor,
        sigma: float,
        uniform: Uniforms,
        pins: Pins,
        particles: Filter | None,
    ) -> tuple[Draw, Tensor]:
        """Points (N · instances, D), and whether laws left every value a place, (N,)."""
        own = self._distributions(pins, sigma)
        conditions = self._conditions(pins, groups, own)
        state = Weighted.of(len(groups), pins, particles)
        made, possible = list[Tensor](), torch.ones(len(groups), dtype=torch.bool)
        for i in range(groups.shape[1]):
            drawing = Drawing(own, groups[:, i], sigma, uniform, conditions, i, state)
            x, rows = drawing.run()
            groups, made = groups[rows], [*(each[rows] for each in made), x]
            possible = possible[rows] & drawing.possible
        x = torch.stack(made, 1).reshape(-1, *self.drawn.codec.shape)
        state.settle(conditions.late, conditions.log_weights())
        return Draw(x, state.log_weights, state.rows), possible

    @torch.no_grad()
    def log_weight(self, clean: Tensor, noisy: Tensor, sigma: float, pins: Pins) -> Tensor:
        groups, given = self._groups(noisy, pins), self._groups(clean, pins, torch.float64)
        own = self._distributions(pins, sigma)
        conditions = self._conditions(pins, groups, own)
        state = Weighted.of(len(groups), pins, None)
        for i, (rows, x) in enumerate(zip(groups.unbind(1), given.unbind(1), strict=True)):
            values = own.drawn.values(x)
            Drawing(own, rows, sigma, None, conditions, i, state, values).run()
        return state.log_weights + conditions.log_weights()

    def _groups(self, x: Tensor, pins: Pins, dtype: torch.dtype = torch.float32) -> Tensor:
        """Rows (B · instances, D) by the instances that conditions are about."""
        instances = pins.rows.shape[1] // self.coordinates
        return x.reshape(-1, instances, *self.drawn.codec.shape).to("cpu", dtype)

    def _conditions(self, pins: Pins, groups: Tensor, own: Distributions) -> Conditions[Place]:
        count, instances = groups.shape[:2]
        order = own.drawn.order(instances)
        return Conditions(pins, count, order, own.drawn.coordinates_of)

    # --- what is settled first --------------------------------------------------------------------

    def settles_first(self, pins: Pins) -> bool:
        return self.any_order is not None and settled(self.drawn, pins).rare

    def _distributions(self, pins: Pins, sigma: float) -> Distributions:
        """Column by column in the usual order; without a noisy row, and where equations settle what
        is rare, with what they settle first."""
        if self.any_order is None or not math.isinf(sigma):
            return self.conditionals
        found = settled(self.drawn, pins)
        return Ordered(self.any_order, found.order) if found.rare else self.conditionals
