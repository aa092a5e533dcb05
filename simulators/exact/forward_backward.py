"""Forward-backward recursions of a Markov chain on a time grid, under conditions.

With masks m_k at the steps k (Rabiner 1989),

    π_k = α_{k-1} exp(Q h_k),   α_k ∝ m_k π_k,   β_{k-1} ∝ exp(Q h_k) (m_k β_k),
    P(x_k = x | C) ∝ π_k m_k β_k,

scaled at each step, so that log P(C) is a sum of logarithms. Conditions on whole trajectories are
monitors (`monitors`): all vectors exist once for each memory that a trajectory may have by then,
and a first passage adds a latch to the chain while its window lasts (`latches`). What a memory
settles to be false is dropped at once.

The recursions run over *stages*: the times of the grid, and the ends of windows between them. If
the messages of all stages do not fit, some are kept and the others computed again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from simulators.errors import InputError, SimulationError
from simulators.exact import chain as chains
from simulators.exact.chain import Chain, Tick, backwards
from simulators.exact.conditions import Conditions
from simulators.exact.latches import Fate, Latched
from simulators.exact.monitors import Memory, Passage

Layers = dict[Memory, np.ndarray]  # probabilities (n,) by memory
Messages = dict[Memory, Any]  # messages (n,) by memory, or the number that they all are
MAX_LATCHES = 4  # windows of first passages open at one time


@dataclass(frozen=True)
class Stage:
    """A time at which something is read: a grid step, and passages whose windows open or close.

    `gap`: the time until the next stage; `running`: passages whose windows are open in it.
    """

    time: float
    step: int | None
    opens: tuple[int, ...]
    closes: tuple[int, ...]
    gap: float
    running: tuple[int, ...]


class NothingLeftError(Exception):
    """No probability is left at a stage."""

    def __init__(self, time: float, step: int | None) -> None:
        self.time, self.step = time, step


class Recursion:
    """One chain (n,), one start (n,), one set of conditions.

    `values`: arrays (n,) by name, that conditions read; `least`: as in `chain.poisson`.
    """

    def __init__(
        self,
        chain: Chain,
        start: np.ndarray,
        where: Conditions,
        values: dict[str, Any],
        least: float,
        tick: Tick = lambda share: None,
    ) -> None:
        self.chain, self.where, self.least = chain, where, least
        self._start, self._values, self._tick = start, values, tick
        self.monitor = where.monitor
        passages = self.monitor.passages if self.monitor else ()
        self.stages = stages(where.times, passages)
        self.duration = float(np.ptp(where.times))
        self._passages = [np.asarray(each.holds(where.given(0, values))) for each in passages]
        self._latched: dict[Any, Latched] = {}
        of_step = {stage.step: s for s, stage in enumerate(self.stages)}
        self.last_mask = of_step.get(where.last, -1)
        self.first_memory: Memory = self.monitor.start() if self.monitor else True
        # the memories before each stage with a positive probability, once `filter` has run
        self.memories: list[list[Memory]] = []

    def _masked(self, stage: Stage) -> bool:
        return stage.step is not None and self.where.active(stage.step)

    # --- forwards ---------------------------------------------------------------------------------

    def filter(self, *, absorb: bool = False) -> Iterator[tuple[int, Layers, float, float]]:
        """For each stage: its number, π by memory before it is read, log P of the conditions up to
        and including it, and a bound on the error of all probabilities so far.

        `absorb`: probability that has met all conditions stays where it is, under the memory
        "done": enough for P.
        """
        layers: Layers = {} if self.first_memory is False else {self.first_memory: self._start}
        done, log_probability, error = 0.0, 0.0, 0.0
        memories: list[list[Memory]] = []
        for s, stage in enumerate(self.stages):
            memories.append(list(layers))
            before, pending = layers, any(memory is not True for memory in layers)
            layers = self._read(s, layers)
            left = done + sum(float(each.sum()) for each in layers.values())
            if left == 0.0:
                raise NothingLeftError(stage.time, stage.step)
            if pending or s <= self.last_mask:  # what is lost later does not count
                log_probability += float(np.log(left))
            error /= left
            yield s, before, log_probability, error
            layers, done = {memory: each / left for memory, each in layers.items()}, done / left
            if absorb and s >= self.last_mask:
                done += float(layers.pop(True, np.zeros(1)).sum())
            if s + 1 < len(self.stages):
                layers, more, lost = self._ahead(s, layers, absorb and s >= self.last_mask)
                done, error = done + more, error + lost
        self.memories = memories

    def run(self, absorb: bool) -> tuple[float, float]:
        """`filter` to its end: log P of all conditions, and a bound on its relative error."""
        ((_, _, log_probability, error),) = deque(self.filter(absorb=absorb), maxlen=1)
        return log_probability, error

    def _ahead(self, s: int, layers: Layers, absorb: bool) -> tuple[Layers, float, float]:
        """Over the gap after a stage; with it what was absorbed, and a bound on the error."""
        stage, then, done, error = self.stages[s], dict[Memory, np.ndarray](), 0.0, 0.0
        work = [(memory, now, self._waiting(s, memory)) for memory, now in layers.items()]
        for number, (memory, now, waiting) in enumerate(work):
            tick = self._within(stage, number, len(work))
            if not waiting:
                error += self.chain.error(stage.gap, self.least)
                _add(then, memory, self.chain.forward(now, stage.gap, self.least, tick))
                continue
            latched, after = self._latches(memory, waiting, absorb)
            error += latched.chain.error(stage.gap, self.least)
            found = latched.chain.forward(latched.entered(now), stage.gap, self.least, tick)
            if latched.sink is not None:
                done += float(found[latched.sink])
            for copy in np.unique(latched.copies):
                _add(then, after[copy], latched.of_copy(found, copy))
        return {k: each for k, each in then.items() if each.any()}, done, error

    def _read(self, s: int, layers: Layers) -> Layers:
        """The layers after a stage is read: split by memory, masked."""
        stage, then = self.stages[s], dict[Memory, np.ndarray]()
        for memory, now in layers.items():
            options, which = self.transitions(s, memory)
            for place, option in enumerate(options):
                if option is not False:
                    _add(then, option, now if len(options) == 1 else now * (which == place))
        if self._masked(stage):
            mask = self.mask(s)
            then = {memory: each * mask for memory, each in then.items()}
        return {memory: each for memory, each in then.items() if each.any()}

    # --- backwards --------------------------------------------------------------------------------

    def messages(self) -> Iterator[tuple[int, Messages]]:
        """m β of each stage by memory, in the order of time, with maximum 1 over all memories.

        After `filter` has run to its end. A number in place of a vector is the same for all states.
        """
        count = len(self.stages)
        vectors = max(len(memories) for memories in self.memories)
        held = int(chains.MAX_HELD_BYTES / (8 * len(self.chain) * vectors))
        last = self._before(count - 1, None)
        yield from backwards(last, count, self._before, held)

    def _before(self, s: int, following: Messages | None) -> Messages:
        """The messages of a stage from those of the next one (None: it is the last)."""
        stage, found, after = self.stages[s], Messages(), Messages()
        mask = self.mask(s) if self._masked(stage) else None
        for memory in self.memories[s]:
            options, which = self.transitions(s, memory)
            for option in options:
                if option is not False and option not in after:
                    after[option] = self._behind(s, option, following)
            values = [after.get(option, 0.0) for option in options]
            message: Any = values[0]
            if len(values) > 1:
                message = np.zeros(len(self.chain))
                for place, value in enumerate(values):
                    chosen = which == place
                    message[chosen] = value[chosen] if isinstance(value, np.ndarray) else value
            found[memory] = message if mask is None else message * mask
        largest = max(float(np.max(each)) for each in found.values())
        scale = largest or 1.0
        return {memory: each / scale for memory, each in found.items()}

    def _behind(self, s: int, memory: Memory, following: Messages | None) -> Any:
        """The message just after a stage is read, for a memory."""
        if following is None:
            if not isinstance(memory, bool):
                raise InputError(
                    "a condition is not decided by the last time of the grid", value=memory
                )
            return 1.0
        stage, waiting = self.stages[s], self._waiting(s, memory)
        begin, scale = stage.time - self.stages[0].time, self.duration or 1.0

        def tick(share: float) -> None:
            self._tick(1.0 - (begin + (1.0 - share) * stage.gap) / scale)

        if not waiting:
            message = following.get(memory, 0.0)
            if not isinstance(message, np.ndarray):
                return message
            return self.chain.backward(message, stage.gap, self.least, tick)
        absorb = not isinstance(following.get(True, 0.0), np.ndarray)
        latched, after = self._latches(memory, waiting, absorb)
        ends = self.product_message(latched, after, following)
        found = latched.chain.backward(ends, stage.gap, self.least, tick)
        return latched.of_copy(found, 0)

    def product_message(
        self, latched: Latched, after: Sequence[Memory], following: Messages
    ) -> np.ndarray:
        """The messages of the next stage over the states of a product with latches."""
        ends = np.zeros(len(latched.chain))
        for copy in np.unique(latched.copies):
            message = following.get(after[copy], 0.0)
            mine = np.flatnonzero(latched.copies == copy)
            constant = not isinstance(message, np.ndarray)
            ends[mine] = message if constant else message[latched.origins[mine]]
        if latched.sink is not None:
            ends[latched.sink] = following.get(True, 0.0)
        return ends

    def check_reached(self, together: float) -> None:
        """Refuse what forward and backward recursions, multiplied, say is impossible."""
        if together == 0.0:
            raise SimulationError(
                f"too rare for double precision between two steps: {self.where}",
                value=str(self.where),
                remedy="use a finer time grid, or relax the conditions",
            )

    # --- the product ------------------------------------------------------------------------------

    def mask(self, s: int) -> np.ndarray:
        step = self.stages[s].step
        assert step is not None
        return self.where.mask(step, self._values)

    def transitions(self, s: int, memory: Memory) -> tuple[list[Memory], np.ndarray]:
        """What a memory becomes when a stage is read: the memories, and which of them (n,)."""
        options, which = [memory], np.zeros(len(self.chain), dtype=np.int32)
        monitor, stage = self.monitor, self.stages[s]
        if monitor is None or isinstance(memory, bool):
            return options, which
        nowhere = np.zeros(len(self.chain), dtype=np.int32)
        for passage in stage.opens:
            inside = self._passages[passage].astype(np.int32)
            for_each = [
                ([each, monitor.passed(each, passage, True)], inside)
                if monitor.waits(each, passage)
                else ([each], nowhere)
                for each in options
            ]
            options, which = _composed(for_each, which)
        for passage in stage.closes:
            options = [monitor.passed(each, passage, False) for each in options]
        if stage.step is not None:
            values = self.where.given(stage.step, self._values)
            for_each = [monitor.read(each, stage.step, values) for each in options]
            options, which = _composed(for_each, which)
        distinct = list(dict.fromkeys(options))
        if len(distinct) < len(options):
            which = np.array([distinct.index(each) for each in options], dtype=np.int32)[which]
        return distinct, which

    def _waiting(self, s: int, memory: Memory) -> tuple[int, ...]:
        """The passages in the gap after a stage that a memory waits for."""
        monitor = self.monitor
        if monitor is None or isinstance(memory, bool):
            return ()
        return tuple(p for p in self.stages[s].running if monitor.waits(memory, p))

    def latched(self, s: int, memory: Memory) -> tuple[Latched, list[Memory]] | None:
        """The chain with latches over the gap after a stage, and the memory of each copy; None
        where the memory waits for no passage."""
        waiting = self._waiting(s, memory)
        return self._latches(memory, waiting, False) if waiting else None

    def _latches(
        self, memory: Memory, waiting: tuple[int, ...], absorb: bool
    ) -> tuple[Latched, list[Memory]]:
        assert self.monitor is not None
        if len(waiting) > MAX_LATCHES:
            raise InputError(
                f"{len(waiting)} first passages have windows that overlap, at most {MAX_LATCHES} "
                "can be solved together",
                value=len(waiting),
                remedy="state fewer of them, or use simulation",
            )
        after, fates = [], list[Fate]()
        for copy in range(2 ** len(waiting)):
            then = memory
            for latch, passage in enumerate(waiting):
                if copy >> latch & 1:
                    then = self.monitor.passed(then, passage, True)
            after.append(then)
            fates.append("lost" if then is False else "sink" if absorb and then is True else "live")
        key = (waiting, tuple(fates))
        if key not in self._latched:
            sets = [self._passages[passage] for passage in waiting]
            self._latched[key] = Latched(self.chain, sets, fates)
        return self._latched[key], after

    def _within(self, stage: Stage, number: int, count: int) -> Tick:
        """Progress within a gap, as a share of all times."""
        begin, scale = stage.time - self.stages[0].time, self.duration or 1.0
        return lambda share: self._tick((begin + (number + share) / count * stage.gap) / scale)


def stages(times: np.ndarray, passages: Sequence[Passage]) -> list[Stage]:
    """The times of the grid and the ends of the windows, in order."""
    near = 1e-9 * max(float(np.ptp(times)), 1e-300)

    def placed(time: float, passage: Passage) -> float:
        at = float(times[np.abs(times - time).argmin()])
        time = at if abs(at - time) <= near else time
        if not times[0] <= time <= times[-1]:
            raise InputError(
                f"{passage} has a window that is not within the times of the grid, "
                f"{times[0]:g} to {times[-1]:g}",
                value=time,
                remedy="move the window, or give a longer grid",
            )
        return time

    windows = [(placed(each.first, each), placed(each.last, each)) for each in passages]
    marks = sorted({*map(float, times), *(end for window in windows for end in window)})
    steps = {float(time): step for step, time in enumerate(times)}
    found = []
    for time, following in zip(marks, [*marks[1:], None], strict=True):
        found.append(
            Stage(
                time,
                steps.get(time),
                tuple(p for p, (first, _) in enumerate(windows) if first == time),
                tuple(p for p, (_, last) in enumerate(windows) if last == time),
                0.0 if following is None else following - time,
                tuple(p for p, (first, last) in enumerate(windows) if first <= time < last),
            )
        )
    return found


def _add(layers: Layers, memory: Memory, vector: np.ndarray) -> None:
    layers[memory] = layers[memory] + vector if memory in layers else vector


def _composed(
    for_each: Sequence[tuple[list[Memory], np.ndarray]], which: np.ndarray
) -> tuple[list[Memory], np.ndarray]:
    """Options that split again, option by option."""
    if len(for_each) == 1:
        return for_each[0][0], np.broadcast_to(for_each[0][1], which.shape)
    options: list[Memory] = []
    out = np.zeros_like(which)
    for place, (own, inner) in enumerate(for_each):
        chosen = which == place
        out[chosen] = len(options) + np.broadcast_to(inner, which.shape)[chosen]
        options += own
    return options, out
