"""The states a network can reach, and what leads from each to which.

States are found breadth first, a whole layer at a time. A state is *open* while its own reactions
have not been followed: a space without open states is closed, and the chain over it is the process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from simulators import rates
from simulators.errors import SimulationError
from simulators.exact.chain import Chain, compiled
from simulators.network import ReactionNetwork
from simulators.random import Word, words

MAX_LAYER_ROWS = 200_000  # states whose reactions are followed at a time


class StateSpace:
    """States known so far and what leads where, grown by `expand`.

    `states` (n, V) int64; `open` (n,) bool; `rates` (n, R), zero for open states;
    `targets` (n, R) int32, the index that each reaction leads to.
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
        reactions = len(network.reactions)
        self._size = 0
        self._states = np.empty((0, len(names)), dtype=np.int64)
        self._keys = np.empty(0, dtype=np.uint64)
        self._open = np.empty(0, dtype=bool)
        self._rates = np.empty((0, reactions))
        self._targets = np.empty((0, reactions), dtype=np.int32)
        self._table = np.full(16, -1, dtype=np.int32)  # indices by key, open addressing
        self._append(np.asarray(states, dtype=np.int64))

    def __len__(self) -> int:
        return self._size

    @property
    def states(self) -> np.ndarray:
        return self._states[: self._size]

    @property
    def open(self) -> np.ndarray:
        return self._open[: self._size]

    @property
    def rates(self) -> np.ndarray:
        return self._rates[: self._size]

    @property
    def targets(self) -> np.ndarray:
        return self._targets[: self._size]

    @property
    def closed(self) -> bool:
        return not self.open.any()

    def close(self, max_states: int, max_layers: int | None = None) -> bool:
        """Follow all reactions until nothing is new: whether that stayed within the limits."""
        layers, which = 0, np.flatnonzero(self.open)
        while len(which):
            before = len(self)
            self._follow(which)
            which = np.arange(before, len(self))
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
        return Chain.of(self.rates, self.targets)

    def inner(self, kept: np.ndarray | None = None) -> tuple[np.ndarray, Chain]:
        """The states that are not open (of `kept`), in lexicographic order, and the chain over
        them; what leaves them is lost."""
        inside = ~self.open if kept is None else kept & ~self.open
        which = np.flatnonzero(inside)
        which = which[np.lexsort(self.states[which].T[::-1])]
        place = np.full(len(self), len(which), dtype=np.int32)
        place[which] = np.arange(len(which))
        return self.states[which], Chain.of(self.rates[which], place[self.targets[which]])

    # --- one layer --------------------------------------------------------------------------------

    def _follow(self, which: np.ndarray) -> None:
        for first in range(0, len(which), MAX_LAYER_ROWS):
            self._follow_rows(which[first : first + MAX_LAYER_ROWS])

    def _follow_rows(self, which: np.ndarray) -> None:
        states, laws = self.states[which], self._evaluate(self.states[which])
        row, reaction = np.nonzero(laws > 0)
        reached = states[row] + self._changes[reaction]
        self._check_counts(states, reached, row, reaction)
        found = self._append(reached)
        if (self.states[found] != reached).any():
            raise SimulationError("two states share one key", remedy="report this network")
        self._open[which] = False
        self._rates[which] = laws
        self._targets[which[row], reaction] = found

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

    def _append(self, states: np.ndarray) -> np.ndarray:
        """The index of each state, (m,); those that are not known are added, open."""
        keys = (states.astype(np.uint64) * self._multipliers).sum(axis=1, dtype=np.uint64)
        self._reserve(self._size + len(states))
        found = np.empty(len(states), dtype=np.int32)
        fresh = np.empty(len(states), dtype=np.int64)
        count = compiled(_look_up)(keys, self._keys, self._size, self._table, found, fresh)
        first, last = self._size, self._size + count
        self._states[first:last] = states[fresh[:count]]
        self._open[first:last] = True
        self._rates[first:last] = 0.0
        self._targets[first:last] = np.arange(first, last)[:, None]
        self._size = last
        return found

    def _reserve(self, size: int) -> None:
        """Room for so many states, grown by halves, and a table at most half full."""
        if size > len(self._open):
            room = max(size, len(self._open) * 3 // 2) + 16
            self._states, self._keys, self._open, self._rates, self._targets = (
                _grown(each, room)
                for each in (self._states, self._keys, self._open, self._rates, self._targets)
            )
        if 2 * size > len(self._table):
            self._table = np.full(1 << int(2 * size).bit_length(), -1, dtype=np.int32)
            compiled(_fill_table)(self._keys, self._size, self._table)


def _grown(array: np.ndarray, room: int) -> np.ndarray:
    larger = np.empty((room, *array.shape[1:]), dtype=array.dtype)
    larger[: len(array)] = array
    return larger


# --- kernels --------------------------------------------------------------------------------------


def _fill_table(keys: Any, size: Any, table: Any) -> None:
    """Enter the first `size` keys into an empty table; a key's own bits are its hash."""
    mask = np.uint64(table.size - 1)
    for i in range(size):
        at = (keys[i] ^ (keys[i] >> np.uint64(32))) & mask
        while table[at] >= 0:
            at = (at + np.uint64(1)) & mask
        table[at] = i


def _look_up(wanted: Any, keys: Any, size: Any, table: Any, found: Any, fresh: Any) -> Any:
    """The index of each wanted key, new ones numbered from `size` on; how many are new.

    `fresh` receives their rows; `keys` and `table` are extended.
    """
    mask = np.uint64(table.size - 1)
    count = 0
    for i in range(wanted.size):
        at = (wanted[i] ^ (wanted[i] >> np.uint64(32))) & mask
        while table[at] >= 0 and keys[table[at]] != wanted[i]:
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            table[at] = size + count
            keys[size + count] = wanted[i]
            fresh[count] = i
            count += 1
        found[i] = table[at]
    return count
