"""The registry of file formats: one entry each, found by the suffix of a name.

A format holds a *table* (DataFrame), a *dataset* (xarray.Dataset over (sample, ...)) or *images*
(a dataset with the variable `image`); a kind of data says which of these it can be written as. To
add a format, add an entry at the end of this module, or call `register` from anywhere:

    register(Format("Feather", (".feather",), TABLE, read=..., write=..., package="pyarrow"))

`sg.read`, `sg.write` and the command line then know its suffix. The formats of images are
registered in `surrogate.kinds.images.files`, which knows what images are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from surrogate.errors import ModelError, SurrogateError
from surrogate.io import delimited, grids, tables
from surrogate.io.atomic import atomic_file, atomic_folder, writing
from surrogate.io.paths import has_ending, located, unknown_ending

DATASET, TABLE, IMAGES = "dataset", "table", "images"

Say = Callable[[str], None]
Data = xr.Dataset | pd.DataFrame
Options = Mapping[str, Any]


def silent(text: str) -> None:
    """Ignore messages about what was assumed."""


@dataclass(frozen=True)
class Format:
    """A file format.

    read(path, options, say): what a file holds; `options` are the reading options of its kind, and
    `say` receives what was assumed. write(data, path): writes to an empty file or folder.
    """

    name: str
    suffixes: tuple[str, ...]  # of files that are read, lower case
    holds: str  # DATASET, TABLE or IMAGES
    read: Callable[[Path, Options, Say], Data] | None = None
    write: Callable[[Any, Path], None] | None = None
    written: tuple[str, ...] | None = None  # suffixes of files that are written, if not all
    folder: bool = False  # whether it is a folder, not a file
    owns: Callable[[str], bool] = bool  # whether a name in such a folder is one that we write
    package: str = ""  # that must be installed
    install: str = ""  # how, for pip; the package's name if empty
    recognises: Callable[[Path], bool] | None = None  # where the suffix does not decide

    @property
    def endings(self) -> tuple[str, ...]:
        """Suffixes of files that are written."""
        if self.write is None:
            return ()
        return self.suffixes if self.written is None else self.written

    def check_package(self) -> None:
        """ModelError where the format needs a package that is not installed."""
        if self.package and find_spec(self.package) is None:
            raise ModelError(
                f"{self.name} needs a package",
                remedy=f"pip install {self.install or self.package}; or use another format",
            )

    def matches(self, place: Path) -> bool:
        """Whether a path is of this format, by its suffix or by its own rule."""
        if self.recognises is not None and self.recognises(place):
            return True
        return bool(self.suffixes) and place.name.lower().endswith(self.suffixes)


_FORMATS: list[Format] = []


def register(format: Format) -> None:
    """Make a format known; the one registered last is asked first."""
    _FORMATS.insert(0, format)


def unregister(format: Format) -> None:
    """Forget a format."""
    _FORMATS.remove(format)


def formats() -> tuple[Format, ...]:
    """All formats, in the order in which they are asked."""
    return tuple(_FORMATS)


def endings(holds: Sequence[str]) -> tuple[str, ...]:
    """Suffixes of files that can be written for data held in these ways, the first way first."""
    known = [each.endings for way in holds for each in reversed(_FORMATS) if each.holds == way]
    return tuple(dict.fromkeys(suffix for some in known for suffix in some))


def format_of(path: str | Path) -> Format:
    """The format of a path, which need not exist; ModelError names the suffixes that are known."""
    place = Path(path)
    for each in _FORMATS:
        if each.matches(place):
            return each
    known = dict.fromkeys(s for each in reversed(_FORMATS) for s in each.suffixes)
    what = (
        f"{str(path)!r} is neither a Zarr folder (.zarr) nor a folder with pictures (.png, .jpg)"
        if place.is_dir()
        else f"cannot read {str(path)!r}: the suffix of a name decides on the format"
    )
    raise ModelError(what, value=path, allowed=known)


def read(path: str | Path, options: Options, say: Say = silent) -> tuple[Format, Data]:
    """The format of a file or folder, and what it holds; ModelError says what is wrong with it."""
    place = located(path)
    found = format_of(path)
    if found.read is None:
        raise ModelError(
            f"cannot read {str(path)!r}: {found.name} can be written only",
            value=path,
            remedy="give a file in another format",
        )
    if place.is_dir() != found.folder:
        have, wanted = ("a folder", "a file") if place.is_dir() else ("a file", "a folder")
        raise ModelError(f"{str(path)!r} is {have}, and {found.name} is {wanted}", value=path)
    found.check_package()
    try:
        data = found.read(place, options, say)
    except (SurrogateError, MemoryError):
        raise
    except UnicodeError as problem:
        raise ModelError(
            f"cannot read {str(path)!r} as {found.name}: its text is not in the encoding that its "
            f"first bytes announce ({problem})",
            remedy="save it as UTF-8",
        ) from None
    except Exception as problem:  # whatever a library raises on a damaged file
        raise ModelError(f"cannot read {str(path)!r} as {found.name}: {problem}") from None
    if found.holds == TABLE:
        if data.empty:
            raise ModelError(
                f"{str(path)!r} is empty: it has {len(data)} rows below its header", value=path
            )
        data = data.rename(columns=str)
    return found, data


def write(data: Any, path: str | Path, holds: Sequence[str]) -> None:
    """Write data in the format of the path's suffix, atomically."""
    target = Path(path)
    found = format_for(path, holds)
    if found.write is None:
        raise ModelError(
            f"cannot write {str(path)!r}: {found.name} can be read only",
            value=path,
            remedy="choose another format",
        )
    found.check_package()
    with writing(target):
        if found.folder:
            with atomic_folder(target, found.owns) as part:
                found.write(data, part)
        else:
            with atomic_file(target) as part:
                found.write(data, part)


def format_for(path: str | Path, holds: Sequence[str]) -> Format:
    """The format in which data held in one of these ways are written to a path."""
    for way in holds:
        for each in _FORMATS:
            if each.holds == way and has_ending(path, each.endings):
                return each
    raise unknown_ending(path, endings(holds))


# --- the formats of tables and datasets -----------------------------------------------------------

register(
    Format(
        "netCDF",
        (".nc", ".nc4", ".cdf", ".h5", ".hdf5"),
        DATASET,
        read=lambda place, options, say: grids.read_netcdf(place),
        write=grids.write_netcdf,
        written=(".nc",),
        recognises=lambda place: not place.suffix and place.is_file(),  # its magic bytes decide
    )
)
register(
    Format(
        "Zarr",
        (".zarr",),
        DATASET,
        read=lambda place, options, say: grids.read_zarr(place),
        write=grids.write_zarr,
        folder=True,
        package="zarr",
        install="'surrogate-toolkit[zarr]'",
    )
)
register(
    Format(
        "CSV",
        (".csv", ".csv.gz"),
        TABLE,
        read=lambda place, options, say: delimited.read_table(place, say),
        write=lambda table, place: tables.write_delimited(table, place, ","),
        written=(".csv",),
    )
)
register(
    Format(
        "TSV",
        (".tsv", ".tsv.gz"),
        TABLE,
        read=lambda place, options, say: delimited.read_table(place, say),
        write=lambda table, place: tables.write_delimited(table, place, "\t"),
        written=(".tsv",),
    )
)
register(
    Format(
        "Parquet",
        (".parquet",),
        TABLE,
        read=lambda place, options, say: tables.read_parquet(place),
        write=tables.write_parquet,
        package="pyarrow",
    )
)
