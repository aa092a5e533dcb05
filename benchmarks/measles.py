"""Weekly measles reports of seven cities: windows of a year, and how far they are from samples.

Windows overlap, but at one step no two of them show the same week. Two floors stand beside the
distance of samples from all windows, both for sets as large as these. *At random*: windows are
split as if they were independent; this is the least that any sampler of the windows' own
distribution can reach, and what the target is taken from. *By blocks*: stretches of two years, of
all cities together, are split; it holds how much the epidemics of other years differ, and a model
that is nearer than that knows these very years.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import xarray as xr

from surrogate.evaluation.distances import Histogram, floor

YEARS = 2  # in a block: measles came every second year
SPLITS = 20
NAME = "cases"


def reports(data: xr.Dataset) -> np.ndarray:
    """Cases in each week of each window, (n, T)."""
    return data[NAME].transpose("sample", "time").values.astype(np.float64)


def blocks(data: xr.Dataset) -> np.ndarray:
    """The stretch of time in which each window begins, (n,)."""
    return pd.DatetimeIndex(data["start"].values).year.to_numpy() // YEARS


Scale = Callable[[np.ndarray], np.ndarray]
SCALES: dict[str, tuple[Scale, bool]] = {  # and whether bins are those of whole numbers
    "unit bins": (lambda x: x, True),
    "⌊√n⌋ bins of log(1 + cases)": (np.log1p, False),
}


def compare(scale: str, samples: Sequence[xr.Dataset], data: xr.Dataset) -> list[np.ndarray]:
    """D at each step, (T,): of samples, and of data from data at random and by blocks."""
    transform, whole = SCALES[scale]
    windows = transform(reports(data))
    measure, ones = _bins(windows, whole), np.ones(len(windows))
    # what lies beyond the data falls into a bin of its own, however far it lies
    low, high = measure.low, windows.max(0) + measure.width
    sets = [np.clip(transform(reports(each)), low, high) for each in samples]
    found = [measure(each, windows, np.ones(len(each)), ones) for each in sets]
    least = floor(measure, windows, ones, len(sets[0]), splits=SPLITS)
    return [np.mean(found, 0), least.mean(0), _by_blocks(measure, windows, blocks(data))]


def _bins(windows: np.ndarray, whole: bool) -> Histogram:
    """Unit bins or ⌊√n⌋ equal ones over the range of the data alone, and one more at each end."""
    low, high = windows.min(0), windows.max(0)
    count = int((high - low).max()) + 1 if whole else math.isqrt(len(windows))
    width = np.ones_like(low) if whole else (high - low) / count
    return Histogram(low - width, width, count + 2, whole)


def _by_blocks(measure: Histogram, windows: np.ndarray, block: np.ndarray) -> np.ndarray:
    """The mean distance of halves made of whole blocks, brought to the size of all windows."""
    names, found = np.unique(block), []
    for k in range(SPLITS):
        chosen = np.random.default_rng([1, k]).permutation(names)[: len(names) // 2]
        half = np.isin(block, chosen)
        a, b = half.sum(), (~half).sum()
        scale = np.sqrt(2 / len(windows)) / np.sqrt(1 / a + 1 / b)
        found.append(scale * measure(windows[half], windows[~half], np.ones(a), np.ones(b)))
    return np.mean(found, 0)
