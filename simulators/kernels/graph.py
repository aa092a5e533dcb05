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

from simulators.kernels.codes import BAD_RATE, TOO_MANY_EVENTS


def own_tables(network):
    """Arguments of `run` beyond those that all scalar kernels share."""
    return ()


def run(
    seed, first, initial, constants, times, out, report, where, limit, stop,
    counts, initially, rules,
    kinds, leaves, change_at, change_what, change_by, affects_at, affects,
):  # fmt: skip
    """Fill out (n, V, T); see `lanes.source` for the arguments they share."""
    n, steps, size = out.shape[0], times.size, initial.shape[1]
    reactions, triggers_n = kinds.size, initially.size
    base = 1
    while base < reactions:
        base *= 2
    tree = np.zeros(2 * base)
    w = np.empty(size + constants.shape[1])
    stream = np.zeros((4, 1), np.uint64)
    now = np.zeros(triggers_n, np.bool_)
    was = np.zeros(triggers_n, np.bool_)
    pending = np.zeros(triggers_n, np.bool_)
    new = np.zeros((triggers_n, size))
    for i in range(n):
        seed_stream(seed, first + i, stream, 0)
        row = i if constants.shape[0] > 1 else 0
        for v in range(size):
            w[v] = initial[i, v]
        for c in range(constants.shape[1]):
            w[size + c] = constants[row, c]
        for e in range(triggers_n):
            pending[e] = False
            was[e] = initially[e]
        t = times[0]
        k = 0
        fired = 0
        trouble = 0
        last = -1  # the reaction that fired last; -1 makes all rates anew
        while True:
            if triggers_n > 0:
                done = settle(t, w, counts, now, was, pending, new, rules)
                if done < 0:
                    trouble = -done
                    break
                if done > 0:
                    last = -1
            if last < 0:
                for j in range(reactions):
                    tree[base + j] = rate(j, t, w, kinds, leaves)
                    if not tree[base + j] >= 0.0:
                        trouble = BAD_RATE
                for node in range(base - 1, 0, -1):
                    tree[node] = tree[2 * node] + tree[2 * node + 1]
            else:
                for at in range(affects_at[last], affects_at[last + 1]):
                    node = base + affects[at]
                    tree[node] = rate(affects[at], t, w, kinds, leaves)
                    if not tree[node] >= 0.0:
                        trouble = BAD_RATE
                    while node > 1:
                        node //= 2
                        tree[node] = tree[2 * node] + tree[2 * node + 1]
            total = tree[1]
            if trouble > 0 or not total < np.inf:
                trouble = BAD_RATE
                break
            after = t + exponential(next_bits(stream, 0)) / total
            halt = next_stop(t, w)
            upto = min(after, halt)
            while k < steps and times[k] < upto:
                for v in range(size):
                    out[i, v, k] = w[v]
                k += 1
            if k == steps:
                break
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
                    trouble = BAD_RATE
            if trouble > 0:
                break
            for at in range(change_at[last], change_at[last + 1]):
                w[change_what[at]] += change_by[at]
            fired += 1
            if fired % 1024 == 0:
                if stop[0]:
                    return
                if fired > limit:
                    trouble = TOO_MANY_EVENTS
                    break
        if trouble > 0:
            report[0] = trouble
            report[1] = first + i
            where[0] = t
            for v in range(size):
                where[1 + v] = w[v]
            return
