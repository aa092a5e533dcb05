"""Adaptive tau-leaping (Cao, Gillespie & Petzold, J. Chem. Phys. 124, 2006) for large populations.

A leap is as long as keeps every rate's expected change and spread within `epsilon` of itself.
Reactions that could use up a reactant within ten firings are critical: at most one of them fires in
a leap. Where a leap would hold only a few events, single exact events are taken instead. Rates are
taken at the expected middle of a leap (Gillespie 2001), which removes most of the bias of taking
them at its start. Leaps end on the time grid and on switching times, so recorded states are states
of the process, not interpolations.
"""

# mypy: ignore-errors
# ruff: noqa: F821
from __future__ import annotations

import numpy as np

from simulators import rates
from simulators.kernels.codes import BAD_RATE, TOO_LARGE, TOO_MANY_EVENTS

EPSILON = 0.03  # Cao, Gillespie and Petzold's choice
TURNOVER = 0.05  # share of a species that may come or go in a leap; keeps the spread within 2 %


def own_tables(network):
    """`orders` (V, 2), `epsilon` and `turnover`: the last arguments of `run`.

    A row of `orders`: the highest order of the reactions of a species, and its own share of it.
    """
    orders = np.zeros((len(network.variables), 2))
    for reaction, law in zip(network.reactions, network.propensities, strict=True):
        reactants = reaction.sides[0]
        for name in rates.names(law) & set(network.species):
            own = reactants.get(name, 0)
            # a rate that is no mass action may bend more sharply than its order says
            row = (float(sum(reactants.values())), float(own)) if own else (3.0, 1.0)
            place = network.variables.index(name)
            orders[place] = max(tuple(orders[place]), row)
    return orders, EPSILON, TURNOVER


def run(
    seed, first, initial, constants, times, out, report, where, limit, stop,
    counts, initially, rules,
    kinds, leaves, change_at, change_what, change_by, affects_at, affects,
    orders, epsilon, turnover,
):  # fmt: skip
    """Fill out (n, V, T); see `lanes.source` for the arguments they share."""
    n, steps, size = out.shape[0], times.size, initial.shape[1]
    reactions, triggers_n = kinds.size, initially.size
    w = np.empty(size + constants.shape[1])
    before = np.empty(size)
    a = np.empty(reactions)
    middle = np.empty(reactions)
    critical = np.zeros(reactions, np.bool_)
    drift = np.empty(size)
    spread = np.empty(size)
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
        rounds = 0
        exact = 0  # single events still to take before the next try at a leap
        trouble = 0
        halt = t
        while trouble == 0:
            if triggers_n > 0 and t == halt:
                trouble = max(0, -settle(t, w, counts, now, was, pending, new, rules))
                if trouble > 0:
                    break
            while k < steps and t >= times[k]:
                for v in range(size):
                    out[i, v, k] = w[v]
                k += 1
            if k == steps:
                break
            total = 0.0
            for j in range(reactions):
                a[j] = rate(j, t, w, kinds, leaves)
                if not a[j] >= 0.0:
                    trouble = BAD_RATE
                total += a[j]
            if trouble > 0 or not total < np.inf:
                trouble = BAD_RATE
                break
            halt = next_stop(t, w)
            bound = min(halt, times[k])  # a leap never passes a grid time or a switching time
            leap = 0.0
            rare = 0.0
            if exact == 0 and total > 0.0:
                for v in range(size):
                    drift[v] = 0.0
                    spread[v] = 0.0
                for j in range(reactions):
                    critical[j] = False
                    if a[j] > 0.0:
                        for at in range(change_at[j], change_at[j + 1]):
                            if change_by[at] < 0 and w[change_what[at]] < -10.0 * change_by[at]:
                                critical[j] = True
                        if critical[j]:
                            rare += a[j]
                        else:
                            for at in range(change_at[j], change_at[j + 1]):
                                by = float(change_by[at])
                                drift[change_what[at]] += by * a[j]
                                spread[change_what[at]] += by * by * a[j]
                leap = np.inf
                for v in range(size):
                    if orders[v, 0] > 0.0 and spread[v] > 0.0:
                        x = w[v]
                        g = orders[v, 0]
                        if orders[v, 1] == 2.0 and x > 1.0:
                            g += (g / 2.0) / (x - 1.0)
                        elif orders[v, 1] >= 3.0 and x > 2.0:
                            g += 1.0 / (x - 1.0) + 2.0 / (x - 2.0)
                        room = max(epsilon * x / g, 1.0)
                        if drift[v] != 0.0:
                            leap = min(leap, room / abs(drift[v]))
                        leap = min(leap, room * room / spread[v])
                        # where gains and losses balance, drift says nothing about how fast the
                        # state forgets: a leap that replaces much of it spreads out too far
                        leap = min(leap, max(turnover * x, 2.0) / spread[v])
                if leap < 10.0 / total:
                    exact = 100
            if exact > 0 or total == 0.0:
                # one exact event, or none before the bound
                exact = max(exact - 1, 0)
                step = exponential(next_bits(stream, 0)) / total
                if t + step > bound:
                    t = bound
                else:
                    t += step
                    left = unit(next_bits(stream, 0)) * total
                    chosen = -1
                    for j in range(reactions):
                        if a[j] > 0.0:
                            chosen = j
                            left -= a[j]
                            if left < 0.0:
                                break
                    for at in range(change_at[chosen], change_at[chosen + 1]):
                        w[change_what[at]] += change_by[at]
                        if w[change_what[at]] < 0.0:
                            trouble = BAD_RATE
            else:
                for v in range(size):
                    before[v] = w[v]
                while True:
                    first_rare = exponential(next_bits(stream, 0)) / rare
                    step = min(leap, first_rare)
                    fires = first_rare <= leap
                    end = t + step
                    if end >= bound:
                        fires = fires and end == bound
                        end = bound
                        step = bound - t
                    for v in range(size):
                        w[v] = max(0.0, before[v] + 0.5 * step * drift[v])
                    for j in range(reactions):
                        if not critical[j]:
                            middle[j] = max(0.0, rate(j, t, w, kinds, leaves))
                    for v in range(size):
                        w[v] = before[v]
                    for j in range(reactions):
                        if a[j] > 0.0 and not critical[j]:
                            times_fired = poisson(middle[j] * step, stream, 0)
                            if times_fired > 0.0:
                                for at in range(change_at[j], change_at[j + 1]):
                                    w[change_what[at]] += times_fired * change_by[at]
                    if fires:
                        left = unit(next_bits(stream, 0)) * rare
                        chosen = -1
                        for j in range(reactions):
                            if critical[j]:
                                chosen = j
                                left -= a[j]
                                if left < 0.0:
                                    break
                        for at in range(change_at[chosen], change_at[chosen + 1]):
                            w[change_what[at]] += change_by[at]
                    short = False
                    for v in range(counts):
                        if w[v] < 0.0:
                            short = True
                    if not short:
                        t = end
                        break
                    for v in range(size):
                        w[v] = before[v]
                    leap = step / 2.0
            for v in range(counts):
                if w[v] > 9007199254740992.0:
                    trouble = TOO_LARGE
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
