"""Ensembles: many trajectories of one network, block by block, by several threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from simulators import dataset, rates
from simulators.engine import Beginning, Engine
from simulators.errors import InputError, Setting
from simulators.network import ReactionNetwork, even_times
from simulators.random import check_seed
from simulators.start import Initial, Start

Progress = Callable[[int], None]
BLOCK_BYTES = 48_000_000  # of trajectories in float64: what bounds memory when streaming
TASK_BYTES = 3_000_000  # of these, the share of one task: it stays in the cache
TASK_SECONDS = 0.2  # a task should take no longer, for smooth progress
MIN_TASK_SAMPLES, FIRST_TASK_SAMPLES = 64, 512
MAX_SIMULATION_THREADS = 1024


def simulate(
    network: ReactionNetwork,
    samples: int = 1_000,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    points: int | None = None,
    until: float | None = None,
    method: str = "direct",
    threads: int | None = None,
    first: int = 0,
    max_events: int = 100_000_000,
    latch: Sequence[str] = (),
    progress: Progress | None = None,
) -> xr.Dataset:
    """Trajectories of a network: integer variables (sample, time), one per species.

    `times`: increasing grid; the initial state holds at its first time. Instead, `points` evenly
    spaced times from 0 to `until`; the network's own where not given.
    `initial`: species -> count, (low, high), scipy distribution or one value per trajectory;
    "uniform"; None for the network's own. `parameters`: the same for parameters; those that vary
    become variables. `method`: "direct" (exact), "tau" (leaps, for large populations), "ode"
    (mean field), or another of `simulators.kernels.methods()`. `first`: index of the first
    trajectory, to simulate an ensemble in parts. `latch`: expressions such as "X" or "-X", of which
    the greatest value since the grid time before is recorded too, as a variable "max(X)". The same
    seed gives the same numbers, whatever the threads.
    """
    grid = time_grid(network, times, points, until)
    engine = make_engine(
        network, samples, grid, seed, initial, parameters, method, max_events, first, latch
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
    latch: Sequence[str] = (),
) -> Engine:
    """Everything `simulate` checks before it runs."""
    check_network(network)
    check_samples(samples)
    check_count("first", first, 0, 2**62)
    check_count("max_events", max_events, 1, 2**62)
    seed = check_seed(seed)
    grid = check_times(network.times if times is None else times)
    start = Start(network, initial, parameters, samples=first + int(samples), seed=seed)
    start.states(first, min(int(samples), 1000))  # report bad input before compiling anything
    check_latches(latch)
    latches = tuple(dict.fromkeys(str(rates.parse(each)) for each in latch))
    return Engine(network, start, grid, seed, method, max_events=max_events, latches=latches)


def check_network(network: ReactionNetwork) -> None:
    """A network, not its name or the function that makes it."""
    if not isinstance(network, ReactionNetwork):
        raise InputError(
            f"a network is a ReactionNetwork, not {network!r}",
            value=network,
            remedy="use models.esirs() or models.get('esirs')",
        )


def check_latches(latch: Sequence[str]) -> None:
    """A list of texts, not one text."""
    if isinstance(latch, str):
        raise InputError(
            f"latch is a list of expressions, not {latch!r}",
            value=latch,
            remedy=f"give [{latch!r}]",
        )


def check_samples(samples: int) -> None:
    """At least one trajectory."""
    check_count("samples", samples, 1)


def check_count(name: str, value: int, low: int, high: int | None = None) -> None:
    """A whole number from `low` to `high`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < low or (high is not None and value > high):
        legal = f">= {low}" if high is None else f"from {low} to {high:,}"
        raise InputError(f"{name} must be a whole number {legal}, not {value!r}", value=value)


def time_grid(
    network: ReactionNetwork,
    times: Sequence[float] | np.ndarray | None = None,
    points: int | None = None,
    until: float | None = None,
) -> np.ndarray:
    """The grid (T,): `times`, or `points` times from 0 to `until`, by default the network's."""
    check_network(network)
    if times is None:
        return even_times(
            network.until if until is None else until, network.points if points is None else points
        )
    if points is not None or until is not None:
        raise InputError(
            "times states the whole grid, so points and until have no meaning beside it",
            value=times,
            remedy=(
                "give either ",
                Setting("times"),
                " or ",
                Setting("points"),
                " and ",
                Setting("until"),
            ),
        )
    return check_times(times)


def check_times(times: Sequence[float] | np.ndarray) -> np.ndarray:
    """The grid as an array (T,): finite, increasing, at least one time."""
    try:
        grid = np.asarray(times, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"times must be numbers, not {times!r}", value=times) from None
    if grid.ndim != 1 or grid.size == 0 or not np.isfinite(grid).all():
        raise InputError("times must be a list of finite numbers, at least one", value=times)
    if (np.diff(grid) <= 0).any():
        at = int(np.argmax(np.diff(grid) <= 0))
        raise InputError(
            f"times must increase: {grid[at]:g} is followed by {grid[at + 1]:g}", value=times
        )
    return grid


def thread_count(threads: int | None) -> int:
    """The number given, or all the cores this process may use."""
    if threads is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    check_count("threads", threads, 1, MAX_SIMULATION_THREADS)
    return threads


def advance(engine: Engine, begin: Beginning, *, threads: int | None = None) -> np.ndarray:
    """Trajectories on from given states, float64 (n, V + L, T) over `begin.times`.

    They depend on the index and the seed, not on the threads.
    """
    count = len(begin.states)
    out = np.empty((count, engine.rows, begin.times.size))
    workers = thread_count(threads)
    piece = max(MIN_TASK_SAMPLES, -(-count // (4 * workers)) if workers > 1 else count)

    def work(at: int) -> None:
        some = slice(at, at + piece)
        own = {k: v if np.ndim(v) == 0 else v[some] for k, v in begin.parameters.items()}
        try:
            engine.follow(at, replace(begin, states=begin.states[some], parameters=own), out[some])
        except BaseException:
            engine.stop[0] = True
            raise

    if count <= piece:
        work(0)
        return out
    with ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(work, at) for at in range(0, count, piece)]
        try:
            for job in jobs:
                job.result()
        except BaseException:
            engine.stop[0] = True  # Ctrl-C: the kernels look at this flag and return
            raise
    return out


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
    row = engine.rows * engine.times.size * 8  # bytes of one trajectory at work
    size = max(1, min(samples, BLOCK_BYTES // row))
    engine.prepare()
    team = _Workers(engine, workers, min(size, max(MIN_TASK_SAMPLES, TASK_BYTES // row)), progress)
    for at in range(first, first + samples, size):
        yield at, team.fill(at, min(size, first + samples - at))


class _Workers:
    """Threads that fill a block together, each taking tasks until none are left.

    A task is small enough for the cache, so that its counts are converted to their types while
    still there, and lasts at most about TASK_SECONDS.
    """

    def __init__(
        self, engine: Engine, workers: int, largest: int, progress: Progress | None
    ) -> None:
        self.engine, self.workers, self.largest, self.progress = engine, workers, largest, progress
        self.types = dataset.known_types(engine)
        self.piece = min(largest, FIRST_TASK_SAMPLES)
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
        """Take [begin, end) from the front of the queue and fill it, until the queue is empty."""
        engine = self.engine
        out = np.empty((self.largest, engine.rows, engine.times.size))
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
                self.piece = int(min(max(MIN_TASK_SAMPLES, wanted), self.largest))
                if self.progress is not None:
                    self.progress(end - begin)
