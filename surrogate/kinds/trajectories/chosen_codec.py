"""The codec of training data: what is not named is chosen by trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.cycle_trial import with_cycles


def fit_to(data: xr.Dataset, learned: np.ndarray, transforms: Mapping[str, str]) -> TimeSeriesCodec:
    """Transforms of variables, and cycles of the calendar, as named or else by trials. `learned`:
    samples that are learned from; the others score transforms."""
    data, gains = with_cycles(data)
    with np.errstate(over="ignore", invalid="ignore"):  # which is reported below
        codec = TimeSeriesCodec.fit(data, transforms={"*": "auto", **transforms}, learned=learned)
    if not (codec.scale.isfinite() & codec.mean.isfinite() & (codec.scale > 0)).all():
        raise ModelError(
            "the values are too large or too small for their variance to be a number",
            remedy="convert them to another unit",
        )
    return replace(codec, gains={**codec.gains, **gains})
