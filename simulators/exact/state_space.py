"""The states a network can reach, and the Markov chain over them.

States are found breadth first, a whole layer at a time. A state is *open* while its own reactions
have not been followed: a space without open states is closed, and the chain over it is the process.

The chain is uniformised (Jensen 1953): with q at least every exit rate, P = 1 + Q/q is a stochastic
matrix and

    exp(Q h) = Σ_k Poisson(k; q h) P^k.

Every term is non-negative, so that nothing cancels: a probability of 1e-200 is as precise, relative
to itself, as one of 0.5. A general matrix exponential has errors of 1e-16 of the largest entry.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import gammaln, pdtrc

from simulators import rates
from simulators.errors import Setting, SimulationError
from simulators.kernels.codegen.build import compile_kernel
from simulators.network import ReactionNetwork
from simulators.random import Word, words

MAX_MEAN_JUMPS = 300.0  # in one series; longer times are split so that weights do not underflow
MIN_POISSON_WEIGHT = 1e-300  # that can matter in double precision
JUMPS_PER_STRETCH = 50.0  # mean jumps between checks of how much probability leaks
LAYERS_PER_EXPANSION = 4  # layers of states added where too much leaks


class StateSpace:
    """States known so far and what leads where, grown by `expand`.

    `states` (n, V) int64; `open` (n,) bool; `rates` (n, R), zero for open states;
    `targets` (n, R), the index that each reaction leads to.
    """

    def __init__(
        self, network: ReactionNetwork, parameters: Mapping[str, float], states: np.ndarray
    ) -> None:
        self.network, self._parameters = network, dict(parameters)
        names = list(network.species)
        self._changes = np.zeros((len(network.reactions), len(names)), dtype=np.int64)
        for row, reaction in zip(self._changes, network.reactions, strict=True):
            for name, change in reaction.change.items():
                row[names.index(name)] = change
        # a random linear key: states of any size fit, and the key of x + ν is key(x) + key(ν)
        self._multipliers = words(0, Word.STREAM, 0, len(names)) | np.uint64(1)
        self.states = np.empty((0, len(names)), dtype=np.int64)
        self._sorted = np.empty(0, dtype=np.uint64)
        self._order = np.empty(0, dtype=np.int64)
        self.open = np.empty(0, dtype=bool)
        self.rates = np.empty((0, len(network.reactions)))
        self.targets = np.empty((0, len(network.reactions)), dtype=np.int64)
        self._append(np.asarray(states, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.states)

    @property
    def closed(self) -> bool:
        return not self.open.any()

    def close(self, max_states: int, max_layers: int | None = None) -> bool:
        """Follow all reactions until nothing is new: whether that stayed within the limits."""
        layers = 0
        while not self.closed:
            self.expand(np.flatnonzero(self.open))
            layers += 1
            if len(self) > max_states or layers == max_layers:
                return self.closed
        return True

    def expand(self, which: np.ndarray, layers: int = 1) -> None:
        """Follow the reactions of the open states `which`, then of what they lead to."""
        for _ in range(layers):
            before = len(self)
            self._follow(which)
            which = np.arange(before, len(self))

    def chain(self) -> Chain:
        """The chain over all states; open states keep what reaches them."""
        return Chain(self.states, self.rates, self.targets)

    def inner_chain(self) -> Chain:
        """The chain over the states that are not open, in order; what leaves them is lost."""
        kept = np.flatnonzero(~self.open)
        kept = kept[np.lexsort(self.states[kept].T[::-1])]
        place = np.full(len(self), len(kept))
        place[kept] = np.arange(len(kept))
        return Chain(self.states[kept], self.rates[kept], place[self.targets[kept]])

    # --- one layer --------------------------------------------------------------------------------

    def _follow(self, which: np.ndarray) -> None:
        states, laws = self.states[which], self._evaluate(self.states[which])
        row, reaction = np.nonzero(laws > 0)
        reached = states[row] + self._changes[reaction]
        self._check_counts(states, reached, row, reaction)
        found = self._find(reached)
        self._append(_unique_rows(reached[found < 0], self._keys(reached[found < 0])))
        found = self._find(reached)
        if (self.states[found] != reached).any():
            raise SimulationError("two states share one key", remedy="report this network")
        self.open[which] = False
        self.rates[which] = laws
        self.targets[which[row], reaction] = found

    def _evaluate(self, states: np.ndarray) -> np.ndarray:
        """Rates of all reactions, shape (n, R); negative or non-finite ones are refused."""
        counts = states.T.astype(np.float64)
        values = {**self._parameters, **dict(zip(self.network.species, counts, strict=True))}
        laws = np.empty((len(states), len(self.network.reactions)))
        for column, law in enumerate(self.network.propensities):
            laws[:, column] = rates.evaluate(law, values)
        bad = ~np.isfinite(laws) | (laws < 0)
        if bad.any():
            at, column = np.argwhere(bad)[0]
            raise SimulationError(
                f"rate of reaction {self.network.reactions[column].name!r} is {laws[at, column]:g} "
                f"at {self._shown(states[at])}",
                value=laws[at, column],
                remedy="rates must be finite and >= 0: check its law "
                f"{self.network.propensities[column]}",
            )
        return laws

    def _check_counts(
        self, states: np.ndarray, reached: np.ndarray, row: np.ndarray, reaction: np.ndarray
    ) -> None:
        negative = (reached < 0).any(axis=1)
        if negative.any():
            at = int(np.argmax(negative))
            raise SimulationError(
                f"reaction {self.network.reactions[reaction[at]].name!r} can fire at "
                f"{self._shown(states[row[at]])} and would leave {self._shown(reached[at])}",
                value=self._shown(reached[at]),
                remedy="its rate must be zero there",
            )

    def _shown(self, state: np.ndarray) -> str:
        pairs = zip(self.network.species, state, strict=True)
        return ", ".join(f"{name}={count}" for name, count in pairs)

    # --- keys -------------------------------------------------------------------------------------

    def _keys(self, states: np.ndarray) -> np.ndarray:
        keys: np.ndarray = (states.astype(np.uint64) * self._multipliers).sum(
            axis=1, dtype=np.uint64
        )
        return keys

    def _find(self, states: np.ndarray) -> np.ndarray:
        """Index of each state, -1 where it is not known."""
        if not len(self):
            return np.full(len(states), -1)
        keys = self._keys(states)
        at = np.minimum(np.searchsorted(self._sorted, keys), len(self) - 1)
        return np.where(self._sorted[at] == keys, self._order[at], -1)

    def _append(self, states: np.ndarray) -> None:
        new = np.arange(len(self), len(self) + len(states))
        keys = self._keys(states)
        order = np.argsort(keys)
        at = np.searchsorted(self._sorted, keys[order])
        self._sorted = np.insert(self._sorted, at, keys[order])
        self._order = np.insert(self._order, at, new[order])
        reactions = self.rates.shape[1]
        self.states = np.concatenate([self.states, states])
        self.open = np.concatenate([self.open, np.ones(len(states), dtype=bool)])
        self.rates = np.concatenate([self.rates, np.zeros((len(states), reactions))])
        stay = np.broadcast_to(new[:, None], (len(states), reactions))
        self.targets = np.concatenate([self.targets, stay])


class Chain:
    """Jumps at rate q on states (n, V); a target n stands for all that is outside."""

    def __init__(self, states: np.ndarray, laws: np.ndarray, targets: np.ndarray) -> None:
        self.states, self.targets = states, targets
        exits = laws.sum(axis=1)
        # a little more than the largest, so that every state can stay: supports only grow
        self.rate = 1.01 * float(exits.max(initial=0.0))
        scale = self.rate or 1.0
        self.moves = laws / scale
        self.stays = 1.0 - exits / scale
        self.matrix = self._matrix()
        self._transposed = self.matrix.T.tocsr()

    def __len__(self) -> int:
        return len(self.states)

    def _matrix(self) -> sparse.csr_array:
        size = len(self)
        row, reaction = np.nonzero((self.moves > 0) & (self.targets < size))
        here = np.arange(size)
        entries = np.concatenate([self.stays, self.moves[row, reaction]])
        rows = np.concatenate([here, row])
        columns = np.concatenate([here, self.targets[row, reaction]])
        return sparse.csr_array((entries, (rows, columns)), shape=(size, size))

    def parts(self, duration: float, most: float = MAX_MEAN_JUMPS) -> tuple[int, float]:
        """Into how many equal parts a time is split, and the mean number of jumps in each."""
        jumps = self.rate * duration
        parts = max(1, int(np.ceil(jumps / most)))
        return parts, jumps / parts

    def forward(
        self, probabilities: np.ndarray, duration: float, least: float = MIN_POISSON_WEIGHT
    ) -> np.ndarray:
        """p exp(Q h): the distribution (n,) after a time."""
        return self._exponential(self._transposed, probabilities, duration, least)

    def backward(self, message: np.ndarray, duration: float) -> np.ndarray:
        """exp(Q h) f: the expectation of f (n,) after a time, given the state now."""
        return self._exponential(self.matrix, message, duration, MIN_POISSON_WEIGHT)

    def powers(self, message: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
        """P^k f for k = 0, 1, ..., as many as matter, and Σ_k Poisson(k; mean) P^k f.

        Shapes (K, n + 1) and (n,); the last column is zero and stands for all that is outside.
        """
        weights = poisson(mean)
        terms = np.empty((len(weights), len(self) + 1))
        total, used = compiled(_series)(*_csr(self.matrix), message, weights, mean, True, terms)
        terms = terms[:used]
        terms[:, -1] = 0.0
        return terms, total

    def _exponential(
        self, matrix: sparse.csr_array, vector: np.ndarray, duration: float, least: float
    ) -> np.ndarray:
        parts, mean = self.parts(duration)
        weights, none = poisson(mean, least), np.empty((0, 0))
        series = compiled(_series)
        for _ in range(parts):
            vector, _ = series(
                *_csr(matrix), vector, weights, mean, least == MIN_POISSON_WEIGHT, none
            )
        return vector


def project(
    space: StateSpace, chances: np.ndarray, duration: float, tolerance: float, max_states: int
) -> float:
    """Grow `space` along the flow of probability; returns a bound on what is lost by the end.

    Whenever a stretch of time loses more than its share of the tolerance, the open states that took
    it are followed and the stretch is done again. Growing later only lowers what was lost before.
    """
    space.expand(np.flatnonzero(space.open))  # where it starts is kept, however short the time
    now = np.pad(chances, (0, len(space) - len(chances)))
    chain, elapsed, lost, layers = space.chain(), 0.0, 0.0, LAYERS_PER_EXPANSION
    while elapsed < duration:
        stretch = min(duration - elapsed, JUMPS_PER_STRETCH / chain.rate if chain.rate else np.inf)
        share = 0.5 * tolerance * stretch / duration
        least = max(1e-3 * share, MIN_POISSON_WEIGHT)
        after = chain.forward(now, stretch, least)
        jumps = chain.rate * stretch
        # the series is cut sooner here, and what is cut off counts as lost
        leak = after[space.open].sum() + pdtrc(len(poisson(jumps, least)) - 1, jumps)
        if leak > share:
            if len(space) > max_states:
                raise SimulationError(
                    f"{space.network.name!r} needs more than max_states={max_states:,} states: "
                    f"those give a truncation error of {lost + leak:.2g} by {elapsed + stretch:.3g}"
                    f" of {duration:g} time units, too much for a tolerance of {tolerance:.2g} at "
                    "the end",
                    value=max_states,
                    remedy=(
                        "raise ",
                        Setting("max_states"),
                        " or ",
                        Setting("tolerance"),
                        ", shorten the time grid (",
                        Setting("until"),
                        "), or use rejection",
                    ),
                )
            took = np.flatnonzero(space.open & (after > 0.1 * share / space.open.sum()))
            space.expand(took, layers)
            now = np.pad(now, (0, len(space) - len(now)))
            chain, layers = space.chain(), 2 * layers
            continue
        now = np.where(space.open, 0.0, after)
        lost, elapsed, layers = lost + float(leak), elapsed + stretch, LAYERS_PER_EXPANSION
    return lost


def poisson(mean: float, least: float = MIN_POISSON_WEIGHT) -> np.ndarray:
    """Probabilities of 0, 1, ... jumps: up to the mean, and on until they are below `least`."""
    k = np.arange(int(mean + 60.0 * np.sqrt(mean) + 400.0))
    logs = k * np.log(mean) - mean - gammaln(k + 1.0) if mean else np.where(k, -np.inf, 0.0)
    weights: np.ndarray = np.exp(logs[(logs > np.log(least)) | (k <= mean)])
    return weights


def _series(
    starts: Any,
    columns: Any,
    entries: Any,
    vector: Any,
    weights: Any,
    mean: Any,
    all_: Any,
    terms: Any,
) -> Any:
    """Σ_k weights[k] M^k v for M in CSR form, and how many terms that took.

    With `all_`, terms are added until no entry of the sum changes, relative to itself: states that
    only many jumps reach are waited for. `terms`, unless empty, receives M^k v.
    """
    size = vector.size
    now, after, total = vector.copy(), np.empty_like(vector), np.zeros_like(vector)
    for k in range(weights.size):
        if k > 0:
            for row in range(size):
                value = 0.0
                for at in range(starts[row], starts[row + 1]):
                    value += entries[at] * now[columns[at]]
                after[row] = value
            now, after = after, now
        if terms.size > 0:
            terms[k, :size] = now
        weight = weights[k]
        for row in range(size):
            total[row] += weight * now[row]
        if all_ and k > mean and k % 4 == 0:
            row = 0
            while row < size and weight * now[row] <= 1e-17 * total[row]:
                row += 1
            if row == size:
                return total, k + 1
    return total, weights.size


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain loops as machine code, kept where the other kernels are."""
    head = 'from typing import Any\n@njit(nogil=True, error_model="numpy", cache=True)\n'
    return compile_kernel(f"{head}{inspect.getsource(function)}run = {function.__name__}\n")


def _csr(matrix: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return matrix.indptr, matrix.indices, matrix.data


def _unique_rows(states: np.ndarray, keys: np.ndarray) -> np.ndarray:
    _, first = np.unique(keys, return_index=True)
    return states[np.sort(first)]
