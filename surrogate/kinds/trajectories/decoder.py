"""The decoder of trajectories: p(x(t) | x(t-1), ..., noisy trajectory), variable by variable.

Statics come first, then the steps in order (`sites`); `conditionals` holds the distributions. A
training step looks at some steps of each trajectory, given its exact past.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Self

import torch
from torch import Generator, Tensor

from surrogate.kinds.conditions import Conditions
from surrogate.kinds.decoder import Decoder, Draw, Filter, Lookahead, Pins, Uniforms
from surrogate.kinds.noising import BLIND, noised
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.conditionals import Conditionals, Values
from surrogate.kinds.trajectories.drawing import Drawing
from surrogate.kinds.trajectories.features import Step, shifted
from surrogate.kinds.trajectories.lookahead import TrajectoryLookahead
from surrogate.kinds.trajectories.sites import Site
from surrogate.kinds.trajectories.variables import Variable
from surrogate.kinds.weighted import Weighted
from surrogate.networks.head import Dropout

STEPS_PER_SAMPLE = 16  # of a trajectory that a training step looks at


class TrajectoryDecoder(Decoder):
    """See the module; `measure` it on encoded samples before training."""

    def __init__(
        self, codec: TimeSeriesCodec, width: int | None = None, depth: int | None = None
    ) -> None:
        super().__init__()
        self.conditionals = Conditionals(codec, width, depth)
        self.sites = self.conditionals.sites
        self.dispensable = self.sites.unbound
        self.known: Mapping[str, float] = {}  # statics that a date fixes

    def knowing(self, codec: TimeSeriesCodec) -> Self:
        made = copy(self)  # of the same weights
        made.known = codec.known
        return made

    def measure(self, clean: Tensor) -> None:
        self.conditionals.features.measure(self.sites.values(clean))

    @property
    def coordinates(self) -> int:
        return math.prod(self.sites.codec.shape)

    def signals(self, y: Tensor) -> dict[str, Tensor]:
        return self.sites.linear.decode(y.reshape(-1, *self.sites.codec.shape))

    # --- learning ---------------------------------------------------------------------------------

    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        clean = clean.cpu()
        count, steps = len(clean), self.sites.steps
        noisy, sigma = noised(clean, generator)
        order = torch.rand((count, steps), generator=generator).argsort(1)
        chosen = order[:, : min(STEPS_PER_SAMPLE, steps)]
        dropout = self.conditionals.dropout(generator) if torch.is_grad_enabled() else None
        return self._loss(clean, noisy, sigma, chosen, dropout)

    @torch.no_grad()
    def log_prob(self, clean: Tensor) -> Tensor:
        steps = torch.arange(self.sites.steps).expand(len(clean), -1)
        blind = torch.full((len(clean),), BLIND)
        return -self._loss(clean, torch.zeros_like(clean), blind, steps) * self.sites.size

    def _loss(
        self,
        clean: Tensor,
        noisy: Tensor,
        sigma: Tensor,
        t: Tensor,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Negative log-likelihood (B,), per number, estimated from the steps t (B, R)."""
        own, sites, values = self.conditionals, self.sites, self.sites.values(clean)
        context, shrunk = own.context(noisy, sigma)
        total = clean.new_zeros(len(clean))
        statics: list[Tensor] = []
        for j, v in enumerate(sites.statics):
            seen = own.static_input(j, context, noisy, sigma)
            head = own.static_heads[j](torch.cat([seen, *(each[:, None] for each in statics)], 1))
            y = values[v.name][:, 0]
            total = total - self._log_likelihood(v, head, y, None, None, None, 0)
            statics += own.features.static(v, y)
        context = _at(context, t)
        noisy_at = {v.name: _at(shrunk[:, sites.channels[v.name]].mT, t) for v in sites.series}
        before = {
            v.name: shifted(values[v.name]).gather(1, t) for v in (*sites.numbers, *sites.words)
        }
        every = own.features.stacks(values)
        past = own.features.waves(values, t) + own.features.past(values, t, every)
        stack = None if every is None else _at(every, t)
        seen = own.step_input(context, statics, before, past, noisy_at, own.told(sigma), t)
        now = {
            v.name: values[v.name].expand(-1, t.shape[1])
            for v in sites.codec.variables
            if v.static and v.kind != "words"
        }
        nll = torch.zeros_like(context[..., 0])
        for j, v in enumerate(sites.series):
            y, last = values[v.name].gather(1, t), before[v.name]
            head = own.heads[j](seen, dropout)
            part = self._log_likelihood(v, head, y, last, now, before, t, stack)
            nll = nll - torch.where(sites.free[j][t], part, 0.0)
            now[v.name] = y
            seen = torch.cat([seen, torch.stack(own.features.drawn(v, y, last, t, stack), -1)], -1)
        return (total + nll.mean(1) * sites.steps) / sites.size

    def _log_likelihood(
        self,
        v: Variable,
        head: Tensor,
        y: Tensor,
        last: Tensor | None,
        now: Values | None,
        before: Values | None,
        t: Step,
        stack: Tensor | None = None,
    ) -> Tensor:
        """log p of values y, like y."""
        if v.kind == "words":
            return torch.log_softmax(head, -1).gather(-1, y.long().unsqueeze(-1))[..., 0]
        own = self.conditionals
        low, high = own.interval(v, y, now, before)
        if before is not None and isinstance(t, Tensor):
            first = own.interval(v, y, now, None)
            low, high = (torch.where(t == 0, a, b) for a, b in zip(first, (low, high), strict=True))
        within = torch.minimum(low, y), torch.maximum(high, y)
        return own.distribution(v, head, last, t, stack).log_likelihood(y, within)

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
        shape = self.sites.codec.shape
        pins = pins if pins is not None else Pins.none(math.prod(shape))
        groups = self._groups(noisy, pins)
        conditions = self._conditions(pins, groups)
        uniform = Uniforms(generator, len(groups), total)
        state = Weighted.of(len(groups), pins, particles)
        made: list[Tensor] = []
        for i in range(groups.shape[1]):
            own = self.conditionals, self.known, groups[:, i], sigma
            drawing = Drawing(*own, uniform, conditions, i, state)
            x, rows = drawing.run()
            groups, made = groups[rows], [*(each[rows] for each in made), x]
        x = torch.stack(made, 1).reshape(-1, *shape)
        state.settle(conditions.late, conditions.log_weights())
        return Draw(x, state.log_weights, state.rows)

    def lookahead(self, clean: Tensor, pins: Pins) -> Lookahead | None:
        if not pins.total or pins.rows.shape[1] != math.prod(self.sites.codec.shape):
            return None  # several instances are drawn one after another
        return TrajectoryLookahead(self.sites, pins, clean)

    @torch.no_grad()
    def log_weight(self, clean: Tensor, noisy: Tensor, sigma: float, pins: Pins) -> Tensor:
        groups, given = self._groups(noisy, pins), self._groups(clean, pins, torch.float64)
        conditions = self._conditions(pins, groups)
        state = Weighted.of(len(groups), pins, None)
        for i, (own, x) in enumerate(zip(groups.unbind(1), given.unbind(1), strict=True)):
            values = self.sites.values(x)
            given_to = self.conditionals, self.known, own, sigma
            Drawing(*given_to, None, conditions, i, state, values).run()
        return state.log_weights + conditions.log_weights()

    def _groups(self, x: Tensor, pins: Pins, dtype: torch.dtype = torch.float32) -> Tensor:
        """Samples (B · instances, C, T) by the instances that conditions are about."""
        shape = self.sites.codec.shape
        return x.reshape(-1, pins.rows.shape[1] // math.prod(shape), *shape).to("cpu", dtype)

    def _conditions(self, pins: Pins, groups: Tensor) -> Conditions[Site]:
        count, instances = groups.shape[:2]
        return Conditions(pins, count, self.sites.order(instances), self.sites.coordinates)


def _at(x: Tensor, t: Tensor) -> Tensor:
    """x (B, T, n) at steps t (B, R)."""
    return x.gather(1, t[..., None].expand(-1, -1, x.shape[2]))
