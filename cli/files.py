"""Reading what a person names on the command line, and writing it back."""

from __future__ import annotations

import gzip
import re
import shlex
import sys
import warnings
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from simulators.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

TABLES = (".csv", ".tsv", ".parquet")
GRIDS = (".nc", ".nc4", ".cdf", ".h5", ".hdf5", ".zarr", "")
DELIMITERS = ",;\t"
UTF16 = (b"\xff\xfe", b"\xfe\xff")  # how such text begins
CACHE = 16_000_000  # bytes of a variable that are kept after they were read from a file
LONGEST = 1_000_000  # characters in a file of rules, or in the header of a table


def is_table(path: str) -> bool:
    """Whether a file holds a table, by its name."""
    return path.lower().endswith((*TABLES, ".csv.gz"))


def open_dataset(path: str) -> xr.Dataset | pd.DataFrame:
    """Trajectories (netCDF, Zarr) or a table (CSV, Parquet), by the ending of the name."""
    place = _place(path)
    name = place.name.lower()
    if not is_table(path):
        if place.is_file() and place.suffix.lower() not in GRIDS:
            raise InputError(
                f"cannot read {path!r}: trajectories end in .nc or .zarr, tables in .csv, .csv.gz, "
                ".tsv or .parquet"
            )
        return open_trajectories(path)
    if not place.is_file():
        raise InputError(f"there is no file {path!r}")
    try:
        table = _parquet(place) if name.endswith(".parquet") else _csv(place)
    except InputError:
        raise
    except UnicodeError as problem:
        raise InputError(
            f"cannot read {path!r} as a table: it is not UTF-8 text ({problem}); save it as UTF-8, "
            "or convert it: iconv -f latin1 -t utf-8"
        ) from None
    except Exception as problem:
        reason = str(problem).removeprefix("Error tokenizing data. C error: ")
        raise InputError(f"cannot read {path!r} as a table: {reason}") from None
    if table.empty:
        raise InputError(f"{path!r} is empty: it has {len(table)} rows below its header")
    return table.rename(columns=str)


def open_trajectories(path: str) -> xr.Dataset:
    """A dataset with (sample, time) variables from a netCDF file or a Zarr folder, read lazily."""
    import xarray as xr

    place = _place(path)
    if not place.exists():
        known = {"samples": "sample", "reference": "reference esirs"}
        made = known.get(Path(path).stem, "simulate esirs")
        raise InputError(f"there is no file {path!r}; make one with: surrogate {made}")
    if place.is_dir() != (place.suffix.lower() == ".zarr"):
        raise InputError(f"{path!r} is neither a netCDF file (.nc) nor a Zarr folder (.zarr)")
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
    if "time" not in data.coords or not {"sample", "time"} <= set(data.dims):
        raise InputError(f"{path!r} holds no trajectories: it has no dimensions (sample, time)")
    if 0 in data.sizes.values():
        raise InputError(f"{path!r} is empty")
    return data


def _place(path: str) -> Path:
    """The path, if there can be one of that name."""
    try:
        Path(path).exists()
    except (OSError, ValueError) as problem:
        raise InputError(f"there is no file {path!r}: {problem}") from None
    return Path(path)


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


def _csv(place: Path) -> pd.DataFrame:
    """A table of text; the delimiter is the one its header has most of."""
    import pandas as pd

    opened = gzip.open if place.suffix.lower() == ".gz" else open
    with opened(place, "rb") as file:
        wide = file.read(2) in UTF16  # as spreadsheets write "Unicode text"
    encoding = "utf-16" if wide else "utf-8-sig"
    with opened(place, "rt", encoding=encoding, newline="") as file:
        header = re.sub(r'"[^"]*"', "", file.readline(LONGEST))
    if not header:
        raise InputError(f"cannot read {str(place)!r} as a table: it is empty, without a header")
    delimiter = max(DELIMITERS, key=header.count)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # rows longer than the header
        return pd.read_csv(
            place,
            sep=delimiter,
            encoding=encoding,
            skipinitialspace=True,
            low_memory=False,
            index_col=False,
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

    from simulators.storage import COMPRESSION, replacing

    suffix = target.suffix.lower()
    with replacing(target) as part:
        if not isinstance(data, xr.Dataset):
            if suffix == ".parquet":
                data.to_parquet(part, index=False)
            else:
                data.to_csv(part, index=False, sep="\t" if suffix == ".tsv" else ",")
            return
        plain = _with_history(
            data
        ).drop_encoding()  # that of the source may not exist in the target's format
        if suffix == ".nc":
            numbers = [
                name for name, array in plain.variables.items() if array.dtype.kind in "iufb"
            ]
            encoding = {name: {**COMPRESSION, "_FillValue": None} for name in numbers}
            plain.to_netcdf(part, engine="netcdf4", format="NETCDF4", encoding=encoding)
        else:
            with warnings.catch_warnings():  # of zarr's text and metadata, which only Python reads
                warnings.simplefilter("ignore")
                plain.to_zarr(part, mode="w", zarr_format=3)


def _with_history(data: xr.Dataset) -> xr.Dataset:
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
