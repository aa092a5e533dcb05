"""A folder with trajectories, in which training takes a second."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr

from simulators import models, simulate
from tests.cli.small import shrink


@pytest.fixture(scope="session")
def data() -> xr.Dataset:
    return simulate(models.esirs(), samples=300, seed=1)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: xr.Dataset) -> Path:
    """Tiny networks, and no checkpoints but those at looks."""
    monkeypatch.chdir(tmp_path)
    data.to_netcdf("trajectories.nc")
    shrink(monkeypatch.setattr, seconds=1e9)
    return tmp_path
