"""Rows in netCDF and Zarr, with words and truth values that are missing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from surrogate.errors import ModelError
from surrogate.io import grids
from surrogate.kinds.opening import open_file, write


def rows(instances: int = 0) -> xr.Dataset:
    shape = (3, instances) if instances else (3,)
    dims = ("sample", "instance")[: len(shape)]

    def variable(values: object, kind: str) -> xr.Variable:
        each = np.asarray(values, dtype=object if kind in ("category", "boolean") else None)
        full = np.broadcast_to(each.reshape(3, *[1] * (len(shape) - 1)), shape).copy()
        return xr.Variable(dims, full, {"kind": kind}, fastpath=True)

    dates = np.array(["2020-01-31", "NaT", "2020-02-01"], "datetime64[ns]")
    made = {
        "real": variable([0.5, np.nan, 1.5], "number"),
        "whole": variable([1, 2, 3], "integer"),
        "gaps": variable([1.0, np.nan, 3.0], "integer"),
        "word": variable(["x", None, "ü y"], "category"),
        "truth": variable([True, None, False], "boolean"),
        "day": variable(dates, "date"),
    }
    return xr.Dataset(made).assign(sure=("sample", [True, False, True], {"kind": "boolean"}))


@pytest.mark.parametrize("name", ["rows.nc", "rows.zarr"])
@pytest.mark.parametrize("instances", [0, 2])
def test_rows_are_restored_from_netcdf_and_zarr(tmp_path: Path, name: str, instances: int) -> None:
    if name.endswith("zarr"):
        pytest.importorskip("zarr")
    data = rows(instances)
    write(data, tmp_path / name)
    again = open_file(tmp_path / name, {}).data
    assert isinstance(again, xr.Dataset)
    for key, array in data.data_vars.items():
        assert again[key].dims == array.dims
        assert again[key].attrs["kind"] == array.attrs["kind"]
        if array.dtype == object:
            assert again[key].values.tolist() == array.values.tolist()
        else:
            np.testing.assert_array_equal(again[key].values, array.values)
    again.close()


def test_names_that_netcdf_cannot_store_are_refused() -> None:
    with pytest.raises(ModelError, match="no column named 'km/h'"):
        grids.check_names(["a", "km/h"], Path("rows.nc"))
    grids.check_names(["a", "km/h"], Path("rows.csv"))
