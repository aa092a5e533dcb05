"""Credible intervals: mean, deviation and quantiles of every number that samples hold.

Of samples from p(x, θ | data) these are the posterior's: a row for each parameter, and for each
variable at each time.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd
import xarray as xr

from surrogate.errors import ModelError
from surrogate.evaluation.weights import LOG_WEIGHT, normalised_weights, weighted_quantiles
from surrogate.io.tables import iso

QUANTILES = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)


def summary(data: xr.Dataset | pd.DataFrame, without: Collection[str] = ()) -> pd.DataFrame:
    """A row for each number of the variables over (sample) or (sample, time), or of the columns of
    a table: variable, time, mean, sd and quantiles. Weights of samples are honoured."""
    if isinstance(data, pd.DataFrame):
        data = xr.Dataset({str(name): ("sample", data[name].to_numpy()) for name in data})
    names = [str(name) for name in data.data_vars if name not in without]
    weights = normalised_weights(data)
    frames = [_rows(data, name, weights) for name in names if _is_number(data[name])]
    if not frames:
        raise ModelError("there are no numbers to summarise", value=names)
    return pd.concat(frames, ignore_index=True)


def _is_number(array: xr.DataArray) -> bool:
    over_time = set(array.dims) in ({"sample"}, {"sample", "time"})
    return over_time and array.dtype.kind in "iufb" and array.name != LOG_WEIGHT


def _rows(data: xr.Dataset, name: str, weights: np.ndarray | None) -> pd.DataFrame:
    values = np.asarray(data[name].transpose("sample", ...).values, np.float64)
    values = values.reshape(len(values), -1)
    mean = np.average(values, axis=0, weights=weights)
    spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    quantiles = weighted_quantiles(values, QUANTILES, weights)
    named = {f"q{100 * level:g}": row for level, row in zip(QUANTILES, quantiles, strict=True)}
    when = _times(data) if "time" in data[name].dims else [None]  # a number that a sample has once
    return pd.DataFrame({"variable": name, "time": when, "mean": mean, "sd": spread, **named})


def _times(data: xr.Dataset) -> list[object]:
    times = np.asarray(data["time"].values) if "time" in data.coords else None
    if times is None:
        return list(range(data.sizes["time"]))
    return list(iso(times)) if times.dtype.kind == "M" else list(times)
