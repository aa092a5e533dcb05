"""The mean field dx/dt = Σ_j ν_j a_j(x, t), by Dormand and Prince's 5(4) pair."""

# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

import numpy as np

from simulators.kernels.codes import STEP_TOO_SMALL, TOO_MANY_EVENTS

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


def own_tables(network):
    """nodes (7,), stages (7, 7), fifth (7,), error_weights (7,), tolerance: the last of `run`."""
    return STAGES.sum(axis=1), STAGES, STAGES[6].copy(), STAGES[6] - FOURTH, TOLERANCE


def run(
    seed, first, initial, constants, times, out, report, where, limit, stop,
    counts, initially, rules,
    kinds, leaves, change_at, change_what, change_by, affects_at, affects,
    nodes, stages, fifth, error_weights, tolerance,
):  # fmt: skip
    """Fill out (n, V, T); see `lanes.source` for the arguments they share."""
    n, steps, size = out.shape[0], times.size, initial.shape[1]
    reactions, triggers_n = kinds.size, initially.size
    w = np.empty(size + constants.shape[1])
    x = np.empty(size)
    slope = np.zeros((7, size))
    now = np.zeros(triggers_n, np.bool_)
    was = np.zeros(triggers_n, np.bool_)
    pending = np.zeros(triggers_n, np.bool_)
    new = np.zeros((triggers_n, size))
    for i in range(n):
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
        rounds = 0
        trouble = 0
        halt = t
        h = 1e-3 * (times[-1] - times[0])
        while trouble == 0:
            if triggers_n > 0 and t == halt:
                trouble = max(0, -settle(t, w, 0, now, was, pending, new, rules))
                if trouble > 0:
                    break
            while k < steps and t >= times[k]:
                for v in range(size):
                    out[i, v, k] = w[v]
                k += 1
            if k == steps:
                break
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
                # a switch at the end of a step has not happened yet
                clock = min(t + nodes[s] * step, np.nextafter(bound, -np.inf))
                for v in range(size):
                    slope[s, v] = 0.0
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
                factor = max(0.2, 0.9 * worst**-0.2) if worst < np.inf else 0.2
                h = step * factor
                if not h > 1e-14 * max(abs(t), 1e-300):
                    trouble = STEP_TOO_SMALL
            rounds += 1
            if rounds % 1024 == 0:
                if stop[0]:
                    return
                if rounds > limit:
                    trouble = TOO_MANY_EVENTS
        if trouble > 0:
            report[0] = trouble
            report[1] = first + i
            where[0] = t
            for v in range(size):
                where[1 + v] = w[v]
            return
