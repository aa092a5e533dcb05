"""Importance weights of samples, w_i ∝ exp(log_weight_i), and quantiles of weighted samples.

This is the only reader of `log_weight`, the label that a sampler gives samples of unequal weight.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from surrogate.errors import ModelError

Array = NDArray[np.float64]
LOG_WEIGHT = "log_weight"


def effective_sample_size(weights: Array) -> float:
    """(Σw)² / Σw² of weights (n,): so many samples of equal weight have the same variance."""
    return float(weights.sum() ** 2 / (weights**2).sum())


def relative_weights(data: xr.Dataset, who: str = "") -> Array:
    """The weight of each sample of `data`, (n,), the largest being 1; `who` begins an error."""
    logs = _log_weights(data, who)
    return np.ones(data.sizes["sample"]) if logs is None else np.exp(logs - logs.max())


def normalised_weights(data: xr.Dataset, who: str = "") -> Array | None:
    """The same weights with the sum 1: (n,); None if all samples have the same weight."""
    logs = _log_weights(data, who)
    if logs is None or np.ptp(logs) == 0:
        return None
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _log_weights(data: xr.Dataset, who: str) -> Array | None:
    """`log_weight`, (n,), as numbers; None where the data have none."""
    if LOG_WEIGHT not in data.variables:
        return None
    given = data[LOG_WEIGHT]
    subject = f"{who}: {LOG_WEIGHT}" if who else LOG_WEIGHT
    try:
        logs = np.asarray(given.to_numpy(), np.float64)
    except (TypeError, ValueError):
        logs = np.array([np.nan])
    over_samples = given.dims == ("sample",)
    if not over_samples or np.isnan(logs).any() or not np.isfinite(logs.max(initial=-np.inf)):
        raise ModelError(
            f"{subject} must be a number for each sample, some of them finite",
            remedy="drop it to give all samples the same weight",
        )
    return logs


def weighted_quantiles(
    values: np.ndarray, levels: Sequence[float], weights: np.ndarray | None = None
) -> np.ndarray:
    """Quantiles over samples (n, T) with weights (n,): (len(levels), T); NaN where all values are.

    With weights, the smallest value that at least that share of the weight does not exceed.
    """
    if weights is None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.asarray(np.nanquantile(values, levels, axis=0))
    order = np.argsort(values, axis=0)  # NaN come last
    known = np.take_along_axis(values, order, 0)
    shares = np.cumsum(np.where(np.isnan(known), 0.0, weights[order]), axis=0)
    total = shares[-1]
    found = np.full((len(levels), values.shape[1]), np.nan)
    for k, level in enumerate(levels):
        place = (shares < level * total * (1 - 1e-12)).sum(0)
        found[k] = np.where(
            total > 0, known[place.clip(max=len(values) - 1), range(len(total))], np.nan
        )
    return found
