"""Ensembles: many trajectories of one network, in memory or streamed to a file."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import xarray as xr

from simulators import dataset
from simulators.engine import Engine
from simulators.errors import InputError
from simulators.network import ReactionNetwork
from simulators.random import check_seed
from simulators.start import Initial, Start

Progress = Callable[[int], None]
BLOCK_BYTES = 48_000_000  # of trajectories in float64: what bounds memory when streaming
TASK_BYTES = 3_000_000  # of these, what one thread works on at a time: it stays in the cache
TASK_SECONDS = 0.2  # how long a piece of work should take at most, for smooth progress
FEWEST, FIRST_PIECE = 64, 512  # trajectories in a piece of work
MOST_THREADS = 1024


def simulate(
    network: ReactionNetwork,
    samples: int = 1_000,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    method: str = "direct",
    threads: int | None = None,
    first: int = 0,
    max_events: int = 100_000_000,
    progress: Progress | None = None,
) -> xr.Dataset:
    """Trajectories of a network: integer variables (sample, time), one per species.

    `times`: increasing grid; the initial state holds at its first time.
    `initial`: species -> count, (low, high), scipy distribution or one value per trajectory;
    "uniform"; None for the network's own. `parameters`: the same for parameters; those that vary
    become variables. `method`: "direct" (exact), "tau" (leaps, for large populations) or "ode"
    (mean field). `first`: index of the first trajectory, so that parts of one ensemble can be made
    apart. Same seed, same numbers, whatever the threads.
    """
    engine = make_engine(
        network, samples, times, seed, initial, parameters, method, max_events, first
    )
    made: dict[str, np.ndarray] = {}
    for at, block in blocks(engine, samples, threads=threads, first=first, progress=progress):
        for name, values in block.items():
            if len(values) == samples:
                made[name] = values
                continue
            if name not in made:
                made[name] = np.empty((samples, *values.shape[1:]), values.dtype)
            elif values.dtype.itemsize > made[name].dtype.itemsize:
                made[name] = made[name].astype(values.dtype)
            made[name][at - first : at - first + len(values)] = values
    return dataset.frame(engine, made, samples, first)


def make_engine(
    network: ReactionNetwork,
    samples: int,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    method: str = "direct",
    max_events: int = 100_000_000,
    first: int = 0,
) -> Engine:
    """Everything `simulate` checks before it runs."""
    if not isinstance(network, ReactionNetwork):
        raise InputError(
            f"simulate takes a ReactionNetwork such as models.esirs() or models.get('esirs'), "
            f"not {network!r}"
        )
    check_samples(samples)
    _check_count("first", first, 0, 2**62)
    _check_count("max_events", max_events, 1, 2**62)
    seed = check_seed(seed)
    grid = check_times(network.times if times is None else times)
    start = Start(network, initial, parameters, samples=first + int(samples), seed=seed)
    start.states(first, min(int(samples), 1000))  # bad input is told before anything is compiled
    return Engine(network, start, grid, seed, method, max_events=max_events)


def check_samples(samples: int) -> None:
    """How many trajectories: at least one."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < 1:
        raise InputError(f"samples must be a whole number >= 1, not {samples!r}")


def _check_count(name: str, value: int, least: int, most: int) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InputError(f"{name} must be from {least} to {most:,}, not {value!r}")


def check_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """The grid as an array (T,): finite, increasing, at least one time."""
    try:
        grid = np.asarray(times, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"times must be numbers, not {times!r}") from None
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
        raise InputError("times must be a list of finite numbers, at least one")
    if (np.diff(grid) <= 0).any():
        at = int(np.argmax(np.diff(grid) <= 0))
        raise InputError(f"times must increase: {grid[at]:g} is followed by {grid[at + 1]:g}")
    return grid


def thread_count(threads: int | None) -> int:
    """The number asked for, or all the cores this process may use."""
    if threads is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    _check_count("threads", threads, 1, MOST_THREADS)
    return threads


def blocks(
    engine: Engine,
    samples: int,
    *,
    threads: int | None = None,
    first: int = 0,
    progress: Progress | None = None,
) -> Iterator[tuple[int, dict[str, np.ndarray]]]:
    """(index of its first trajectory, recorded variables) of one block after another, in order."""
    workers = thread_count(threads)
    row = len(engine.network.variables) * engine.times.size * 8  # bytes of one trajectory at work
    size = max(1, min(samples, BLOCK_BYTES // row))
    engine.prepare()
    crew = _Crew(engine, workers, min(size, max(FEWEST, TASK_BYTES // row)), progress)
    for at in range(first, first + samples, size):
        yield at, crew.fill(at, min(size, first + samples - at))


class _Crew:
    """Threads that fill a block together, each taking pieces until none are left.

    A piece is small enough for the cache, so that its counts are narrowed to their types right
    where they were made, and lasts at most about TASK_SECONDS.
    """

    def __init__(
        self, engine: Engine, workers: int, largest: int, progress: Progress | None
    ) -> None:
        self.engine, self.workers, self.largest, self.progress = engine, workers, largest, progress
        self.types = dataset.known_types(engine)
        self.piece = min(largest, FIRST_PIECE)
        self.lock = threading.Lock()

    def fill(self, at: int, count: int) -> dict[str, np.ndarray]:
        """Recorded variables of trajectories at .. at + count - 1."""
        parts: dict[int, dict[str, np.ndarray]] = {}
        queue = [0, count]
        workers = min(self.workers, -(-count // self.piece))
        with ThreadPoolExecutor(workers) as pool:
            jobs = [pool.submit(self._work, at, queue, parts) for _ in range(workers)]
            try:
                for job in jobs:
                    job.result()
            except BaseException:
                self.engine.stop[0] = True  # Ctrl-C: the kernels look at this flag and return
                raise
        ordered = [parts[begin] for begin in sorted(parts)]
        return {name: np.concatenate([part[name] for part in ordered]) for name in ordered[0]}

    def _work(self, at: int, queue: list[int], parts: dict[int, dict[str, np.ndarray]]) -> None:
        """Take [begin, end) from the front of the queue, fill it, note it; until it is empty."""
        engine = self.engine
        out = np.empty((self.largest, len(engine.network.variables), engine.times.size))
        while not engine.stop[0]:
            with self.lock:
                begin = queue[0]
                queue[0] = end = min(queue[1], begin + self.piece)
            if begin == end:
                return
            clock = time.perf_counter()
            try:
                engine.fill(at + begin, out[: end - begin])
                made = dataset.block(engine, at + begin, out[: end - begin], self.types)
            except BaseException:
                engine.stop[0] = True
                raise
            seconds = time.perf_counter() - clock
            with self.lock:
                parts[begin] = made
                wanted = (end - begin) * TASK_SECONDS / max(seconds, 1e-6)
                self.piece = int(min(max(FEWEST, wanted), self.largest))
                if self.progress is not None:
                    self.progress(end - begin)
