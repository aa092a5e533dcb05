"""Whole trajectories from the conditional law, forwards against the backward messages.

Within a gap the number of jumps to come is drawn from its distribution given where the path must
lead, and then one jump after the other (Hobolth & Stone 2009): no matrix of transition
probabilities is ever formed. Trajectories with the same memory move together.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from simulators.exact import chain as chains
from simulators.exact.chain import Chain, backwards, compiled, poisson
from simulators.exact.forward_backward import Recursion
from simulators.exact.monitors import Memory
from simulators.kernels.codegen.streams import next_bits, seed_stream, unit

__all__ = ["drawn", "next_bits", "seed_stream", "unit"]


def drawn(recursion: Recursion, start: np.ndarray, seed: int, count: int) -> np.ndarray:
    """Indices of the states of trajectories 0 .. count - 1 at the steps of the grid, (T, count).

    `recursion` after `filter`; `start` (n,), the probabilities of first states.
    """
    stages = recursion.stages
    path = np.empty((sum(stage.step is not None for stage in stages), count), dtype=np.int32)
    streams = np.empty((4, count), dtype=np.uint64)
    now = np.empty(count, dtype=np.int64)
    memories: list[Memory] = [recursion.first_memory]
    own = np.zeros(count, dtype=np.int32)  # the memory of each trajectory, in `memories`
    for s, messages in recursion.messages():
        if s == 0:
            weights = start * messages[recursion.first_memory]
            recursion.check_reached(weights.sum())
            compiled(_begin)(np.uint64(seed), 0, np.cumsum(weights), streams, now)
        else:
            memories, own = _moved(recursion, s - 1, memories, own, messages, streams, now)
        step = stages[s].step
        if step is not None:
            path[step] = now
        memories, own = _read(recursion, s, memories, own, now)
    return path


def _read(
    recursion: Recursion, s: int, memories: list[Memory], own: np.ndarray, now: np.ndarray
) -> tuple[list[Memory], np.ndarray]:
    """The memories after a stage is read, and that of each trajectory."""
    after = dict[Memory, int]()
    then = np.zeros_like(own)
    for place, memory in enumerate(memories):
        mine = np.flatnonzero(own == place)
        options, which = recursion.transitions(s, memory)
        numbers = np.array([after.setdefault(each, len(after)) for each in options])
        then[mine] = numbers[which[now[mine]]]
    return list(after), then


def _moved(
    recursion: Recursion,
    s: int,
    memories: list[Memory],
    own: np.ndarray,
    messages: Any,
    streams: np.ndarray,
    now: np.ndarray,
) -> tuple[list[Memory], np.ndarray]:
    """Over the gap after stage s, given the messages of the next; `now` (count,) in place."""
    after = dict[Memory, int]()
    then = np.zeros_like(own)
    gap = recursion.stages[s].gap
    for place, memory in enumerate(memories):
        chosen = np.flatnonzero(own == place)
        if not len(chosen):
            continue
        latches = recursion.latched(s, memory)
        if latches is None:
            message = np.broadcast_to(messages[memory], len(recursion.chain)).astype(np.float64)
            _bridge(recursion.chain, message, gap, recursion.least, streams, now, chosen)
            then[chosen] = after.setdefault(memory, len(after))
            continue
        product, of_copy = latches
        ends = recursion.product_message(product, of_copy, messages)
        inner = now.copy()
        inner[chosen] = product.places[0, now[chosen]]
        _bridge(product.chain, ends, gap, recursion.least, streams, inner, chosen)
        now[chosen] = product.origins[inner[chosen]]
        numbers = np.array([after.setdefault(each, len(after)) for each in of_copy])
        then[chosen] = numbers[product.copies[inner[chosen]]]
    return list(after), then


def _bridge(
    chain: Chain,
    message: np.ndarray,
    gap: float,
    least: float,
    streams: np.ndarray,
    now: np.ndarray,
    chosen: np.ndarray,
) -> None:
    """Move the trajectories `chosen` through a gap, against the message (n,) at its end."""
    parts, mean = chain.parts(gap, min(chains.MAX_MEAN_JUMPS, chain.held_mean(least)))
    held = int(chains.MAX_HELD_BYTES / (8 * len(chain)))

    def before(part: int, end: np.ndarray) -> np.ndarray:
        return chain.backward(end, gap / parts, least)

    for _, end in backwards(message, parts, before, held):
        terms, total = chain.powers(end, mean, least)
        compiled(_walk)(poisson(mean, least), terms, total, *chain.arrays, streams, now, chosen)


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
    starts: Any,
    columns: Any,
    entries: Any,
    streams: Any,
    now: Any,
    chosen: Any,
) -> None:
    """Move through a stretch of time, given P^k f (K, n) from its end; `now` (count,) in place.

    From x the number of jumps is k with weight Poisson(k) (P^k f)(x); with r jumps to go the next
    state is y with weight P(x, y) (P^{r-1} f)(y), which add up to (P^r f)(x).
    """
    for j in range(chosen.size):
        i = chosen[j]
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
            to, at, end = here, starts[here], starts[here + 1]
            while u >= 0.0 and at < end:
                weight = entries[at] * terms[left, columns[at]]
                if weight > 0.0:  # rounding may leave a little of u: never take the impossible
                    to = columns[at]
                u -= weight
                at += 1
            here = to
        now[i] = here
