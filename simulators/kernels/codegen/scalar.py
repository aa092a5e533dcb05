"""What the one-trajectory-at-a-time kernels share: rate tables, switching times and events.

Rates are compiled by shape. `k1*A*B` and `k2*C*D` are one template with different leaves, so a
network of hundreds of reactions needs only as much code as it has kinds of rate law, and the rest
is index tables. `w` is the vector of variables followed by constants, shape (V + C,).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulators import rates
from simulators.kernels.codegen import driver, events
from simulators.kernels.codegen.code import Code, Job
from simulators.kernels.codegen.program import Program
from simulators.network import ReactionNetwork
from simulators.rates import Apply, Expression, Name
from simulators.reactions import as_expression

# helpers are only called from compiled code: without Python wrappers they compile sooner
DECORATOR = (
    '@njit(nogil=True, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)\n'
)
CACHED = '@njit(nogil=True, error_model="numpy", cache=True)\n'


@dataclass(frozen=True)
class Tables:
    """Index tables of a network, all int64.

    `kinds` (M,) and `leaves` (M, most): which template each rate is, and where its leaves are in w.
    Entries change_at[j]:change_at[j+1] of `change_what`, `change_by`: what reaction j changes;
    of `affects`, under `affects_at`: the reactions whose rates it changes.
    """

    kinds: np.ndarray
    leaves: np.ndarray
    change_at: np.ndarray
    change_what: np.ndarray
    change_by: np.ndarray
    affects_at: np.ndarray
    affects: np.ndarray

    def arrays(self) -> tuple[np.ndarray, ...]:
        return (
            self.kinds, self.leaves, self.change_at, self.change_what, self.change_by,
            self.affects_at, self.affects,
        )  # fmt: skip


def module(program: Program, functions: Sequence[Callable[..., Any]]) -> tuple[str, Tables]:
    """Source of a module with a network's `rate`, `next_stop`, latches, events, and `functions`.

    `functions` are a kernel's `follow` and what it calls.
    """
    place = _places(program)
    shapes = [_shape(rate) for rate in program.rates]
    templates = sorted({shape for shape, _ in shapes}, key=str)
    parts = [_rate_source(templates), _stop_source(program, place), _event_source(program, place)]
    parts.append(_latch_source(program, place))
    helpers: list[Callable[..., Any]] = [events.collect, events.settle, *functions]
    for function in helpers:
        parts.append(DECORATOR + inspect.getsource(function))
    parts.append(CACHED + inspect.getsource(driver.run))
    most = max((len(names) for _, names in shapes), default=0)
    leaves = np.zeros((len(shapes), most), np.int64)
    for j, (_, names) in enumerate(shapes):
        leaves[j, : len(names)] = [place[name] for name in names]
    kinds = np.array([templates.index(shape) for shape, _ in shapes], np.int64)
    return "\n\n".join(parts), _tables(program, kinds, leaves)


def code(job: Job, functions: Sequence[Callable[..., Any]], own: tuple[Any, ...] = ()) -> Code:
    """The code of a kernel: `functions` are its `follow` and what that calls, see `driver`.

    `own`: arrays and numbers that only this kernel needs, handed to `follow`.
    """
    source, tables = module(job.program, functions)
    events = job.network.events
    initially = np.array([event.initially for event in events], np.bool_)
    rules = np.array(
        [(event.priority, event.persistent, event.values_at_trigger) for event in events],
        np.float64,
    ).reshape(len(events), 3)
    return Code(source, (job.program.species, job.resumed, initially, rules, tables.arrays(), own))


def state_triggered(network: ReactionNetwork, program: Program) -> str | None:
    """Why a kernel that does not visit every state cannot take the network; None if it can."""
    for event in network.events:
        trigger = rates.substitute(as_expression(event.trigger), network.inlined_rules)
        if rates.names(trigger) & set(network.variables):
            return (
                f"event {event.name!r} is triggered by the state ({trigger}), which it would miss "
                "between its steps"
            )
    return None


def _places(program: Program) -> dict[str, int]:
    names = [*program.variables, *(f"#{c}" for c in range(len(program.constants)))]
    return {name: at for at, name in enumerate(names)}


def _shape(rate: Expression) -> tuple[Expression, tuple[str, ...]]:
    """The rate with its leaves numbered in order of appearance, and the leaves' names."""
    names: list[str] = []

    def number(node: Expression) -> Expression:
        if isinstance(node, Name) and node.name != "time":
            names.append(node.name)
            return Name(f"leaf{len(names) - 1}")
        if isinstance(node, Apply):
            return rates.apply(node.operator, *[number(part) for part in node.arguments])
        return node

    return number(rate), tuple(names)


