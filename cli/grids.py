"""Datasets in netCDF and Zarr: words and truth values may be missing, for which these have no way.

Missing words are stored as "", truth values as 1, 0 and -1; attrs["kind"] tells them from others.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


def check_names(names: list[str], target: Path) -> None:
    """Refuse names that netCDF has no place for."""
    odd = [name for name in names if "/" in name or name != name.strip() or not name.isprintable()]
    if target.suffix.lower() == ".nc" and odd:
        raise InputError(f"netCDF has no column named {odd[0]!r}; write a table: -o rows.csv")


def write(data: xr.Dataset, part: Path, suffix: str) -> None:
    """The dataset in the format of a suffix."""
    from simulators.storage import COMPRESSION

    plain = _storable(data)
    if suffix == ".nc":
        numbers = [name for name, array in plain.variables.items() if array.dtype.kind in "iufb"]
        encoding = {name: {**COMPRESSION, "_FillValue": None} for name in numbers}
        plain.to_netcdf(part, engine="netcdf4", format="NETCDF4", encoding=encoding)
        return
    with warnings.catch_warnings():  # of zarr's text and metadata, which only Python reads
        warnings.simplefilter("ignore")
        plain.to_zarr(part, mode="w", zarr_format=3)


def _storable(data: xr.Dataset) -> xr.Dataset:
    import numpy as np
    import pandas as pd

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
    """Rows as they were before they were stored."""
    import numpy as np
    import xarray as xr

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
