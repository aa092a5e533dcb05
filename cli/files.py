"""Reading what a person names on the command line, and writing it back."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from cli import console, delimited
from simulators.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

TABLES = (".csv", ".tsv", ".parquet")
ROWS = (*TABLES, ".nc")  # that a table of rows is written to
PACKED = (".csv.gz", ".tsv.gz")
GRIDS = (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".zarr", "")
CACHE = 16_000_000  # bytes of a variable that are kept after they were read from a file
LONGEST = 1_000_000  # characters in a file of rules


def is_table(path: str) -> bool:
    """Whether a file holds a table, by its name."""
    return path.lower().endswith((*TABLES, *PACKED))


def open_dataset(path: str, say: Callable[[str], None] | None = None) -> xr.Dataset | pd.DataFrame:
    """Trajectories or rows (netCDF, Zarr) or a table (CSV, Parquet), by the ending of the name.

    `say` is told what had to be assumed of a file.
    """
    place = located(path)
    if not is_table(path):
        if place.is_file() and place.suffix.lower() not in GRIDS:
            raise InputError(
                f"cannot read {path!r}: trajectories end in .nc or .zarr, tables in .csv, .csv.gz, "
                ".tsv or .parquet, images in .npz, .npy or -idx3-ubyte"
            )
        return _open_rows_or_trajectories(path)
    if not place.is_file():
        known = f"{path!r} is a folder, not a table" if place.is_dir() else None
        raise InputError(known or f"there is no file {path!r}")
    try:
        if place.name.lower().endswith(".parquet"):
            table = _parquet(place)
        else:
            table = delimited.read_table(place, say or _say)
    except (InputError, MemoryError):
        raise
    except UnicodeError as problem:
        raise InputError(
            f"cannot read {path!r} as a table: it is not the text that its first bytes say "
            f"({problem}); save it as UTF-8"
        ) from None
    except Exception as problem:
        raise InputError(f"cannot read {path!r} as a table: {problem}") from None
    if table.empty:
        raise InputError(f"{path!r} is empty: it has {len(table)} rows below its header")
    return table.rename(columns=str)


def _say(text: str) -> None:
    """To the person who runs the command, unless that is to be quiet."""
    context = click.get_current_context(silent=True)
    quiet = context is not None and bool(context.params.get("quiet"))
    console.messages(quiet).print(escape(text))


def open_trajectories(path: str) -> xr.Dataset:
    """A dataset with (sample, time) variables from a netCDF file or a Zarr folder, read lazily."""
    data = _open_grid(path)
    if "time" not in data.coords or not {"sample", "time"} <= set(data.dims):
        raise InputError(f"{path!r} holds no trajectories: it has no dimensions (sample, time)")
    return data


def _open_rows_or_trajectories(path: str) -> xr.Dataset:
    """The same, or rows with variables over (sample,) or (sample, instance)."""
    from cli.grids import restored

    data = _open_grid(path)
    if "sample" not in data.dims or ("time" in data.dims and "time" not in data.coords):
        raise InputError(
            f"{path!r} holds neither trajectories nor rows: it has no dimensions (sample, time) or "
            f"(sample), but ({', '.join(map(str, data.dims))})"
        )
    try:
        return data if "time" in data.dims else restored(data)
    except (OSError, RuntimeError, ValueError) as problem:  # a damaged file opens all the same
        raise InputError(f"cannot read {path!r} as rows: {problem}") from None


def _open_grid(path: str) -> xr.Dataset:
    """What a netCDF file or a Zarr folder holds, if it is not empty."""
    import xarray as xr

    place = located(path)
    check_exists(path)
    if place.is_dir() != (place.suffix.lower() == ".zarr"):
        raise InputError(
            f"{path!r} is neither a netCDF file (.nc) nor a Zarr folder (.zarr), and no folder "
            "with pictures (.png, .jpg)"
        )
    if place.is_file():
        _check_netcdf(place)
    try:
        if place.is_dir():
            data: xr.Dataset = xr.open_zarr(place)
        else:
            import netCDF4

            netCDF4.set_chunk_cache(CACHE)  # of each variable: 64 MB unless told
            data = xr.open_dataset(place, engine="netcdf4", cache=False)
    except Exception as problem:
        raise InputError(f"cannot read {path!r} as trajectories: {problem}") from None
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(data.close)
    if 0 in data.sizes.values():
        raise InputError(f"{path!r} is empty")
    return data


def located(path: str) -> Path:
    """The path, if there can be one of that name."""
    try:
        Path(path).exists()
    except (OSError, ValueError) as problem:
        raise InputError(f"there is no file {path!r}: {problem}") from None
    return Path(path)


def check_exists(path: str) -> None:
    """Refuse a path where nothing is, before anything is loaded that would read it."""
    place = located(path)
    if place.exists():
        return
    if is_table(path):
        raise InputError(f"there is no file {path!r}")
    known = {"samples": "sample", "reference": "reference esirs"}
    made = known.get(place.stem, "simulate esirs")
    raise InputError(f"there is no file {path!r}", remedy=f"make one with: surrogate {made}")


def _check_netcdf(place: Path) -> None:
    """Refuse what is no netCDF by its first bytes, in plainer words than the library's."""
    try:
        with place.open("rb") as file:
            head = file.read(8)
    except OSError as problem:
        raise InputError(f"cannot read {str(place)!r}: {problem.strerror}") from None
    if not head:
        raise InputError(f"cannot read {str(place)!r} as trajectories: it is an empty file")
    if not head.startswith((b"CDF", b"\x89HDF")):
        raise InputError(
            f"cannot read {str(place)!r} as trajectories: it is not a netCDF file, whatever its "
            "name says; a table's name ends in .csv, .tsv or .parquet"
        )


