"""The decoder of trajectories: p(x(t) | x(t-1), ..., noisy trajectory), variable by variable.

Statics come first, then the steps in order, and within a step the variables in the order of the
codec. Numbers have a mixture of logistics (`networks.logistic_mixture`) about their last value, cut
to the interval that laws leave them (`support`); words have probabilities. A network reads the
noisy trajectory once and gives every step a context; small heads, one for each variable, read the
context, the exact values of the steps before, and the variables already drawn at this step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import silu

from surrogate.kinds.decoder import Decoder, Pins, Uniforms
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.support import Support
from surrogate.kinds.trajectories.transforms import Identity
from surrogate.kinds.trajectories.variables import NUMBER_KINDS, Variable
from surrogate.networks.logistic_mixture import MIN_SCALE, LogisticMixture
from surrogate.networks.temporal_mlp import TemporalMLP

COMPONENTS = 8  # of a mixture
CONTEXT = 24  # features that a step gets of the noisy trajectory
HEAD_WIDTH = 128
TRUNK_DEPTH = 3
STEPS_PER_SAMPLE = 16  # of a trajectory that a training step looks at
MARKOV_LAGS, FREE_LAGS = 1, 24  # steps of the past that heads see
SIGMA_LOW, SIGMA_HIGH = 0.1, 4.0  # noise levels that the decoder learns to start from
BLIND = 0.4  # share of training samples without any noisy trajectory
MAX_SIGMA = 20.0  # noise that is as good as infinite, for the embedding
FAR = 8.0  # deviations at which features are cut off
MAX_STEP = 20.0  # the same of changes


class Head(nn.Module):
    """Features (..., inputs) to the parameters of a distribution (..., outputs)."""

    def __init__(self, inputs: int, outputs: int, width: int) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.middle = nn.Linear(width, width)
        self.leave = nn.Linear(width, outputs)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = silu(self.enter(x))
        hidden = hidden + silu(self.middle(hidden))
        out: Tensor = self.leave(hidden)
        return out


class TrajectoryDecoder(Decoder):
    """See the module; `measure` it on encoded samples before training."""

    level_mean: Tensor
    level_sd: Tensor
    level_max: Tensor
    step_mean: Tensor
    step_sd: Tensor

    def __init__(
        self, codec: TimeSeriesCodec, width: int | None = None, depth: int | None = None
    ) -> None:
        super().__init__()
        self.codec = codec
        channels, steps = codec.shape
        free = {int(row): i for i, row in enumerate(codec._free.tolist())}
        self.channels: dict[str, list[int]] = {}  # of x, by variable
        self.rows: dict[str, slice] = {}
        for variable, rows in codec._rows:
            own = [free[row] for row in range(rows.start, rows.stop) if row in free]
            if own:
                self.channels[variable.name], self.rows[variable.name] = own, rows
        drawn = [v for v, _ in codec._rows if v.name in self.channels]
        self.statics = [v for v in drawn if v.static]
        self.series = [v for v in drawn if not v.static]
        # numbers over time that heads may look at, restored ones included
        self.seen = [
            v for v in codec.variables if not v.static and v.kind != "words" and not v.total
        ]
        self.place = {v.name: i for i, v in enumerate(self.seen)}
        self.lags = min(steps - 1, FREE_LAGS if not codec.markov else MARKOV_LAGS)
        count = len(self.seen)
        zeros = torch.zeros(count, steps)
        self.register_buffer("level_mean", zeros.clone())
        self.register_buffer("level_sd", zeros + 1)
        self.register_buffer("level_max", torch.ones(count))
        self.register_buffer("step_mean", zeros.clone())
        self.register_buffer("step_sd", zeros + 1)
        self.trunk = TemporalMLP(channels, steps, depth=depth or TRUNK_DEPTH, outputs=CONTEXT)
        self.place_in_time = nn.Parameter(torch.zeros(steps, CONTEXT))
        width = width or HEAD_WIDTH
        numeric = [v for v in self.series if v.kind != "words"]
        base = CONTEXT + sum(_looks(v) for v in self.statics)
        before = sum(_looks(v) for v in self.seen) + sum(len(v.categories) for v in self.series)
        past = max(0, self.lags - 1) * len(numeric)
        noisy = sum(2 if v.kind != "words" else len(v.categories) for v in self.series)
        self.heads = nn.ModuleList()
        inputs = CONTEXT
        for v in self.statics:
            inputs_own = inputs + _noisy_looks(v)
            self.heads.append(Head(inputs_own, _outputs(v), width))
            inputs += _looks(v)
        inputs = base + before + past + noisy + 1
        for v in self.series:
            self.heads.append(Head(inputs, _outputs(v), width))
            inputs += 3 if v.kind != "words" else len(v.categories)

    # --- what it knows ----------------------------------------------------------------------------

    @cached_property
    def support(self) -> Support:
        """The intervals of the series, under the laws of the codec."""
        numbers = [v for v in self.series if v.kind != "words"]
        ranges = {v.name: (v.low, v.high) for v in self.seen}
        ranges |= {v.name: (0.0, 1.0) for v in self.seen if v.kind == "boolean"}
        whole = frozenset(v.name for v in self.seen if v.kind in ("integer", "boolean"))
        return Support(
            [v.name for v in numbers], self.codec.linear_laws, self.codec.relations, ranges, whole
        )

    @cached_property
    def free(self) -> Tensor:
        """Where a series varies, (series, T)."""
        rows = [self.codec.fixed[self.rows[v.name]][:1].isnan() for v in self.series]
        return torch.cat(rows) if rows else torch.zeros(0, self.codec.shape[1], dtype=torch.bool)

    @torch.no_grad()
    def measure(self, clean: Tensor) -> None:
        """Means and deviations of values and of their changes, from encoded samples (N, C, T)."""
        values = self._values(clean)
        for v in self.seen:
            i, z = self.place[v.name], self._z(v, values[v.name])
            self.level_mean[i], self.level_sd[i] = z.mean(0), _deviation(v, z)
            self.level_max[i] = max(1.0, float(values[v.name].max()) - _origin(v))
            change = torch.cat([z[:, :1], z.diff(dim=1)], 1)
            self.step_mean[i], self.step_sd[i] = change.mean(0), _deviation(v, change)

    def _values(self, clean: Tensor) -> dict[str, Tensor]:
        """Values of encoded samples in data units: series (B, T), statics (B, 1), words codes."""
        found = self.codec.values(clean.detach().double())
        return {name: y.argmax(1) if y.shape[1] > 1 else y[:, 0] for name, y in found.items()}

    def signals(self, y: Tensor) -> dict[str, Tensor]:
        return self._linear.decode(y)

    @cached_property
    def _linear(self) -> TimeSeriesCodec:
        """The codec of values that are neither transformed nor normalised."""
        codec = self.codec
        plain = tuple(replace(v, transform=Identity()) for v in codec.variables)
        zero = torch.zeros_like(codec.mean)
        return replace(codec, variables=plain, mean=zero, scale=zero + 1)

    def _z(self, variable: Variable, y: Tensor) -> Tensor:
        return variable.transform.forward(y) if variable.kind in NUMBER_KINDS else y

    # --- features ---------------------------------------------------------------------------------

    def _context(self, noisy: Tensor, sigma: Tensor) -> Tensor:
        """What a noisy trajectory (B, C, T) at noise levels (B,) tells each step: (B, T, H)."""
        shrunk = noisy / (1 + sigma**2)[:, None, None]
        made: Tensor = self.trunk(shrunk, sigma.clamp_max(MAX_SIGMA).log() / 4)
        return made.mT + self.place_in_time

    def _looks(self, v: Variable, y: Tensor, t: Any) -> list[Tensor]:
        """Features of a number at steps t."""
        i = self.place[v.name]
        z = self._z(v, y).float()
        found = [((z - self.level_mean[i, t]) / self.level_sd[i, t]).clamp(-FAR, FAR)]
        if v.kind == "integer":
            above = (y - _origin(v)).float().clamp_min(0)
            found += [(above / self.level_max[i]).sqrt(), (above == 0).float(), above.log1p() / 3]
        return found

    def _static_looks(self, v: Variable, y: Tensor) -> list[Tensor]:
        if v.kind == "words":
            return list(nn.functional.one_hot(y.long(), len(v.categories)).float().unbind(-1))
        rows = self.rows[v.name]
        mean, scale = self.codec.mean[rows][0, 0], self.codec.scale[rows][0, 0]
        return [((self._z(v, y) - mean) / scale).clamp(-FAR, FAR).float()]

    def _change_looks(self, v: Variable, y: Tensor, before: Tensor, t: Any) -> list[Tensor]:
        """Features of a number drawn at this step: by how much it changed."""
        if v.kind == "words":
            return list(nn.functional.one_hot(y.long(), len(v.categories)).float().unbind(-1))
        change = self._change(v, y, before, t)
        steps = (y - before).float()
        return [change, (steps == 0).float(), steps.sign() * steps.abs().log1p() / 3]

    def _change(self, v: Variable, y: Tensor, before: Tensor, t: Any) -> Tensor:
        """The standardised change from the step before."""
        i = self.place[v.name]
        change = (self._z(v, y) - self._last(v, before, t)).float()
        return ((change - self.step_mean[i, t]) / self.step_sd[i, t]).clamp(-MAX_STEP, MAX_STEP)

    def _last(self, v: Variable, before: Tensor, t: Any) -> Tensor:
        """z of the step before, 0 at the first step."""
        first = t == 0
        z = self._z(v, torch.where(torch.as_tensor(first), torch.ones_like(before), before))
        return torch.where(torch.as_tensor(first), torch.zeros_like(z), z)

    def _noisy_looks(self, v: Variable, shrunk: Tensor, before: Tensor, t: Any) -> list[Tensor]:
        """Features of the noisy trajectory at this step, `shrunk` (..., channels of v)."""
        if v.kind == "words":
            return list(shrunk.float().unbind(-1))
        i, rows = self.place[v.name], self.rows[v.name]
        mean, scale = self.codec.mean[rows][0].float(), self.codec.scale[rows][0].float()
        z = mean[t] + scale[t] * shrunk[..., 0].float()
        change = (z - self._last(v, before, t).float() - self.step_mean[i, t]) / self.step_sd[i, t]
        return [change.clamp(-MAX_STEP, MAX_STEP), shrunk[..., 0].float().clamp(-FAR, FAR)]

    def _mixture(self, v: Variable, head: Tensor, before: Tensor, t: Any) -> LogisticMixture:
        """The distribution of z at steps t, of the head's output (..., 3 K)."""
        i = self.place[v.name]
        sd = self.step_sd[i, t].unsqueeze(-1) if isinstance(t, Tensor) else self.step_sd[i, t]
        base = (self._last(v, before, t).float() + self.step_mean[i, t]).unsqueeze(-1)
        return _mixture(head, base, sd, v)

    def _static_mixture(self, v: Variable, head: Tensor) -> LogisticMixture:
        rows = self.rows[v.name]
        mean, scale = self.codec.mean[rows][0, 0].float(), self.codec.scale[rows][0, 0].float()
        return _mixture(head, mean, scale, v)

    # --- learning ---------------------------------------------------------------------------------

    def loss(self, clean: Tensor, generator: Generator) -> Tensor:
        count = len(clean)
        uniform = torch.rand((2, count), generator=generator)
        sigma = SIGMA_LOW * (SIGMA_HIGH / SIGMA_LOW) ** uniform[0]
        sigma = torch.where(uniform[1] < BLIND, 1e6, sigma)
        noise = torch.randn(clean.shape, generator=generator)
        noisy = clean + sigma[:, None, None] * noise * (sigma < 1e6)[:, None, None]
        order = torch.rand((count, clean.shape[2]), generator=generator).argsort(1)
        chosen = order[:, : min(STEPS_PER_SAMPLE, clean.shape[2])]
        return self._loss(clean, noisy, sigma, chosen)

    def log_prob(self, clean: Tensor) -> Tensor:
        steps = torch.arange(clean.shape[2]).expand(len(clean), -1)
        blind = torch.full((len(clean),), 1e6)
        with torch.no_grad():
            return -self._loss(clean, torch.zeros_like(clean), blind, steps) * self.size

    @property
    def size(self) -> int:
        """Numbers and words that are drawn of a trajectory."""
        return len(self.statics) + int(self.free.sum())

    def _loss(self, clean: Tensor, noisy: Tensor, sigma: Tensor, t: Tensor) -> Tensor:
        """Negative log-likelihood (B,), per number, of statics and of the steps t (B, R)."""
        values = self._values(clean)
        context = self._context(noisy, sigma)
        shrunk = noisy / (1 + sigma**2)[:, None, None]
        total = clean.new_zeros(len(clean))
        looks: list[Tensor] = []
        for j, v in enumerate(self.statics):
            y = values[v.name][:, 0]
            own = self._static_noisy(v, noisy, sigma)
            head = self.heads[j](torch.cat([context[:, 0], own, *_columns(looks, 0)], -1))
            total = total - self._log_likelihood(v, head, y, None, None, None)
            looks += self._static_looks(v, y)
        at = context.gather(1, t[..., None].expand(-1, -1, CONTEXT))

        def here(y: Tensor) -> Tensor:
            return y.gather(1, t)

        before = {v.name: here(_shifted(values[v.name])) for v in (*self.seen, *self._words)}
        now = {v.name: here(values[v.name]) for v in self.series}
        fixed = {v.name: values[v.name].expand(-1, t.shape[1]) for v in self._all_statics}
        noisy_at = {
            v.name: shrunk[:, self.channels[v.name]].mT.gather(
                1, t[..., None].expand(-1, -1, len(self.channels[v.name]))
            )
            for v in self.series
        }
        past = self._past(values, t)
        features = self._features(at, looks, before, past, noisy_at, t)
        nll = torch.zeros_like(at[..., 0])
        known: dict[str, Tensor] = dict(fixed)
        for j, v in enumerate(self.series, len(self.statics)):
            head = self.heads[j](torch.cat(features, -1))
            y, last = now[v.name], before.get(v.name)
            free = self.free[j - len(self.statics)][t]
            part = self._log_likelihood(v, head, y, last, t, (known, before))
            nll = nll - torch.where(free, part, 0.0)
            known[v.name] = y
            features += [torch.stack(self._change_looks(v, y, last, t), -1)]  # type: ignore[arg-type]
        return (total + nll.mean(1) * self.codec.shape[1]) / self.size

    def _log_likelihood(
        self,
        v: Variable,
        head: Tensor,
        y: Tensor,
        last: Tensor | None,
        t: Tensor | None,
        around: tuple[Mapping[str, Tensor], Mapping[str, Tensor]] | None,
    ) -> Tensor:
        """log p of values y, of a static where `t` is None."""
        if v.kind == "words":
            return torch.log_softmax(head, -1).gather(-1, y.long().unsqueeze(-1))[..., 0]
        if t is None or last is None or around is None:
            mixture, low, high = self._static_mixture(v, head), *_range(v, y)
        else:
            mixture = self._mixture(v, head, last, t)
            now, before = around
            low, high = self.support.interval(v.name, now, before, y)
            first = self.support.interval(v.name, now, None, y)
            low = torch.where(t == 0, first[0], low)
            high = torch.where(t == 0, first[1], high)
        low, high = torch.minimum(low, y), torch.maximum(high, y)
        ends = _edges(v, low, high)
        within = mixture.log_interval(*(end.float() for end in ends))
        if v.kind == "real":
            return mixture.log_density(self._z(v, y).float()) - within
        own = _edges(v, y, y)
        return mixture.log_interval(*(end.float() for end in own)) - within

    @cached_property
    def _words(self) -> list[Variable]:
        return [v for v in self.series if v.kind == "words"]

    @cached_property
    def _all_statics(self) -> list[Variable]:
        """Numbers that stay the same along a trajectory, drawn or constant."""
        return [v for v in self.codec.variables if v.static and v.kind != "words"]

    def _past(self, values: Mapping[str, Tensor], t: Tensor) -> list[Tensor]:
        """Standardised changes of the steps before the last one, (B, R) each."""
        found = []
        for v in self.series:
            if v.kind == "words" or self.lags < 2:
                continue
            steps = torch.arange(values[v.name].shape[1])
            change = self._change(v, values[v.name], _shifted(values[v.name]), steps)
            for lag in range(1, self.lags):
                at = (t - lag).clamp_min(0)
                found.append(torch.where(t >= lag, change.gather(1, at), 0.0))
        return found

    def _features(
        self,
        context: Tensor,
        statics: list[Tensor],
        before: Mapping[str, Tensor],
        past: list[Tensor],
        noisy: Mapping[str, Tensor],
        t: Any,
    ) -> list[Tensor]:
        """What every head of a step sees: (..., n) each."""
        shape = context.shape[:-1]
        found = [each.reshape(-1, *[1] * (len(shape) - 1)).expand(shape) for each in statics]
        last = t - 1 if not isinstance(t, Tensor) else (t - 1).clamp_min(0)
        for v in self.seen:
            found += self._looks(v, before[v.name], max(last, 0) if isinstance(last, int) else last)
        for v in self._words:
            hot = nn.functional.one_hot(before[v.name].long(), len(v.categories)).float()
            found += list(hot.unbind(-1))
        found += past
        for v in self.series:
            found += self._noisy_looks(v, noisy[v.name], before[v.name], t)
        found.append(torch.as_tensor(t == 0).to(context).expand(shape))
        return [context, torch.stack(found, -1)]

    def _static_noisy(self, v: Variable, noisy: Tensor, sigma: Tensor) -> Tensor:
        """The noisy copies of a static as one estimate, (B, channels)."""
        steps = noisy.shape[2]
        mean = noisy[:, self.channels[v.name]].mean(2)
        return mean * (steps / (steps + sigma**2))[:, None]

    # --- drawing ----------------------------------------------------------------------------------

    @torch.no_grad()
    def draw(
        self,
        noisy: Tensor,
        sigma: float,
        generator: Generator,
        pins: Pins | None = None,
        *,
        total: int | None = None,
    ) -> tuple[Tensor, Tensor]:
        size = math.prod(self.codec.shape)
        pins = pins if pins is not None else Pins.none(size)
        instances = pins.rows.shape[1] // size
        groups = noisy.reshape(-1, instances, *self.codec.shape)
        weights = torch.zeros(len(groups), dtype=torch.float64)
        uniform = Uniforms(generator, len(groups), total)
        sums = _Conditions(pins, self._last_sites(pins, instances), len(groups))
        made = []
        for i in range(instances):
            x, change = self._draw_one(groups[:, i], sigma, uniform, sums, i)
            made.append(x)
            weights = weights + change
        return torch.stack(made, 1).reshape(-1, *self.codec.shape), weights

    def _last_sites(self, pins: Pins, instances: int) -> dict[tuple[int, int, int], list[int]]:
        """Conditions by the (instance, step, variable) that settles them; statics have step -1."""
        sites: dict[tuple[int, int, int], list[int]] = {}
        steps = self.codec.shape[1]
        rows = pins.rows.reshape(len(pins), instances, *self.codec.shape)
        for k in range(len(pins)):
            last: tuple[int, int, int] | None = None
            for i in range(instances):
                for j, v in enumerate(self.statics):
                    if bool((rows[k, i, self.channels[v.name]] != 0).any()):
                        last = max(last or (0, -1, 0), (i, -1, j))
                for j, v in enumerate(self.series):
                    used = (rows[k, i, self.channels[v.name]] != 0).any(0) & self.free[j]
                    if bool(used.any()):
                        step = int(torch.arange(steps)[used].max())
                        last = max(last or (0, -1, 0), (i, step, j))
            if last is not None:
                sites.setdefault(last, []).append(k)
        return sites

    def _draw_one(
        self, noisy: Tensor, sigma: float, uniform: Uniforms, pins: _Conditions, instance: int
    ) -> tuple[Tensor, Tensor]:
        count, steps = len(noisy), self.codec.shape[1]
        blind = math.isinf(sigma)
        level = torch.full((1 if blind else count,), 1e6 if blind else sigma)
        noisy = noisy.float() * (0.0 if blind else 1.0)
        context = self._context(noisy[: len(level)], level).expand(count, -1, -1)
        shrunk = noisy / (1 + level**2)[:, None, None]
        x = torch.zeros(count, *self.codec.shape, dtype=torch.float64)
        weights = torch.zeros(count, dtype=torch.float64)
        looks: list[Tensor] = []
        known: dict[str, Tensor] = {}
        for j, v in enumerate(self.statics):
            own = self._static_noisy(v, noisy, level)
            head = self.heads[j](torch.cat([context[:, 0], own, *_columns(looks, 0)], -1))
            coordinates = [c * steps for c in self.channels[v.name]]
            met = pins.at((instance, -1, j), coordinates, spread=steps)
            y, change = self._draw_value(v, head, None, None, None, met, uniform)
            weights, known[v.name] = weights + change, y
            looks += self._static_looks(v, y)
            self._place(x, v, y, slice(None), pins, instance)
        for v in self._all_statics:
            if v.name not in known:
                known[v.name] = self._constant(v, 0, count)
        before = {v.name: torch.zeros(count, dtype=torch.float64) for v in self.seen}
        before |= {v.name: torch.zeros(count, dtype=torch.float64) for v in self._words}
        changes: dict[str, list[Tensor]] = {v.name: [] for v in self.series}
        for t in range(steps):
            at = {v.name: shrunk[:, self.channels[v.name], t] for v in self.series}
            past = [
                changes[v.name][t - lag] if t >= lag else torch.zeros(count)
                for v in self.series
                if v.kind != "words"
                for lag in range(1, self.lags)
            ]
            features = self._features(context[:, t], looks, before, past, at, t)
            now = dict(known)
            for j, v in enumerate(self.series):
                if bool(self.free[j, t]):
                    head = self.heads[len(self.statics) + j](torch.cat(features, -1))
                    coordinates = [c * steps + t for c in self.channels[v.name]]
                    met = pins.at((instance, t, j), coordinates)
                    around = (now, before if t else None)
                    y, change = self._draw_value(v, head, before[v.name], t, around, met, uniform)
                    weights = weights + change
                else:
                    y = self._constant(v, t, count)
                now[v.name] = y
                self._place(x, v, y, t, pins, instance)
                features.append(torch.stack(self._change_looks(v, y, before[v.name], t), -1))
                if v.kind != "words" and self.lags > 1:
                    changes[v.name].append(self._change(v, y, before[v.name], t))
            before = self._restored(now)
        return x, weights

    def _restored(self, now: dict[str, Tensor]) -> dict[str, Tensor]:
        """All series of a step: what follows from conservation laws, too."""
        for relation in self.codec.relations:
            total = relation.total
            like = next(iter(now.values()))
            sums = now[total] if isinstance(total, str) else torch.full_like(like, total)
            now[relation.dependent] = relation.restore(now, sums)
        for v in self.seen:
            if v.name not in now:
                raise AssertionError(v.name)
        return now

    def _draw_value(
        self,
        v: Variable,
        head: Tensor,
        last: Tensor | None,
        t: int | None,
        around: tuple[Mapping[str, Tensor], Mapping[str, Tensor] | None] | None,
        pins: _Interval | None,
        uniform: Uniforms,
    ) -> tuple[Tensor, Tensor]:
        """A value (B,), and the log-probability of the conditions that it settles (B,)."""
        count = len(head)
        if v.kind == "words":
            log_p = torch.log_softmax(head.double(), -1)
            change = torch.zeros(count, dtype=torch.float64)
            if pins is not None:
                met = pins.allows(torch.eye(len(v.categories), dtype=torch.float64))
                inside = torch.logsumexp(log_p.masked_fill(~met, -torch.inf), -1)
                change, log_p = (
                    inside,
                    torch.where(
                        met.any(1, keepdim=True), log_p.masked_fill(~met, -torch.inf), log_p
                    ),
                )
            share = torch.softmax(log_p, -1).cumsum(-1)
            chosen = (
                (share < uniform(1)[0][:, None] * share[:, -1:])
                .sum(-1)
                .clamp_max(len(v.categories) - 1)
            )
            return chosen.double(), change
        like = torch.zeros(count, dtype=torch.float64)
        if last is None or around is None or t is None:
            mixture, low, high = self._static_mixture(v, head), *_range(v, like)
        else:
            mixture = self._mixture(v, head, last, t)
            low, high = self.support.interval(v.name, around[0], around[1], like)
        within = mixture.log_interval(*(end.float() for end in _edges(v, low, high))).double()
        change = like
        if pins is not None:
            a, b = pins.interval()
            if v.kind != "real":
                a, b = torch.ceil(a - 1e-6), torch.floor(b + 1e-6)
            a, b = torch.maximum(low, a), torch.minimum(high, b)
            possible = a <= b
            low, high = torch.where(possible, a, low), torch.where(possible, b, high)
            inside = mixture.log_interval(*(end.float() for end in _edges(v, low, high))).double()
            change = torch.where(possible, inside - within, -torch.inf)
        first, last = _edges(v, low, high)
        z = mixture.sample(first.float(), last.float(), uniform(2))
        y = self._y(v, z)
        y = torch.round(y) if v.kind != "real" else y
        return torch.minimum(torch.maximum(y, low), high), change

    def _y(self, v: Variable, z: Tensor) -> Tensor:
        return v.transform.inverse(z) if v.kind in NUMBER_KINDS else z

    def _constant(self, v: Variable, t: int, count: int) -> Tensor:
        """The value that all data have at a step, (count,)."""
        codec = self.codec
        rows = next(rows for variable, rows in codec._rows if variable.name == v.name)
        known = codec.fixed[rows][:, t]
        value = float(known.argmax()) if v.kind == "words" else float(known[0])
        return torch.full((count,), value, dtype=torch.float64)

    def _place(
        self, x: Tensor, v: Variable, y: Tensor, t: int | slice, pins: _Conditions, instance: int
    ) -> None:
        """Write a value into the normalised points, and into the sums of the conditions."""
        rows, own = self.rows[v.name], self.channels[v.name]
        if v.kind == "words":
            values = spread = nn.functional.one_hot(y.long(), len(v.categories)).to(y)
        else:
            values, spread = y[:, None], self._z(v, y)[:, None]
        if isinstance(t, slice):
            spread, values = spread[..., None], values[..., None].expand(-1, -1, x.shape[2])
        x[:, own, t] = (spread - self.codec.mean[rows][:, t]) / self.codec.scale[rows][:, t]
        pins.add(values, own, t, instance, self.codec.shape)


