"""Reading what a person names on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from simulators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr


def open_trajectories(path: str) -> xr.Dataset:
    """A dataset with (sample, time) variables from a netCDF file or a Zarr folder, read lazily."""
    import xarray as xr

    place = Path(path)
    if not place.exists():
        raise InputError(f"there is no file {path!r}; make one with: surrogate simulate esirs")
    if place.is_dir() != (place.suffix.lower() == ".zarr"):
        raise InputError(f"{path!r} is neither a netCDF file (.nc) nor a Zarr folder (.zarr)")
    try:
        data = xr.open_zarr(place) if place.is_dir() else xr.open_dataset(place, engine="netcdf4")
    except Exception as problem:
        raise InputError(f"cannot read {path!r} as trajectories: {problem}") from None
    if "time" not in data.coords or not {"sample", "time"} <= set(data.dims):
        raise InputError(f"{path!r} holds no trajectories: it has no dimensions (sample, time)")
    if 0 in data.sizes.values():
        raise InputError(f"{path!r} is empty")
    return data
