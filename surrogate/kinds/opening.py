"""Opening files of any kind of data: the format reads, and the kind makes data of what it read.

A format that holds a table or images belongs to the kind that `reads` it; a dataset belongs to the
kind that `holds` it. Options come as keywords and are those of the kind's `reading`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import pandas as pd
import xarray as xr

from constraints.errors import Action, Setting
from surrogate.errors import ModelError
from surrogate.io import formats
from surrogate.io.formats import DATASET, Format, Say, silent
from surrogate.io.paths import located
from surrogate.kinds.kind import Data, Kind, kind_of, kinds
from surrogate.settings import Option, made, options_of


@dataclass(frozen=True)
class Opened:
    """Data of a file, their kind, and the options that they were read with."""

    path: str
    kind: Kind
    data: Data
    options: Any  # a `reading` of the kind
    close: Callable[[], None]  # the file, from which datasets are read lazily


def open_file(
    path: str | Path, given: Mapping[str, Any], say: Say = silent, *, shared: bool = False
) -> Opened:
    """Open a file or folder of data; `say` receives what was assumed about it.

    `shared`: options are given for several files; a table of samples leaves out those of series.
    """
    _check_names(given)
    place = located(path)
    format = formats.format_of(place)
    kind = _reader(format, given)
    if kind is not None:
        _refuse_foreign(str(path), kind, given)
    passed = given if format.holds == formats.IMAGES else {}
    _, raw = formats.read(place, passed, say)
    close = raw.close if isinstance(raw, xr.Dataset) else _nothing
    try:
        own = _sampled(raw, given)
        if own is not None:
            kind, given = own, _of_samples(str(path), given, shared)
        elif kind is None:
            kind = _holder(str(path), raw)
            _refuse_foreign(str(path), kind, given)
        options: Any = made(kind.reading, given, f"reading {kind.name}")
        return Opened(str(path), kind, kind.opened(raw, str(path), options, say), options, close)
    except BaseException:
        close()
        raise


def _nothing() -> None:
    """Tables are read as a whole: no file stays open."""


def read(path: str | Path, **options: Any) -> Any:
    """Data in a file or folder: trajectories as a Dataset, a table as a DataFrame, images as a
    Dataset with the variable `image`.

    Formats: netCDF, Zarr, CSV, TSV, Parquet, .npz, .npy, IDX, a folder of PNG and JPEG. Options:
    tables of time steps take time, id, wide, columns, window, stride, pool, missing, irregular,
    calendar;
    tables of rows columns, types, missing; images array, labels, size, grey, skip_damaged.

        sg.read("cases.csv", time="week", columns=["cases"], window=52)
        sg.read("wine.csv", types={"quality": "category"})
        sg.read("faces/", size=32, grey=True)
    """
    found = open_file(path, options)
    return found.kind.as_read(found.data, found.options)


def write(data: Any, path: str | Path, *, force: bool = False) -> None:
    """Write data in the format of the path's suffix; an existing file is kept unless `force`."""
    kind = kind_of(data)
    names = () if not hasattr(data, "data_vars") else map(str, data.data_vars)
    kind.targets(str(path), force, names, data)
    kind.write(data, str(path))


def _reader(format: Format, given: Mapping[str, Any]) -> Kind | None:
    """The kind of a file by its format and the options; None if its content must decide."""
    if format.holds == DATASET:
        return None
    for kind in kinds():
        if kind.reads(format.holds, list(given)):
            return kind
    raise ModelError(
        f"no kind of data is read from {format.name}",
        value=format.name,
        allowed=[kind.name for kind in kinds()],
    )


def _sampled(raw: Data, given: Mapping[str, Any]) -> Kind | None:
    """The kind whose samples a table holds, by its own form; options may say that it does not."""
    if not isinstance(raw, pd.DataFrame) or {"id", "types"} & set(given):
        return None
    return next((kind for kind in kinds() if kind.recognises_table(raw)), None)


def _of_samples(path: str, given: Mapping[str, Any], shared: bool) -> dict[str, Any]:
    """The options that apply to a table of samples: which columns, unless they are of another."""
    others = [name for name in given if name != "columns"]
    if others and not shared:
        raise ModelError(
            f"{path!r} holds samples, with a row for each step of each",
            value=others[0],
            remedy=("leave out ", Setting(others[0])),
        )
    return {} if shared else dict(given)


def _holder(path: str, raw: Data) -> Kind:
    try:
        return kind_of(raw)
    except ModelError as problem:
        raise problem.at(repr(path)) from None


def _refuse_foreign(path: str, kind: Kind, given: Mapping[str, Any]) -> None:
    """Refuse options of other kinds of data."""
    for name in given:
        owners = [each.name for each in kinds() if name in _options(each)]
        if name not in _options(kind) and owners:
            flag = next(o[name] for o in map(_options, kinds()) if name in o).option
            raise ModelError(
                f"{path!r} holds {kind.name}",
                value=name,
                remedy=("leave out ", Action(f"{name}=...", flag), f", which is for {owners[0]}"),
            )


def _check_names(given: Mapping[str, Any]) -> None:
    """Refuse options that no kind has, with the nearest one that some kind has."""
    known = list(dict.fromkeys(name for kind in kinds() for name in _options(kind)))
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise ModelError(
                f"there is no option {name!r} of reading files",
                value=name,
                allowed=known,
                remedy=f"did you mean {near[0]!r}?" if near else (),
            )


def _options(kind: Kind) -> dict[str, Option]:
    return options_of(kind.reading)
