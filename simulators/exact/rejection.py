"""Conditioned ensembles by rejection: simulate, keep the trajectories that meet the conditions.

Works for every network and every predicate, at a cost of 1/P(C) simulations per trajectory kept.
The share kept estimates P(C) with relative error sqrt((1 - P)/(n P)).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from simulators.ensemble import check_count, make_engine, simulate, time_grid
from simulators.errors import InputError, Setting, SimulationError
from simulators.exact.conditions import Conditions, Predicate
from simulators.network import ReactionNetwork
from simulators.quantities import Fixed, quantity
from simulators.start import Initial

SIMULATED_CHUNK_BYTES = 32_000_000  # of counts simulated at a time


def reject(
    network: ReactionNetwork,
    where: Conditions | Mapping[Any, Predicate],
    samples: int = 1_000,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    points: int | None = None,
    until: float | None = None,
    budget: int = 10_000_000,
    method: str = "direct",
    threads: int | None = None,
) -> xr.Dataset:
    """The first `samples` trajectories of the ensemble that meet `where`: dims (sample, time).

    `sample` is their index in the ensemble of this seed. At most `budget` are simulated; when it is
    spent, those found are returned with a warning. Attributes: `acceptance_rate`, `accepted`,
    `simulated`, and `log_probability` with its standard error.
    """
    check_count("budget", budget, 1)
    refuse_arrays({**(parameters or {}), **(initial if isinstance(initial, Mapping) else {})})
    grid = time_grid(network, times, points, until)
    engine = make_engine(network, samples, grid, seed, initial, parameters, method)
    conditions = conditions_of(where, network, engine.times, parameters)
    chunk = max(1, SIMULATED_CHUNK_BYTES // (8 * len(network.variables) * engine.times.size))
    kept: list[xr.Dataset] = []
    found = simulated = 0
    while found < samples and simulated < budget:
        count = min(_next_chunk(samples, found, simulated, chunk), budget - simulated)
        drawn = simulate(
            network, count, engine.times, seed, initial, parameters,
            method=method, threads=threads, first=simulated,
        )  # fmt: skip
        good = np.flatnonzero(conditions.holds(drawn))
        if found + len(good) >= samples:  # stop at the last one wanted: chunks leave no trace
            good = good[: samples - found]
            count = int(good[-1]) + 1
        kept.append(drawn.isel(sample=good))
        found += len(good)
        simulated += count
    if not found:
        raise SimulationError(
            f"none of {simulated:,} trajectories met the conditions ({conditions}): their "
            f"probability is below {3.0 / simulated:.2g} (95 % confidence)",
            value=simulated,
            remedy=(
                "raise ",
                Setting("budget"),
                ", check the conditions, or use the master equation",
            ),
        )
    return _result(kept, conditions, samples, found, simulated)


def _result(
    kept: list[xr.Dataset], conditions: Conditions, samples: int, found: int, simulated: int
) -> xr.Dataset:
    result = xr.concat([part for part in kept if part.sizes["sample"]], "sample", join="exact")
    # sampling that stops at a success: (k - 1)/(n - 1) is then unbiased, k/n is not
    full = found == samples and found > 1
    chance = (found - 1) / (simulated - 1) if full else found / simulated
    result.attrs |= {
        "title": f"{conditions.network.title or conditions.network.name}: trajectories kept",
        "where": str(conditions),
        "accepted": found,
        "simulated": simulated,
        "acceptance_rate": found / simulated,
        "log_probability": float(np.log(chance)),
        "log_probability_error": float(np.sqrt((1.0 - chance) / found)),
        "complete": int(found == samples),
    }
    if found < samples:
        warnings.warn(
            f"the budget of {simulated:,} trajectories gave {found:,} of {samples:,} samples "
            f"(acceptance rate {found / simulated:.2g}); raise the budget for more",
            stacklevel=3,
        )
    return result


def _next_chunk(samples: int, found: int, simulated: int, most: int) -> int:
    """How many to simulate next: what the acceptance rate so far requires, with a margin."""
    if not found:
        return min(most, max(samples, 1_000, simulated))
    wanted = (samples - found) * simulated / found
    return min(most, int(1.1 * wanted) + 100)


def conditions_of(
    where: Conditions | Mapping[Any, Predicate],
    network: ReactionNetwork,
    times: np.ndarray,
    parameters: Mapping[str, Any] | None,
) -> Conditions:
    """`where` for this grid and the fixed parameters; the others come with the trajectories."""
    given = {name: quantity(name, value, 1) for name, value in (parameters or {}).items()}
    fixed = {name: value.value for name, value in given.items() if isinstance(value, Fixed)}
    return Conditions.read(where, network, times, fixed)


def refuse_arrays(given: Mapping[str, Any]) -> None:
    """Refuse one value per trajectory where it is not known how many are simulated."""
    for name, value in given.items():
        many = np.size(value) if not hasattr(value, "ppf") else 1
        if many > 1 and not (isinstance(value, tuple) and many == 2):
            raise InputError(
                f"{name!r} has {many} values, one per trajectory, but it is not known how "
                "many will be simulated",
                value=many,
                remedy="give a number, a (low, high) pair or a distribution",
            )
