"""A Markov chain in continuous time, uniformised, and its transient distributions.

With q at least every exit rate, P = 1 + Q/q is a stochastic matrix and (Jensen 1953)

    exp(Q h) = Σ_k Poisson(k; q h) P^k.

Every term is non-negative, so that nothing cancels: a probability of 1e-200 is as precise, relative
to itself, as one of 0.5. A Krylov space or a general matrix exponential has errors of 1e-16 of the
largest entry, which is all that there is of a rare event.

P is held once, by rows: `forward` scatters along them and leaves out the states that probability
has not reached, `backward` gathers.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

import numpy as np
from scipy.special import gammaln, pdtrc

from simulators.kernels.codegen.build import compile_kernel

MAX_MEAN_JUMPS = 300.0  # in one series; longer times are split so that weights do not underflow
MIN_POISSON_WEIGHT = 1e-300  # that can matter in double precision
NEGLECTED_WEIGHT = 1e-32  # left out of a series where a large space is solved to a certified error
FLUSHED = 1e-13  # of the neglected weight: entries so small are dropped on the way
MAX_HELD_BYTES = 5e8  # of the messages of one pass that are held at a time
MAX_POWER_BYTES = 5e8  # of the powers of one series

Tick = Callable[[float], None]  # told the share that is done
State = TypeVar("State")


class Chain:
    """Jumps at rate q on n states.

    `stays` (n,): P(x, x); `starts` (n + 1,), `columns`, `entries`: the other entries of P by rows.
    What a row lacks of 1 leaves the states and is lost.
    """

    def __init__(
        self, rate: float, stays: np.ndarray, starts: np.ndarray, columns: Any, entries: Any
    ) -> None:
        self.rate, self.stays, self.starts = rate, stays, starts
        self.columns, self.entries = columns, entries

    @classmethod
    def of(cls, laws: np.ndarray, targets: np.ndarray) -> Chain:
        """From rates (n, R) and the states (n, R) they lead to; a target n is outside."""
        exits = laws.sum(axis=1)
        # a little more than the largest, so that every state can stay: supports only grow
        rate = 1.01 * float(exits.max(initial=0.0))
        scale = rate or 1.0
        starts = np.zeros(len(laws) + 1, dtype=np.int64)
        np.cumsum(((laws > 0) & (targets < len(laws))).sum(axis=1), out=starts[1:])
        columns, entries = np.empty(starts[-1], dtype=np.int32), np.empty(starts[-1])
        compiled(_fill)(laws, targets, scale, starts, columns, entries)
        return cls(rate, 1.0 - exits / scale, starts, columns, entries)

    def __len__(self) -> int:
        return len(self.stays)

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.stays, self.starts, self.columns, self.entries

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.arrays)

    def parts(self, duration: float, most: float | None = None) -> tuple[int, float]:
        """Into how many equal parts a time is split, and the mean number of jumps in each."""
        jumps = self.rate * duration
        parts = max(1, int(np.ceil(jumps / (most or MAX_MEAN_JUMPS))))
        return parts, jumps / parts

    def forward(
        self,
        probabilities: np.ndarray,
        duration: float,
        least: float = MIN_POISSON_WEIGHT,
        tick: Tick = lambda share: None,
    ) -> np.ndarray:
        """p exp(Q h): the distribution (n,) after a time; `least` as in `poisson`."""
        return self._exponential(_scatter_series, probabilities, duration, least, tick)

    def backward(
        self,
        message: np.ndarray,
        duration: float,
        least: float = MIN_POISSON_WEIGHT,
        tick: Tick = lambda share: None,
    ) -> np.ndarray:
        """exp(Q h) f: the expectation of f (n,) after a time, given the state now."""
        return self._exponential(_gather_series, message, duration, least, tick)

    def powers(
        self, message: np.ndarray, mean: float, least: float = MIN_POISSON_WEIGHT
    ) -> tuple[np.ndarray, np.ndarray]:
        """P^k f for k = 0, 1, ..., as many as matter, and Σ_k Poisson(k; mean) P^k f.

        Shapes (K, n) and (n,).
        """
        weights = poisson(mean, least)
        terms = np.empty((len(weights), len(self)))
        whole = least == MIN_POISSON_WEIGHT
        total, used = compiled(_gather_series)(*self.arrays, message, weights, mean, whole, terms)
        return terms[:used], total

    def held_mean(self, least: float) -> float:
        """The mean number of jumps of which the powers fit into `MAX_POWER_BYTES`."""
        mean, rows = MAX_MEAN_JUMPS, MAX_POWER_BYTES / (8 * max(len(self), 1))
        while mean > 1.0 and len(poisson(mean, least)) > rows:
            mean *= 0.7
        return mean

    def error(self, duration: float, least: float) -> float:
        """A bound on what a series cut at `least` leaves out, as a share of its largest entry."""
        if least == MIN_POISSON_WEIGHT:
            return 0.0
        parts, mean = self.parts(duration)
        weights = poisson(mean, least)
        terms = len(weights)
        dropped = terms * len(self) * FLUSHED * weights[-1]
        return parts * (float(pdtrc(terms - 1, mean)) + float(dropped))

    def series_terms(self, duration: float, least: float) -> int:
        """Products of P and a vector that a stretch of time takes, at most."""
        if not duration:
            return 0
        parts, mean = self.parts(duration)
        return parts * len(poisson(mean, least))

    def seconds_per_term(self) -> float:
        """CPU time of a product of P and a vector, measured: what else runs does not matter."""
        vector, none = np.ones(len(self)), np.empty((0, 0))
        took = []
        for _ in range(2):  # the first may compile
            began = time.process_time()
            compiled(_gather_series)(*self.arrays, vector, np.ones(4), 4.0, False, none)
            took.append((time.process_time() - began) / 4)
        return min(took)

    def _exponential(
        self,
        series: Callable[..., Any],
        vector: np.ndarray,
        duration: float,
        least: float,
        tick: Tick,
    ) -> np.ndarray:
        parts, mean = self.parts(duration)
        weights, none = poisson(mean, least), np.empty((0, 0))
        whole = least == MIN_POISSON_WEIGHT
        for part in range(parts):
            vector, _ = compiled(series)(*self.arrays, vector, weights, mean, whole, none)
            tick((part + 1) / parts)
        return vector


def poisson(mean: float, least: float = MIN_POISSON_WEIGHT) -> np.ndarray:
    """Probabilities of 0, 1, ... jumps: up to the mean, and on until they are below `least`."""
    k = np.arange(int(mean + 60.0 * np.sqrt(mean) + 400.0))
    logs = k * np.log(mean) - mean - gammaln(k + 1.0) if mean else np.where(k, -np.inf, 0.0)
    weights: np.ndarray = np.exp(logs[(logs > np.log(least)) | (k <= mean)])
    return weights


def backwards(
    last: State, count: int, before: Callable[[int, State], State], held: int
) -> Iterator[tuple[int, State]]:
    """States 0, ..., count - 1 of a recursion that runs from the last to the first, in order.

    `before(i, state)`: state i from state i + 1. At most about `held` + count/held states are held:
    of every run of `held` states the last is kept, and the others are computed again.
    """
    held = max(held, int(np.ceil(np.sqrt(count))))
    ends, state = {count - 1: last}, last
    for i in range(count - 2, -1, -1):
        state = before(i, state)
        if (i + 1) % held == 0 or count <= held:
            ends[i] = state
    for first in range(0, count, held):
        end = min(first + held, count) - 1
        run = {end: ends[end]}
        for i in range(end - 1, first - 1, -1):
            run[i] = ends[i] if i in ends else before(i, run[i + 1])
        for i in range(first, end + 1):
            ends.pop(i, None)
            yield i, run.pop(i)


# --- kernels --------------------------------------------------------------------------------------


def _fill(laws: Any, targets: Any, scale: Any, starts: Any, columns: Any, entries: Any) -> None:
    """The rows of P, each in the order of the reactions."""
    size = laws.shape[0]
    for row in range(size):
        at = starts[row]
        for reaction in range(laws.shape[1]):
            if laws[row, reaction] > 0.0 and targets[row, reaction] < size:
                columns[at] = targets[row, reaction]
                entries[at] = laws[row, reaction] / scale
                at += 1


def _gather_series(
    stays: Any,
    starts: Any,
    columns: Any,
    entries: Any,
    vector: Any,
    weights: Any,
    mean: Any,
    whole: Any,
    terms: Any,
) -> Any:
    """Σ_k weights[k] P^k f, and how many terms that took.

    With `whole`, terms are added until no entry of the sum changes, relative to itself: states that
    only many jumps reach are waited for. `terms`, unless empty, receives P^k f.
    """
    size = vector.size
    now, after, total = vector.copy(), np.empty_like(vector), np.zeros_like(vector)
    for k in range(weights.size):
        if k > 0:
            for row in range(size):
                value = stays[row] * now[row]
                for at in range(starts[row], starts[row + 1]):
                    value += entries[at] * now[columns[at]]
                after[row] = value
            now, after = after, now
        if terms.size > 0:
            terms[k] = now
        weight = weights[k]
        for row in range(size):
            total[row] += weight * now[row]
        if whole and k > mean and k % 4 == 0:
            row = 0
            while row < size and weight * now[row] <= 1e-17 * total[row]:
                row += 1
            if row == size:
                return total, k + 1
    return total, weights.size


def _scatter_series(
    stays: Any,
    starts: Any,
    columns: Any,
    entries: Any,
    vector: Any,
    weights: Any,
    mean: Any,
    whole: Any,
    terms: Any,
) -> Any:
    """Σ_k weights[k] p P^k, as `_gather_series`; without `whole`, entries that are too small to
    matter are dropped on the way."""
    size = vector.size
    floor = 0.0 if whole else 1e-13 * weights[-1]  # see FLUSHED
    now, after, total = vector.copy(), np.zeros_like(vector), np.zeros_like(vector)
    for k in range(weights.size):
        weight = weights[k]
        last = k == weights.size - 1
        for row in range(size):
            value = now[row]
            if value > floor:
                total[row] += weight * value
                if not last:
                    after[row] += stays[row] * value
                    for at in range(starts[row], starts[row + 1]):
                        after[columns[at]] += entries[at] * value
        if whole and k > mean and k % 4 == 0:
            row = 0
            while row < size and weight * now[row] <= 1e-17 * total[row]:
                row += 1
            if row == size:
                return total, k + 1
        now, after = after, now
        after[:] = 0.0
    return total, weights.size


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of plain loops as machine code, kept where the other kernels are."""
    head = 'from typing import Any\n@njit(nogil=True, error_model="numpy", cache=True)\n'
    return compile_kernel(f"{head}{inspect.getsource(function)}run = {function.__name__}\n")
