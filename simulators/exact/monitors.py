"""Monitors: conditions on whole trajectories, as deterministic automata that run along them.

A monitor has a memory. It reads the state at each grid step, and is told of first passages in
continuous time; the memories `True` and `False` are its final verdicts. A Markov chain and the
memory together are a Markov chain again (Baier, Haverkort, Hermanns & Katoen 2003), on which
`master_equation` solves exactly:

    exists("I >= 30", 0, 9)               at some step
    until("I < 5", "S < 50")              I < 5 at every step before the first with S < 50
    count("I > 20", at_least=3)           at three steps or more
    before("I >= 30", "R >= 50")          the first of I >= 30 comes earlier than that of R >= 50
    reaches("X >= 80", 0, 100)            at some moment of model time, between grid times too

and what `&`, `|` and `~` make of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Protocol, runtime_checkable

import numpy as np

from simulators.errors import InputError

Memory = Hashable
Values = Mapping[str, Any]
Test = Callable[[Values], Any]  # values (n,) by name -> booleans (n,)
Reading = tuple[list[Memory], np.ndarray]  # the memories that follow, and which of them, (n,)


class Passage(Protocol):
    """A set of states and a window [first, last] of model time in which it may be entered."""

    @property
    def first(self) -> float: ...
    @property
    def last(self) -> float: ...
    def holds(self, values: Values) -> np.ndarray: ...


@runtime_checkable
class Monitor(Protocol):
    """An automaton along a trajectory; a memory that is a bool is its verdict and stays."""

    @property
    def passages(self) -> Sequence[Passage]: ...
    def start(self) -> Memory: ...
    def read(self, memory: Memory, step: int, values: Values) -> Reading:
        """The memories after reading the states (n,) at a step: which[i] indexes the list."""
        ...

    def waits(self, memory: Memory, passage: int) -> bool:
        """Whether what comes of a memory depends on a passage."""
        ...

    def passed(self, memory: Memory, passage: int, happened: bool) -> Memory:
        """The memory once a passage has happened, or its window is over without it."""
        ...


class Condition(ABC):
    """A monitor as it is written: predicates as text or functions, to be bound to a network."""

    def __and__(self, other: Condition) -> Condition:
        return _Joined((self, other), every=True)

    def __or__(self, other: Condition) -> Condition:
        return _Joined((self, other), every=False)

    def __invert__(self) -> Condition:
        return _Negated(self)

    @abstractmethod
    def bound(self, read: Callable[[Any], Test], steps: int) -> Monitor:
        """The monitor on a grid of `steps`, its predicates read."""


# --- automata over the steps ----------------------------------------------------------------------


@dataclass(frozen=True)
class _Automaton(Condition, ABC):
    """Predicates at the steps first..last; `after` moves on, `verdict` judges at the end."""

    predicates: tuple[Any, ...]
    first: int = 0
    last: int | None = None

    passages = ()

    @abstractmethod
    def start(self) -> Memory: ...
    @abstractmethod
    def after(self, memory: Any, truths: tuple[bool, ...]) -> Memory: ...
    @abstractmethod
    def verdict(self, memory: Any) -> bool: ...

    def bound(self, read: Callable[[Any], Test], steps: int) -> _Automaton:
        last = steps - 1 if self.last is None else self.last
        if not 0 <= self.first <= last < steps:
            raise InputError(
                f"the window [{self.first}, {last}] is not on the grid: steps are 0..{steps - 1}",
                value=(self.first, last),
            )
        return replace(self, predicates=tuple(map(read, self.predicates)), last=last)

    def read(self, memory: Memory, step: int, values: Values) -> Reading:
        size = np.broadcast_shapes(*(np.shape(each) for each in values.values()))
        if isinstance(memory, bool) or step < self.first:
            return [memory], np.zeros(size, dtype=np.int16)
        code = np.zeros(size, dtype=np.int16)
        for place, test in enumerate(self.predicates):
            code |= np.asarray(test(values), dtype=bool).astype(np.int16) << place
        patterns = product((False, True), repeat=len(self.predicates))
        then = [self.after(memory, truths[::-1]) for truths in patterns]
        if step == self.last:
            then = [each if isinstance(each, bool) else self.verdict(each) for each in then]
        return then, code

    def waits(self, memory: Memory, passage: int) -> bool:
        return False

    def passed(self, memory: Memory, passage: int, happened: bool) -> Memory:
        return memory


class _Exists(_Automaton):
    def start(self) -> Memory:
        return "not yet"

    def after(self, memory: Memory, truths: tuple[bool, ...]) -> Memory:
        return True if truths[0] else memory

    def verdict(self, memory: Memory) -> bool:
        return False

    def __str__(self) -> str:
        return f"exists({self.predicates[0]})"


class _Until(_Automaton):
    def start(self) -> Memory:
        return "so far"

    def after(self, memory: Memory, truths: tuple[bool, ...]) -> Memory:
        left, right = truths
        return right or (memory if left else False)

    def verdict(self, memory: Memory) -> bool:
        return False

    def __str__(self) -> str:
        return f"({self.predicates[0]}) until ({self.predicates[1]})"


class _Before(_Automaton):
    def start(self) -> Memory:
        return "neither"

    def after(self, memory: Memory, truths: tuple[bool, ...]) -> Memory:
        one, other = truths
        return one and not other if one or other else memory

    def verdict(self, memory: Memory) -> bool:
        return False

    def __str__(self) -> str:
        return f"({self.predicates[0]}) before ({self.predicates[1]})"


@dataclass(frozen=True)
class _Count(_Automaton):
    at_least: int = 0
    at_most: int | None = None

    def start(self) -> Memory:
        return 0, self.at_least <= 0  # how often, and whether that is enough

    def after(self, memory: Any, truths: tuple[bool, ...]) -> Memory:
        so_far = memory[0] + truths[0]
        if self.at_most is not None and so_far > self.at_most:
            return False
        if self.at_most is None and so_far >= self.at_least:
            return True
        return so_far, so_far >= self.at_least

    def verdict(self, memory: Any) -> bool:
        return bool(memory[1])

    def __str__(self) -> str:
        return f"count({self.predicates[0]}) in [{self.at_least}, {self.at_most}]"


def exists(predicate: Any, first: int = 0, last: int | None = None) -> Condition:
    """The predicate holds at some step first..last."""
    return _Exists((predicate,), first, last)


def until(left: Any, right: Any, first: int = 0, last: int | None = None) -> Condition:
    """`right` holds at some step first..last, and `left` at every step first.. before it."""
    return _Until((left, right), first, last)


def before(one: Any, other: Any, first: int = 0, last: int | None = None) -> Condition:
    """`one` holds at some step first..last, and `other` neither there nor earlier."""
    return _Before((one, other), first, last)


def count(
    predicate: Any,
    at_least: int = 0,
    at_most: int | None = None,
    first: int = 0,
    last: int | None = None,
) -> Condition:
    """The predicate holds at so many of the steps first..last."""
    return _Count((predicate,), first, last, at_least, at_most)


# --- first passage --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reaches(Condition):
    predicate: Any
    first: float
    last: float

    def bound(self, read: Callable[[Any], Test], steps: int) -> Monitor:
        return replace(self, predicate=read(self.predicate))

    def holds(self, values: Values) -> np.ndarray:
        size = np.broadcast_shapes(*(np.shape(each) for each in values.values()))
        return np.broadcast_to(np.asarray(self.predicate(values), dtype=bool), size)

    @property
    def passages(self) -> Sequence[Passage]:
        return (self,)

    def start(self) -> Memory:
        return "not yet"

    def read(self, memory: Memory, step: int, values: Values) -> Reading:
        size = np.broadcast_shapes(*(np.shape(each) for each in values.values()))
        return [memory], np.zeros(size, dtype=np.int16)

    def waits(self, memory: Memory, passage: int) -> bool:
        return not isinstance(memory, bool)

    def passed(self, memory: Memory, passage: int, happened: bool) -> Memory:
        return memory if isinstance(memory, bool) else happened

    def __str__(self) -> str:
        return f"reaches({self.predicate}, {self.first:g}, {self.last:g})"


def reaches(predicate: Any, first: float, last: float) -> Condition:
    """The state is one of those at some moment of model time in [first, last]."""
    if not first <= last:
        raise InputError(
            f"reaches has the window [{first:g}, {last:g}], which is reversed", value=(first, last)
        )
    return _Reaches(predicate, float(first), float(last))


# --- connectives ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Joined(Condition):
    """All of the parts, or some of them: the memory is the tuple of theirs."""

    parts: tuple[Any, ...]
    every: bool

    def bound(self, read: Callable[[Any], Test], steps: int) -> Monitor:
        parts = tuple(part.bound(read, steps) for part in self.parts)
        return replace(self, parts=parts)

    @property
    def passages(self) -> Sequence[Passage]:
        return tuple(passage for part in self.parts for passage in part.passages)

    def _settled(self, memories: tuple[Memory, ...]) -> Memory:
        if (not self.every) in (each for each in memories if isinstance(each, bool)):
            return not self.every
        if all(isinstance(each, bool) for each in memories):
            return self.every
        return memories

    def start(self) -> Memory:
        return self._settled(tuple(part.start() for part in self.parts))

    def read(self, memory: Any, step: int, values: Values) -> Reading:
        memories = (memory,) * len(self.parts) if isinstance(memory, bool) else memory
        choices, code = [], np.zeros((), dtype=np.int64)
        for part, own in zip(self.parts, memories, strict=True):
            then, which = part.read(own, step, values)
            code = code * len(then) + which
            choices.append(then)
        found, which = np.unique(code, return_inverse=True)
        every = list(product(*choices))
        return [self._settled(every[i]) for i in found], which.reshape(code.shape)

    def _own(self, passage: int) -> tuple[int, int]:
        """The part that a passage belongs to, and its number there."""
        for place, part in enumerate(self.parts):
            if passage < len(part.passages):
                return place, passage
            passage -= len(part.passages)
        raise AssertionError(passage)

    def waits(self, memory: Any, passage: int) -> bool:
        place, own = self._own(passage)
        return not isinstance(memory, bool) and bool(self.parts[place].waits(memory[place], own))

    def passed(self, memory: Any, passage: int, happened: bool) -> Memory:
        if isinstance(memory, bool):
            return memory
        place, own = self._own(passage)
        then = self.parts[place].passed(memory[place], own, happened)
        return self._settled((*memory[:place], then, *memory[place + 1 :]))

    def __str__(self) -> str:
        return (" and " if self.every else " or ").join(f"({part})" for part in self.parts)


@dataclass(frozen=True)
class _Negated(Condition):
    part: Any

    def bound(self, read: Callable[[Any], Test], steps: int) -> Monitor:
        return replace(self, part=self.part.bound(read, steps))

    @property
    def passages(self) -> Sequence[Passage]:
        own: Sequence[Passage] = self.part.passages
        return own

    def start(self) -> Memory:
        return _opposite(self.part.start())

    def read(self, memory: Memory, step: int, values: Values) -> Reading:
        then, which = self.part.read(_opposite(memory), step, values)
        return [_opposite(each) for each in then], which

    def waits(self, memory: Memory, passage: int) -> bool:
        return bool(self.part.waits(_opposite(memory), passage))

    def passed(self, memory: Memory, passage: int, happened: bool) -> Memory:
        return _opposite(self.part.passed(_opposite(memory), passage, happened))

    def __str__(self) -> str:
        return f"not ({self.part})"


def joined(monitors: Sequence[Monitor]) -> Monitor:
    """All of some monitors, as one."""
    if len(monitors) == 1:
        return monitors[0]
    return _Joined(tuple(monitors), every=True)


def _opposite(memory: Memory) -> Memory:
    return not memory if isinstance(memory, bool) else memory
