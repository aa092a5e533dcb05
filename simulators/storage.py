"""Trajectories on disk: streamed in bounded memory, and under the final name only when complete."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr

from simulators import dataset
from simulators.engine import Engine
from simulators.ensemble import Progress, blocks, make_engine
from simulators.errors import InputError, SimulationError
from simulators.network import ReactionNetwork
from simulators.start import Initial

SUFFIXES = (".nc", ".zarr")
COMPRESSION: dict[str, Any] = {"zlib": True, "complevel": 1, "shuffle": True}
COPY_ROWS = 100_000
_OWNER = f"{uuid.getnode():x}"  # other machines may write to the same folder
_NUMBERS = itertools.count()
SHRINK = 50  # more than compression ever gains on counts of one byte


@dataclass(frozen=True)
class Written:
    """What `simulate_to` made, and how long the simulation and the whole took (seconds)."""

    path: Path
    variables: tuple[str, ...]
    samples: int
    steps: int
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
    method: str = "direct",
    threads: int | None = None,
    max_events: int = 100_000_000,
    force: bool = False,
    progress: Progress | None = None,
) -> Written:
    """`simulate` into a netCDF file or Zarr folder, by the ending of `path`, in bounded memory."""
    check_target(path, force)
    engine = make_engine(network, samples, times, seed, initial, parameters, method, max_events)
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
    """The path, if something may be written there."""
    target = Path(path)
    if not str(target).isprintable():
        raise InputError(f"{str(target)!r} is no name for a file: some characters are unreadable")
    if target.suffix.lower() not in suffixes:
        raise InputError(
            f"cannot write {str(path)!r}: the name must end in {' or '.join(suffixes)}"
        )
    if target.suffix.lower() == ".zarr":
        if target.is_file():
            raise InputError(f"{str(path)!r} is a file, not a Zarr folder: it is left alone")
        try:
            import zarr  # noqa: F401
        except ImportError:
            raise InputError("Zarr needs an extra: pip install 'surrogate-toolkit[zarr]'") from None
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r} to write {target.name!r} in")
    if (target.exists() or target.is_symlink()) and not force:
        raise InputError(f"{str(path)!r} exists: choose another name, or replace it with --force")
    if target.is_dir() and not (target / "zarr.json").exists() and any(target.iterdir()):
        raise InputError(f"{str(path)!r} is a folder that holds something else: it is left alone")
    return target


def _check_space(engine: Engine, samples: int, target: Path) -> None:
    """Refuse what cannot fit on the disk, however well it compresses."""
    least = samples * engine.times.size * len(engine.network.species) / SHRINK
    free = shutil.disk_usage(target.parent).free
    if least > free:
        raise InputError(
            f"{samples:,} trajectories need more than {least / 1e6:,.0f} MB on disk, with "
            f"{free / 1e6:,.0f} MB free: ask for fewer samples or steps"
        )


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to that takes the target's place at the end, or disappears on any failure."""
    _sweep(target)
    part = target.with_name(f".{target.name}.{_OWNER}-{os.getpid()}-{next(_NUMBERS)}.part")
    old = part.with_suffix(".old.part")
    try:
        yield part
        if target.is_dir():  # a folder cannot be replaced in one step
            target.rename(old)
        try:
            os.replace(part, target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
        _remove(old)
    except (OSError, RuntimeError) as problem:
        if isinstance(problem, SimulationError):
            raise
        free = shutil.disk_usage(target.parent).free
        raise SimulationError(
            f"cannot write {str(target)!r} ({problem}; {free / 1e6:.0f} MB free there): "
            "nothing was changed"
        ) from problem
    finally:
        _remove(part)


def _sweep(target: Path) -> None:
    """Remove what runs on this machine that were killed left behind."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.{_OWNER}-*.part"):
        pid = left.name.split(f"{_OWNER}-")[1].split("-")[0]
        if pid.isdigit() and Path("/proc/self").exists() and not Path(f"/proc/{pid}").exists():
            if ".old." in left.name and not target.exists():
                left.rename(target)  # killed between the two steps of replacing a folder
            else:
                _remove(left)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


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


# --- formats --------------------------------------------------------------------------------------


class Sink(Protocol):
    """A file of fixed shape that is filled by slices of samples."""

    path: Path
    types: dict[str, np.dtype[Any]]

    def put(self, name: str, at: int, values: np.ndarray) -> None: ...
    def get(self, name: str, begin: int, end: int) -> np.ndarray: ...
    def close(self) -> None: ...


def _open(
    path: Path, suffix: str, engine: Engine, like: Mapping[str, np.ndarray],
    types: dict[str, np.dtype[Any]], samples: int,
) -> Sink:  # fmt: skip
    """An empty file with all names, types and attributes in place."""
    empty = {name: np.empty((0, *values.shape[1:]), types[name]) for name, values in like.items()}
    template = dataset.frame(engine, empty, 0, 0)
    return (NetCDF if suffix == ".nc" else Zarr)(path, template, samples)


def _write(
    sink: Sink, at: int, block: Mapping[str, np.ndarray], suffix: str, engine: Engine, samples: int
) -> Sink:
    """Put a block; counts that have outgrown their type move the file to a wider one first."""
    wider = {k: v.dtype for k, v in block.items() if v.dtype.itemsize > sink.types[k].itemsize}
    if wider:
        path = sink.path.with_name(f"{sink.path.name}.wide{at}.part")
        wide = _open(path, suffix, engine, block, sink.types | wider, samples)
        for name in ("sample", *block):
            for begin in range(0, at, COPY_ROWS):
                end = min(at, begin + COPY_ROWS)
                wide.put(name, begin, sink.get(name, begin, end))
        sink.close()
        _remove(sink.path)
        sink = wide
    for name, values in block.items():
        sink.put(name, at, values)
    sink.put("sample", at, np.arange(at, at + len(values)))
    return sink


def _chunks(samples: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    rows = max(1, min(samples, 1_000_000 // max(1, int(np.prod(shape)))))
    return (rows, *shape)


class NetCDF:
    """netCDF-4 through its own library: xarray writes whole datasets only."""

    def __init__(self, path: Path, template: xr.Dataset, samples: int) -> None:
        import netCDF4

        self.path = path
        self.types = {str(name): array.dtype for name, array in template.data_vars.items()}
        self.file = netCDF4.Dataset(path, "w", format="NETCDF4")
        self.file.setncatts(template.attrs)
        self.file.createDimension("sample", samples)
        self.file.createDimension("time", template.sizes["time"])
        for key, array in template.variables.items():
            name = str(key)
            rest = tuple(template.sizes[d] for d in array.dims if d != "sample")
            sizes = rest if name == "time" else _chunks(samples, rest)
            variable = self.file.createVariable(
                name,
                array.dtype,
                [str(d) for d in array.dims],
                chunksizes=sizes,
                fill_value=False,
                **COMPRESSION,
            )
            variable.setncatts(array.attrs)
        self.put("time", 0, template["time"].values)

    def put(self, name: str, at: int, values: np.ndarray) -> None:
        self.file[name][at : at + len(values)] = values

    def get(self, name: str, begin: int, end: int) -> np.ndarray:
        return np.asarray(self.file[name][begin:end])

    def close(self) -> None:
        if self.file.isopen():
            self.file.close()


class Zarr:
    """Zarr 3 folder that `xr.open_zarr` reads."""

    def __init__(self, path: Path, template: xr.Dataset, samples: int) -> None:
        import zarr

        self.path = path
        self.types = {str(name): array.dtype for name, array in template.data_vars.items()}
        self.group: Any = zarr.open_group(
            path, mode="w", zarr_format=3, attributes=dict(template.attrs)
        )
        for key, array in template.variables.items():
            name = str(key)
            rest = tuple(template.sizes[d] for d in array.dims if d != "sample")
            shape = rest if name == "time" else (samples, *rest)
            self.group.create_array(
                name,
                shape=shape,
                dtype=array.dtype,
                chunks=shape if name == "time" else _chunks(samples, rest),
                dimension_names=[str(d) for d in array.dims],
                attributes=dict(array.attrs),
            )
        self.put("time", 0, template["time"].values)

    def put(self, name: str, at: int, values: np.ndarray) -> None:
        self.group[name][at : at + len(values)] = values

    def get(self, name: str, begin: int, end: int) -> np.ndarray:
        return np.asarray(self.group[name][begin:end])

    def close(self) -> None:
        import zarr

        with warnings.catch_warnings():  # zarr 3 warns that only Python reads consolidated metadata
            warnings.simplefilter("ignore")
            zarr.consolidate_metadata(self.path)
