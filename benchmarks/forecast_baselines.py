"""Forecasts that any forecaster should beat, made of what was known at the origin alone.

A series y of evenly spaced values, the season P of its period, the last known value y_s, and h = 1,
2, ... steps ahead (Hyndman & Athanasopoulos, Forecasting, section 5.2):

seasonal naive   y_{s+h-P} plus an error drawn from the past: y_r - y_{r-P} for all known r
climatology      the values of all past seasons at the same place, y_{s+h-P}, y_{s+h-2P}, ...

Both are also made of log(1 + y), whose errors are factors; draws of counts do not fall below 0.
"""

from __future__ import annotations

import numpy as np

MIN_SEASONS = 5  # of climatology


def seasonal_naive(
    known: np.ndarray, season: int, steps: int, draws: int, seed: int, *, logs: bool
) -> np.ndarray:
    """Draws (draws, steps) after the known values (s,); those that are missing are NaN."""
    z = np.log1p(np.maximum(known, 0)) if logs else known
    errors = z[season:] - z[:-season]
    errors = errors[np.isfinite(errors)]
    random = np.random.default_rng(seed)
    last = _filled(z[len(z) - season :])[np.arange(steps) % season]
    made = last + random.choice(errors, (draws, steps))
    made = np.expm1(made) if logs else made
    return np.asarray(np.maximum(made, 0) if np.nanmin(known) >= 0 else made)


def climatology(known: np.ndarray, season: float, steps: int) -> np.ndarray:
    """The values (seasons, steps) of past seasons at the places of the steps ahead; `season` need
    not be whole: a year has 52.18 weeks."""
    end = len(known)
    count = int((end - 1) // season)
    places = end + np.arange(steps)[None] - np.rint(np.arange(1, count + 1) * season)[:, None]
    places = places.astype(int)
    rows = known[places.clip(0, end - 1)]
    usable = ((places >= 0) & (places < end)).all(1) & np.isfinite(rows).all(1)
    if usable.sum() < MIN_SEASONS:
        raise ValueError(f"{int(usable.sum())} seasons before the origin are too few")
    return np.asarray(rows[usable])


def _filled(values: np.ndarray) -> np.ndarray:
    """Missing values replaced by the ones before."""
    known = np.where(np.isfinite(values), np.arange(len(values)), 0)
    return np.asarray(values[np.maximum.accumulate(known)])
