"""Choosing and running a kernel; what its error codes mean in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from simulators import rates
from simulators.errors import InputError, Remedy, Setting, SimulationError, unknown
from simulators.kernels import Job, choose, facts, methods
from simulators.kernels.codegen import codes
from simulators.kernels.codegen.build import compile_kernel, forget
from simulators.kernels.codegen.program import Program, lower
from simulators.network import ReactionNetwork
from simulators.quantities import MAX_COUNT
from simulators.start import Start


@dataclass(frozen=True)
class Beginning:
    """Where trajectories begin: `states` (n, V) at times[0], with their parameters, each a number
    or (n,). `resumed`: trajectories have reached these states, so events have seen them already.
    Numbers of the i-th follow from `seed` and its index.
    """

    states: np.ndarray
    parameters: Mapping[str, Any]
    times: np.ndarray
    seed: int
    resumed: bool = False


@dataclass
class Engine:
    """One network with its start, ready to fill trajectories of any slice of the ensemble.

    The registry of kernels chooses one for `method` and the network, unless `kernel` names it.
    Whatever is chosen, a trajectory depends on (seed, index) only. `latches`: expressions of the
    state, of which the greatest value between grid times is recorded, in L rows after the V
    variables.
    """

    network: ReactionNetwork
    start: Start
    times: np.ndarray
    seed: int = 0
    method: str = "direct"
    kernel: str | None = None
    max_events: int = 100_000_000
    latches: Sequence[str] = ()
    stop: np.ndarray = field(default_factory=lambda: np.zeros(1, np.bool_))

    def __post_init__(self) -> None:
        known = facts(self.method)
        self.exact, self.discrete = known.exact, known.discrete
        values = self.start.parameters(0, 1)
        self.program: Program = lower(
            self.network,
            self.network.propensities if self.discrete else self.network.mean_field,
            {name: values[name] for name in values if name not in self.start.varying},
            smooth_time=not self.discrete,
            smooth_methods=[name for name, each in methods().items() if not each.discrete],
            latches=self.latch_expressions,
        )
        self._algorithm = choose(self.method, self.network, self.program, self.kernel)
        self.kernel = self._algorithm.name
        self._varying = frozenset(
            index
            for index, constant in enumerate(self.program.constants)
            if rates.names(constant) & set(self.start.varying)
        )
        largest = max((by for change in self.program.changes for by in change.values()), default=0)
        grown = float(largest) * self.max_events >= MAX_COUNT
        self._may_outgrow = self.exact and (grown or bool(self.network.events))
        self._ready: dict[tuple[bool, bool], tuple[Callable[..., Any], tuple[Any, ...]]] = {}

    def prepare(self) -> None:
        """Compile, or load the compiled code, before any clock runs."""
        size = len(self.network.variables)
        nothing, anywhere = np.empty((0, self.rows, self.times.size)), np.zeros((1, size))
        begin = Beginning(anywhere, self.start.parameters(0, 1), self.times, self.seed)
        try:
            self._run(0, begin, nothing)
        except Exception:  # numba raises many kinds on damaged cache files
            for run, _ in self._ready.values():
                forget(run)
            self._ready.clear()
            self._run(0, begin, nothing)

    @cached_property
    def latch_expressions(self) -> tuple[rates.Expression, ...]:
        """The latches over variables and parameters, rules written out."""
        rules = self.network.inlined_rules
        return tuple(rates.substitute(self._latch(text), rules) for text in self.latches)

    @property
    def rows(self) -> int:
        """V + L: recorded numbers at each time."""
        return len(self.network.variables) + len(self.latches)

    def _latch(self, text: str) -> rates.Expression:
        found = rates.parse(text)
        known = (*self.network.variables, *self.network.parameters, *self.network.rules)
        for name in sorted(rates.names(found)):
            if name not in known:
                raise unknown("name", name, dict.fromkeys(known)).at(f"in {text!r}")
        if rates.kind(found) != "real":
            raise InputError(
                f"the latch {text!r} is a condition, not a number",
                value=text,
                remedy="give an expression whose greatest value is to be recorded, such as X",
            )
        return found

    def fill(self, first: int, out: np.ndarray) -> None:
        """Trajectories first .. first + n - 1 into out, float64 (n, V + L, T)."""
        count = out.shape[0]
        states, parameters = self.start.states(first, count), self.start.parameters(first, count)
        self.follow(first, Beginning(states, parameters, self.times, self.seed), out)

    def follow(self, first: int, begin: Beginning, out: np.ndarray) -> None:
        """Trajectories from any states at any time into out, float64 (n, V + L, T)."""
        report, where = self._run(first, begin, out)
        if report[0]:
            raise self._trouble(int(report[0]), first, int(report[1]), where, begin.parameters)
        if self._may_outgrow and not self.stop[0]:
            self._check_size(first, begin, out)

    # --- running ----------------------------------------------------------------------------------

    def _run(self, first: int, begin: Beginning, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        constants = self.program.constant_values(begin.parameters, len(begin.states))
        # a kernel with checks gives the same numbers, so the choice may differ between chunks
        checked = self._algorithm.needs_checks(self.program, constants)
        report, where = np.zeros(2, np.int64), np.zeros(1 + len(self.program.variables))
        run, tables = self._compiled(checked, begin.resumed)
        run(
            np.uint64(begin.seed), first, begin.states, constants, begin.times, out,
            report, where, self.max_events, self.stop, *tables,
        )  # fmt: skip
        return report, where

    def _compiled(self, checked: bool, resumed: bool) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if (checked, resumed) not in self._ready:
            job = Job(self.network, self.program, self._varying, checked, resumed)
            code = self._algorithm.generate(job)
            self._ready[checked, resumed] = compile_kernel(code.source), code.tables
        return self._ready[checked, resumed]

    # --- diagnoses --------------------------------------------------------------------------------

    def _check_size(self, first: int, begin: Beginning, out: np.ndarray) -> None:
        counts = out[:, : self.program.species]
        if counts.max(initial=0.0) > MAX_COUNT:
            sample, _, step = np.unravel_index(int(counts.argmax()), counts.shape)
            where = np.array([begin.times[step], *out[sample, :, step]])
            trajectory = first + int(sample)
            raise self._trouble(codes.TOO_LARGE, first, trajectory, where, begin.parameters)

    def _trouble(
        self,
        code: int,
        first: int,
        trajectory: int,
        where: np.ndarray,
        parameters: Mapping[str, Any],
    ) -> SimulationError:
        state = dict(zip(self.program.variables, where[1:], strict=True))
        shown = ", ".join(f"{name}={value:.12g}" for name, value in state.items())
        place = f"at time {where[0]:.6g} in trajectory {trajectory}, where {shown}"
        if code == codes.BAD_RATE:
            own = {
                name: float(value if np.ndim(value) == 0 else value[trajectory - first])
                for name, value in parameters.items()
            }
            return self._bad_rate({**own, **state, "time": float(where[0])}, state, place)
        if code == codes.TOO_MANY_EVENTS:
            return self._over_budget(place)
        shorter: Remedy = ("shorten the time grid (", Setting("until"), ") or check the rates")
        reasons: dict[int, tuple[str, Remedy]] = {
            codes.TOO_LARGE: ("a count grew past 2^53, the largest exact whole number,", shorter),
            codes.EVENT_LOOP: (
                "events keep triggering each other",
                "write triggers that an event's own assignments do not meet again",
            ),
            codes.BAD_ASSIGNMENT: (
                "an event assigns a species a value that is not a count",
                "assign whole numbers >= 0, with floor(...) where needed",
            ),
            codes.STEP_TOO_SMALL: ("the ODE is stiff or explodes: its step vanishes", shorter),
        }
        problem, remedy = reasons[code]
        return SimulationError(f"{problem} {place}", value=state, remedy=remedy)

    def _over_budget(self, place: str) -> SimulationError:
        leaps = [k for k, each in methods().items() if self.exact and each.discrete > each.exact]
        return SimulationError(
            f"more than max_events={self.max_events:,} events {place}",
            value=self.max_events,
            remedy=(
                "shorten the time grid (", Setting("until"), "), ",
                *(("use ", Setting("method", leaps[0]), ", ") if leaps else ()),
                "or raise ", Setting("max_events"),
            ),
        )  # fmt: skip

    def _bad_rate(
        self, values: Mapping[str, float], state: Mapping[str, float], place: str
    ) -> SimulationError:
        laws = self.network.propensities
        for reaction, law in zip(self.network.reactions, laws, strict=True):
            rate = float(np.asarray(rates.evaluate(law, values)).reshape(()))
            if not 0 <= rate < np.inf:
                return SimulationError(
                    f"reaction {reaction.name!r} has the rate {rate:.6g} {place}",
                    value=rate,
                    remedy=f"rates must be finite and >= 0: check its law {law}",
                )
            short = [name for name, by in reaction.change.items() if state[name] + by < 0]
            if rate > 0 and short:
                return SimulationError(
                    f"reaction {reaction.name!r} would make {short[0]} negative {place}: its "
                    f"rate {law} is {rate:.6g}",
                    value=rate,
                    remedy="the rate must be 0 when reactants run out",
                )
        return SimulationError(
            f"a rate became negative or not a number {place}",
            value=state,
            remedy="check the rate laws there",
        )
