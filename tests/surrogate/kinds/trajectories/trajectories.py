"""Data of every kind that a codec meets."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import xarray as xr

from simulators import models, simulate


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@cache
def trajectories(name: str) -> xr.Dataset:
    """Simulated data of every kind that a codec meets."""
    match name:
        case "uniform":
            return simulate(models.esirs(), samples=800, seed=1)
        case "fixed":
            return simulate(models.esirs(), samples=800, seed=1, initial={"S": 95, "I": 5})
        case "population":
            return simulate(models.esirs(), samples=800, seed=1, parameters={"N": (80, 120)})
        case "totals":  # they differ, and no variable says so
            return trajectories("population").drop_vars("N")
        case "rates":
            return simulate(models.sir(), samples=300, seed=1, parameters={"beta": (1.0, 2.0)})
        case "dimers":
            return simulate(models.dimerisation(), samples=300, seed=1)
        case "mean field":
            field = {"S": (70, 90), "I": (5, 10)}
            return simulate(models.esirs(), samples=50, seed=1, initial=field, method="ode")
    return simulate(models.lotka_volterra(), samples=300, seed=1)


KINDS = ("uniform", "fixed", "population", "totals", "rates", "dimers", "mean field", "predators")


def weather(samples: int = 60, steps: int = 5) -> xr.Dataset:
    """Words, truth values and constants beside numbers, some with time first."""
    rng = np.random.default_rng(0)
    return xr.Dataset(
        {
            "rain": (("time", "sample"), rng.gamma(2, 2, (steps, samples)), {"units": "mm"}),
            "sky": (("sample", "time"), rng.choice(["clear", "cloudy", "fog"], (samples, steps))),
            "frost": (("sample", "time"), rng.random((samples, steps)) < 0.3),
            "site": ("sample", rng.choice(["hill", "shore"], samples).astype(object)),
            "height": ("sample", rng.integers(0, 2000, samples).astype(np.uint16)),
            "year": (("sample", "time"), np.full((samples, steps), 1948, np.int16)),
            "volume": 2.5,
            "picture": (("sample", "x"), np.zeros((samples, 2))),
            "note": ("time", np.arange(steps)),
            "satisfied": ("sample", np.ones(samples, bool)),
        },
        {
            "time": np.datetime64("2020-01-01") + 7 * np.arange(steps),
            "week": ("time", range(steps)),
        },
    )
