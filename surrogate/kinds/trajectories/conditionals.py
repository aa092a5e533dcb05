"""The conditional distributions of a trajectory's values: networks, and what they are cut to.

A network, the trunk, reads the noisy trajectory once and gives every step a context; small heads,
one for each variable, read the context, the exact values of the steps before, and the variables
already drawn at this step. Numbers have a mixture of logistics (`networks.logistic_mixture`) about
their last value, cut to the interval that laws leave them (`support`); words have probabilities.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import one_hot

from surrogate.kinds.noising import BLIND, contexts
from surrogate.kinds.support import Support
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.distributions import Choices, Distribution
from surrogate.kinds.trajectories.features import Features, Step, drawn_size, static_size
from surrogate.kinds.trajectories.sites import Sites, ranges
from surrogate.kinds.trajectories.variables import Variable
from surrogate.networks.head import Dropout, Head
from surrogate.networks.logistic_mixture import MIN_SCALE, LogisticMixture
from surrogate.networks.temporal_mlp import TemporalMLP

COMPONENTS = 8  # of a mixture
CONTEXT = 16  # features that a step gets of the noisy trajectory
HEAD_WIDTH = 128
DROPOUT = 0.2  # of heads, where data are finite
TRUNK_DEPTH = 2
MIN_LOG_SCALE, MAX_LOG_SCALE = -6.0, 4.0  # of a component, in deviations of what is drawn

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
        self.blind_context = nn.Parameter(torch.zeros(CONTEXT)) if codec.homogeneous else None
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

    def dropout(self, generator: Generator) -> Dropout | None:
        """Of the heads in training; None for processes whose simulations do not end."""
        return None if self.features.prediction is None else Dropout(DROPOUT, generator)

    # --- distributions ----------------------------------------------------------------------------

    def context(self, noisy: Tensor, sigma: Tensor) -> tuple[Tensor, Tensor]:
        """What noisy trajectories (B, C, T) at noise levels (B,) tell each step, (B, T, CONTEXT),
        and the points shrunk to what they tell of themselves, (B, C, T).

        At the level BLIND only the place in time is left; nothing, where it does not matter."""
        made, shrunk = contexts(self.trunk, noisy, sigma)
        found = made.mT + self.place_in_time
        if self.blind_context is not None:
            found = torch.where(self.told(sigma)[:, None, None] > 0, found, self.blind_context)
        return found, shrunk

    def told(self, sigma: Tensor) -> Tensor:
        """Whether heads see anything of noisy trajectories at these levels (B,): 1.0 or 0.0."""
        return torch.ones_like(sigma) if self.blind_context is None else (sigma < BLIND).to(sigma)

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
        told: Tensor,
        t: Step,
    ) -> Tensor:
        """What all heads of steps t see, (..., n); `told` (B,) of the noisy trajectories."""
        shape = context.shape[:-1]
        found = [each.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) for each in statics]
        last = max(t - 1, 0) if isinstance(t, int) else (t - 1).clamp_min(0)
        for v in self.sites.numbers:
            found += self.features.level(v, before[v.name], last)
        for v in self.sites.words:
            found += list(one_hot(before[v.name].long(), len(v.categories)).float().unbind(-1))
        found += past
        told = told.reshape(-1, *[1] * (len(shape) - 1))
        for v in self.sites.series:
            features = self.features.noisy(v, noisy[v.name], before[v.name], t)
            found += [told * each for each in features]
        found.append(torch.as_tensor(t == 0).to(context).expand(shape))
        return torch.cat([context, torch.stack(found, -1)], -1)

    def distribution(
        self,
        v: Variable,
        head: Tensor,
        before: Tensor | None,
        t: Step,
        stack: Tensor | None = None,
    ) -> Distribution | Choices:
        """By a head's output (..., n); statics have nothing `before` them."""
        if v.levels:
            return Choices(head, torch.tensor(v.levels, dtype=torch.float64))
        if before is None:
            mean, sd = self.features.static_scale(v)
        else:
            mean, sd = self.features.base(v, before, t, stack)
        log_weights, location, log_scale = head.chunk(3, -1)
        log_scale = (log_scale - 1).clamp(MIN_LOG_SCALE, MAX_LOG_SCALE)
        if v.kind != "real" and v.transform.kind == "identity":
            log_scale = torch.maximum(log_scale, (MIN_SCALE / sd).log().unsqueeze(-1))
        places = torch.linspace(-1.5, 1.5, COMPONENTS)
        mixture = LogisticMixture(torch.log_softmax(log_weights, -1), location + places, log_scale)
        return Distribution(v, mixture, mean, sd)

    def interval(
        self, v: Variable, like: Tensor, now: Values | None, before: Values | None
    ) -> tuple[Tensor, Tensor]:
        """The values that laws leave, like `like`; `now` None: a static."""
        if now is not None:
            return self.support.interval(v.name, now, before, like)
        low, high = ranges(v)
        return torch.full_like(like, low), torch.full_like(like, high)


def _outputs(v: Variable) -> int:
    return len(v.categories) or len(v.levels) or 3 * COMPONENTS
