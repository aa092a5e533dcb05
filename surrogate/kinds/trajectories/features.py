"""What the heads of a decoder see of values, and the scale on which they draw.

A number is standardised by its own mean and deviation at that step. What is drawn of it is its
distance from where it is expected, standardised by the mean and deviation of such distances: of a
simulated process from its last value, of other data from a linear prediction (`prediction`). Counts
are seen in three more ways, because small ones matter one by one: the square root, whether it is
none, and the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from surrogate.kinds.trajectories import process
from surrogate.kinds.trajectories.cycles import HARMONICS
from surrogate.kinds.trajectories.prediction import LAGS, LinearPrediction, stacks
from surrogate.kinds.trajectories.sites import Sites, latent
from surrogate.kinds.trajectories.variables import Variable

RECENT = 3  # changes before this step that heads see one by one, where the past matters
DECAYS = 0.25, 0.08  # a step, of the moving averages of all changes before, and of their sizes
MEAN_SIZE = 0.8  # of a standardised change
MAX_DEVIATIONS = 8.0  # at which standardised values are cut off
MAX_CHANGE = 20.0  # the same of changes
MIN_DEVIATION = 0.5  # of a count
MIN_REAL_DEVIATION = 1e-5  # of a real number, in units of its largest at any step
COUNT_FEATURES = 4
Step = int | Tensor  # one step, or those of each sample (B, R)


class Features(nn.Module):
    """Means and deviations (numbers, T) of the values of trajectories, and features by them."""

    level_mean: Tensor
    level_sd: Tensor
    level_max: Tensor
    change_mean: Tensor
    change_sd: Tensor

    def __init__(self, sites: Sites) -> None:
        super().__init__()
        self.sites = sites
        self.place = {v.name: i for i, v in enumerate(sites.numbers)}
        drawn = [v for v in sites.series if v.kind != "words"]
        self.order = {v.name: j for j, v in enumerate(drawn)}
        about = sites.codec.about
        self.remembers = not sites.codec.markov
        self.prediction = None
        if not process.simulated(about):
            self.prediction = LinearPrediction(len(drawn), sites.steps)
        zeros = torch.zeros(len(sites.numbers), sites.steps)
        self.register_buffer("level_mean", zeros.clone())
        self.register_buffer("level_sd", zeros + 1)
        self.register_buffer("level_max", torch.ones(len(sites.numbers)))
        self.register_buffer("change_mean", zeros.clone())
        self.register_buffer("change_sd", zeros + 1)

    @torch.no_grad()
    def measure(self, values: Mapping[str, Tensor]) -> None:
        """Set means, deviations and predictions from values (N, T)."""
        if self.prediction is not None:
            self.prediction.fit(self._latents(values))
        stack, t = self.stacks(values), torch.arange(self.sites.steps)
        for v in self.sites.numbers:
            i, z = self.place[v.name], latent(v, values[v.name])
            change = z - self.expected(v, shifted(values[v.name]), t.expand_as(z), stack)
            self.level_mean[i], self.level_sd[i] = z.mean(0), _deviation(v, z)
            self.level_max[i] = max(1.0, float(values[v.name].max()) - _origin(v))
            self.change_mean[i], self.change_sd[i] = change.mean(0), _deviation(v, change)
            if self.prediction is not None and v.name in self.order:
                move, j = torch.cat([z[:, :1], z.diff(dim=1)], 1), self.order[v.name]
                self.prediction.move_mean[j] = move.mean(0)
                self.prediction.move_sd[j] = _deviation(v, move)

        if self.sites.codec.homogeneous:
            self._pool()

    def _pool(self) -> None:
        """The same means and deviations at all steps, for a law that is the same at all."""
        for mean, sd, first in (
            (self.level_mean, self.level_sd, 0),
            (self.change_mean, self.change_sd, 1),  # the first change is the value itself
        ):
            own, spread = mean[:, first:], sd[:, first:]
            middle = own.mean(1, keepdim=True)
            spread[:] = (spread.square() + (own - middle).square()).mean(1, keepdim=True).sqrt()
            own[:] = middle

    def stacks(self, values: Mapping[str, Tensor]) -> Tensor | None:
        """What predictions read at every step, (N, T, n (1 + LAGS)); None where there are none."""
        return None if self.prediction is None else stacks(self._latents(values))

    def _latents(self, values: Mapping[str, Tensor]) -> Tensor:
        """z of the series that are drawn, (N, T, n)."""
        drawn = [v for v in self.sites.series if v.name in self.order]
        return torch.stack([latent(v, values[v.name]) for v in drawn], -1)

    def first_stack(self, count: int) -> Tensor | None:
        """The stack (count, n (1 + LAGS)) before the first step."""
        if self.prediction is None:
            return None
        return torch.zeros(count, len(self.order) * (1 + LAGS), dtype=torch.float64)

    def place_in_stack(self, stack: Tensor | None, v: Variable, y: Tensor) -> None:
        """Write a value of the present step into a stack."""
        if stack is not None and v.name in self.order:
            stack[:, self.order[v.name]] = latent(v, y)

    def next_stack(self, stack: Tensor | None) -> Tensor | None:
        """The stack at the beginning of the next step."""
        if stack is None:
            return None
        n = len(self.order)
        return torch.cat([torch.zeros_like(stack[:, :n]), stack[:, :-n]], 1)

    # --- how many ---------------------------------------------------------------------------------

    @property
    def of_statics(self) -> int:
        return sum(static_size(v) for v in self.sites.statics)

    @property
    def of_step(self) -> int:
        """Features that all heads of a step share, statics and context aside."""
        sites = self.sites
        before = sum(COUNT_FEATURES if v.kind == "integer" else 1 for v in sites.numbers)
        before += sum(len(v.categories) for v in sites.words)
        drawn = len(sites.series) - len(sites.words)
        past = (RECENT + 2 * len(DECAYS)) * drawn if self.remembers else 0
        waves = 2 * HARMONICS * len(sites.cycles)
        noisy = 2 * drawn + sum(len(v.categories) for v in sites.words)
        return before + past + waves + noisy + 1

    # --- of values --------------------------------------------------------------------------------

    def level(self, v: Variable, y: Tensor, t: Step) -> list[Tensor]:
        """Features of the values of a number at steps t."""
        i = self.place[v.name]
        z = latent(v, y).float()
        found = [_cut((z - self.level_mean[i, t]) / self.level_sd[i, t], MAX_DEVIATIONS)]
        if v.kind == "integer":
            above = (y - _origin(v)).clamp_min(0)  # float64: single precision could overflow
            share = (above / self.level_max[i]).sqrt().clamp_max(MAX_DEVIATIONS)
            found += [share.float(), (above == 0).float(), (above.log1p() / 3).float()]
        return found

    def static(self, v: Variable, y: Tensor) -> list[Tensor]:
        """Features of a static (B,)."""
        if v.kind == "words":
            return list(one_hot(y.long(), len(v.categories)).float().unbind(-1))
        mean, scale = self.static_scale(v)
        return [_cut(((latent(v, y) - mean) / scale).float(), MAX_DEVIATIONS)]

    def drawn(
        self, v: Variable, y: Tensor, before: Tensor, t: Step, stack: Tensor | None
    ) -> list[Tensor]:
        """Features of what was drawn at this step, for the variables after it."""
        if v.kind == "words":
            return list(one_hot(y.long(), len(v.categories)).float().unbind(-1))
        by = y - before
        size = by.sign() * by.abs().log1p() / 3
        return [self.change(v, y, before, t, stack), (by == 0).float(), size.float()]

    def change(
        self, v: Variable, y: Tensor, before: Tensor, t: Step, stack: Tensor | None
    ) -> Tensor:
        """The standardised distance from where the value was expected."""
        mean, sd = self.base(v, before, t, stack)
        return _cut(((latent(v, y) - mean) / sd).float(), MAX_CHANGE)

    def expected(self, v: Variable, before: Tensor, t: Step, stack: Tensor | None) -> Tensor:
        """Where z at steps t is expected: at its prediction, or its last value (0 at the first)."""
        if self.prediction is not None and stack is not None and v.name in self.order:
            return self.prediction(self.order[v.name], stack, t)
        if isinstance(t, int):
            return latent(v, before) if t else torch.zeros_like(before)
        z = latent(v, torch.where(t == 0, torch.ones_like(before), before))
        return torch.where(t == 0, torch.zeros_like(z), z)

    def noisy(self, v: Variable, shrunk: Tensor, before: Tensor, t: Step) -> list[Tensor]:
        """Features of the noisy trajectory at this step, `shrunk` (..., channels of v)."""
        if v.kind == "words":
            return list(shrunk.unbind(-1))
        rows, codec = self.sites.rows[v.name], self.sites.codec
        mean, scale = codec.mean[rows][0].float(), codec.scale[rows][0].float()
        z = mean[t] + scale[t] * shrunk[..., 0]
        if self.prediction is None:
            i = self.place[v.name]
            mean_move, sd = self.change_mean[i, t], self.change_sd[i, t]
        else:
            j = self.order[v.name]
            mean_move, sd = self.prediction.move_mean[j, t], self.prediction.move_sd[j, t]
        change = ((z - self.expected(v, before, t, None) - mean_move) / sd).float()
        return [_cut(change, MAX_CHANGE), _cut(shrunk[..., 0], MAX_DEVIATIONS)]

    def past(self, values: Mapping[str, Tensor], t: Tensor, stack: Tensor | None) -> list[Tensor]:
        """What heads see of changes before steps t (B, R), of values (B, T): (B, R) each."""
        if not self.remembers:
            return []
        found = []
        for v in self.sites.series:
            if v.kind != "words":
                y = values[v.name]
                steps = torch.arange(self.sites.steps).expand_as(y)
                change = self.change(v, y, shifted(y), steps, stack)
                found += [each.gather(1, t) for each in memory(change)]
        return found

    def waves(self, values: Mapping[str, Tensor], t: Step) -> list[Tensor]:
        """Harmonics of the calendar at steps t, by values of the cycles' variables: (...) each."""
        found: list[Tensor] = []
        for name, cycle in self.sites.cycles.items():
            found += cycle.harmonics(values[name], self.sites.elapsed[t])
        return found

    # --- scales -----------------------------------------------------------------------------------

    def base(
        self, v: Variable, before: Tensor, t: Step, stack: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Mean and deviation of z at steps t, by linear functions of what was drawn before."""
        i = self.place[v.name]
        expected = self.expected(v, before, t, stack)
        return expected + self.change_mean[i, t], self.change_sd[i, t]

    def static_scale(self, v: Variable) -> tuple[Tensor, Tensor]:
        """Mean and deviation of a static's z."""
        rows, codec = self.sites.rows[v.name], self.sites.codec
        return codec.mean[rows][0, 0].float(), codec.scale[rows][0, 0].float()


def memory(change: Tensor) -> list[Tensor]:
    """Features of the changes (B, T) before each step, (B, T) each: the last ones, and moving
    averages of all, with their signs and of their sizes, which tell trend and volatility."""
    steps = torch.arange(change.shape[1])
    since = steps[None] - 1 - steps[:, None]  # from the step of a change to the one before t
    found = [shifted(change)]
    for _ in range(RECENT - 1):
        found.append(shifted(found[-1]))
    for decay in DECAYS:
        weights = torch.where(since >= 0, decay * (1 - decay) ** since.clamp_min(0), 0.0)
        found += [change @ weights, (change.abs() - MEAN_SIZE) @ weights]
    return found


class Memory:
    """The same while changes are drawn, step by step: `features` of B trajectories."""

    def __init__(self, count: int) -> None:
        self.features = [torch.zeros(count) for _ in range(RECENT + 2 * len(DECAYS))]

    def add(self, change: Tensor) -> None:
        """Go on by a step with this change (B,)."""
        own = [change, *self.features[: RECENT - 1]]
        averages = self.features[RECENT:]
        for k, decay in enumerate(DECAYS):
            for i, part in ((2 * k, change), (2 * k + 1, change.abs() - MEAN_SIZE)):
                own.append((1 - decay) * averages[i] + decay * part)
        self.features = own

    def select(self, rows: Tensor) -> None:
        """Go on with some of the trajectories."""
        self.features = [each[rows] for each in self.features]


def static_size(v: Variable) -> int:
    """Features of a static."""
    return len(v.categories) if v.kind == "words" else 1


def drawn_size(v: Variable) -> int:
    """Features of a variable for those drawn after it."""
    return len(v.categories) if v.kind == "words" else 3


def shifted(y: Tensor) -> Tensor:
    """Values (B, T) of the step before, 0 at the first."""
    return torch.cat([torch.zeros_like(y[:, :1]), y[:, :-1]], 1)


def _cut(x: Tensor, most: float) -> Tensor:
    return x.clamp(-most, most)


def _origin(v: Variable) -> float:
    """The count that is none."""
    return v.low if math.isfinite(v.low) else 0.0


def _deviation(v: Variable, z: Tensor) -> Tensor:
    """Standard deviations (T,) of z (N, T), with a floor."""
    found = z.std(0)
    if v.kind != "real" and v.transform.kind == "identity":
        return found.clamp_min(MIN_DEVIATION)
    return found.clamp_min(MIN_REAL_DEVIATION * max(float(found.max()), 1e-12))
