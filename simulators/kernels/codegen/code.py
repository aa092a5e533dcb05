"""What a kernel is generated for, and the code that comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from simulators.kernels.codegen.program import Program
from simulators.network import ReactionNetwork


@dataclass(frozen=True)
class Job:
    """What a kernel is generated for: a network, its rates in terms of variables and constants.

    `varying`: indices of constants that differ between trajectories. `checked`: every rate must be
    tested at every event, because it was not proved that it is finite and >= 0. `resumed`: the
    states at times[0] were reached by trajectories, so no event triggers there.
    """

    network: ReactionNetwork
    program: Program
    varying: frozenset[int] = frozenset()
    checked: bool = True
    resumed: bool = False


@dataclass(frozen=True)
class Code:
    """Source of a module that defines

        run(seed, first, initial (n, V), constants (1 or n, C), times (T,), out (n, V + L, T),
            report (2,), where (1 + V,), max_events, stop (1,), *tables)

    `run` fills `out` with trajectories first .. first + n - 1: V variables, then for each of L
    latches its greatest value since the grid time before (at the first time, its value). If one
    cannot go on, it writes a code of `codegen.codes` and the trajectory to `report`, time and state
    to `where`, and returns; it also returns soon after `stop[0]` becomes true.
    """

    source: str
    tables: tuple[Any, ...] = ()
