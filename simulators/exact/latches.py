"""A chain with latches: which of some sets of states it has entered, in continuous time.

States of the product are pairs of a copy c, the set of latches that are closed, and a state x of
the chain; a jump to y closes the latches of the sets that hold y. Copies in which nothing more is
asked are one absorbing state, or are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from simulators.exact.chain import Chain, compiled

Fate = Literal["live", "sink", "lost"]


class Latched:
    """The product of a chain with latches.

    `sets`: booleans (n,) of each of the L latches; `fates`: what becomes of each copy, 2^L of them,
    of which copy c has latch l closed if bit l of c is 1. `copies`, `origins` (m,): the copy and
    the state of each state of the product; `places` (2^L, n): the reverse, -1 where there is none.
    """

    def __init__(self, chain: Chain, sets: Sequence[np.ndarray], fates: Sequence[Fate]) -> None:
        bits = np.zeros(len(chain), dtype=np.int8)
        for latch, inside in enumerate(sets):
            bits |= inside.astype(np.int8) << latch
        self.places = np.full((len(fates), len(chain)), -1, dtype=np.int32)
        copies, origins, size = [], [], 0
        for copy, fate in enumerate(fates):
            if fate != "live":
                continue
            which = np.flatnonzero((bits & ~np.int8(copy)) == 0)
            self.places[copy, which] = np.arange(size, size + len(which))
            copies.append(np.full(len(which), copy, dtype=np.int8))
            origins.append(which.astype(np.int32))
            size += len(which)
        self.sink = size if "sink" in fates else None
        if self.sink is not None:
            for copy, fate in enumerate(fates):
                if fate == "sink":
                    self.places[copy] = self.sink
        self.copies, self.origins = np.concatenate(copies), np.concatenate(origins)
        total = size + (self.sink is not None)
        starts = np.zeros(total + 1, dtype=np.int64)
        count, fill = compiled(_count_entries), compiled(_fill_entries)
        base = (chain.starts, chain.columns)
        count(*base, bits, self.places, self.copies, self.origins, starts)
        np.cumsum(starts, out=starts)
        columns, entries = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
        fill(
            *base, chain.entries, bits, self.places, self.copies, self.origins, starts, columns,
            entries,
        )  # fmt: skip
        stays = np.ones(total)
        stays[:size] = chain.stays[self.origins]
        self.chain = Chain(chain.rate, stays, starts, columns, entries)

    def entered(self, vector: np.ndarray) -> np.ndarray:
        """A vector (n,) of the chain as one of the product, all latches open."""
        out = np.zeros(len(self.chain))
        there = np.flatnonzero(self.places[0] >= 0)
        out[self.places[0, there]] = vector[there]
        return out

    def of_copy(self, vector: np.ndarray, copy: int) -> np.ndarray:
        """The part (n,) of a vector of the product that belongs to a copy."""
        size = len(self.origins)
        mine = np.flatnonzero(self.copies == copy)
        out = np.zeros(self.places.shape[1])
        out[self.origins[mine]] = vector[:size][mine]
        return out


# --- kernels --------------------------------------------------------------------------------------


def _count_entries(
    starts: Any, columns: Any, bits: Any, places: Any, copies: Any, origins: Any, counts: Any
) -> None:
    """How many entries each row of the product has, into counts[row + 1]."""
    for row in range(origins.size):
        x = origins[row]
        for at in range(starts[x], starts[x + 1]):
            y = columns[at]
            if places[copies[row] | bits[y], y] >= 0:
                counts[row + 1] += 1


def _fill_entries(
    starts: Any,
    columns: Any,
    entries: Any,
    bits: Any,
    places: Any,
    copies: Any,
    origins: Any,
    into: Any,
    new_columns: Any,
    new_entries: Any,
) -> None:
    """The rows of the product, in the order of the reactions."""
    for row in range(origins.size):
        x, to = origins[row], into[row]
        for at in range(starts[x], starts[x + 1]):
            y = columns[at]
            target = places[copies[row] | bits[y], y]
            if target >= 0:
                new_columns[to] = target
                new_entries[to] = entries[at]
                to += 1
