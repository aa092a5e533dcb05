"""Formulas as automata along a trajectory, for exact solvers of Markov processes.

The memory of the automaton is what progression has left of the formula (`progression`), written out
over the grid (`unroll`). A solver runs on the product of the process and this automaton;
`simulators.exact.monitors` says what it calls.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from constraints.compile.program import Program
from constraints.compile.progression import Remainder
from constraints.compile.unroll import (
    LatchPassage,
    UnsupportedError,
    Values,
    WrittenOut,
    constant_series,
)
from constraints.errors import FormulaError
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.frames import Frame
from constraints.evaluate.semantics import Boolean

MAX_REMAINDERS = 20_000  # memories of an automaton, all steps together

Memory = Any  # a Remainder, or the verdict


class TooManyMemoriesError(FormulaError):
    """An automaton that is too large."""


def monitored(program: Program) -> FormulaMonitor | None:
    """The automaton of a program's statement; None for what is not written out (images, quantiles,
    products over steps, the rules weak and strong for the end of the grid)."""
    if program.end not in (None, "clip"):
        return None
    try:
        return FormulaMonitor(WrittenOut(program))
    except UnsupportedError:
        return None


class FormulaMonitor:
    """The automaton of one formula; see `simulators.exact.monitors.Monitor`."""

    def __init__(self, written: WrittenOut) -> None:
        self._written = written
        self._seen: tuple[int, list[Any], dict[Any, np.ndarray]] = (-1, [], {})
        self._remainders: set[int] = set()

    def __str__(self) -> str:
        return str(self._written.program.statement)

    @property
    def passages(self) -> Sequence[LatchPassage]:
        return self._written.passages

    def start(self) -> Memory:
        return self._written.whole

    def waits(self, memory: Memory, passage: int) -> bool:
        return isinstance(memory, Remainder) and ("passage", passage) in memory.reads

    def passed(self, memory: Memory, passage: int, happened: bool) -> Memory:
        if not self.waits(memory, passage):
            return memory
        return self._written.graph.progressed(memory, {("passage", passage): happened}, {})

    def read(self, memory: Memory, step: int, values: Values) -> tuple[list[Memory], np.ndarray]:
        size = np.broadcast_shapes(*(np.shape(each) for each in values.values()))
        mine = [] if isinstance(memory, bool) else sorted(
            (key for key in memory.reads if key[0] == step), key=lambda key: key[1]
        )  # fmt: skip
        if not mine:
            return [memory], np.zeros(size, dtype=np.int32)
        seen = self._seen_at(step, values, size)
        code = np.zeros(size, dtype=np.int64)
        for key in mine:
            if key not in seen:
                seen[key] = self._evaluated(key, values, size)
            levels, which = np.unique(seen[key], return_inverse=True)
            _, code = np.unique(code * len(levels) + which.reshape(size), return_inverse=True)
            code = code.reshape(size)
        _, examples = np.unique(code, return_index=True)
        options = []
        for example in examples:
            found = {key: seen[key][example].item() for key in mine}
            options.append(self._written.graph.progressed(memory, found, {}))
        self._remainders.update(id(each) for each in options)
        if len(self._remainders) > MAX_REMAINDERS:
            raise TooManyMemoriesError(
                f"{self} has to remember more than {MAX_REMAINDERS:,} different pasts",
                value=len(self._remainders),
                remedy="use simulation",
            )
        return options, code.astype(np.int32)

    def _seen_at(self, step: int, values: Values, size: tuple[int, ...]) -> dict[Any, np.ndarray]:
        """Values of leaves that were computed for these states already."""
        known, before, seen = self._seen
        arrays = [each for each in values.values() if np.shape(each) == size]
        same = len(arrays) == len(before) and all(map(operator.is_, arrays, before))
        if known != step or not same:
            seen = {}
            self._seen = (step, arrays, seen)
        return seen

    def _evaluated(self, key: Any, values: Values, size: tuple[int, ...]) -> np.ndarray:
        own = self._written.terms[key]
        if isinstance(own, Program):
            return np.broadcast_to(own.verdict(constant_series(own, values, size)).numpy(), size)
        tensors = constant_series(self._written.program, values, size)
        term = Evaluator(self._written.layout, tensors, Boolean()).term(own, Frame())
        return np.broadcast_to(term.double().numpy(), size)
