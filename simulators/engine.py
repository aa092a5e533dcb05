"""Choosing and running a kernel, and saying in words what went wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from simulators import rates
from simulators.errors import InputError, SimulationError
from simulators.kernels import codes, graph, lanes, ode, scalar, tau
from simulators.kernels.build import compile_kernel, forget
from simulators.kernels.program import Program, lower
from simulators.kernels.proofs import proved
from simulators.network import ReactionNetwork
from simulators.reactions import as_expression
from simulators.start import Start

METHODS = ("direct", "tau", "ode")
KERNELS = ("lanes", "graph", "tau", "ode")
LARGEST = 2.0**53  # counts are exact in a float64 up to here
MOST_IN_LANES = 24  # reactions; beyond, vector code takes too long to compile
_SCALAR: dict[str, Any] = {"graph": graph, "tau": tau, "ode": ode}  # modules


@dataclass
class Engine:
    """One network with its start, ready to fill trajectories of any slice of the ensemble.

    `kernel` is chosen from `method`: "direct" takes the lanes where they apply and the dependency
    graph elsewhere. Whatever is chosen, a trajectory depends on (seed, index) only.
    """

    network: ReactionNetwork
    start: Start
    times: np.ndarray
    seed: int = 0
    method: str = "direct"
    kernel: str | None = None
    max_events: int = 100_000_000
    stop: np.ndarray = field(default_factory=lambda: np.zeros(1, np.bool_))

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}, not {self.method!r}")
        laws = self.network.mean_field if self.method == "ode" else self.network.propensities
        values = self.start.parameters(0, 1)
        fixed = {name: values[name] for name in values if name not in self.start.varying}
        self.program: Program = lower(self.network, laws, fixed, smooth_time=self.method == "ode")
        if self.kernel is None:
            small = len(self.program.rates) <= MOST_IN_LANES
            direct = "lanes" if self.program.autonomous and small else "graph"
            self.kernel = direct if self.method == "direct" else self.method
        if self.kernel not in KERNELS:
            raise InputError(f"kernel must be one of {', '.join(KERNELS)}, not {self.kernel!r}")
        if self.kernel == "lanes" and not self.program.autonomous:
            raise InputError("the lanes kernel takes no events and no time in rates")
        if self.method != "direct":
            self._refuse_state_events()
        self._varying = frozenset(
            index
            for index, constant in enumerate(self.program.constants)
            if rates.names(constant) & set(self.start.varying)
        )
        largest = max((by for change in self.program.changes for by in change.values()), default=0)
        grown = float(largest) * self.max_events >= LARGEST
        self._may_outgrow = self.method == "direct" and (grown or bool(self.network.events))
        self._ready: dict[bool, Callable[..., Any]] = {}
        self._tables: tuple[Any, ...] = ()

    def prepare(self) -> None:
        """Compile, or load the compiled code, before any clock runs."""
        size = len(self.network.variables)
        nothing, nowhere = np.empty((0, size, self.times.size)), np.empty((0, size))
        constants = self._constants(0, 1)
        try:
            self._run(0, nowhere, constants, nothing)
        except Exception:  # whatever a damaged cache file makes numba say
            for kernel in self._ready.values():
                forget(kernel)
            self._ready.clear()
            self._run(0, nowhere, constants, nothing)

    def fill(self, first: int, out: np.ndarray) -> None:
        """Trajectories first .. first + n - 1 into out, float64 (n, V, T)."""
        count = out.shape[0]
        initial = self.start.states(first, count)
        report, where = self._run(first, initial, self._constants(first, count), out)
        if report[0]:
            raise self._trouble(int(report[0]), int(report[1]), where)
        if self._may_outgrow and not self.stop[0]:
            self._check_size(first, out)

    # --- running ----------------------------------------------------------------------------------

    def _constants(self, first: int, count: int) -> np.ndarray:
        return self.program.constant_values(self.start.parameters(first, count), count)

    def _run(
        self, first: int, initial: np.ndarray, constants: np.ndarray, out: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        # a kernel with checks gives the same numbers, so the choice may differ between chunks
        checked = self.kernel == "lanes" and not proved(self.program, constants)
        report, where = np.zeros(2, np.int64), np.zeros(1 + len(self.program.variables))
        run = self._kernel(checked)
        run(
            np.uint64(self.seed), first, initial, constants, self.times, out,
            report, where, self.max_events, self.stop, *self._tables,
        )  # fmt: skip
        return report, where

    def _kernel(self, checked: bool) -> Callable[..., Any]:
        if checked not in self._ready:
            self._ready[checked] = self._compile(checked)
        return self._ready[checked]

    def _compile(self, checked: bool) -> Callable[..., Any]:
        program = self.program
        if self.kernel == "lanes":
            width = lanes.LANES if program.vectorises else 1  # one lane is plain scalar code
            text = lanes.source(program, self._varying, lanes=width, checked=checked)
            return compile_kernel(text)
        kernel = _SCALAR[self.kernel or ""]
        text, tables = scalar.module(program, kernel.FUNCTIONS)
        events = self.network.events
        initially = np.array([event.initially for event in events], np.bool_)
        rules = np.array(
            [(event.priority, event.persistent, event.values_at_trigger) for event in events],
            np.float64,
        ).reshape(len(events), 3)
        own = kernel.own_tables(self.network)
        self._tables = (program.species, initially, rules, tables.arrays(), own)
        return compile_kernel(text)

    # --- refusals and diagnoses -------------------------------------------------------------------

    def _refuse_state_events(self) -> None:
        for event in self.network.events:
            trigger = rates.substitute(as_expression(event.trigger), self.network.inlined_rules)
            if rates.names(trigger) & set(self.network.variables):
                raise InputError(
                    f"event {event.name!r} is triggered by the state ({trigger}), which method "
                    f"{self.method!r} would miss between its steps: use method 'direct'"
                )

    def _check_size(self, first: int, out: np.ndarray) -> None:
        counts = out[:, : self.program.species]
        if counts.max(initial=0.0) > LARGEST:
            sample, _, step = np.unravel_index(int(counts.argmax()), counts.shape)
            where = np.array([self.times[step], *out[sample, :, step]])
            raise self._trouble(codes.TOO_LARGE, first + int(sample), where)

    def _trouble(self, code: int, trajectory: int, where: np.ndarray) -> SimulationError:
        state = dict(zip(self.program.variables, where[1:], strict=True))
        shown = ", ".join(f"{name}={value:.12g}" for name, value in state.items())
        place = f"at time {where[0]:.6g} in trajectory {trajectory}, where {shown}"
        if code == codes.BAD_RATE:
            return self._bad_rate(trajectory, where[0], state, place)
        reasons = {
            codes.TOO_LARGE: f"a count grew past 2^53, the largest exact whole number, {place}: "
            "shorten the time grid or check the rates",
            codes.TOO_MANY_EVENTS: f"more than max_events={self.max_events:,} events {place}: "
            "shorten the time grid, use method 'tau', or raise the budget",
            codes.EVENT_LOOP: f"events keep triggering each other {place}",
            codes.BAD_ASSIGNMENT: f"an event assigns a species what is not a count {place}",
            codes.STEP_TOO_SMALL: f"the ODE is stiff or explodes: no way on {place}",
        }
        return SimulationError(reasons[code])

    def _bad_rate(
        self, trajectory: int, time: float, state: Mapping[str, float], place: str
    ) -> SimulationError:
        values = {**self.start.parameters(trajectory, 1), **state, "time": time}
        laws = self.network.propensities
        for reaction, law in zip(self.network.reactions, laws, strict=True):
            rate = float(np.asarray(rates.evaluate(law, values)).reshape(()))
            if not 0 <= rate < np.inf:
                return SimulationError(
                    f"reaction {reaction.name!r} has the rate {rate:.6g} {place}; "
                    f"rates must be finite and >= 0: check its law {law}"
                )
            short = [name for name, by in reaction.change.items() if state[name] + by < 0]
            if rate > 0 and short:
                return SimulationError(
                    f"reaction {reaction.name!r} would make {short[0]} negative {place}; its rate "
                    f"{law} is {rate:.6g} there and must be 0 when reactants run out"
                )
        return SimulationError(f"a rate became negative or not a number {place}")
