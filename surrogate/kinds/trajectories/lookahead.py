"""Look-ahead: a guess of the probability of conditions to come, given the values drawn so far.

Plain draws of the decoder tell how what is left of a condition at step t depends on the state y(t):
a regression on y(t), its squares and products, with residuals of covariance V. At a state the
conditions to come then have about the probability

    ĝ_t(y) = N(b - m(y); V)  of equations, jointly,  and  Φ differences  of inequalities.

In a particle filter whose weights contain ĝ_t, particles that are on their way to the scenario
survive (the auxiliary particle filter of Pitt and Shephard 1999, with twisting functions by
regression as in Guarniero, Johansen and Lee 2017). Any ĝ gives the same product of weights, so that
a poor guess costs particles and no bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from constraints.gaussian.chains import log_interval
from surrogate.kinds.decoder import Lookahead, Pins
from surrogate.kinds.trajectories.sites import Sites

MAX_PRODUCTS = 6  # numbers of a state up to which their products are features
MAX_DEVIATIONS = 6.0  # at which standardised states are cut off
RIDGE = 1e-6  # relative to the number of draws
INFLATION = 1.5  # of variances: a guess that is too sharp kills particles
EQUATION_WIDTH = 1.0  # of an interval, in deviations of what is left, below which it is an equation
POWER = 4.0  # of the mean of inequalities, which are far from independent: about their worst one
MIN_LOG_GUESS = -300.0


@dataclass(frozen=True)
class Regression:
    """Of what is left of conditions after a step: `conditions` (k,), by features (F,)."""

    conditions: Tensor
    middle: Tensor
    scale: Tensor
    weights: Tensor  # (F, k)
    covariance: Tensor  # (k, k)

    def mean(self, state: Tensor) -> Tensor:
        """(N, k) at states (N, S)."""
        return _features(state, self.middle, self.scale) @ self.weights


class TrajectoryLookahead(Lookahead):
    """Fitted to plain draws, encoded (M, C, T), for the conditions `pins`."""

    def __init__(self, sites: Sites, pins: Pins, clean: Tensor) -> None:
        self.pins = pins
        numbers = [v for v in (*sites.statics, *sites.series) if v.kind != "words"]
        self.names = [v.name for v in numbers]
        values = sites.values(clean)
        channels, steps = sites.codec.shape
        y = torch.zeros(len(clean), channels, steps, dtype=torch.float64)
        for v in sites.series:
            own = values[v.name]
            spread = own[:, None] if v.kind != "words" else _hot(own, len(v.categories))
            y[:, sites.channels[v.name]] = spread.double()
        rows = pins.rows.reshape(len(pins), channels, steps).clone()
        for v in sites.statics:
            rows[:, sites.channels[v.name]] = 0.0  # known from the start
        parts = torch.einsum("kct,mct->mkt", rows, y)
        left = parts.sum(2, keepdim=True) - parts.cumsum(2)
        later = (rows != 0).any(1)  # (k, T)
        self.regressions: list[Regression | None] = []
        for t in range(steps):
            open_rows = later[:, t + 1 :].any(1).nonzero()[:, 0]
            state = self._state({name: _at(values[name], t) for name in self.names})
            self.regressions.append(_fit(state, left[:, open_rows, t], open_rows))

    def after(self, t: int, values: Mapping[str, Tensor], sums: Tensor) -> Tensor:
        own = self.regressions[t]
        if own is None:
            return sums.new_zeros(len(sums))
        mean = own.mean(self._state(values))
        known = sums[:, own.conditions]
        low, high = (end[own.conditions] - known - mean for end in (self.pins.low, self.pins.high))
        sd = own.covariance.diagonal().sqrt()
        narrow = (self.pins.high - self.pins.low)[own.conditions] < EQUATION_WIDTH * sd
        guess = sums.new_zeros(len(sums))
        if bool(narrow.any()):
            spread = (high - low)[0, narrow]
            covariance = own.covariance[narrow][:, narrow] + torch.diag(spread.square() / 12)
            guess = guess + _log_density((low + high)[:, narrow] / 2, covariance)
        if not bool(narrow.all()):
            wide = ~narrow
            each = log_interval(low[:, wide] / sd[wide], high[:, wide] / sd[wide])
            each = each.nan_to_num(MIN_LOG_GUESS, 0.0, MIN_LOG_GUESS).clamp(MIN_LOG_GUESS, -1e-30)
            guess = guess - (-each).pow(POWER).sum(1).pow(1 / POWER)
        return guess.clamp_min(MIN_LOG_GUESS * max(1, int(narrow.sum())))

    def _state(self, values: Mapping[str, Tensor]) -> Tensor:
        return torch.stack([values[name].double() for name in self.names], -1)


def _at(values: Tensor, t: int) -> Tensor:
    return values[:, min(t, values.shape[1] - 1)]


def _hot(codes: Tensor, count: int) -> Tensor:
    return one_hot(codes.long(), count).movedim(-1, 1)


def _features(state: Tensor, middle: Tensor, scale: Tensor) -> Tensor:
    """1, the state, and its squares and products: (N, F)."""
    z = ((state - middle) / scale).clamp(-MAX_DEVIATIONS, MAX_DEVIATIONS)
    found = [torch.ones_like(z[:, :1]), z]
    if z.shape[1] <= MAX_PRODUCTS:
        i, j = torch.triu_indices(z.shape[1], z.shape[1])
        found.append(z[:, i] * z[:, j])
    return torch.cat(found, 1)


def _fit(state: Tensor, left: Tensor, conditions: Tensor) -> Regression | None:
    """Ridge regression of what is left (M, k) on states (M, S); None where nothing is left."""
    if not len(conditions):
        return None
    middle, scale = state.mean(0), state.std(0)
    scale = torch.where(scale > 0, scale, 1.0)
    x = _features(state, middle, scale)
    gram = x.mT @ x + RIDGE * len(x) * torch.eye(x.shape[1], dtype=x.dtype)
    weights = torch.linalg.solve(gram, x.mT @ left)
    rest = left - x @ weights
    covariance = INFLATION * (rest.mT @ rest) / len(rest)
    floor = 1e-9 * covariance.diagonal().max().clamp_min(1e-12)
    covariance = covariance + floor * torch.eye(len(covariance), dtype=x.dtype)
    return Regression(conditions, middle, scale, weights, covariance)


def _log_density(at: Tensor, covariance: Tensor) -> Tensor:
    """log N(at; 0, covariance) of points (N, k): (N,)."""
    factor = torch.linalg.cholesky(covariance)
    z = torch.linalg.solve_triangular(factor, at.mT, upper=False)
    log_det = 2 * factor.diagonal().log().sum()
    found: Tensor = z.square().sum(0) + log_det + len(covariance) * math.log(2 * math.pi)
    return -0.5 * found
