"""log p of trajectories: of the statics, and of each step given the exact steps before."""

from __future__ import annotations

import torch
from torch import Tensor

from surrogate.kinds.trajectories.conditionals import Conditionals, Values
from surrogate.kinds.trajectories.features import Step, shifted
from surrogate.kinds.trajectories.variables import Variable
from surrogate.networks.head import Dropout


def log_likelihood(
    own: Conditionals,
    values: Values,
    noisy: Tensor,
    sigma: Tensor,
    t: Tensor,
    dropout: Dropout | None = None,
) -> tuple[Tensor, Tensor]:
    """log p of statics (B,), and of the steps t (B, R) given those before, (B, R), of `values`
    (`Sites.values`) and noisy trajectories (B, C, T) at the levels sigma (B,)."""
    sites = own.sites
    context, shrunk = own.context(noisy, sigma)
    total = noisy.new_zeros(len(t))
    statics: list[Tensor] = []
    for j, v in enumerate(sites.statics):
        seen = own.static_input(j, context, noisy, sigma)
        head = own.static_heads[j](torch.cat([seen, *(each[:, None] for each in statics)], 1))
        y = values[v.name][:, 0]
        total = total + _log_p(own, v, head, y, None, None, None, 0)
        statics += own.features.static(v, y)
    context = _at(context, t)
    noisy_at = {v.name: _at(shrunk[:, sites.channels[v.name]].mT, t) for v in sites.series}
    before = {v.name: shifted(values[v.name]).gather(1, t) for v in (*sites.numbers, *sites.words)}
    every = own.features.stacks(values)
    past = own.features.waves(values, t) + own.features.past(values, t, every)
    stack = None if every is None else _at(every, t)
    seen = own.step_input(context, statics, before, past, noisy_at, own.told(sigma), t)
    now = {
        v.name: values[v.name].expand(-1, t.shape[1])
        for v in sites.codec.variables
        if v.static and v.kind != "words"
    }
    steps = torch.zeros_like(context[..., 0])
    for j, v in enumerate(sites.series):
        y, last = values[v.name].gather(1, t), before[v.name]
        head = own.heads[j](seen, dropout)
        part = _log_p(own, v, head, y, last, now, before, t, stack)
        steps = steps + torch.where(sites.free[j][t], part, 0.0)
        now[v.name] = y
        seen = torch.cat([seen, torch.stack(own.features.drawn(v, y, last, t, stack), -1)], -1)
    return total, steps


def _log_p(
    own: Conditionals,
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
    low, high = own.interval(v, y, now, before)
    if before is not None and isinstance(t, Tensor):
        first = own.interval(v, y, now, None)
        low, high = (torch.where(t == 0, a, b) for a, b in zip(first, (low, high), strict=True))
    within = torch.minimum(low, y), torch.maximum(high, y)
    return own.distribution(v, head, last, t, stack).log_likelihood(y, within)


def _at(x: Tensor, t: Tensor) -> Tensor:
    """x (B, T, n) at steps t (B, R)."""
    return x.gather(1, t[..., None].expand(-1, -1, x.shape[2]))
