"""Datasets in netCDF and Zarr, with categories and booleans that may be missing.

Neither format has missing text or booleans: missing categories are stored as "", booleans as 1, 0
and -1; attrs["kind"] says which variables these are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action
from surrogate.errors import ModelError

CHUNK_CACHE_BYTES = (
    16_000_000  # bytes of a variable that netCDF keeps after they were read; 64 MB else
)
NO_FILL: dict[str, Any] = {"_FillValue": None}
NETCDF_ENCODING: dict[str, Any] = {"zlib": True, "complevel": 1, "shuffle": True, **NO_FILL}
NETCDF_MAGIC = (b"CDF", b"\x89HDF")


def read_netcdf(place: Path) -> xr.Dataset:
    """What a netCDF file holds, read lazily."""
    _check_magic(place)
    import netCDF4

    netCDF4.set_chunk_cache(CHUNK_CACHE_BYTES)
    return _checked(place, xr.open_dataset(place, engine="netcdf4", cache=False))


def read_zarr(place: Path) -> xr.Dataset:
    """What a Zarr folder holds, read lazily."""
    return _checked(place, xr.open_zarr(place))


def _check_magic(place: Path) -> None:
    """Reject non-netCDF files by their magic bytes, in plainer words than the library's."""
    try:
        with place.open("rb") as file:
            head = file.read(8)
    except OSError as problem:
        raise ModelError(f"cannot read {str(place)!r}: {problem.strerror}") from None
    if not head:
        raise ModelError(f"cannot read {str(place)!r} as netCDF: it is an empty file")
    if not head.startswith(NETCDF_MAGIC):
        raise ModelError(
            f"cannot read {str(place)!r} as netCDF: it is not a netCDF file, by its magic bytes",
            remedy="the name of a table ends in .csv, .tsv or .parquet",
        )


def _checked(place: Path, data: xr.Dataset) -> xr.Dataset:
    if set(data.dims) == {"time"}:  # a single series is one sample
        close, data = data.close, data.expand_dims("sample")
        data.set_close(close)
    bad = "sample" not in data.dims or ("time" in data.dims and "time" not in data.coords)
    if bad or 0 in data.sizes.values():
        data.close()  # its names and sizes stay known
    if 0 in data.sizes.values():
        raise ModelError(f"{str(place)!r} is empty")
    if bad:
        raise ModelError(
            f"{str(place)!r} holds no samples: its dimensions are "
            f"({', '.join(map(str, data.dims))})",
            value=tuple(data.dims),
            remedy="give (sample, ...), or (sample, time) with a coordinate `time`",
        )
    return data


def write_netcdf(data: xr.Dataset, place: Path) -> None:
    plain = _storable(data.drop_encoding())  # that of the source need not exist in this format
    numbers = [name for name, array in plain.variables.items() if array.dtype.kind in "iufb"]
    encoding = {name: NETCDF_ENCODING if plain[name].ndim else NO_FILL for name in numbers}
    plain.to_netcdf(place, engine="netcdf4", format="NETCDF4", encoding=encoding)


def write_zarr(data: xr.Dataset, place: Path) -> None:
    with warnings.catch_warnings():  # about zarr's text and metadata, which only Python reads
        warnings.simplefilter("ignore")
        _storable(data.drop_encoding()).to_zarr(place, mode="w", zarr_format=3)


def check_names(names: Iterable[str], target: Path) -> None:
    """Refuse names that netCDF cannot have."""
    odd = [name for name in names if "/" in name or name != name.strip() or not name.isprintable()]
    if target.suffix.lower() == ".nc" and odd:
        raise ModelError(
            f"netCDF has no column named {odd[0]!r}",
            value=odd[0],
            remedy=("write a table: ", Action('sg.write(data, "rows.csv")', "-o rows.csv")),
        )


def _storable(data: xr.Dataset) -> xr.Dataset:
    changed: dict[str, Any] = {}
    for name, array in data.data_vars.items():
        if array.dtype != object or array.attrs.get("kind") not in ("category", "boolean"):
            continue
        values = np.asarray(array.values)
        absent = pd.isna(values)
        if array.attrs["kind"] == "boolean":
            stored = np.where(absent, -1, values == True).astype(np.int8)  # noqa: E712 - of objects
        else:
            stored = np.where(absent, "", values).astype(object)
        changed[str(name)] = (array.dims, stored, array.attrs)
    return data.assign(changed)


def restored(data: xr.Dataset) -> xr.Dataset:
    """Rows with the missing categories and booleans that they had before they were stored."""
    changed: dict[str, Any] = {}
    for name, array in data.data_vars.items():
        kind = array.attrs.get("kind")
        if kind == "boolean" and array.dtype.kind == "i":
            values = np.array([False, True, None], dtype=object)[np.clip(array.values, -1, 1)]
        elif kind == "category" and array.dtype.kind in "OUT":
            values = np.asarray(array.values).astype(object)
            values[values == ""] = None
        else:
            continue
        changed[str(name)] = xr.Variable(array.dims, values, array.attrs, fastpath=True)
    return data.assign(changed)
