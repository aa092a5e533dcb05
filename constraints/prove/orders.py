"""Chained orders: differences x - y <= w that add up to less than 0 around a cycle.

Rows over two readings with opposite coefficients are edges y -> x of length w. They can be met
together if and only if no cycle is negative (Cherkassky & Goldberg, Negative-cycle detection
algorithms, 1999); a strict `<` is shorter by an infinitesimal, so a <= b, b <= c, c < a is one.
Bellman-Ford with a look at the predecessors after each round; effort is bounded, which is sound.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from constraints.prove.bounds import BOUND_TOLERANCE, MAX_SHOWN_READINGS, Conflict, Sources, Sum

MAX_RELAXATIONS = 1_000_000  # of edges, in all rounds together


@dataclass(frozen=True)
class Edge:
    """head - tail <= length, or < where it is strict."""

    tail: int
    head: int
    length: float
    strict: bool
    sources: Sources


def refuse_cycle(rows: Iterable[Sum], names: Sequence[str]) -> None:
    """Raise the conflict of orders that lead from a reading to itself."""
    cycle = negative_cycle(list(_on_cycles(_edges(rows))))
    if cycle is None:
        return
    sources = frozenset[int]().union(*(edge.sources for edge in cycle))
    around = [*cycle, cycle[0]]
    if len(cycle) > MAX_SHOWN_READINGS:
        raise Conflict(sources, f"{names[cycle[0].tail]} would have to be less than itself")
    if any(edge.length for edge in cycle):
        shown = " to ".join(names[edge.tail] for edge in around)
        total = math.fsum(edge.length for edge in cycle)
        reason = f"the differences from {shown} add up to at most {total:g}, and must add up to 0"
    else:  # x <= tail, from the last edge to the first: the greatest stands at the right
        shown = names[cycle[-1].head]
        for edge in reversed(cycle):
            shown += f" {'<' if edge.strict else '<='} {names[edge.tail]}"
        reason = f"together they say {shown}"
    raise Conflict(sources, reason)


def _edges(rows: Iterable[Sum]) -> Iterator[Edge]:
    for row in rows:
        if len(row.cells) != 2 or row.coefficients[0] != -row.coefficients[1]:
            continue
        (x, y), scale = row.cells, row.coefficients[0]
        if not scale:
            continue
        if scale < 0:
            x, y, scale = y, x, -scale
        if math.isfinite(row.high):
            yield Edge(y, x, row.high / scale, row.strict[1], row.sources)
        if math.isfinite(row.low):
            yield Edge(x, y, -row.low / scale, row.strict[0], row.sources)


def _on_cycles(edges: Iterable[Edge]) -> list[Edge]:
    """Without edges that begin or end at a reading that no other edge leads to, or from."""
    left = list(edges)
    while True:
        tails, heads = {edge.tail for edge in left}, {edge.head for edge in left}
        kept = [edge for edge in left if edge.tail in heads and edge.head in tails]
        if len(kept) == len(left):
            return kept
        left = kept


def negative_cycle(edges: Sequence[Edge]) -> list[Edge] | None:
    """The edges of a cycle whose lengths add up to less than 0, in order; None if none is found."""
    distance: dict[int, tuple[float, int]] = defaultdict(lambda: (0.0, 0))  # length, strict edges
    before: dict[int, Edge] = {}
    for _ in range(MAX_RELAXATIONS // max(1, len(edges))):
        changed = False
        for edge in edges:
            length, strict = distance[edge.tail]
            new = length + edge.length, strict + edge.strict
            if _less(new, distance[edge.head]):
                distance[edge.head], before[edge.head] = new, edge
                changed = True
        if not changed:
            return None
        cycle = _cycle(before)
        if cycle is not None:
            return cycle
    return None


def _less(new: tuple[float, int], old: tuple[float, int]) -> bool:
    close = BOUND_TOLERANCE * max(1.0, abs(new[0]), abs(old[0]))
    return new[0] < old[0] - close or (new[0] <= old[0] + close and new[1] > old[1])


def _cycle(before: dict[int, Edge]) -> list[Edge] | None:
    """A cycle among the predecessors, from its first edge on."""
    done: set[int] = set()
    for start in before:
        path: dict[int, None] = {}
        node = start
        while node in before and node not in done and node not in path:
            path[node] = None
            node = before[node].tail
        if node in path:
            found = [before[node]]
            while found[-1].tail != node:
                found.append(before[found[-1].tail])
            return found[::-1]
        done |= path.keys()
    return None