def _rate_source(templates: list[Expression]) -> str:
    lines = ["def rate(j, t, w, kinds, leaves):", "    kind = kinds[j]"]
    for at, shape in enumerate(templates):
        rename = {name: f"w[leaves[j, {name[4:]}]]" for name in rates.names(shape)}
        code = rates.source(shape, rename | {"time": "t"})
        lines += [f"    if kind == {at}:", f"        return float({code})"]
    return DECORATOR + "\n".join([*lines, "    return 0.0"])


def _rename(place: Mapping[str, int]) -> dict[str, str]:
    return {name: f"w[{at}]" for name, at in place.items()} | {"time": "t"}


def _stop_source(program: Program, place: Mapping[str, int]) -> str:
    """The first time after t at which a rate or a trigger may switch."""
    lines = ["def next_stop(t, w):", "    first = np.inf"]
    for stop in program.stops:
        lines += [f"    at = float({rates.source(stop, _rename(place))})"]
        lines += ["    if at > t and at < first:", "        first = at"]
    return DECORATOR + "\n".join([*lines, "    return first"])


def _event_source(program: Program, place: Mapping[str, int]) -> str:
    """triggers(t, w, now) evaluates triggers; assign(e, t, w, new) the new values of event e."""
    rename = _rename(place)
    ask = ["def triggers(t, w, now):"]
    ask += [f"    now[{e}] = {rates.source(x, rename)}" for e, x in enumerate(program.triggers)]
    give = ["def assign(e, t, w, new):"]
    for e, values in enumerate(program.assignments):
        give.append(f"    if e == {e}:")
        give += [f"        new[e, {at}] = {rates.source(x, rename)}" for at, x in values.items()]
        give.append("        return")
    touched = ["def touched(e, variable):"]
    for e, values in enumerate(program.assignments):
        touched.append(f"    if e == {e}:")
        test = " or ".join(f"variable == {at}" for at in values) or "False"
        touched.append(f"        return {test}")
    parts = [[*ask, "    return"], [*give, "    return"], [*touched, "    return False"]]
    return "\n\n".join(DECORATOR + "\n".join(lines) for lines in parts)


def _latch_source(program: Program, place: Mapping[str, int]) -> str:
    """latched(t, w, now) evaluates the latches."""
    lines = ["def latched(t, w, now):"]
    for at, latch in enumerate(program.latches):
        lines.append(f"    now[{at}] = {rates.source(latch, _rename(place))}")
    return DECORATOR + "\n".join([*lines, "    return"])


def _tables(program: Program, kinds: np.ndarray, leaves: np.ndarray) -> Tables:
    readers: dict[str, list[int]] = {}
    for j, rate in enumerate(program.rates):
        for name in rates.names(rate):
            readers.setdefault(name, []).append(j)
    affected = [
        sorted({j for v in change for j in readers.get(program.variables[v], [])})
        for change in program.changes
    ]

    def flat(rows: list[list[int]]) -> np.ndarray:
        return np.array([value for row in rows for value in row], np.int64)

    def starts(rows: list[list[int]]) -> np.ndarray:
        return np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)

    what = [list(change) for change in program.changes]
    by = [list(change.values()) for change in program.changes]
    return Tables(
        kinds, leaves, starts(what), flat(what), flat(by), starts(affected), flat(affected)
    )
