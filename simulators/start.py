"""Parameter values and initial states of trajectories, for any slice of an ensemble.

Species that the user gives have these values. The others have the network's own counts or, where a
total is conserved, share the remainder (`start="uniform"`: uniformly over all ways to do so).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from simulators.errors import InputError, Setting, unknown
from simulators.network import STARTS, ReactionNetwork
from simulators.quantities import MAX_COUNT, Fixed, Quantity, quantity
from simulators.random import uniforms

Initial = Mapping[str, Any] | str | None
MAX_START_STATES = 5_000_000


class Start:
    """Parameters and initial states of an ensemble of `samples` trajectories.

    `initial`: None (the network's own), "uniform", "fixed", or a mapping species -> quantity.
    `parameters`: mapping parameter -> quantity, the others keep the network's values.
    """

    def __init__(
        self,
        network: ReactionNetwork,
        initial: Initial = None,
        parameters: Mapping[str, Any] | None = None,
        *,
        samples: int = 1,
        seed: int = 0,
    ) -> None:
        self.network, self.seed = network, seed
        given = {} if parameters is None else parameters
        for name in _mapping("parameters", given):
            if name not in network.parameters:
                raise unknown("parameter", name, network.parameters)
        merged = {**network.parameters, **given}
        self._parameters = {k: quantity(k, value, samples) for k, value in merged.items()}
        self._species, self.uniform = self._read(initial, samples)
        total = network.total
        self._members = tuple(total.coefficients) if total else ()
        self._rest = tuple(name for name in self._members if name not in self._species)

    def _read(self, initial: Initial, samples: int) -> tuple[dict[str, Quantity], bool]:
        network = self.network
        if initial is None or isinstance(initial, str):
            choice = network.start if initial is None else initial
            if choice not in STARTS:
                raise InputError(
                    f"initial is {' or '.join(map(repr, STARTS))} or a mapping species -> count, "
                    f"not {initial!r}",
                    value=initial,
                )
            if choice == "uniform" and network.total is None:
                raise InputError(
                    f"{network.name!r} conserves no total of its species, so a uniform start "
                    "has no meaning",
                    value=initial,
                    remedy=("give counts or ranges: ", Setting("initial")),
                )
            return {}, choice == "uniform"
        for name in _mapping("initial", initial):
            if name not in network.species:
                raise unknown("species", name, network.species)
        given = {name: quantity(name, value, samples) for name, value in initial.items()}
        return given, network.start == "uniform"

    # --- parameters -------------------------------------------------------------------------------

    @property
    def varying(self) -> tuple[str, ...]:
        """Parameters that differ between trajectories."""
        return tuple(name for name, value in self._parameters.items() if value.varies)

    @property
    def total_varies(self) -> bool:
        """Whether the conserved total may differ between trajectories."""
        if self.network.population is not None:
            return self.network.population in self.varying
        return bool(self.varying or any(value.varies for value in self._species.values()))

    def parameters(self, first: int, count: int) -> dict[str, Any]:
        """Value of each parameter: a float, or an array (count,) where it varies."""
        values: dict[str, Any] = {}
        for draw, (name, value) in enumerate(self._parameters.items()):
            if isinstance(value, Fixed):
                values[name] = value.value
                continue
            whole = name == self.network.population
            drawn = value.draw(uniforms(self.seed, draw, first, count), first, whole)
            _check(name, drawn, first, whole=whole)
            values[name] = drawn
        return values

    def parameters_at(self, places: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Values (n,) of parameters that vary, at the shares (n,) of their distributions: each is
        its quantile function of a uniform number."""
        found = {}
        for name, share in places.items():
            whole = name == self.network.population
            found[name] = self._parameters[name].draw(share, 0, whole)
            _check(name, found[name], 0, whole=whole)
        return found

    # --- states -----------------------------------------------------------------------------------

    def states(self, first: int, count: int) -> np.ndarray:
        """Initial values of the network's variables, float64, shape (count, V)."""
        network = self.network
        parameters = self.parameters(first, count)
        counts = {
            name: np.broadcast_to(value, (count,)).astype(np.float64)
            for name, value in network.initial_counts(parameters).items()
        }
        offset = len(self._parameters)
        for name, value in self._species.items():
            draw = offset + list(network.species).index(name)
            drawn = value.draw(uniforms(self.seed, draw, first, count), first, True)
            _check(name, drawn, first, whole=True)
            counts[name] = drawn
        for name in network.species:
            if name not in self._species and not (self.uniform and name in self._rest):
                _check(name, counts[name], first, whole=True)
        if self._rest and (self.uniform or (self._species and network.population)):
            left = self._left(parameters, counts, first, count)
            shares = self._spread(left, first, count)  # whole, >= 0, adding up to what is left
            counts.update(zip(self._rest, shares, strict=True))
        else:
            self._check_total(parameters, counts)
        columns = [counts[k] if k in counts else parameters[k] for k in network.variables]
        shape = (count,)
        return np.stack([np.broadcast_to(column, shape) for column in columns], axis=1)

    def support(self) -> tuple[np.ndarray, np.ndarray]:
        """All initial states and their probabilities, shapes (K, V) and (K,): for exact solvers."""
        if self.varying or any(value.varies for value in self._species.values()):
            raise InputError(
                "an exact answer needs fixed parameters and a fixed or uniform start",
                value=self.varying,
                remedy="give numbers instead of ranges",
            )
        one = self.states(0, 1)
        if not (self._rest and self.uniform):
            return one, np.ones(1)
        places = [self.network.variables.index(name) for name in self._rest]
        left = int(one[0, places].sum())
        bars = len(self._rest) - 1
        ways = comb(left + bars, bars)
        if ways > MAX_START_STATES:
            raise InputError(
                f"a uniform start over {ways:,} states is too many to enumerate", value=ways
            )
        cuts = np.array(list(combinations(range(left + bars), bars)), dtype=np.int64)
        states = np.repeat(one, ways, axis=0)
        states[:, places] = _gaps(cuts.reshape(ways, bars).T, np.full(ways, left + bars)).T
        return states, np.full(ways, 1.0 / ways)

    def describe(self) -> dict[str, Any]:
        """JSON-ready account of parameters and initial states."""
        initial: Any = {name: value.describe() for name, value in self._species.items()}
        return {
            "parameters": {name: value.describe() for name, value in self._parameters.items()},
            "initial": initial,
            "start": "uniform" if self.uniform else "fixed",
        }

    def _population(self, parameters: Mapping[str, Any], count: int) -> np.ndarray:
        """The conserved total, shape (count,): the population, else that of the own counts."""
        network = self.network
        if network.population is not None:
            values = np.broadcast_to(parameters[network.population], (count,))
            _check(network.population, values, 0, whole=True)
            return values
        own = network.initial_counts(parameters)
        return np.broadcast_to(sum(own[name] for name in self._members), (count,))

    def _left(
        self, parameters: Mapping[str, Any], counts: Mapping[str, Any], first: int, count: int
    ) -> np.ndarray:
        """What the named species leave of the total, shape (count,)."""
        named = [name for name in self._members if name in self._species]
        total = self._population(parameters, count)
        left = np.asarray(total - sum((counts[name] for name in named), np.zeros(count)))
        if (left < 0).any():
            at = int(np.argmax(left < 0))
            shown = " + ".join(f"{name}={counts[name][at]:g}" for name in named)
            label = self.network.population or "total"
            raise InputError(
                f"initial {shown} is more than the population {label}={total[at]:g}",
                value={name: counts[name][at] for name in named},
                remedy=(
                    "give smaller counts with ",
                    Setting("initial"),
                    ", or a larger population",
                ),
            )
        return left

    def _spread(self, left: np.ndarray, first: int, count: int) -> list[np.ndarray]:
        """Counts of the species that were not named, each (count,), adding up to `left`."""
        if self.uniform:
            draws = len(self._parameters) + len(self.network.species)
            return _simplex(left, len(self._rest), self.seed, draws, first)
        own = self.network.initial_counts(self.parameters(first, count))
        others = [np.broadcast_to(own[name], (count,)) for name in self._rest[1:]]
        remainder = left - sum(others, np.zeros(count))
        if (remainder < 0).any():
            raise InputError(
                f"initial counts exceed the population: nothing is left for {self._rest[0]!r}",
                value=self._rest[0],
                remedy=f"give more of {', '.join(self._rest)}",
            )
        return [remainder, *others]

    def _check_total(self, parameters: Mapping[str, Any], counts: Mapping[str, Any]) -> None:
        """The species of a population must add up to it."""
        if self.network.population is None or not self._members:
            return
        total = np.asarray(parameters[self.network.population])
        sums = sum(counts[name] for name in self._members)
        if not np.all(sums == total):
            at = int(np.argmax(sums != total))
            shown = " + ".join(f"{name}={counts[name][at]:g}" for name in self._members)
            raise InputError(
                f"initial {shown} = {sums[at]:g} does not add up to the population "
                f"{self.network.population}={np.broadcast_to(total, sums.shape)[at]:g}",
                value=sums[at],
                remedy=(
                    "leave out one species of ", Setting("initial"),
                    ", which then gets the rest, or set the population to the sum",
                ),
            )  # fmt: skip


def _mapping(what: str, given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise InputError(f"{what} is a mapping name -> value, not {given!r}", value=given)
    return given


def _check(name: str, values: np.ndarray, first: int, *, whole: bool) -> None:
    bad = ~np.isfinite(values)
    if whole:
        bad |= (values < 0) | (values != np.floor(values)) | (values > MAX_COUNT)
    if bad.any():
        at = int(np.argmax(bad))
        where = f" (trajectory {first + at})" if values.size > 1 else ""
        noun = "initial count of " if whole else "parameter "
        want = "a whole number >= 0 (and <= 2^53)" if whole else "finite"
        raise InputError(
            f"{noun}{name!r} must be {want}, not {values[at]:g}{where}", value=values[at]
        )


def _gaps(bars: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Stars and bars: sorted bar places (k-1, n) among `slots` (n,) -> counts (k, n)."""
    edge = np.full((1, slots.size), -1, dtype=np.int64)
    walls = np.concatenate([edge, bars, slots[None].astype(np.int64)])
    return (np.diff(walls, axis=0) - 1).astype(np.float64)


def _simplex(left: np.ndarray, parts: int, seed: int, draw: int, first: int) -> list[np.ndarray]:
    """Uniform over all ways to write `left` (n,) as `parts` counts: Floyd's sampling of bars."""
    n, count = left.size, parts - 1
    slots = left.astype(np.int64) + count
    bars = np.empty((count, n), dtype=np.int64)  # rows stay sorted: row 0 has the lowest bars
    for b in range(count):
        top = slots - count + b  # pick from 0..top; if taken, top itself is free
        pick = (uniforms(seed, draw + b, first, n) * (top + 1)).astype(np.int64)
        taken = (bars[:b] == pick).any(axis=0)
        bars[b] = np.where(taken, top, pick)
        for r in range(b):
            bars[r], bars[b] = np.minimum(bars[r], bars[b]), np.maximum(bars[r], bars[b])
    return list(_gaps(bars, slots))
