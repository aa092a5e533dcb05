"""The direct method for large networks and for events: dependency graph and a sum tree.

After an event only the rates it affects are computed again (Gibson & Bruck 2000), and the next
reaction is found by walking down a binary tree of partial sums (Li & Petzold 2006): the cost of an
event grows with the logarithm of the number of reactions. Tree nodes are re-added from their
children, never updated by differences, so no rounding error builds up.
"""

# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

import numpy as np

from simulators.kernels.codegen.codes import BAD_RATE, TOO_MANY_EVENTS
from simulators.kernels.codegen.scalar import code
from simulators.kernels.registry import Kernel, register


def follow(w, size, counts, stream, times, out, limit, stop, events, tables, own):
    """One trajectory; see `driver` for the arguments."""
    kinds, leaves, change_at, change_what, change_by, affects_at, affects = tables
    steps, reactions = times.size, kinds.size
    base = 1
    while base < reactions:
        base *= 2
    tree = np.zeros(2 * base)
    now = np.empty(out.shape[0] - size)  # the latches, and their greatest value so far
    top = np.full(now.size, -np.inf)
    t = times[0]
    k = 0
    fired = 0
    last = -1  # the reaction that fired last; -1: recompute all rates
    while True:
        if events[0].size > 0:
            done = settle(t, w, counts, events)
            if done < 0:
                return -done, t
            if done > 0:
                last = -1
        bad = False
        if last < 0:
            for j in range(reactions):
                tree[base + j] = rate(j, t, w, kinds, leaves)
                bad |= not tree[base + j] >= 0.0
            for node in range(base - 1, 0, -1):
                tree[node] = tree[2 * node] + tree[2 * node + 1]
        else:
            for at in range(affects_at[last], affects_at[last + 1]):
                node = base + affects[at]
                tree[node] = rate(affects[at], t, w, kinds, leaves)
                bad |= not tree[node] >= 0.0
                while node > 1:
                    node //= 2
                    tree[node] = tree[2 * node] + tree[2 * node + 1]
        if now.size > 0:
            latched(t, w, now)
            for m in range(now.size):
                top[m] = max(top[m], now[m])
        total = tree[1]
        if bad or not total < np.inf:
            return BAD_RATE, t
        after = t + exponential(next_bits(stream, 0)) / total
        halt = next_stop(t, w)
        upto = min(after, halt)
        while k < steps and times[k] < upto:
            for v in range(size):
                out[v, k] = w[v]
            for m in range(now.size):
                out[size + m, k] = top[m]
                top[m] = now[m]
            k += 1
        if k == steps:
            return 0, t
        t = upto
        if halt <= after:
            # the clock has no memory: drop the drawn time and go on from the switching time
            last = -1
            continue
        left = unit(next_bits(stream, 0)) * total
        node = 1
        while node < base:
            node *= 2
            if left >= tree[node] and tree[node + 1] > 0.0:
                left -= tree[node]
                node += 1
        last = node - base
        for at in range(change_at[last], change_at[last + 1]):
            if w[change_what[at]] + change_by[at] < 0.0:
                return BAD_RATE, t
        for at in range(change_at[last], change_at[last + 1]):
            w[change_what[at]] += change_by[at]
        fired += 1
        if fired > limit or (fired % 1024 == 0 and stop[0]):
            return TOO_MANY_EVENTS, t


register(
    Kernel(
        name="graph",
        method="direct",
        exact=True,
        discrete=True,
        summary="exact events",
        generate=lambda job: code(job, (follow,)),
        latches=True,
    )
)
