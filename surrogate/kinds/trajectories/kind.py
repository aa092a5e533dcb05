"""Trajectories: samples over (sample, time)."""

from __future__ import annotations

from typing import Any

import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.kind import Kind


class Trajectories(Kind):
    """Series x(t) on a shared grid, with values that stay fixed along a trajectory beside them."""

    name = "trajectories"
    stored = "time series"
    singular = "trajectory"
    dimensions = "(sample, time)"

    # --- recognising ------------------------------------------------------------------------------

    def holds(self, data: object) -> bool:
        return isinstance(data, xr.Dataset) and {"sample", "time"} <= set(data.dims)

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        if options:
            raise ModelError(f"{next(iter(options))} does not apply to trajectories")
        if not isinstance(data, xr.Dataset):
            raise ModelError(f"trajectories are an xarray.Dataset, not {type(data).__name__}")
        return data

    # --- learning and sampling --------------------------------------------------------------------

    bridges = True
