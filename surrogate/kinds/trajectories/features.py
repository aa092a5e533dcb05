"""What the heads of a decoder see of values, and the scale on which they draw.

A number is standardised by its own mean and deviation at that step, a change from the step before
by those of changes. Counts are seen in three more ways, because small ones matter one by one: the
square root, whether it is none, and the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from surrogate.kinds.trajectories.sites import Sites, latent
from surrogate.kinds.trajectories.variables import Variable

MARKOV_LAGS, FREE_LAGS = 1, 24  # steps of the past that heads see
MAX_DEVIATIONS = 8.0  # at which standardised values are cut off
MAX_CHANGE = 20.0  # the same of changes
MIN_DEVIATION = 0.5  # of a count
MIN_REAL_DEVIATION = 1e-3  # of a real number, in units of its largest at any step
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
        self.lags = min(sites.steps - 1, MARKOV_LAGS if sites.codec.markov else FREE_LAGS)
        zeros = torch.zeros(len(sites.numbers), sites.steps)
        self.register_buffer("level_mean", zeros.clone())
        self.register_buffer("level_sd", zeros + 1)
        self.register_buffer("level_max", torch.ones(len(sites.numbers)))
        self.register_buffer("change_mean", zeros.clone())
        self.register_buffer("change_sd", zeros + 1)

    @torch.no_grad()
    def measure(self, values: Mapping[str, Tensor]) -> None:
        """Set means and deviations from values (N, T)."""
        for v in self.sites.numbers:
            i, z = self.place[v.name], latent(v, values[v.name])
            change = torch.cat([z[:, :1], z.diff(dim=1)], 1)
            self.level_mean[i], self.level_sd[i] = z.mean(0), _deviation(v, z)
            self.level_max[i] = max(1.0, float(values[v.name].max()) - _origin(v))
            self.change_mean[i], self.change_sd[i] = change.mean(0), _deviation(v, change)

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
        past = max(0, self.lags - 1) * drawn
        noisy = 2 * drawn + sum(len(v.categories) for v in sites.words)
        return before + past + noisy + 1

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

    def drawn(self, v: Variable, y: Tensor, before: Tensor, t: Step) -> list[Tensor]:
        """Features of what was drawn at this step, for the variables after it."""
        if v.kind == "words":
            return list(one_hot(y.long(), len(v.categories)).float().unbind(-1))
        by = y - before
        size = by.sign() * by.abs().log1p() / 3
        return [self.change(v, y, before, t), (by == 0).float(), size.float()]

    def change(self, v: Variable, y: Tensor, before: Tensor, t: Step) -> Tensor:
        """The standardised change from the step before."""
        i = self.place[v.name]
        change = (latent(v, y) - self.last(v, before, t)).float()
        return _cut((change - self.change_mean[i, t]) / self.change_sd[i, t], MAX_CHANGE)

    def last(self, v: Variable, before: Tensor, t: Step) -> Tensor:
        """z of the step before; 0 at the first, where a change is the value itself."""
        if isinstance(t, int):
            return latent(v, before) if t else torch.zeros_like(before)
        z = latent(v, torch.where(t == 0, torch.ones_like(before), before))
        return torch.where(t == 0, torch.zeros_like(z), z)

    def noisy(self, v: Variable, shrunk: Tensor, before: Tensor, t: Step) -> list[Tensor]:
        """Features of the noisy trajectory at this step, `shrunk` (..., channels of v)."""
        if v.kind == "words":
            return list(shrunk.unbind(-1))
        i, rows, codec = self.place[v.name], self.sites.rows[v.name], self.sites.codec
        mean, scale = codec.mean[rows][0].float(), codec.scale[rows][0].float()
        z = mean[t] + scale[t] * shrunk[..., 0]
        change = (z - self.last(v, before, t).float() - self.change_mean[i, t]) / self.change_sd[
            i, t
        ]
        return [_cut(change, MAX_CHANGE), _cut(shrunk[..., 0], MAX_DEVIATIONS)]

    def past(self, values: Mapping[str, Tensor], t: Tensor) -> list[Tensor]:
        """Standardised changes of the steps before the last one, of values (B, T): (B, R) each."""
        found = []
        for v in self.sites.series:
            if v.kind == "words" or self.lags < 2:
                continue
            steps = torch.arange(self.sites.steps).expand_as(values[v.name])
            change = self.change(v, values[v.name], shifted(values[v.name]), steps)
            for lag in range(1, self.lags):
                found.append(torch.where(t >= lag, change.gather(1, (t - lag).clamp_min(0)), 0.0))
        return found

    # --- scales -----------------------------------------------------------------------------------

    def base(self, v: Variable, before: Tensor, t: Step) -> tuple[Tensor, Tensor]:
        """Where z at steps t is expected from the step before alone, and its deviation."""
        i = self.place[v.name]
        mean = self.last(v, before, t).float() + self.change_mean[i, t]
        return mean.unsqueeze(-1), self.change_sd[i, t].unsqueeze(-1)

    def static_scale(self, v: Variable) -> tuple[Tensor, Tensor]:
        """Mean and deviation of a static's z."""
        rows, codec = self.sites.rows[v.name], self.sites.codec
        return codec.mean[rows][0, 0].float(), codec.scale[rows][0, 0].float()


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