def _parquet(place: Path) -> pd.DataFrame:
    import pandas as pd

    check_parquet()
    return pd.read_parquet(place)


def check_parquet() -> None:
    """Refuse a format that cannot be read or written here."""
    if find_spec("pyarrow") is None:
        raise InputError("Parquet needs a package: pip install pyarrow; or use CSV")


def write_dataset(data: xr.Dataset | pd.DataFrame, target: Path) -> None:
    """Under the target's name only when it is complete; the format is that of its ending."""
    import xarray as xr

    from simulators.storage import replacing

    with replacing(target) as part:
        if isinstance(data, xr.Dataset):
            from cli import grids

            # the encoding of the source may not exist in the target's format
            grids.write(with_history(data).drop_encoding(), part, target.suffix.lower())
        elif target.suffix.lower() == ".parquet":
            plain = data.copy(deep=False)
            plain.attrs = {}  # which need not be JSON
            plain.to_parquet(part, index=False)
        else:
            separator = "\t" if target.suffix.lower() == ".tsv" else ","
            _with_iso_dates(data).to_csv(part, index=False, sep=separator)


def _with_iso_dates(table: pd.DataFrame) -> pd.DataFrame:
    """Dates as text, 2020-01-31 or 2020-01-31T12:30:00; missing ones stay so."""
    import numpy as np
    import pandas as pd

    from surrogate.kinds.tables.column_types import written

    changed = {}
    for name in table.columns:
        if pd.api.types.is_datetime64_dtype(table[name].dtype):
            values = table[name].to_numpy("datetime64[ns]")
            text = np.array(written(values), dtype=object)
            changed[name] = np.where(np.isnat(values), "", text)
    return table.assign(**changed)


def with_history(data: xr.Dataset) -> xr.Dataset:
    """The dataset with this command added to its history."""
    from simulators.dataset import command_name

    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = f"{stamp} {shlex.join([command_name(), *sys.argv[1:]])}"
    before = str(data.attrs.get("history", "")).rstrip()
    return data.assign_attrs(history=f"{before}\n{line}" if before else line)


def read_rules(path: str) -> list[tuple[str, str]]:
    """(place, text) of each rule in a file: a line, with the indented lines that follow it."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read(LONGEST + 1)
    except FileNotFoundError:
        raise InputError(f"there is no file {path!r} of rules") from None
    except UnicodeDecodeError:
        raise InputError(f"{path!r} is no text (in UTF-8), so it holds no rules") from None
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise InputError(f"cannot read the rules in {path!r}: {why}") from None
    if len(text) > LONGEST:
        raise InputError(f"{path!r} is too long for a file of rules")
    found: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace() and found:
            place, before = found.pop()
            found.append((place, f"{before}\n{line}"))
        else:
            found.append((f"{path}, line {number}", line))
    if not found:
        raise InputError(f"{path!r} holds no rules: write one on each line")
    return found
