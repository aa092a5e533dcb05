"""The chemical master equation: exact probabilities, marginals and draws, under conditions.

    dp/dt = p Q,   p_k = p_{k-1} exp(Q h_k) on the time grid.

Given conditions with masks m_k, the forward-backward recursions (Rabiner 1989)

    π_k = α_{k-1} exp(Q h_k),   α_k ∝ m_k π_k,   β_{k-1} ∝ exp(Q h_k) (m_k β_k),
    P(x_k = x | C) ∝ π_k m_k β_k,

are scaled at each step, so that log P(C) is a sum of logarithms. Masks may be likelihoods of
observations, m_k(x) = p(y_k | x_k = x) (`conditions.Likelihood`); log P is then the log evidence,
or that of conditions and observations together. Conditioned trajectories are drawn forwards
against the backward messages, jump by jump within a step (Hobolth & Stone 2009): no matrix of
transition probabilities is ever formed.

A space that does not close is cut by finite state projection (Munsky & Khammash 2006): what leaves
the states kept is lost, and the probability lost by the last time bounds the total variation error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import linprog

from simulators import dataset, rates
from simulators.engine import Engine
from simulators.ensemble import check_samples, time_grid
from simulators.errors import InputError, Setting, SimulationError, UnreachableError
from simulators.exact.conditions import Conditions, Predicate
from simulators.exact.state_space import MAX_MEAN_JUMPS, StateSpace, compiled, poisson, project
from simulators.kernels.codegen.streams import next_bits, seed_stream, unit
from simulators.network import ReactionNetwork
from simulators.random import Word, check_seed, words
from simulators.start import Initial, Start

Where = Conditions | Mapping[Any, Predicate] | None

TRIAL_STATES, TRIAL_LAYERS = 20_000, 500  # before an unbounded space is taken not to close
DRAWS_PER_BLOCK = 100_000  # trajectories drawn together
MAX_TERMS = 2e7  # numbers held at a time when drawing, roughly
MAX_RELATIVE_TRUNCATION = 0.01  # truncation error as a share of P(C), for conditioned answers


class MasterEquation:
    """The distribution of a network's trajectories on a time grid (T,), from its first time on.

    For networks without events or time-dependent rates, with fixed parameters and a fixed or
    uniform start. `tolerance` bounds `truncation_error`, which is 0 where all reachable states are
    kept; on an unbounded network, conditions as rare as that need a smaller one.
    """

    def __init__(
        self,
        network: ReactionNetwork,
        initial: Initial = None,
        parameters: Mapping[str, Any] | None = None,
        times: Sequence[float] | np.ndarray | None = None,
        *,
        points: int | None = None,
        until: float | None = None,
        tolerance: float = 1e-9,
        max_states: int = 1_000_000,
    ) -> None:
        _check_autonomous(network)
        if not 0.0 < tolerance < 1.0:
            raise InputError(
                f"tolerance must be between 0 and 1, not {tolerance!r}", value=tolerance
            )
        self.network = network
        self.times = time_grid(network, times, points, until)
        self._origin = Start(network, initial, parameters)
        states, chances = self._origin.support()
        self.parameters: dict[str, float] = self._origin.parameters(0, 1)
        space = StateSpace(network, self.parameters, states)
        self.truncation_error = 0.0
        most, layers = (max_states, None) if _bounded(network) else (TRIAL_STATES, TRIAL_LAYERS)
        if not space.close(min(most, max_states), layers):
            space = StateSpace(network, self.parameters, states)
            self.truncation_error = project(
                space, chances, float(np.ptp(self.times)), tolerance, max_states
            )
        self._chain = space.inner_chain()
        self._start = np.zeros(len(self._chain))
        self._start[_places(self._chain.states, states)] = chances
        self._gaps = np.diff(self.times, prepend=self.times[0])
        counts = self._chain.states.T.astype(np.float64)
        self._values = {**self.parameters, **dict(zip(network.species, counts, strict=True))}

    @property
    def states(self) -> np.ndarray:
        """All states kept, in lexicographic order, shape (n, V) in the order of the species."""
        return self._chain.states

    def conditions(self, where: Where) -> Conditions:
        """`where` read for this network, grid and parameters."""
        return Conditions.read(where, self.network, self.times, self.parameters)

    # --- answers ----------------------------------------------------------------------------------

    def log_probability(self, where: Where) -> float:
        """log P(where); -inf if it is impossible. At most `truncation_error` below the truth."""
        try:
            conditions = self.conditions(where)
            return self._filter(conditions, conditions.last + 1)[1]
        except _NothingLeft:
            return float("-inf")

    def probability(self, where: Where) -> float:
        """P(where)."""
        return float(np.exp(self.log_probability(where)))

    def joint(self, step: int, where: Where = None) -> np.ndarray:
        """P(x_step = x | where) for each of `states`, shape (n,)."""
        if not 0 <= step < len(self.times):
            raise InputError(
                f"step {step} is not on the grid: steps are 0..{len(self.times) - 1}", value=step
            )
        probabilities: np.ndarray = self._smooth(self.conditions(where))[0][step]
        return probabilities

    def marginals(self, where: Where = None) -> xr.Dataset:
        """P(X(t) = value | where) for each species X: dims (time, value)."""
        conditions = self.conditions(where)
        joint, log_probability = self._smooth(conditions)
        most = int(self.states.max(initial=0))
        tables = {
            name: (("time", "value"), [np.bincount(column, p, most + 1) for p in joint])
            for name, column in zip(self.network.species, self.states.T, strict=True)
        }
        time = xr.Variable("time", self.times, {"units": self.network.time_unit})
        attributes = self._attributes(conditions, log_probability, "marginals")
        return xr.Dataset(tables, {"time": time, "value": np.arange(most + 1)}, attributes)

    def draw(self, samples: int, where: Where = None, seed: int = 0) -> xr.Dataset:
        """Exact draws of trajectories given `where`: integer variables, dims (sample, time)."""
        check_samples(samples)
        conditions = self.conditions(where)
        own = int(words(check_seed(seed), Word.MASTER_EQUATION, 0, 1)[0])
        log_probability = self._possible(conditions, conditions.last + 1)[1]
        ahead = self._messages(conditions)
        blocks = [
            self._draw(ahead, own, first, min(DRAWS_PER_BLOCK, samples - first))
            for first in range(0, samples, DRAWS_PER_BLOCK)
        ]
        engine = Engine(self.network, self._origin, self.times, seed)
        data = dataset.frame(engine, self._recorded(np.concatenate(blocks)), samples, 0)
        data.attrs |= self._attributes(conditions, log_probability, "trajectories")
        return data

    # --- recursions -------------------------------------------------------------------------------

    def _mask(self, where: Conditions, step: int) -> np.ndarray:
        return where.mask(step, self._values)

    def _filter(self, where: Conditions, steps: int) -> tuple[np.ndarray, float]:
        """π (steps, n), what conditions before a step predict for it, and log P(where)."""
        predicted = np.empty((steps, len(self._chain)))
        now, log_probability = self._start, 0.0
        for step in range(steps):
            now = self._chain.forward(now, self._gaps[step]) if step else now
            predicted[step] = now
            if where.active(step):
                now = now * self._mask(where, step)
            left = now.sum()
            if left == 0.0:
                raise _NothingLeft(step)
            if step <= where.last:  # what the projection loses by then counts as not meeting them
                log_probability += float(np.log(left))
            now = now / left
        return predicted, log_probability

    def _messages(self, where: Conditions) -> list[np.ndarray | None]:
        """m_k β_k for each step, (n,) with maximum 1; None after the last condition."""
        ahead: list[np.ndarray | None] = [None] * len(self.times)
        now = np.ones(len(self._chain))
        for step in range(where.last, -1, -1):
            if where.active(step):
                now = now * self._mask(where, step)
            now = now / now.max()
            ahead[step] = now
            now = self._chain.backward(now, self._gaps[step])
        if ahead[0] is not None and not (self._start * ahead[0]).any():
            raise SimulationError(
                f"too rare for double precision between two steps: {where}",
                value=str(where),
                remedy="use a finer time grid, or relax the conditions",
            )
        return ahead

    def _smooth(self, where: Conditions) -> tuple[np.ndarray, float]:
        """P(x_k = x | where), shape (T, n), and log P(where)."""
        joint, log_probability = self._possible(where, len(self.times))
        for probabilities, message in zip(joint, self._messages(where), strict=True):
            if message is not None:
                probabilities *= message
            probabilities /= probabilities.sum()
        return joint, log_probability

    def _possible(self, where: Conditions, steps: int) -> tuple[np.ndarray, float]:
        """`_filter`, or an error if the conditions have probability 0 or are too rare."""
        error = self.truncation_error
        try:
            predicted, log_probability = self._filter(where, steps)
        except _NothingLeft as nothing:
            if not error:
                raise UnreachableError(
                    f"no trajectory of {self.network.name!r} meets the conditions ({where}): "
                    f"nothing is left at step {nothing.step} (time {self.times[nothing.step]:g})",
                    value=str(where),
                ) from None
            predicted, log_probability = np.empty(0), -np.inf
        if where and error > MAX_RELATIVE_TRUNCATION * np.exp(log_probability):
            raise SimulationError(
                f"the conditions have probability {np.exp(log_probability):.3g}, too rare for a "
                f"truncation error of {error:.2g}",
                value=error,
                remedy=("build MasterEquation with a smaller ", Setting("tolerance")),
            )
        return predicted, log_probability

    # --- drawing ----------------------------------------------------------------------------------

    def _draw(
        self, ahead: list[np.ndarray | None], seed: int, first: int, count: int
    ) -> np.ndarray:
        """Indices into `states` of trajectories first, first + 1, ...: shape (count, T)."""
        chain = self._chain
        path = np.empty((len(self.times), count), dtype=np.int64)
        streams = np.empty((4, count), dtype=np.uint64)
        weights = self._start if ahead[0] is None else self._start * ahead[0]
        compiled(_begin)(np.uint64(seed), first, np.cumsum(weights), streams, path[0])
        for step in range(1, len(self.times)):
            given = ahead[step]
            message = np.ones(len(chain)) if given is None else given
            parts, mean = chain.parts(
                self._gaps[step], min(MAX_MEAN_JUMPS, max(5.0, MAX_TERMS / len(chain)))
            )
            ends = [message]
            for _ in range(parts - 1):
                ends.append(chain.backward(ends[-1], self._gaps[step] / parts))
            path[step] = path[step - 1]
            for end in reversed(ends):
                terms, total = chain.powers(end, mean)
                compiled(_walk)(
                    poisson(mean), terms, total, chain.stays, chain.moves, chain.targets,
                    streams, path[step],
                )  # fmt: skip
        return path.T

    def _recorded(self, path: np.ndarray) -> dict[str, np.ndarray]:
        """Species and rules (sample, time) along paths of state indices."""
        counts = self.states[path]
        species = {name: counts[:, :, v] for v, name in enumerate(self.network.species)}
        known = {**self.parameters, **species, "time": self.times}
        rules = {
            name: np.broadcast_to(rates.evaluate(rule, known), path.shape).astype(np.float64)
            for name, rule in self.network.inlined_rules.items()
        }
        types = {name: dataset.smallest_type(float(x.max())) for name, x in species.items()}
        return {**{name: x.astype(types[name]) for name, x in species.items()}, **rules}

    def _attributes(self, where: Conditions, log_probability: float, what: str) -> dict[str, Any]:
        return {
            "title": f"{self.network.title or self.network.name}: exact {what}",
            "source": "chemical master equation",
            "where": str(where),
            "log_probability": log_probability,
            "truncation_error": self.truncation_error,
            "states": len(self._chain),
        }


class _NothingLeft(Exception):
    def __init__(self, step: int) -> None:
        self.step = step


# --- kernels --------------------------------------------------------------------------------------


def _begin(seed: Any, first: Any, cumulated: Any, streams: Any, now: Any) -> None:
    """Seed one stream per trajectory and draw its first state."""
    for i in range(now.size):
        seed_stream(seed, first + i, streams, i)
        u = unit(next_bits(streams, i)) * cumulated[-1]
        now[i] = min(np.searchsorted(cumulated, u, "right"), cumulated.size - 1)


def _walk(
    weights: Any,
    terms: Any,
    total: Any,
    stays: Any,
    moves: Any,
    targets: Any,
    streams: Any,
    now: Any,
) -> None:
    """Move through a stretch of time, given P^k f (K, n + 1) from its end; `now` (count,) in place.

    From x the number of jumps is k with weight Poisson(k) (P^k f)(x); with r jumps to go the next
    state is y with weight P(x, y) (P^{r-1} f)(y), which add up to (P^r f)(x).
    """
    for i in range(now.size):
        here = now[i]
        u = unit(next_bits(streams, i)) * total[here]
        left = -1
        while left < len(terms) - 1 and u >= 0.0:
            left += 1
            u -= weights[left] * terms[left, here]
        while left > 0:
            left -= 1
            u = unit(next_bits(streams, i)) * terms[left + 1, here]
            u -= stays[here] * terms[left, here]
            chosen, reaction = here, 0
            while u >= 0.0 and reaction < moves.shape[1]:
                target = targets[here, reaction]
                weight = moves[here, reaction] * terms[left, target]
                if weight > 0.0:  # rounding may leave a little of u: never take the impossible
                    chosen = target
                u -= weight
                reaction += 1
            here = chosen
        now[i] = here


# --- checks ---------------------------------------------------------------------------------------


def _check_autonomous(network: ReactionNetwork) -> None:
    if network.events:
        raise InputError(
            f"{network.name!r} has the event {network.events[0].name!r}, which the master equation "
            "cannot follow",
            value=network.events[0].name,
            remedy="use rejection",
        )
    for reaction, law in zip(network.reactions, network.propensities, strict=True):
        if "time" in rates.names(law):
            raise InputError(
                f"the rate of reaction {reaction.name!r} depends on time ({law}), which the master "
                "equation cannot follow",
                value=str(law),
                remedy="use rejection",
            )


def _bounded(network: ReactionNetwork) -> bool:
    """Some sum of the species, all with positive weights, grows in no reaction."""
    names = list(network.species)
    changes = [[reaction.change.get(name, 0) for name in names] for reaction in network.reactions]
    if not changes:
        return True
    weights = linprog(np.ones(len(names)), changes, np.zeros(len(changes)), bounds=(1, None))
    return bool(weights.success)


def _places(states: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Index of each row of `wanted` among the rows of `states`."""
    _, label = np.unique(np.concatenate([states, wanted]), axis=0, return_inverse=True)
    place = np.empty(len(label), dtype=np.int64)
    place[label[: len(states)]] = np.arange(len(states))
    found: np.ndarray = place[label[len(states) :]]
    return found
