"""Look-ahead: a guess of the probability of conditions to come, given the values drawn so far.

Plain draws of the decoder tell how what is left of a condition at step t depends on the state y(t):
a regression on y(t), its squares and products, with residuals of covariance V. At a state the
conditions to come then have about the probability

    ĝ_t(y) = N(b - m(y); V)  of equations, jointly,  and  Φ differences  of inequalities.

An observation is foreseen through its location θ, such as the mean of a Poisson distribution: the
likelihood as a function of θ has a mean θ* and a variance s², and θ is regressed on the state like
what is left of a condition, so that the observations to come have about N(θ* - m(y); V + s²).

In a particle filter whose weights contain ĝ_t, particles that are on their way to the scenario
survive (the auxiliary particle filter of Pitt and Shephard 1999, with twisting functions by
regression as in Guarniero, Johansen and Lee 2017). Any ĝ gives the same product of weights, so that
a poor guess costs particles and no bias.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from constraints.gaussian.chains import log_interval
from surrogate.kinds.decoder import Factor, Lookahead, Pins
from surrogate.kinds.trajectories.sites import Sites

MAX_PRODUCTS = 6  # numbers of a state up to which their products are features
MAX_DEVIATIONS = 6.0  # at which standardised states are cut off
RIDGE = 1e-6  # relative to the number of draws
INFLATION = 1.5  # of variances: a guess that is too sharp kills particles
EQUATION_WIDTH = 1.0  # of an interval, in deviations of what is left, below which it is an equation
POWER = 4.0  # of the mean of inequalities, which are far from independent: about their worst one
MIN_LOG_GUESS = -300.0
LOCATIONS = 801  # at which a likelihood is evaluated to find its mean and variance


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
    """Fitted to plain draws, encoded (M, C, T), for the conditions and factors `pins`."""

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
        for v in sites.statics:
            own = values[v.name]
            spread = own[:, None] if v.kind != "words" else _hot(own, len(v.categories))
            y[:, sites.channels[v.name]] = spread.double().expand(-1, -1, steps)
        moving = {channel for v in sites.series for channel in sites.channels[v.name]}
        found = _locations(pins.factors, y.flatten(1))
        self.wanted, self.noise = found.wanted, found.noise
        last = torch.tensor([_last_step(factor, moving, steps) for factor in pins.factors])
        self.regressions: list[Regression | None] = []
        self.observed: list[Regression | None] = []
        for t in range(steps):
            open_rows = later[:, t + 1 :].any(1).nonzero()[:, 0]
            state = self._state({name: _at(values[name], t) for name in self.names})
            self.regressions.append(_fit(state, left[:, open_rows, t], open_rows))
            to_come = (last > t).nonzero()[:, 0]
            self.observed.append(_fit(state, found.locations[:, to_come], to_come))

    def after(self, t: int, values: Mapping[str, Tensor], sums: Tensor) -> Tensor:
        guess = self._conditions_to_come(t, values, sums)
        own = self.observed[t]
        if own is None:
            return guess
        at = self.wanted[own.conditions] - own.mean(self._state(values))
        covariance = own.covariance + torch.diag(self.noise[own.conditions])
        return guess + _log_density(at, covariance).clamp_min(MIN_LOG_GUESS * len(covariance))

    def _conditions_to_come(self, t: int, values: Mapping[str, Tensor], sums: Tensor) -> Tensor:
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


class _Locations(NamedTuple):
    """Of m factors on M draws."""

    locations: Tensor  # (M, m)
    wanted: Tensor  # the mean of each likelihood as a function of its location, (m,)
    noise: Tensor  # its variance, (m,)


def _locations(factors: Sequence[Factor], y: Tensor) -> _Locations:
    """Locations of factors at coordinates y (M, D), and where their likelihoods want them."""
    found = [y.new_zeros(len(y), 0)]
    wanted, noise = list[Tensor](), list[Tensor]()
    for factor in factors:
        read = y[:, factor.coordinates]
        own = factor.location(read)
        low, high = own.min(), own.max()
        room = (high - low).clamp_min(1e-9)
        grid = torch.linspace(0.0, 1.0, LOCATIONS, dtype=y.dtype) * 3 * room + low - room
        share = torch.softmax(factor.likelihood(read, grid).clamp_min(-1e30), 0)
        mean = (share * grid).sum()
        wanted.append(mean)
        noise.append((share * (grid - mean).square()).sum() + (3 * room / LOCATIONS) ** 2)
        found.append(own[:, None])
    none = y.new_zeros(0)
    return _Locations(
        torch.cat(found, 1),
        torch.stack(wanted) if wanted else none,
        torch.stack(noise) if noise else none,
    )


def _last_step(factor: Factor, moving: set[int], steps: int) -> int:
    """The last step at which a factor reads a series; -1 if it reads none."""
    return max((c % steps for c in factor.coordinates if c // steps in moving), default=-1)


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
