"""Images: samples over (sample, [channel,] y, x)."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.images.values import from_array, is_images
from surrogate.kinds.kind import Kind


class Images(Kind):
    """Grey or colour images of one size: a dataset with the variable `image`, or an array."""

    name = "images"
    stored = "images"
    singular = "image"
    dimensions = "(sample, [channel,] y, x)"

    # --- recognising ------------------------------------------------------------------------------

    def holds(self, data: object) -> bool:
        return isinstance(data, np.ndarray) or is_images(data)

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        if options:
            raise ModelError(f"{next(iter(options))} does not apply to images")
        return from_array(data) if isinstance(data, np.ndarray) else data

    # --- learning and sampling --------------------------------------------------------------------

    default_samples = 64
    preferred_method = "moments"
    pilot_samples = 200  # each costs as much as many trajectories
