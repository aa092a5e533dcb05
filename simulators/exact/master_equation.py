"""The chemical master equation: exact probabilities, marginals and draws, under conditions.

    dp/dt = p Q,   p_k = p_{k-1} exp(Q h_k) on the time grid.

Conditions are masks on the states at grid steps, likelihoods of observations, m_k(x) = p(y_k | x_k
= x) (`conditions.Likelihood`), and monitors of whole trajectories (`monitors`), first passages in
continuous time among them; the recursions are those of `forward_backward`. With likelihoods, log P
is the log evidence, or that of conditions and observations together.

A space that does not close is cut by finite state projection (`projection`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy.optimize import linprog

from simulators import dataset, rates
from simulators.engine import Engine
from simulators.ensemble import check_samples, time_grid
from simulators.errors import InputError, Setting, SimulationError, UnreachableError
from simulators.exact.chain import MIN_POISSON_WEIGHT, NEGLECTED_WEIGHT
from simulators.exact.conditions import PATH, Conditions, Predicate
from simulators.exact.drawing import drawn
from simulators.exact.forward_backward import NothingLeftError, Recursion
from simulators.exact.monitors import Condition, Monitor, reaches
from simulators.exact.projection import project
from simulators.exact.state_space import StateSpace
from simulators.network import ReactionNetwork
from simulators.random import Word, check_seed, words
from simulators.start import Initial, Start

Where = Conditions | Mapping[Any, Predicate | Condition | Monitor] | None
Progress = Callable[[str, float], None]  # what is being done, and the share that is done

TRIAL_STATES, TRIAL_LAYERS = 20_000, 500  # before an unbounded space is taken not to close
MAX_PRECISE_WORK = 2e9  # entries of P times series terms up to which no term is left out
MAX_RELATIVE_ERROR = 1e-12  # of what is left out otherwise, as a share of P(C)
MAX_RELATIVE_TRUNCATION = 0.01  # truncation error as a share of P(C), for conditioned answers


class MasterEquation:
    """The distribution of a network's trajectories on a time grid (T,), from its first time on.

    For networks without events or time-dependent rates, with fixed parameters and a fixed or
    uniform start. `tolerance` bounds `truncation_error`, which is 0 where all reachable states are
    kept; on an unbounded network, conditions as rare as that need a smaller one. `max_seconds`
    refuses what `seconds` says takes longer; `progress` is told what is being done, and the share
    of it that is done.
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
        max_states: int = 4_000_000,
        max_seconds: float | None = None,
        progress: Progress | None = None,
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
        self._progress = progress or (lambda what, share: None)
        space = StateSpace(network, self.parameters, states)
        self.truncation_error = 0.0
        most, layers = (max_states, None) if _bounded(network) else (TRIAL_STATES, TRIAL_LAYERS)
        kept = None
        self._progress("finding the states", 0.0)
        if not space.close(min(most, max_states), layers):
            space = StateSpace(network, self.parameters, states)
            self.truncation_error, kept = project(
                space, chances, float(np.ptp(self.times)), tolerance, max_states, self._found
            )
        self._states, self._chain = space.inner(kept)
        self._start = np.zeros(len(self._chain))
        self._start[_places(self._states, states)] = chances
        counts = self._states.T.astype(np.float64)
        self._values = {**self.parameters, **dict(zip(network.species, counts, strict=True))}
        if max_seconds is not None and self.seconds() > max_seconds:
            raise SimulationError(
                f"the master equation of {network.name!r} has {len(self._states):,} states, and "
                f"a pass over the times takes {self.seconds():.0f} s, more than {max_seconds:g}",
                value=max_seconds,
                remedy=(
                    "raise ",
                    Setting("max_seconds"),
                    ", shorten the time grid (",
                    Setting("until"),
                    "), or use rejection",
                ),
            )

    @property
    def states(self) -> np.ndarray:
        """All states kept, in lexicographic order, shape (n, V) in the order of the species."""
        return self._states

    def conditions(self, where: Where) -> Conditions:
        """`where` read for this network, grid and parameters."""
        return Conditions.read(where, self.network, self.times, self.parameters)

    def seconds(self) -> float:
        """How long one pass over the times takes, about: a probability needs one without memories,
        marginals and draws at least three."""
        gaps = np.diff(self.times)
        terms = sum(self._chain.series_terms(float(gap), self._leasts()[0]) for gap in gaps)
        return terms * self._chain.seconds_per_term() if terms else 0.0

    # --- answers ----------------------------------------------------------------------------------

    def log_probability(self, where: Where) -> float:
        """log P(where); -inf if it is impossible. At most `truncation_error` below the truth."""
        try:
            return self._filtered(self.conditions(where), absorb=True)[1]
        except NothingLeftError:
            return float("-inf")

    def probability(self, where: Where) -> float:
        """P(where)."""
        return float(np.exp(self.log_probability(where)))

    def reaches(
        self, predicate: Predicate, first: float | None = None, last: float | None = None
    ) -> float:
        """P(the predicate holds at some moment of [first, last]), between grid times too.

        The window is in model time, by default that of the grid.
        """
        begin = float(self.times[0]) if first is None else first
        end = float(self.times[-1]) if last is None else last
        return self.probability({PATH: reaches(predicate, begin, end)})

    def joint(self, step: int, where: Where = None) -> np.ndarray:
        """P(x_step = x | where) for each of `states`, shape (n,)."""
        if not 0 <= step < len(self.times):
            raise InputError(
                f"step {step} is not on the grid: steps are 0..{len(self.times) - 1}", value=step
            )
        recursion, _ = self._possible(self.conditions(where))
        for at, probabilities in self._smoothed(recursion):
            if at == step:
                return probabilities
        raise AssertionError(step)

    def marginals(self, where: Where = None) -> xr.Dataset:
        """P(X(t) = value | where) for each species X: dims (time, value)."""
        conditions = self.conditions(where)
        recursion, log_probability = self._possible(conditions)
        most = int(self.states.max(initial=0))
        tables = np.zeros((len(self.network.species), len(self.times), most + 1))
        for step, probabilities in self._smoothed(recursion):
            for table, column in zip(tables, self.states.T, strict=True):
                table[step] = np.bincount(column, probabilities, most + 1)
        named = zip(self.network.species, tables, strict=True)
        time = xr.Variable("time", self.times, {"units": self.network.time_unit})
        attributes = self._attributes(conditions, log_probability, "marginals")
        return xr.Dataset(
            {name: (("time", "value"), table) for name, table in named},
            {"time": time, "value": np.arange(most + 1)},
            attributes,
        )

    def draw(self, samples: int, where: Where = None, seed: int = 0) -> xr.Dataset:
        """Exact draws of trajectories given `where`: integer variables, dims (sample, time)."""
        check_samples(samples)
        conditions = self.conditions(where)
        own = int(words(check_seed(seed), Word.MASTER_EQUATION, 0, 1)[0])
        recursion, log_probability = self._possible(conditions)
        path = drawn(recursion, self._start, own, samples)
        engine = Engine(self.network, self._origin, self.times, seed)
        data = dataset.frame(engine, self._recorded(path.T), samples, 0)
        data.attrs |= self._attributes(conditions, log_probability, "trajectories")
        return data

    # --- recursions -------------------------------------------------------------------------------

    def _filtered(self, where: Conditions, *, absorb: bool = False) -> tuple[Recursion, float]:
        """The recursion after its forward pass, and log P(where).

        A large space is solved with series that leave out terms; the bound on their error is
        checked, and where P is so small that it may matter, everything is done again without.
        """
        *others, last = self._leasts()
        for least in others:
            recursion = self._recursion(where, least)
            try:
                log_probability, error = recursion.run(absorb)
            except NothingLeftError:
                continue  # all that is left may be what was left out
            if error <= MAX_RELATIVE_ERROR:
                return recursion, log_probability
        recursion = self._recursion(where, last)
        return recursion, recursion.run(absorb)[0]

    def _recursion(self, where: Conditions, least: float) -> Recursion:
        tick = self._ticking("solving the master equation")
        return Recursion(self._chain, self._start, where, self._values, least, tick)

    def _leasts(self) -> list[float]:
        duration = float(np.ptp(self.times))
        work = self._chain.series_terms(duration, MIN_POISSON_WEIGHT) * len(self._chain.entries)
        small = work <= MAX_PRECISE_WORK
        return [MIN_POISSON_WEIGHT] if small else [NEGLECTED_WEIGHT, MIN_POISSON_WEIGHT]

    def _possible(self, where: Conditions) -> tuple[Recursion, float]:
        """`_filtered`, or an error if the conditions have probability 0 or are too rare."""
        error = self.truncation_error
        try:
            recursion, log_probability = self._filtered(where)
        except NothingLeftError as nothing:
            if not error:
                step = "" if nothing.step is None else f"step {nothing.step} "
                raise UnreachableError(
                    f"no trajectory of {self.network.name!r} meets the conditions ({where}): "
                    f"nothing is left at {step}(time {nothing.time:g})",
                    value=str(where),
                ) from None
            log_probability = -np.inf
        if where and error > MAX_RELATIVE_TRUNCATION * np.exp(log_probability):
            raise SimulationError(
                f"the conditions have probability {np.exp(log_probability):.3g}, too rare for a "
                f"truncation error of {error:.2g}",
                value=error,
                remedy=("build MasterEquation with a smaller ", Setting("tolerance")),
            )
        return recursion, log_probability

    def _smoothed(self, recursion: Recursion) -> Iterator[tuple[int, np.ndarray]]:
        """P(x_k = x | where) for each step k, (n,)."""
        forwards = (layers for _, layers, _, _ in recursion.filter())
        for layers, (s, messages) in zip(forwards, recursion.messages(), strict=True):
            step = recursion.stages[s].step
            if step is not None:
                joint = sum(layers[memory] * messages[memory] for memory in layers)
                recursion.check_reached(joint.sum())
                yield step, joint / joint.sum()

    def _ticking(self, what: str) -> Callable[[float], None]:
        return lambda share: self._progress(what, share)

    def _found(self, share: float, states: int) -> None:
        self._progress(f"finding the states: {states:,}", share)

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
