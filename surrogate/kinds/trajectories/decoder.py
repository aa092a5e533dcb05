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
from surrogate.kinds.decoder import (
    Decoder,
    Draw,
    Filter,
    Lookahead,
    Pins,
    Proposal,
    Uniforms,
)
from surrogate.kinds.noising import BLIND, noised
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.conditionals import Conditionals
from surrogate.kinds.trajectories.drawing import Drawing
from surrogate.kinds.trajectories.likelihood import log_likelihood
from surrogate.kinds.trajectories.lookahead import TrajectoryLookahead
from surrogate.kinds.trajectories.sites import Site, latent, ranges, real, value
from surrogate.kinds.trajectories.static_proposal import KernelProposal, random_walk
from surrogate.kinds.weighted import Weighted
from surrogate.networks.head import Dropout

STEPS_PER_SAMPLE = 16  # of a trajectory that a training step looks at
MAX_VALUES = 100_000  # steps of trajectories whose probabilities are computed at a time


class TrajectoryDecoder(Decoder):
    """See the module; `measure` it on encoded samples before training."""

    looks_ahead = True

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
        size = max(1, MAX_VALUES // self.sites.steps)
        parts = [clean[i : i + size] for i in range(0, max(1, len(clean)), size)]
        return torch.cat([self._log_prob(part) for part in parts])

    def _log_prob(self, clean: Tensor) -> Tensor:
        steps = torch.arange(self.sites.steps).expand(len(clean), -1)
        blind = torch.full((len(clean),), BLIND)
        nothing = torch.zeros_like(clean, dtype=torch.float32)
        return -self._loss(clean, nothing, blind, steps) * self.sites.size

    def _loss(
        self,
        clean: Tensor,
        noisy: Tensor,
        sigma: Tensor,
        t: Tensor,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Negative log-likelihood (B,), per number, estimated from the steps t (B, R)."""
        sites, values = self.sites, self.sites.values(clean)
        statics, steps = log_likelihood(self.conditionals, values, noisy, sigma, t, dropout)
        return (-statics - steps.mean(1) * sites.steps) / sites.size

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

    def proposal(self, clean: Tensor) -> Proposal | None:
        values = self.sites.values(clean)
        found = {v.name: latent(v, values[v.name][:, 0]) for v in self.sites.statics if real(v)}
        return KernelProposal.of(found) if found else None

    def perturbed(self, clean: Tensor, generator: Generator) -> Tensor | None:
        sites, codec = self.sites, self.sites.codec
        moved = [v for v in sites.statics if real(v)]
        if not moved:
            return None
        own = sites.values(clean)
        z = torch.stack([latent(v, own[v.name][:, 0]) for v in moved], 1)
        y = random_walk(z, generator)
        inside = torch.ones(len(clean), dtype=torch.bool)
        for v, there in zip(moved, y.unbind(1), strict=True):
            low, high = ranges(v)
            inside &= (value(v, there) >= low) & (value(v, there) <= high)
        found = clean.clone()
        for v, there in zip(moved, y.unbind(1), strict=True):
            rows, channels = sites.rows[v.name], sites.channels[v.name]
            made = (there[:, None, None] - codec.mean[rows]) / codec.scale[rows]
            found[:, channels] = torch.where(
                inside[:, None, None], made.to(found), found[:, channels]
            )
        return found

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
