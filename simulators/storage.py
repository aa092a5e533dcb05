"""Trajectories on disk: streamed in bounded memory, and under the final name only when complete."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from simulators import dataset
from simulators.atomic import remove
from simulators.atomic import replacing as replacing
from simulators.engine import Engine
from simulators.ensemble import Progress, blocks, make_engine, time_grid
from simulators.errors import InputError, Setting
from simulators.formats import SINKS, Sink
from simulators.formats import SUFFIXES as SUFFIXES
from simulators.network import ReactionNetwork
from simulators.start import Initial

COPIED_ROWS = 100_000  # at a time, when a file moves to wider types
MAX_COMPRESSION = 50  # more than compression ever gains on counts of one byte


@dataclass(frozen=True)
class Written:
    """What `simulate_to` wrote; seconds that the simulation and the whole took."""

    path: Path
    variables: tuple[str, ...]
    samples: int
    points: int
    bytes: int
    simulating: float
    seconds: float


def simulate_to(
    path: str | Path,
    network: ReactionNetwork,
    samples: int = 10_000,
    times: Sequence[float] | np.ndarray | None = None,
    seed: int = 0,
    initial: Initial = None,
    parameters: Mapping[str, Any] | None = None,
    *,
    points: int | None = None,
    until: float | None = None,
    method: str = "direct",
    threads: int | None = None,
    max_events: int = 100_000_000,
    force: bool = False,
    progress: Progress | None = None,
) -> Written:
    """`simulate` into a netCDF file or Zarr folder, by the ending of `path`, in bounded memory."""
    check_target(path, force)
    grid = time_grid(network, times, points, until)
    engine = make_engine(network, samples, grid, seed, initial, parameters, method, max_events)
    return write(engine, path, samples, threads=threads, force=force, progress=progress)


def write(
    engine: Engine,
    path: str | Path,
    samples: int,
    *,
    threads: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Written:
    """Trajectories 0 .. samples - 1 of an engine into a file."""
    target = check_target(path, force)
    _check_space(engine, samples, target)
    engine.prepare()
    clock = time.perf_counter()
    with replacing(target) as part:
        names, simulating = _stream(engine, samples, part, target.suffix.lower(), threads, progress)
    total = time.perf_counter() - clock
    return Written(target, names, samples, engine.times.size, _size(target), simulating, total)


def check_target(path: str | Path, force: bool, suffixes: Sequence[str] = SUFFIXES) -> Path:
    """The path, if it may be written: its format is known, and nothing is overwritten."""
    target = Path(path)
    if not str(target).isprintable():
        raise InputError(
            f"{str(target)!r} is not a file name: some characters are not printable", value=path
        )
    if target.suffix.lower() not in suffixes:
        raise InputError(
            f"cannot write {str(path)!r}: the name must end in {' or '.join(suffixes)}",
            value=path,
        )
    if target.suffix.lower() == ".zarr":
        if target.is_file():
            raise InputError(
                f"{str(path)!r} is a file, not a Zarr folder: it is left alone", value=path
            )
        try:
            import zarr  # noqa: F401
        except ImportError:
            raise InputError(
                "writing Zarr needs the package zarr",
                remedy="install it: pip install 'surrogate-toolkit[zarr]'",
            ) from None
    if not target.parent.is_dir():
        raise InputError(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} in", value=path
        )
    if (target.exists() or target.is_symlink()) and not force:
        raise InputError(
            f"{str(path)!r} exists",
            value=path,
            remedy=("choose another name, or replace it with ", Setting("force", True)),
        )
    if target.is_dir() and not (target / "zarr.json").exists() and any(target.iterdir()):
        raise InputError(
            f"{str(path)!r} is a folder that holds something else: it is left alone", value=path
        )
    return target


def _check_space(engine: Engine, samples: int, target: Path) -> None:
    """Refuse ensembles that cannot fit on the disk, however well they compress."""
    least = samples * engine.times.size * len(engine.network.species) / MAX_COMPRESSION
    free = shutil.disk_usage(target.parent).free
    if least > free:
        raise InputError(
            f"{samples:,} trajectories need more than {least / 1e6:,.0f} MB on disk, with "
            f"{free / 1e6:,.0f} MB free",
            value=samples,
            remedy=("reduce ", Setting("samples"), " or ", Setting("points")),
        )


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _stream(
    engine: Engine,
    samples: int,
    part: Path,
    suffix: str,
    threads: int | None,
    progress: Progress | None,
) -> tuple[tuple[str, ...], float]:
    """Simulate and write block by block; names written, and the seconds that simulation took."""
    sink: Sink | None = None
    writing: Future[Sink] | None = None
    names: tuple[str, ...] = ()
    simulating, clock = 0.0, time.perf_counter()
    with ThreadPoolExecutor(1) as writer:  # compression runs beside the next block
        try:
            for at, block in blocks(engine, samples, threads=threads, progress=progress):
                simulating += time.perf_counter() - clock
                names = tuple(block)
                if writing is None:
                    types = {name: values.dtype for name, values in block.items()}
                    sink = _open(part, suffix, engine, block, types, samples)
                else:
                    sink = writing.result()
                writing = writer.submit(_write, sink, at, block, suffix, engine, samples)
                clock = time.perf_counter()
            if writing is not None:
                sink = writing.result()
        finally:
            if writing is not None:
                with suppress(BaseException):
                    sink = writing.result()
            if sink is not None:
                sink.close()
    if sink is not None and sink.path != part:
        os.replace(sink.path, part)
    return names, simulating


def _open(
    path: Path, suffix: str, engine: Engine, like: Mapping[str, np.ndarray],
    types: dict[str, np.dtype[Any]], samples: int,
) -> Sink:  # fmt: skip
    """An empty file with all names, types and attributes in place."""
    empty = {name: np.empty((0, *values.shape[1:]), types[name]) for name, values in like.items()}
    template = dataset.frame(engine, empty, 0, 0)
    return SINKS[suffix](path, template, samples)


def _write(
    sink: Sink, at: int, block: Mapping[str, np.ndarray], suffix: str, engine: Engine, samples: int
) -> Sink:
    """Put a block; counts that have outgrown their type move the file to a wider one first."""
    wider = {k: v.dtype for k, v in block.items() if v.dtype.itemsize > sink.types[k].itemsize}
    if wider:
        path = sink.path.with_name(f"{sink.path.name}.wide{at}.part")
        wide = _open(path, suffix, engine, block, sink.types | wider, samples)
        for name in ("sample", *block):
            for begin in range(0, at, COPIED_ROWS):
                end = min(at, begin + COPIED_ROWS)
                wide.put(name, begin, sink.get(name, begin, end))
        sink.close()
        remove(sink.path)
        sink = wide
    for name, values in block.items():
        sink.put(name, at, values)
    sink.put("sample", at, np.arange(at, at + len(values)))
    return sink
