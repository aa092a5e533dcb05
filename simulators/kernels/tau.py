"""Adaptive tau-leaping (Cao, Gillespie & Petzold, J. Chem. Phys. 124, 2006) for large populations.

A leap is as long as keeps every rate's expected change and spread within `epsilon` of itself.
Reactions that could use up a reactant within ten firings are critical: at most one of them fires in
a leap. Where a leap would hold only a few events, single exact events are taken instead. Rates are
taken at the expected middle of a leap (Gillespie 2001), which removes most of the bias of taking
them at its start. Leaps end on the time grid and on switching times, so recorded states are states
of the process, not interpolations.
"""

# mypy: ignore-errors
# ruff: noqa: F821, RUF059
from __future__ import annotations

import numpy as np

from simulators import rates
from simulators.kernels.codegen.codes import BAD_RATE, TOO_LARGE, TOO_MANY_EVENTS
from simulators.kernels.codegen.scalar import code, state_triggered
from simulators.kernels.registry import Kernel, register

EPSILON = 0.03  # Cao, Gillespie and Petzold's choice
TURNOVER = 0.05  # share of a species that may come or go in a leap; keeps the spread within 2 %


def own_tables(network):
    """`orders` (V, 2), EPSILON and TURNOVER.

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


def follow(w, size, counts, stream, times, out, limit, stop, events, tables, own):
    """One trajectory; see `driver` for the arguments."""
    kinds, leaves, change_at, change_what, change_by, affects_at, affects = tables
    orders, epsilon, turnover = own
    steps, reactions = times.size, kinds.size
    before = np.empty(size)
    drift = np.empty(size)
    spread = np.empty(size)
    a = np.empty(reactions)
    middle = np.empty(reactions)
    critical = np.zeros(reactions, np.bool_)
    t = times[0]
    halt = t
    k = 0
    rounds = 0
    exact = 0  # single events still to take before the next try at a leap
    while True:
        if events[0].size > 0 and t == halt:
            done = settle(t, w, counts, events)
            if done < 0:
                return -done, t
        while k < steps and t >= times[k]:
            for v in range(size):
                out[v, k] = w[v]
            k += 1
        if k == steps:
            return 0, t
        total = 0.0
        for j in range(reactions):
            a[j] = rate(j, t, w, kinds, leaves)
            if not a[j] >= 0.0:
                return BAD_RATE, t
            total += a[j]
        if not total < np.inf:
            return BAD_RATE, t
        halt = next_stop(t, w)
        bound = min(halt, times[k])  # a leap never passes a grid time or a switching time
        leap = np.inf
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
                fire(choose(a, total, stream), 1.0, w, change_at, change_what, change_by)
                for v in range(counts):
                    if w[v] < 0.0:
                        return BAD_RATE, t
        else:
            for v in range(size):
                before[v] = w[v]
            while True:
                first_rare = exponential(next_bits(stream, 0)) / rare
                step = min(leap, first_rare)
                fires = first_rare <= leap
                if t + step >= bound:
                    fires = fires and t + step == bound
                    step = bound - t
                for v in range(size):
                    w[v] = max(0.0, before[v] + 0.5 * step * drift[v])
                for j in range(reactions):
                    middle[j] = max(0.0, rate(j, t, w, kinds, leaves))
                for v in range(size):
                    w[v] = before[v]
                for j in range(reactions):
                    if a[j] > 0.0 and not critical[j]:
                        times_fired = poisson(middle[j] * step, stream, 0)
                        fire(j, times_fired, w, change_at, change_what, change_by)
                if fires:
                    for j in range(reactions):
                        middle[j] = a[j] if critical[j] else 0.0
                    fire(choose(middle, rare, stream), 1.0, w, change_at, change_what, change_by)
                short = False
                for v in range(counts):
                    short |= w[v] < 0.0
                if not short:
                    t = bound if t + step >= bound else t + step
                    break
                for v in range(size):
                    w[v] = before[v]
                leap = step / 2.0
        for v in range(counts):
            if w[v] > 9007199254740992.0:
                return TOO_LARGE, t
        rounds += 1
        if rounds % 1024 == 0 and (stop[0] or rounds > limit):
            return TOO_MANY_EVENTS, t


def fire(j, many, w, change_at, change_what, change_by):
    """Reaction j fires `many` times."""
    for at in range(change_at[j], change_at[j + 1]):
        w[change_what[at]] += many * change_by[at]


def choose(a, total, stream):
    """Index of a reaction, with probability a[j]/total."""
    left = unit(next_bits(stream, 0)) * total
    chosen = -1
    for j in range(a.size):
        if a[j] > 0.0:
            chosen = j
            left -= a[j]
            if left < 0.0:
                break
    return chosen


register(
    Kernel(
        name="tau",
        method="tau",
        exact=False,
        discrete=True,
        summary="leaps for large populations",
        generate=lambda job: code(job, (fire, choose, follow), own_tables(job.network)),
        refusal=state_triggered,
    )
)
