"""The conditional distributions of a trajectory's values: networks, and what they are cut to.

A network, the trunk, reads the noisy trajectory once and gives every step a context; small heads,
one for each variable, read the context, the exact values of the steps before, and the variables
already drawn at this step. Numbers have a mixture of logistics (`networks.logistic_mixture`) about
their last value, cut to the interval that laws leave them (`support`); words have probabilities.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from surrogate.kinds.noising import contexts
from surrogate.kinds.support import Support
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.features import Features, Step, drawn_size, static_size
from surrogate.kinds.trajectories.sites import Sites, edges, ranges
from surrogate.kinds.trajectories.variables import Variable
from surrogate.networks.head import Head
from surrogate.networks.logistic_mixture import MIN_SCALE, LogisticMixture
from surrogate.networks.temporal_mlp import TemporalMLP

COMPONENTS = 8  # of a mixture
CONTEXT = 24  # features that a step gets of the noisy trajectory
HEAD_WIDTH = 128
TRUNK_DEPTH = 3

Values = Mapping[str, Tensor]


class Conditionals(nn.Module):
    """The distribution of each value given those before it; `features` must have been measured."""

    def __init__(
        self, codec: TimeSeriesCodec, width: int | None = None, depth: int | None = None
    ) -> None:
        super().__init__()
        self.sites = sites = Sites(codec)
        self.features = Features(sites)
        channels, steps = codec.shape
        self.trunk = TemporalMLP(channels, steps, depth=depth or TRUNK_DEPTH, outputs=CONTEXT)
        self.place_in_time = nn.Parameter(torch.zeros(steps, CONTEXT))
        width = width or HEAD_WIDTH
        self.static_heads, self.heads = nn.ModuleList(), nn.ModuleList()
        inputs = CONTEXT
        for v in sites.statics:
            self.static_heads.append(Head(inputs + len(v.channels), _outputs(v), width))
            inputs += static_size(v)
        inputs += self.features.of_step
        for v in sites.series:
            self.heads.append(Head(inputs, _outputs(v), width))
            inputs += drawn_size(v)

    @cached_property
    def support(self) -> Support:
        """The intervals of the series, under the laws of the codec."""
        codec, numbers = self.sites.codec, self.sites.numbers
        order = [v.name for v in self.sites.series if v.kind != "words"]
        whole = frozenset(v.name for v in numbers if v.kind != "real")
        ends = {v.name: ranges(v) for v in numbers}
        return Support(order, codec.linear_laws, codec.relations, ends, whole)

    # --- distributions ----------------------------------------------------------------------------

    def context(self, noisy: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """What noisy trajectories (B, C, T) at noise levels (B,) tell each step, (B, T, CONTEXT),
        and the points shrunk to what they tell of themselves, (B, C, T)."""
        made, shrunk = contexts(self.trunk, noisy, sigma)
        return made.mT + self.place_in_time, shrunk

    def static_input(self, j: int, context: Tensor, noisy: Tensor, sigma: Tensor) -> Tensor:
        """What is known of a static from the noisy trajectory, (B, n): its copies are averaged."""
        own = noisy[:, self.sites.channels[self.sites.statics[j].name]].mean(2)
        steps = self.sites.steps
        shrunk = own * (steps / (steps + sigma**2))[:, None]
        return torch.cat([context[:, 0], shrunk.expand(len(context), -1)], 1)

    def step_input(
        self,
        context: Tensor,
        statics: list[Tensor],
        before: Values,
        past: list[Tensor],
        noisy: Values,
        t: Step,
    ) -> Tensor:
        """What all heads of steps t see: (..., n)."""
        shape = context.shape[:-1]
        found = [each.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) for each in statics]
        last = max(t - 1, 0) if isinstance(t, int) else (t - 1).clamp_min(0)
        for v in self.sites.numbers:
            found += self.features.level(v, before[v.name], last)
        for v in self.sites.words:
            found += list(one_hot(before[v.name].long(), len(v.categories)).float().unbind(-1))
        found += past
        for v in self.sites.series:
            found += self.features.noisy(v, noisy[v.name], before[v.name], t)
        found.append(torch.as_tensor(t == 0).to(context).expand(shape))
        return torch.cat([context, torch.stack(found, -1)], -1)

    def mixture(self, v: Variable, head: Tensor, before: Tensor | None, t: Step) -> LogisticMixture:
        """The distribution of z by a head's output (..., n); statics have nothing `before` them."""
        if before is None:
            base, sd = self.features.static_scale(v)
        else:
            base, sd = self.features.base(v, before, t)
        log_weights, location, log_scale = head.chunk(3, -1)
        log_scale = sd.log() + (log_scale - 1).clamp(-8, 4)
        if v.kind != "real" and v.transform.kind == "identity":
            log_scale = log_scale.clamp_min(math.log(MIN_SCALE))
        places = torch.linspace(-1.5, 1.5, COMPONENTS)
        return LogisticMixture(
            torch.log_softmax(log_weights, -1), base + sd * (location + places), log_scale
        )

    def interval(
        self, v: Variable, like: Tensor, now: Values | None, before: Values | None
    ) -> tuple[Tensor, Tensor]:
        """The values that laws leave, like `like`; `now` None: a static."""
        if now is not None:
            return self.support.interval(v.name, now, before, like)
        low, high = ranges(v)
        return torch.full_like(like, low), torch.full_like(like, high)


def log_interval(mixture: LogisticMixture, v: Variable, low: Tensor, high: Tensor) -> Tensor:
    """log P of the values from low to high."""
    first, last = edges(v, low, high)
    return mixture.log_interval(first.float(), last.float())


def _outputs(v: Variable) -> int:
    return len(v.categories) if v.kind == "words" else 3 * COMPONENTS
