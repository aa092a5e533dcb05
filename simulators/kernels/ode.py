"""The mean field dx/dt = Σ_j ν_j a_j(x, t), by Dormand and Prince's 5(4) pair."""

# mypy: ignore-errors
# ruff: noqa: F821, RUF059
from __future__ import annotations

import numpy as np

from simulators.kernels.codegen.codes import STEP_TOO_SMALL, TOO_MANY_EVENTS
from simulators.kernels.codegen.scalar import code, state_triggered
from simulators.kernels.registry import Kernel, register

TOLERANCE = 1e-7

# Dormand & Prince (1980), RK5(4)7M
STAGES = np.zeros((7, 7))
STAGES[1, :1] = [1 / 5]
STAGES[2, :2] = [3 / 40, 9 / 40]
STAGES[3, :3] = [44 / 45, -56 / 15, 32 / 9]
STAGES[4, :4] = [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729]
STAGES[5, :5] = [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]
STAGES[6, :6] = [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84]
FOURTH = np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100, 1 / 40])


def own_tables():
    """nodes (7,), stages (7, 7), fifth (7,), error_weights (7,), tolerance."""
    return STAGES.sum(axis=1), STAGES, STAGES[6].copy(), STAGES[6] - FOURTH, TOLERANCE


def follow(w, size, counts, stream, times, out, limit, stop, events, tables, own):
    """One trajectory; see `driver` for the arguments."""
    kinds, leaves, change_at, change_what, change_by, affects_at, affects = tables
    nodes, stages, fifth, error_weights, tolerance = own
    steps, reactions = times.size, kinds.size
    x = np.empty(size)
    slope = np.zeros((7, size))
    t = times[0]
    halt = t
    k = 0
    rounds = 0
    h = 1e-3 * (times[-1] - times[0])
    while True:
        if events[0].size > 0 and t == halt:
            done = settle(t, w, 0, events)
            if done < 0:
                return -done, t
        while k < steps and t >= times[k]:
            for v in range(size):
                out[v, k] = w[v]
            k += 1
        if k == steps:
            return 0, t
        halt = next_stop(t, w)
        bound = min(halt, times[k])
        for v in range(size):
            x[v] = w[v]
        clipped = t + h >= bound
        step = bound - t if clipped else h
        for s in range(7):
            for v in range(size):
                move = 0.0
                for r in range(s):
                    move += stages[s, r] * slope[r, v]
                w[v] = x[v] + step * move
                slope[s, v] = 0.0
            # a switch at the end of a step has not happened yet
            clock = min(t + nodes[s] * step, np.nextafter(bound, -np.inf))
            for j in range(reactions):
                a = rate(j, clock, w, kinds, leaves)
                for at in range(change_at[j], change_at[j + 1]):
                    slope[s, change_what[at]] += change_by[at] * a
        worst = 0.0
        for v in range(size):
            move = 0.0
            wrong = 0.0
            for s in range(7):
                move += fifth[s] * slope[s, v]
                wrong += error_weights[s] * slope[s, v]
            w[v] = x[v] + step * move
            scale = tolerance * max(1.0, abs(x[v]), abs(w[v]))
            worst = max(worst, abs(step * wrong) / scale)
            if not abs(w[v]) < np.inf:
                worst = np.inf
        if worst <= 1.0:
            t = bound if clipped else t + step
            factor = 5.0 if worst < 1e-4 else min(5.0, 0.9 * worst**-0.2)
            h = max(h, step * factor) if clipped else step * factor
        else:
            for v in range(size):
                w[v] = x[v]
            h = step * (max(0.2, 0.9 * worst**-0.2) if worst < np.inf else 0.2)
            if not h > 1e-14 * max(abs(t), 1e-300):
                return STEP_TOO_SMALL, t
        rounds += 1
        if rounds % 1024 == 0 and (stop[0] or rounds > limit):
            return TOO_MANY_EVENTS, t


register(
    Kernel(
        name="ode",
        method="ode",
        exact=False,
        discrete=False,
        summary="the mean field",
        generate=lambda job: code(job, (follow,), own_tables()),
        refusal=state_triggered,
    )
)
