"""Weighted ensembles: splitting with a fixed effort in every bin of a level (Huber & Kim 1996).

An ensemble of N trajectories with weights w_i stands for the law of the process up to now:

    E Σ_i w_i f(x^i) = E f(x)     for every f of the trajectory so far.

It is simulated from one time to the next, and then resampled within bins of the level: the M copies
that a bin gets are drawn in proportion to the weights of its members, and share the bin's weight
equally. That keeps the expectation whatever the bins, as long as they depend on the past only
(Zhang, Jasnow & Zuckerman 2010), so the bins here follow the ensemble: they are cut where the level
rises or where the weight beyond it falls (`bins_of`), and rare trajectories, which have little
weight, get as many copies as typical ones. Chemical networks: Donovan, Sedgewick, Faeder and
Zuckerman (2013). Trajectories that cannot meet the rule any more are dropped; the weight of those
that meet it at the end estimates its probability without bias.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from simulators import dataset, rates
from simulators.engine import Beginning, Engine
from simulators.ensemble import advance
from simulators.random import Word, uniforms, words
from simulators.start import Initial, Start

Values = Mapping[str, np.ndarray]


class Rule(Protocol):
    """What trajectories shall meet. `names`: the variables, rules, parameters that vary and latched
    variables that it reads. `latches`: expressions of which it reads the greatest value between
    grid times. `remembers`: how many flags stand for the past; None if all of it is needed."""

    @property
    def names(self) -> frozenset[str]: ...
    @property
    def latches(self) -> Sequence[str]: ...
    @property
    def remembers(self) -> int | None: ...

    def remember(self, flags: np.ndarray, values: Values, step: int) -> np.ndarray:
        """The flags (n, m) after the states (n,) of a step; all are false before the first."""
        ...

    def level(self, values: Values, known: int, least: Values, flags: np.ndarray) -> np.ndarray:
        """How close each trajectory is, (n,): ∞ if it meets the rule anyway, -∞ if it cannot.

        values: series (n, T), parameters (n,). Steps up to `known` have happened, later ones are a
        forecast. least: lower bounds (n,) of latched variables at the next step. Where flags stand
        for the past, that part of a series is not read, and the present state (n,) may be given in
        place of a series that stays as it is.
        """
        ...

    def verdict(self, values: Values) -> np.ndarray:
        """Whether each whole trajectory meets the rule, (n,) of bool."""
        ...


@dataclass(frozen=True)
class Plan:
    """How an ensemble is run: `bins` of `copies` trajectories, resampled `parts` times between two
    grid times. `drift`: the engine of the mean field, if it forecasts; else the present state does.
    """

    engine: Engine
    initial: Initial
    parameters: Mapping[str, Any]
    rule: Rule
    seed: int
    bins: int
    copies: int
    parts: int
    drift: Engine | None = None

    @property
    def starts(self) -> int:
        """Trajectories to begin with: many where their starts differ."""
        return 4 * self.bins * self.copies if self.varied else self.copies

    @property
    def varied(self) -> bool:
        start = self.engine.start
        several = start.states(0, 16)
        return bool(start.varying) or bool((several != several[0]).any())


@dataclass
class Outcome:
    """What an ensemble ended with: the weight that meets the rule, and trajectories that carry it.

    weights (n,), out (n, V + L, T), parameters (n,) each, ancestors (n,): where they began.
    simulated: stretches between resampling times. climbed: whether levels ever differed.
    """

    probability: float
    weights: np.ndarray
    out: np.ndarray
    parameters: dict[str, np.ndarray]
    ancestors: np.ndarray
    simulated: int
    climbed: bool


@dataclass
class _Ensemble:
    """N trajectories: states (N, V), weights (N,), tops (N, L), the greatest latches since the last
    grid time, and what the rule knows: flags (N, m), or else past (K, N, T), what it reads."""

    states: np.ndarray
    weights: np.ndarray
    tops: np.ndarray
    past: np.ndarray
    flags: np.ndarray
    parameters: dict[str, Any]
    origins: np.ndarray  # (N,), in the states of the last grid time
    step: int = 0
    history: list[np.ndarray] = field(default_factory=list)  # (n, V + L) at each grid time
    parents: list[np.ndarray] = field(default_factory=list)

    def take(self, chosen: np.ndarray, weights: np.ndarray) -> None:
        """Go on with these trajectories."""
        self.states, self.tops = self.states[chosen], self.tops[chosen]
        past = np.empty((len(self.past), len(chosen), self.past.shape[2]))
        if past.size:
            past[:, :, : self.step + 1] = self.past[:, chosen, : self.step + 1]
        self.past, self.flags = past, self.flags[chosen]
        self.weights, self.origins = weights, self.origins[chosen]
        self.parameters = {k: v[chosen] if np.ndim(v) else v for k, v in self.parameters.items()}


class WeightedEnsemble:
    """Run number `number` of a plan: its numbers follow from the seed and the number."""

    def __init__(self, plan: Plan, number: int) -> None:
        self.plan, self._number, self._stage = plan, number, 0
        self.engine, self.network = plan.engine, plan.engine.network
        rules = self.network.inlined_rules
        read = set(plan.rule.names)
        read |= {name for rule in read & rules.keys() for name in rates.names(rules[rule])}
        latched = [dataset.latched(text) for text in self.engine.latches]
        rows = [*self.network.variables, *latched]
        self._rows = [row for row, name in enumerate(rows) if name in read]
        self._names = [rows[row] for row in self._rows]
        self._rules = {name: rule for name, rule in rules.items() if name in plan.rule.names}
        self._latches = self.engine.latch_expressions
        self._flagged = plan.rule.remembers is not None

    def run(self) -> Outcome:
        """Simulate to the end of the grid."""
        times, parts = self.engine.times, self.plan.parts
        ensemble, simulated, climbed = self._begin(), 0, False
        for step in range(len(times) - 1):
            stops = np.linspace(times[step], times[step + 1], parts + 1)
            for begin, end in pairwise(stops):
                climbed |= self._select(ensemble, begin)
                if self.engine.stop[0] or not len(ensemble.weights):
                    return self._none(simulated, climbed)
                self._advance(ensemble, begin, end)
                simulated += len(ensemble.weights)
            self._record(ensemble)
        return self._end(ensemble, simulated, climbed)

    # --- simulating -------------------------------------------------------------------------------

    def _next_seed(self) -> int:
        place = (self._number << 32) + self._stage
        self._stage += 1
        return int(words(self.plan.seed, Word.SPLITTING, place, 1)[0])

    def _begin(self) -> _Ensemble:
        plan, count = self.plan, self.plan.starts
        start = Start(
            self.network, plan.initial, plan.parameters, samples=count, seed=self._next_seed()
        )
        states, parameters = start.states(0, count), start.parameters(0, count)
        engine = self.engine
        first = Beginning(states, parameters, engine.times[:1], self._next_seed())
        out = advance(engine, first, threads=1)[:, :, 0]  # events may fire at once
        ensemble = _Ensemble(
            out[:, : states.shape[1]],
            np.full(count, 1.0 / count),
            self._latched(out[:, : states.shape[1]], parameters),
            np.empty((len(self._rows), count, 0 if self._flagged else engine.times.size)),
            np.zeros((count, plan.rule.remembers or 0), np.bool_),
            parameters,
            np.arange(count),
            step=-1,
        )
        self._record(ensemble)
        return ensemble

    def _advance(self, ensemble: _Ensemble, begin: float, end: float) -> None:
        states = np.ascontiguousarray(ensemble.states)
        times, seed = np.array([begin, end]), self._next_seed()
        start = Beginning(states, ensemble.parameters, times, seed, resumed=True)
        out = advance(self.engine, start, threads=1)[:, :, -1]
        size = states.shape[1]
        ensemble.states = out[:, :size]
        ensemble.tops = np.maximum(ensemble.tops, out[:, size:])

    def _record(self, ensemble: _Ensemble) -> None:
        """Keep what was reached at a grid time."""
        ensemble.step += 1
        row = np.concatenate([ensemble.states, ensemble.tops], axis=1)
        ensemble.history.append(row)
        ensemble.parents.append(ensemble.origins)
        ensemble.origins = np.arange(len(row))
        if self._flagged:
            now = self.engine.times[ensemble.step]
            values = self._values(row.T[self._rows], ensemble.parameters, now)
            ensemble.flags = self.plan.rule.remember(ensemble.flags, values, ensemble.step)
        else:
            ensemble.past[:, :, ensemble.step] = row.T[self._rows]
        ensemble.tops = self._latched(ensemble.states, ensemble.parameters)

    def _latched(self, states: np.ndarray, parameters: Mapping[str, Any]) -> np.ndarray:
        """The latches in states (..., V): (..., L)."""
        found = np.empty((*states.shape[:-1], len(self._latches)))
        axes = (slice(None), *(None,) * (states.ndim - 2))
        known = {k: v[axes] if np.ndim(v) else v for k, v in parameters.items()}
        known |= dict(zip(self.network.variables, np.moveaxis(states, -1, 0), strict=True))
        for column, latch in enumerate(self._latches):
            found[..., column] = rates.evaluate(latch, known)
        return found

    # --- selecting --------------------------------------------------------------------------------

    def _select(self, ensemble: _Ensemble, now: float) -> bool:
        """Drop what is lost, and resample the rest within bins; whether its levels differ."""
        level = self._level(ensemble, now)
        met, open_ = np.flatnonzero(level == np.inf), np.flatnonzero(np.isfinite(level))
        plan, weights = self.plan, ensemble.weights
        chosen, given = [met], [weights[met]]
        u = uniforms(self._next_seed(), 0, 0, plan.bins + 1)
        if len(met) > 4 * plan.copies:
            some, each = systematic(weights[met], 2 * plan.copies, u[-1])
            chosen, given = [met[some]], [np.full(len(some), each)]
        if len(open_):
            bins = bins_of(level[open_], weights[open_], plan.bins)
            order = np.lexsort((level[open_], bins))
            some, shares = within_bins(bins[order], weights[open_[order]], plan.copies, u)
            chosen.append(open_[order][some])
            given.append(shares)
        differ = len(open_) > 1 and bool((level[open_] != level[open_[0]]).any())
        ensemble.take(np.concatenate(chosen), np.concatenate(given))
        return differ

    def _level(self, ensemble: _Ensemble, now: float) -> np.ndarray:
        size = len(self.network.variables)
        least = {
            name: ensemble.tops[:, row - size]
            for name, row in zip(self._names, self._rows, strict=True)
            if row >= size
        }
        if self._flagged and self.plan.drift is None and not self._rules:
            tops = self._latched(ensemble.states, ensemble.parameters)
            row = np.concatenate([ensemble.states, tops], axis=1)
            values = self._values(row.T[self._rows], ensemble.parameters, now)
        else:
            series = self._forecast(ensemble, now)
            for place, bound in zip((n for n, r in enumerate(self._rows) if r >= size),
                                    least.values(), strict=True):  # fmt: skip
                soon = series[place, :, ensemble.step + 1]
                np.maximum(soon, bound, out=soon)
            values = self._values(series, ensemble.parameters, self.engine.times)
        return self.plan.rule.level(values, ensemble.step, least, ensemble.flags)

    def _forecast(self, ensemble: _Ensemble, now: float) -> np.ndarray:
        """The past, where it is kept, and the steps to come: (K, N, T)."""
        step, drift, steps = ensemble.step, self.plan.drift, self.engine.times.size
        series = ensemble.past
        if self._flagged:
            series = np.zeros((len(self._rows), len(ensemble.states), steps))
        if drift is None:
            tops = self._latched(ensemble.states, ensemble.parameters)
            row = np.concatenate([ensemble.states, tops], axis=1)
            series[:, :, step + 1 :] = row.T[self._rows][:, :, None]
            return series
        states = ensemble.states
        back = np.arange(len(states))
        if not any(np.ndim(value) for value in ensemble.parameters.values()):
            states, back = np.unique(states, axis=0, return_inverse=True)
        times = np.concatenate([[now], self.engine.times[step + 1 :]])
        begin = Beginning(np.ascontiguousarray(states), ensemble.parameters, times, 0, resumed=True)
        path = advance(drift, begin, threads=1)[back].transpose(0, 2, 1)
        tops = self._latched(path, ensemble.parameters)
        rows = np.concatenate([path, np.maximum(tops, np.roll(tops, 1, axis=1))], axis=2)
        series[:, :, step + 1 :] = rows[:, 1:].transpose(2, 0, 1)[self._rows]
        return series

    def _values(
        self, series: np.ndarray, parameters: Mapping[str, Any], times: Any
    ) -> dict[str, np.ndarray]:
        """What the rule reads: the series (K, n, T) or states (K, n), rules and parameters."""
        varying = {k: v for k, v in parameters.items() if np.ndim(v)}
        values = dict(zip(self._names, series, strict=True))
        if self._rules:
            wide = series.ndim == 3
            known = {k: v[:, None] if wide and np.ndim(v) else v for k, v in parameters.items()}
            known |= {**values, "time": times}
            for name, rule in self._rules.items():
                values[name] = np.broadcast_to(rates.evaluate(rule, known), series.shape[1:])
        return {**varying, **values}

    # --- ending -----------------------------------------------------------------------------------

    def _end(self, ensemble: _Ensemble, simulated: int, climbed: bool) -> Outcome:
        met = np.flatnonzero(self._verdict(ensemble))
        weights, at = ensemble.weights[met], met
        out = np.empty((len(met), ensemble.history[0].shape[1], len(ensemble.history)))
        for step in range(len(ensemble.history) - 1, -1, -1):
            out[:, :, step] = ensemble.history[step][at]
            at = ensemble.parents[step][at]
        parameters = {k: v[met] for k, v in ensemble.parameters.items() if np.ndim(v)}
        chance = float(weights.sum())
        return Outcome(chance, weights, out, parameters, at, simulated, climbed)

    def _verdict(self, ensemble: _Ensemble) -> np.ndarray:
        rule, times = self.plan.rule, self.engine.times
        if not self._flagged:
            return rule.verdict(self._values(ensemble.past, ensemble.parameters, times))
        now = ensemble.history[-1].T[self._rows]
        values = self._values(now, ensemble.parameters, times[-1])
        return rule.level(values, len(times) - 1, {}, ensemble.flags) > 0

    def _none(self, simulated: int, climbed: bool) -> Outcome:
        shape = (0, self.engine.rows, self.engine.times.size)
        nothing = np.empty(0)
        return Outcome(0.0, nothing, np.empty(shape), {}, nothing, simulated, climbed)


def bins_of(level: np.ndarray, weights: np.ndarray, count: int) -> np.ndarray:
    """The bin of each trajectory, (n,) in 0..count-1, by its finite level.

    With S the share of the weight at this level or above, bins are even steps of

        ½ (level - median) / (greatest - median) + ½ log 2S / log 2S_min,

    so that they are cut where the level rises and where the weight falls, whatever its scale.
    """
    if not len(level):
        return np.empty(0, np.int64)
    order = np.argsort(level, kind="stable")
    ordered = level[order]
    beyond = np.cumsum(weights[order][::-1])[::-1]
    share = (beyond / beyond[0])[np.searchsorted(ordered, ordered, "left")]
    median = ordered[np.flatnonzero(share >= 0.5)[-1]]
    along = np.zeros(len(level))
    if ordered[-1] > median:
        along += 0.5 * np.clip((ordered - median) / (ordered[-1] - median), 0.0, 1.0)
    if share[-1] < 0.5:
        along += 0.5 * np.clip(np.log(2.0 * share) / np.log(2.0 * share[-1]), 0.0, 1.0)
    bins = np.empty(len(level), np.int64)
    bins[order] = np.minimum((along * count).astype(np.int64), count - 1)
    return bins


def within_bins(
    bins: np.ndarray, weights: np.ndarray, copies: int, u: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """`copies` indices for each bin, and their weights: systematic in each, from u (bins,) on.

    bins (n,) in order. Weights of a bin add up to 1 before they are cumulated: those of bins far
    apart differ by more than the precision of numbers.
    """
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    total = np.add.reduceat(weights, first)
    size = np.diff(first, append=len(bins))
    number = np.repeat(np.arange(len(first)), size)
    cumulated = np.cumsum(weights / total[number])
    rows = np.arange(len(first))[:, None]
    places = rows + (np.arange(copies) + u[: len(first), None]) / copies
    found = np.searchsorted(cumulated, places, "right")
    chosen = np.clip(found, first[:, None], (first + size - 1)[:, None])
    return chosen.ravel(), np.repeat(total / copies, copies)


def systematic(weights: np.ndarray, count: int, u: float) -> tuple[np.ndarray, float]:
    """Indices (count,) in proportion to the weights, at even places from u on, and what each
    weighs."""
    cumulated = np.cumsum(weights)
    total = cumulated[-1]
    places = (np.arange(count) + u) * (total / count)
    chosen = np.minimum(np.searchsorted(cumulated, places, "right"), len(weights) - 1)
    return chosen, float(total / count)
