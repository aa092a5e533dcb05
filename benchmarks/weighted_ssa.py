"""Weighted stochastic simulation (Kuwahara & Mura, J. Chem. Phys. 129, 165101, 2008).

Reactions are chosen with rates γ_j a_j in place of a_j, and a trajectory's weight is multiplied by

    (a_j / a_0) / (γ_j a_j / Σ_i γ_i a_i)

at every event, until the event of interest happens or time is up. The mean weight of trajectories
that reach it estimates its probability; γ must be chosen by hand (or by cross-entropy: Daigle,
Roh, Gillespie & Petzold 2011).
"""

# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit

from simulators import ReactionNetwork


def weighted_ssa(
    network: ReactionNetwork,
    event: tuple[str, str, float],
    biased: Mapping[str, float],
    samples: int,
    seed: int,
) -> float:
    """One estimate of P(event by the end of the grid) for a network of mass action."""
    names = list(network.species)
    change = np.zeros((len(network.reactions), len(names)))
    order = np.zeros((len(network.reactions), len(names)), np.int64)
    constant = np.empty(len(network.reactions))
    factor = np.ones(len(network.reactions))
    for row, reaction in enumerate(network.reactions):
        for name, by in reaction.change.items():
            change[row, names.index(name)] = by
        for name, times in reaction.sides[0].items():
            order[row, names.index(name)] = times
        constant[row] = network.parameters[str(reaction.rate)]
        factor[row] = biased.get(reaction.name, 1.0)
    counts = network.initial_counts(network.parameters)
    start = np.array([float(counts[name]) for name in names])
    name, relation, bound = event
    sign = 1.0 if relation == ">=" else -1.0
    return _run(
        start, change, order, constant, factor, names.index(name), sign, sign * bound,
        float(network.until), samples, seed,
    )  # fmt: skip


@njit(cache=False)
def _run(start, change, order, constant, factor, which, sign, bound, until, samples, seed):
    np.random.seed(seed)
    reactions, species = change.shape
    rate, x, total = np.empty(reactions), np.empty(species), 0.0
    for _ in range(samples):
        x[:] = start
        t, weight = 0.0, 1.0
        while sign * x[which] < bound:
            whole = pushed = 0.0
            for j in range(reactions):
                a = constant[j]
                for v in range(species):
                    for less in range(order[j, v]):
                        a *= x[v] - less
                rate[j] = a
                whole += a
                pushed += factor[j] * a
            if whole <= 0.0:
                weight = 0.0
                break
            t += np.random.exponential() / whole
            if t > until:
                weight = 0.0
                break
            left, chosen = np.random.random() * pushed, reactions - 1
            for j in range(reactions):
                left -= factor[j] * rate[j]
                if left < 0.0:
                    chosen = j
                    break
            weight *= pushed / (factor[chosen] * whole)
            x += change[chosen]
        total += weight
    return total / samples
