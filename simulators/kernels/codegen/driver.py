"""One trajectory after another: what the scalar kernels share around their own `follow`.

    follow(w, size, counts, stream, times, out, limit, stop, events, tables, own) -> (code, time)

takes the state in `w` (V variables, then C constants) from times[0] to times[-1], writes out
(V + L, T) and returns 0, or a code of `codes` with the time and `w` as they were. `size` is V, the
first `counts` of which are species; `events` are the arrays of `events.settle`, `tables` those of
`scalar.Tables`, and `own` what only that kernel needs.
"""

# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

import numpy as np


def run(
    seed, first, initial, constants, times, out, report, where, limit, stop,
    counts, resumed, initially, rules, tables, own,
):  # fmt: skip
    """Fill out (n, V, T); see `codegen.code` for the arguments up to `stop`.

    `resumed`: the states were reached by trajectories, whose events have seen them already.
    """
    size, marks = initial.shape[1], initially.size
    w = np.empty(size + constants.shape[1])
    stream = np.zeros((4, 1), np.uint64)
    now = np.zeros(marks, np.bool_)
    was = np.zeros(marks, np.bool_)
    pending = np.zeros(marks, np.bool_)
    new = np.zeros((marks, size))
    events = (now, was, pending, new, rules)
    for i in range(out.shape[0]):
        seed_stream(seed, first + i, stream, 0)
        row = i if constants.shape[0] > 1 else 0
        for v in range(size):
            w[v] = initial[i, v]
        for c in range(constants.shape[1]):
            w[size + c] = constants[row, c]
        for e in range(marks):
            pending[e] = False
            was[e] = initially[e]
        if resumed:
            triggers(times[0], w, was)
        code, t = follow(w, size, counts, stream, times, out[i], limit, stop, events, tables, own)
        if stop[0]:
            return
        if code > 0:
            report[0] = code
            report[1] = first + i
            where[0] = t
            for v in range(size):
                where[1 + v] = w[v]
            return
