"""Files: the same numbers as in memory, whatever the blocks; complete or not there at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr

import simulators.ensemble
from simulators import (
    InputError,
    Reaction,
    ReactionNetwork,
    SimulationError,
    models,
    simulate,
    simulate_to,
)

YULE = ReactionNetwork(
    "yule", {"X": 1}, {"k": 1.0}, [Reaction("birth", "X -> 2 X", "k")], until=7, points=8
)


def opened(path: Path) -> xr.Dataset:
    data = xr.open_dataset(path) if path.suffix == ".nc" else xr.open_zarr(path)
    return data.load()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulators.ensemble, "BLOCK_BYTES", 64_000)


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_file_holds_what_memory_holds(tmp_path: Path, suffix: str, small_blocks: None) -> None:
    path = tmp_path / f"t{suffix}"
    made = simulate_to(path, models.esirs(), 1_000, seed=4, parameters={"beta": (2, 3)})
    wanted = simulate(models.esirs(), 1_000, seed=4, parameters={"beta": (2, 3)})
    data = opened(path)
    xr.testing.assert_equal(data, wanted)
    assert data.S.dtype == np.int8
    assert data.beta.dims == ("sample",)
    for name in data.variables:
        assert data[name].attrs == wanted[name].attrs
    assert data.attrs.keys() == wanted.attrs.keys()
    assert data.attrs["surrogate_config"] == wanted.attrs["surrogate_config"]
    assert made.bytes > 0
    assert made.variables == ("S", "I", "R", "beta")
    assert os.listdir(tmp_path) == [path.name]


def test_netcdf_is_compressed_as_the_contract_says(tmp_path: Path) -> None:
    simulate_to(tmp_path / "t.nc", models.esirs(), 100)
    with xr.open_dataset(tmp_path / "t.nc") as data:
        encoding = data.S.encoding
    assert encoding["zlib"]
    assert encoding["shuffle"]
    assert encoding["complevel"] == 1


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_counts_that_outgrow_their_type_widen_the_file(
    tmp_path: Path, suffix: str, small_blocks: None
) -> None:
    path = tmp_path / f"t{suffix}"
    simulate_to(path, YULE, 5_000, initial={"X": np.repeat([1, 100], [4_000, 1_000])})
    wanted = simulate(YULE, 5_000, initial={"X": np.repeat([1, 100], [4_000, 1_000])})
    data = opened(path)
    assert data.X.dtype == wanted.X.dtype == np.int32
    assert (data.X == wanted.X).all()
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_nothing_is_overwritten_without_force(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"t{suffix}"
    simulate_to(path, models.esirs(), 10, seed=1)
    with pytest.raises(InputError, match="force=True"):
        simulate_to(path, models.esirs(), 10, seed=2)
    assert opened(path).attrs["surrogate_seed"] == "1"
    simulate_to(path, models.esirs(), 10, seed=2, force=True)
    assert opened(path).attrs["surrogate_seed"] == "2"
    assert os.listdir(tmp_path) == [path.name]


def test_suffixes_may_be_in_capitals(tmp_path: Path) -> None:
    simulate_to(tmp_path / "T.NC", models.esirs(), 10)
    assert (tmp_path / "T.NC").is_file()
    simulate_to(tmp_path / "T.ZARR", models.esirs(), 10)
    assert (tmp_path / "T.ZARR").is_dir()


def test_a_file_where_a_zarr_folder_should_be_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "t.zarr").write_text("a file")
    with pytest.raises(InputError, match="not a Zarr folder"):
        simulate_to(tmp_path / "t.zarr", models.esirs(), 10, force=True)


def test_a_folder_that_cannot_be_replaced_is_put_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.zarr"
    simulate_to(path, models.esirs(), 10, seed=1)

    def fail(*names: object) -> None:
        raise OSError("no")

    monkeypatch.setattr("simulators.storage.os.replace", fail)
    with pytest.raises(SimulationError, match="nothing was changed"):
        simulate_to(path, models.esirs(), 10, seed=2, force=True)
    monkeypatch.undo()
    assert opened(path).attrs["surrogate_seed"] == "1"
    assert os.listdir(tmp_path) == ["t.zarr"]


def test_force_does_not_replace_a_folder_of_something_else(tmp_path: Path) -> None:
    precious = tmp_path / "t.zarr"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match="something else"):
        simulate_to(precious, models.esirs(), 10, force=True)
    assert (precious / "thesis.tex").exists()


@pytest.mark.parametrize(
    ("name", "says"),
    [("t.csv", r"\.nc or \.zarr"), ("nowhere/t.nc", "no folder"), ("t", "must end")],
)
def test_paths_that_cannot_be_written_are_refused_with_the_reason(
    tmp_path: Path, name: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        simulate_to(tmp_path / name, models.esirs(), 10)


def test_a_run_that_fails_half_way_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, small_blocks: None
) -> None:
    path = tmp_path / "t.nc"
    simulate_to(path, models.esirs(), 10)
    before = path.read_bytes()
    # only the last trajectory explodes, after most blocks have been written
    rate = np.repeat([0.1, 100.0], [1_999, 1])
    options: dict[str, Any] = {"parameters": {"k": rate}, "max_events": 10_000}
    with pytest.raises(SimulationError, match="max_events"):
        simulate_to(path, YULE, 2_000, **options, force=True)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["t.nc"]


LIMITED = """
import resource, signal, sys
from simulators import models, simulate_to, SimulationError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
simulate_to(sys.argv[2], models.esirs(), 10)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    simulate_to(sys.argv[1], models.esirs(), 100_000)
except SimulationError as problem:
    print("refused:", problem)
"""


@pytest.mark.parametrize("suffix", [".nc", ".zarr"])
def test_a_full_disk_is_reported_and_nothing_is_left(tmp_path: Path, suffix: str) -> None:
    command = [sys.executable, "-c", LIMITED, f"t{suffix}", "warm.nc"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "refused: cannot write" in done.stdout, done.stderr
    assert os.listdir(tmp_path) == ["warm.nc"]


KILLED = """
import sys
from simulators import models, simulate_to
simulate_to(sys.argv[1], models.esirs(), 100_000_000)
"""


def test_a_kill_leaves_no_file_under_the_final_name_and_the_next_run_sweeps(tmp_path: Path) -> None:
    job = subprocess.Popen([sys.executable, "-c", KILLED, "t.nc"], cwd=tmp_path)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".t.nc.*.part")) and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(signal.SIGKILL)
    job.wait()
    left = os.listdir(tmp_path)
    assert left
    assert "t.nc" not in left
    simulate_to(tmp_path / "t.nc", models.esirs(), 10)
    assert os.listdir(tmp_path) == ["t.nc"]
