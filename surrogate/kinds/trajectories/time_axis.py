"""The time axis of trajectories as matplotlib takes it."""

from __future__ import annotations

import numpy as np
import xarray as xr


def times(data: xr.Dataset) -> np.ndarray:
    """The grid: numbers, or dates: (T,)."""
    found = np.asarray(data["time"].values) if "time" in data.variables else None
    if found is None or found.dtype.kind not in "iufM":
        return np.arange(data.sizes["time"], dtype=np.float64)
    return found
