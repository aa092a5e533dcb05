"""Particles: bootstrap filters on the simulator, many at once (Gordon, Salmond & Smith 1993).

N states are simulated from one observed time to the next, weighted by what was observed there, and
resampled where few of them carry the weight:

    x_k^i ~ p(x_k | x_{k-1}^i),   w_k^i ∝ w_{k-1}^i g_k(x_k^i),   Ẑ = Π_k Σ_i w_{k-1}^i g_k(x_k^i)

with weights w that add up to 1. Ẑ estimates the evidence without bias (Del Moral 2004, ch. 7). The
network needs no transition densities: its kernels simulate it, events included. Here are G filters
of N particles side by side, each with parameters of its own; numbers follow from the seed and the
place of a particle, not from the threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from simulators.engine import Beginning, Engine
from simulators.ensemble import advance
from simulators.exact.conditions import Conditions
from simulators.random import Word, uniforms, words
from simulators.start import Initial, Start

PathFactor = Callable[[dict[str, np.ndarray]], np.ndarray]  # (n, k + 1) by name to weights (n,)
RESAMPLE_BELOW = 0.5  # of the particles: effective sample size


@dataclass
class Seeds:
    """Seeds of the stages of run `run`, one after another."""

    seed: int
    run: int
    used: int = 0

    def next(self) -> int:
        place = (self.run << 32) + self.used
        self.used += 1
        return int(words(self.seed, Word.PARTICLE_FILTER, place, 1)[0])


@dataclass(frozen=True)
class Target:
    """p(x) Π_k g_k(x_0..x_k): the process of `engine`, weighted by `conditions` on single states,
    and by `paths`, step -> factors of the trajectory up to that step."""

    engine: Engine
    initial: Initial
    parameters: Mapping[str, Any]
    conditions: Conditions
    paths: Mapping[int, Sequence[PathFactor]] = field(default_factory=dict)
    threads: int | None = None

    @property
    def stops(self) -> list[int]:
        """The steps at which something is known."""
        steps = range(len(self.engine.times))
        return [step for step in steps if self.conditions.active(step) or step in self.paths]

    def log_weights(self, step: int, cloud: Cloud) -> np.ndarray:
        """log g_step of each particle, (G N,)."""
        network, found = self.engine.network, np.zeros(cloud.groups * cloud.size)
        drawn = {name: np.repeat(values, cloud.size) for name, values in cloud.drawn.items()}
        with np.errstate(divide="ignore"):
            if self.conditions.active(step):
                states = cloud.states().T
                now = drawn | dict(zip(network.variables, states, strict=True))
                found += np.log(self.conditions.mask(step, now).astype(np.float64))
            if factors := self.paths.get(step):
                groups, places = np.divmod(np.arange(len(found)), cloud.size)
                past = cloud.paths(groups, places).transpose(1, 0, 2)
                values = drawn | dict(zip(network.variables, past, strict=True))
                for factor in factors:
                    found += np.log(np.asarray(factor(values), np.float64))
        return found


class Cloud:
    """G filters of N particles; `drawn`: parameters that vary, name -> (G,).

    `log_z` (G,): log Ẑ of each filter so far. `log_weights` (G, N): of particles, normalised.
    """

    def __init__(
        self, target: Target, groups: int, size: int, drawn: Mapping[str, np.ndarray], seed: int
    ) -> None:
        self.target, self.groups, self.size, self.drawn = target, groups, size, dict(drawn)
        engine = target.engine
        every = {name: np.repeat(values, size) for name, values in drawn.items()}
        start = Start(
            engine.network, target.initial, {**target.parameters, **every},
            samples=groups * size, seed=seed,
        )  # fmt: skip
        self._now = start.states(0, groups * size)  # before events at the first time
        self._parameters = start.parameters(0, groups * size)
        self._segments: list[np.ndarray] = []  # (G, N, V, steps)
        self._parents: list[np.ndarray] = []  # (G, N): where segments begin, in the ones before
        self._origins = np.broadcast_to(np.arange(size), (groups, size))
        self.log_z = np.zeros(groups)
        self.log_weights = np.full((groups, size), -np.log(size))

    def extend(self, stop: int, seeds: Seeds) -> None:
        """Simulate to grid step `stop`, weigh and resample."""
        self._simulate(stop, seeds.next())
        gained = self.target.log_weights(stop, self).reshape(self.groups, self.size)
        joint = self.log_weights + gained
        total = logsumexp(joint, axis=1)
        alive = np.isfinite(total)
        self.log_z = self.log_z + total
        joint[alive] -= total[alive, None]
        joint[~alive] = -np.log(self.size)  # without weight, and never chosen again
        self.log_weights = joint
        self._resample(seeds.next())

    def _simulate(self, stop: int, seed: int) -> None:
        times, begun = self.target.engine.times, self.steps
        first = max(begun - 1, 0)
        begin = Beginning(
            self._now, self._parameters, times[first : stop + 1], seed, resumed=begun > 0
        )
        out = advance(self.target.engine, begin, threads=self.target.threads)
        out = out[:, :, 1:] if begun else out
        self._segments.append(out.reshape(self.groups, self.size, *out.shape[1:]))
        self._parents.append(self._origins)
        self._origins = np.broadcast_to(np.arange(self.size), (self.groups, self.size))
        self._now = np.ascontiguousarray(out[:, :, -1])

    def _resample(self, seed: int) -> None:
        weights = np.exp(self.log_weights)
        poor = 1.0 / (weights**2).sum(1) < RESAMPLE_BELOW * self.size
        if not poor.any():
            return
        chosen = self._origins.copy()
        u = uniforms(seed, 0, 0, self.groups)
        chosen[poor] = systematic(weights[poor], self.size, u[poor])
        self._origins = chosen
        self.log_weights[poor] = -np.log(self.size)
        last = self._segments[-1][:, :, :, -1]
        now = np.take_along_axis(last, chosen[:, :, None], axis=1)
        self._now = now.reshape(self.groups * self.size, -1)

    @property
    def steps(self) -> int:
        """Grid steps simulated so far."""
        return sum(part.shape[3] for part in self._segments)

    def states(self) -> np.ndarray:
        """The states at the last step, (G N, V)."""
        return self._now

    def paths(self, groups: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Trajectories so far of some particles, (n, V, steps), by their ancestry."""
        at = self._origins[groups, places]
        parts = []
        for segment, parents in zip(reversed(self._segments), reversed(self._parents), strict=True):
            parts.append(segment[groups, at])
            at = parents[groups, at]
        return np.concatenate(parts[::-1], axis=2)

    def ancestors(self, groups: np.ndarray, places: np.ndarray) -> int:
        """The number of distinct particles at the first time that some particles descend from."""
        at = self._origins[groups, places]
        for parents in reversed(self._parents):
            at = parents[groups, at]
        return len(np.unique(groups * self.size + at))

    # --- filters with parameters of their own -----------------------------------------------------

    def chosen(self, groups: np.ndarray) -> None:
        """These filters instead, which may be repeated: indices (G,)."""
        self._take(slice(None), self, groups)

    def replace(self, which: np.ndarray, other: Cloud) -> None:
        """The filters of `other`, with as many steps, where `which` (G,) is true."""
        self._take(which, other, which)

    def _take(self, to: Any, other: Cloud, source: Any) -> None:
        for mine, theirs in (
            (self._segments, other._segments),
            (self._parents, other._parents),
        ):
            for k, part in enumerate(mine):
                part = part.copy()
                part[to] = theirs[k][source]
                mine[k] = part
        shape = (self.groups, self.size, -1)
        for name in ("_origins", "log_z", "log_weights", "_now"):
            own, new = (np.array(getattr(each, name)) for each in (self, other))
            if name == "_now":
                own, new = own.reshape(shape), new.reshape(shape)
            own[to] = new[source]
            setattr(self, name, own.reshape(-1, own.shape[-1]) if name == "_now" else own)
        for name, values in self.drawn.items():
            values = values.copy()
            values[to] = other.drawn[name][source]
            self.drawn[name] = values
            self._parameters[name] = np.repeat(values, self.size)


def systematic(weights: np.ndarray, count: int, u: np.ndarray) -> np.ndarray:
    """Indices (G, count) drawn by weights (G, N), which add up to 1, at evenly spaced places that
    begin at u (G,): each index comes up floor or ceil of its expected number of times."""
    groups, size = weights.shape
    cumulated = np.cumsum(weights, axis=1)
    cumulated /= cumulated[:, -1:]
    places = (np.arange(count) + u[:, None]) / count
    rows = np.arange(groups)[:, None]  # one search in all groups: each has an interval of its own
    found = np.searchsorted((cumulated + rows).ravel(), (places + rows).ravel(), "right")
    found = found.reshape(groups, count) - rows * size
    last_positive = size - 1 - np.argmax(weights[:, ::-1] > 0.0, axis=1)
    chosen: np.ndarray = np.clip(found, 0, last_positive[:, None])
    return chosen
