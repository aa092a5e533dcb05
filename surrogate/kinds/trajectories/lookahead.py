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
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from constraints.gaussian.chains import log_interval
from surrogate.kinds.decoder import Factor, Lookahead, Pins
from surrogate.kinds.trajectories.sites import Sites, latent

MAX_PRODUCTS = 6  # numbers of a state up to which their products are features
MAX_DEVIATIONS = 6.0  # at which standardised states are cut off
RIDGE = 1e-6  # relative to the number of draws
INFLATION = 1.5  # of variances: a guess that is too sharp kills particles
EQUATION_WIDTH = 1.0  # of an interval, in deviations of what is left, below which it is an equation
POWER = 4.0  # of the mean of inequalities, which are far from independent: about their worst one
MIN_LOG_GUESS = -300.0
LOCATIONS = 401  # at which a likelihood is evaluated to find its mean and variance
GRIDS = 3  # finer and finer
MAX_REACH = 8.0  # deviations from the mean to the ends of the next grid


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
        self.sites, self.pins = sites, pins
        numbers = [v for v in (*sites.statics, *sites.series) if v.kind != "words"]
        self.names = [v.name for v in numbers]
        self.variables = {v.name: v for v in numbers}
        steps = sites.steps
        moving = {channel for v in sites.series for channel in sites.channels[v.name]}
        # the steps at which factors and conditions end
        self._factor_end = torch.tensor([_last_step(f, moving, steps) for f in pins.factors])
        self._later = (self._rows() != 0).any(1)  # (k, T)
        self.wanted: Tensor | None = None  # the mean of each likelihood by its location, (m,)
        self.noise = torch.zeros(0, dtype=torch.float64)  # its variance, (m,)
        self.regressions: list[Regression | None] = [None] * steps
        self.observed: list[Regression | None] = [None] * steps
        ends = [*self._factor_end.tolist(), *self._later.nonzero()[:, 1].tolist()]
        self.last = max(ends, default=0) - 1
        self._learn(clean, 0)

    def relearned(self, clean: Tensor, first: int) -> TrajectoryLookahead:
        made = copy(self)
        made.regressions, made.observed = list(self.regressions), list(self.observed)
        made._learn(clean, first)
        return made

    def _rows(self) -> Tensor:
        """The conditions on what is drawn in steps, (k, C, T): statics are known from the start."""
        sites = self.sites
        rows = self.pins.rows.reshape(len(self.pins), *sites.codec.shape).clone()
        for v in sites.statics:
            rows[:, sites.channels[v.name]] = 0.0
        return rows

    def _learn(self, clean: Tensor, first: int) -> None:
        """Fit the regressions of the steps from `first` on."""
        sites, pins = self.sites, self.pins
        values = sites.values(clean)
        channels, steps = sites.codec.shape
        y = torch.zeros(len(clean), channels, steps, dtype=torch.float64)
        for v in (*sites.series, *sites.statics):
            own = values[v.name]
            spread = own[:, None] if v.kind != "words" else _hot(own, len(v.categories))
            y[:, sites.channels[v.name]] = spread.double().expand(-1, -1, steps)
        parts = torch.einsum("kct,mct->mkt", self._rows(), y)
        left = parts.sum(2, keepdim=True) - parts.cumsum(2)
        flat, none = y.flatten(1), y.new_zeros(len(y), 0)
        if self.wanted is None:
            self.wanted, self.noise = _wanted(pins.factors, flat)
        found = [factor.location(flat[:, factor.coordinates])[:, None] for factor in pins.factors]
        locations = torch.cat([none, *found], 1)
        for t in range(first, steps):
            open_rows = self._later[:, t + 1 :].any(1).nonzero()[:, 0]
            state = self._state({name: _at(values[name], t) for name in self.names})
            self.regressions[t] = _fit(state, left[:, open_rows, t], open_rows)
            to_come = (self._factor_end > t).nonzero()[:, 0]
            self.observed[t] = _fit(state, locations[:, to_come], to_come)

    def after(self, t: int, values: Mapping[str, Tensor], sums: Tensor) -> Tensor:
        guess = self._conditions_to_come(t, values, sums)
        own = self.observed[t]
        if own is None:
            return guess
        assert self.wanted is not None
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
        return torch.stack(
            [latent(self.variables[name], values[name].double()) for name in self.names], -1
        )


def _wanted(factors: Sequence[Factor], y: Tensor) -> tuple[Tensor, Tensor]:
    """Means and variances (m,) of likelihoods as functions of their locations, which have the
    values that they have at coordinates y (M, D), and some more."""
    means, variances = [y.new_zeros(0)], [y.new_zeros(0)]
    for factor in factors:
        read = y[:, factor.coordinates]
        own = factor.location(read)
        room = (own.max() - own.min()).clamp_min(1e-9)
        first, last = own.min() - room, own.max() + room
        for _ in range(GRIDS):
            grid = torch.linspace(0.0, 1.0, LOCATIONS, dtype=y.dtype) * (last - first) + first
            share = torch.softmax(factor.likelihood(read, grid).clamp_min(-1e30), 0)
            mean = (share * grid).sum()
            variance = (share * (grid - mean).square()).sum()
            variance = variance + ((last - first) / LOCATIONS).square()
            reach = MAX_REACH * variance.sqrt()
            first, last = torch.maximum(first, mean - reach), torch.minimum(last, mean + reach)
        means.append(mean[None])
        variances.append(variance[None])
    return torch.cat(means), torch.cat(variances)


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