class _Interval:
    """The conditions that one variable settles, given the sums of the others."""

    def __init__(self, weights: Tensor, low: Tensor, high: Tensor) -> None:
        """weights (k, channels); ends (B, k) of what the channels add."""
        self.weights, self.low, self.high = weights, low, high

    def interval(self) -> tuple[Tensor, Tensor]:
        """The interval of a single channel, (B,) each."""
        weight = self.weights[:, 0]
        ends = self.low / weight, self.high / weight
        low, high = torch.minimum(*ends), torch.maximum(*ends)
        return low.amax(1), high.amin(1)

    def allows(self, choices: Tensor) -> Tensor:
        """Which of the points (choices, channels) meet the conditions: (B, choices)."""
        at = choices @ self.weights.mT  # (choices, k)
        slack = 1e-9
        met = (at[None] >= self.low[:, None] - slack) & (at[None] <= self.high[:, None] + slack)
        return met.all(2)


class _Conditions:
    """Linear conditions while values are drawn: the sums so far."""

    def __init__(
        self, pins: Pins, sites: Mapping[tuple[int, int, int], list[int]], count: int
    ) -> None:
        self.pins, self.sites = pins, sites
        self.sums = torch.zeros(count, len(pins), dtype=torch.float64)

    def at(
        self, site: tuple[int, int, int], coordinates: list[int], spread: int = 1
    ) -> _Interval | None:
        """What a site settles; `spread`: over so many coordinates in a row, all with one value."""
        rows = self.sites.get(site)
        if not rows:
            return None
        size = self.pins.rows.shape[1] // (1 + max(i for i, _, _ in self.sites))
        offset = site[0] * size
        weights = torch.stack(
            [self.pins.rows[rows, offset + c : offset + c + spread].sum(1) for c in coordinates], 1
        )
        missing = self.sums[:, rows]
        return _Interval(weights, self.pins.low[rows] - missing, self.pins.high[rows] - missing)

    def add(
        self, y: Tensor, channels: list[int], t: int | slice, instance: int, shape: tuple[int, int]
    ) -> None:
        """Values y placed at some channels and steps, (B, channels) or (B, channels, T)."""
        if not len(self.pins):
            return
        rows = self.pins.rows.reshape(len(self.pins), -1, *shape)[:, instance, channels][:, :, t]
        self.sums += y.flatten(1) @ rows.flatten(1).mT


