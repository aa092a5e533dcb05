"""File formats of trajectories that are written slice by slice: one entry of `SINKS` each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import xarray as xr

NETCDF_COMPRESSION: dict[str, Any] = {"zlib": True, "complevel": 1, "shuffle": True}


class Sink(Protocol):
    """A file of fixed shape that is filled by slices of samples."""

    path: Path
    types: dict[str, np.dtype[Any]]

    def put(self, name: str, at: int, values: np.ndarray) -> None: ...
    def get(self, name: str, begin: int, end: int) -> np.ndarray: ...
    def close(self) -> None: ...


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
                **NETCDF_COMPRESSION,
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


SINKS: dict[str, Callable[[Path, xr.Dataset, int], Sink]] = {".nc": NetCDF, ".zarr": Zarr}
SUFFIXES = tuple(SINKS)