def _mixture(head: Tensor, base: Tensor, sd: Tensor, v: Variable) -> LogisticMixture:
    log_weights, location, log_scale = head.chunk(3, -1)
    places = torch.linspace(-1.5, 1.5, COMPONENTS)
    log_scale = sd.log() + (log_scale - 1).clamp(-8, 4)
    if v.kind != "real" and v.transform.kind == "identity":
        log_scale = log_scale.clamp_min(math.log(MIN_SCALE))
    return LogisticMixture(
        torch.log_softmax(log_weights, -1), base + sd * (location + places), log_scale
    )


def _edges(v: Variable, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """z of the ends of an interval of values; counts with their half unit."""
    if v.kind == "real":
        return v.transform.forward(low), v.transform.forward(high)
    if v.transform.kind == "identity" or v.kind == "boolean":
        return low - 0.5, high + 0.5
    pad = 0.5 - 2**-12
    first, last = v.transform.forward(low - pad), v.transform.forward(high + pad)
    return first.nan_to_num(-1e30, 1e30, -1e30), last.nan_to_num(1e30, 1e30, -1e30)


def _range(v: Variable, like: Tensor) -> tuple[Tensor, Tensor]:
    low, high = (0.0, 1.0) if v.kind == "boolean" else (v.low, v.high)
    return torch.full_like(like, low), torch.full_like(like, high)


def _origin(v: Variable) -> float:
    """The value that counts as none."""
    return v.low if math.isfinite(v.low) else 0.0


def _deviation(v: Variable, z: Tensor) -> Tensor:
    """Standard deviations (T,), with a floor: half a count, or a little of the variable's own."""
    found = z.std(0)
    if v.kind != "real" and v.transform.kind == "identity":
        return found.clamp_min(0.5)
    return found.clamp_min(1e-3 * max(float(found.max()), 1e-12))


def _shifted(y: Tensor) -> Tensor:
    """Values of the step before, 0 at the first."""
    return torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)


def _columns(looks: list[Tensor], _: int) -> list[Tensor]:
    return [each[:, None] for each in looks]


def _looks(v: Variable) -> int:
    if v.kind == "words":
        return len(v.categories)
    return 4 if v.kind == "integer" and not v.static else 1


def _noisy_looks(v: Variable) -> int:
    return len(v.channels)


def _outputs(v: Variable) -> int:
    return len(v.categories) if v.kind == "words" else 3 * COMPONENTS
