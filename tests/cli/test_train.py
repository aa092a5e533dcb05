"""surrogate train and surrogate sample, through the console script and in process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner, Result

from cli.main import main
from simulators import models, simulate

SCRIPT = Path(sys.executable).with_name("surrogate")
SHORT = ("--iterations", "12", "--threads", "1")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    simulate(models.esirs(), samples=300, seed=1).to_netcdf("trajectories.nc")
    return tmp_path


def run(*words: str, code: int = 0) -> Result:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == code, done.output
    assert code == 0 or isinstance(done.exception, SystemExit)
    return done


def test_train_then_sample_by_the_console_script(here: Path) -> None:
    def script(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=300)

    trained = script("train", *SHORT, "--json")
    assert trained.returncode == 0, trained.stderr
    assert "300 trajectories of S, I over 30 times" in trained.stderr
    assert "next: surrogate sample model" in trained.stderr
    assert json.loads(trained.stdout)["settings"]["steps"] == 12
    assert sorted(each.name for each in Path("model").iterdir()) == [
        "config.json",
        "weights.safetensors",
    ]
    assert not Path("model.training").exists()
    drawn = script("sample", "-n", "20", "--steps", "5")
    assert drawn.returncode == 0, drawn.stderr
    with xr.open_dataset("samples.nc") as data:
        assert dict(data.sizes) == {"sample": 20, "time": 30}
        assert (sum(data[name].astype(int) for name in "SIR") == 100).all()
        assert "surrogate sample" in data.attrs["history"]


def test_nothing_is_lost(here: Path) -> None:
    run("train", *SHORT, "-q")
    before = Path("model/config.json").read_bytes()
    assert "--force" in run("train", *SHORT, code=2).output
    run("train", *SHORT, "--force", "--seed", "1", "-q")
    assert Path("model/config.json").read_bytes() != before
    run("sample", "-n", "5", "--steps", "3", "-q")
    assert "--force" in run("sample", "-n", "5", code=2).output
    Path("notes").mkdir()
    Path("notes/mine.txt").write_text("keep", encoding="utf-8")
    assert "other things" in run("train", *SHORT, "-o", "notes", "--force", code=2).output


def test_interrupted_runs(here: Path) -> None:
    assert "no interrupted run" in run("train", "--resume", code=2).output
    Path("model.training").mkdir()
    Path("model.training/state.json").write_text("{", encoding="utf-8")
    assert "--resume" in run("train", *SHORT, code=2).output
    assert "damaged" in run("train", *SHORT, "--resume", code=2).output
    run("train", *SHORT, "--force", "-q")


def test_tables(here: Path) -> None:
    weeks = np.arange(200)
    cases = np.random.default_rng(0).poisson(20 + 10 * np.sin(weeks / 8))
    pd.DataFrame({"week": weeks, "cases": cases}).to_csv("cases.csv", index=False)
    said = run("train", "cases.csv", "--time", "week", "--window", "20", "--stride", "2", *SHORT)
    assert "cases" in said.output
    run("sample", "-n", "4", "--steps", "3")
    with xr.open_dataset("samples.nc") as data:
        assert data.cases.shape == (4, 20)


def test_a_simulator_as_the_source(here: Path) -> None:
    said = run("train", "--simulate", "sir", *SHORT, "-o", "sir")
    assert "20,000 trajectories" in said.output


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train", "nothing.nc"), "there is no file"),
        (("train", "trajectories.nc", "--simulate", "esirs"), "not both"),
        (("train", "--simulate", "essirs"), "did you mean 'esirs'"),
        (("train", "--window", "5"), "is for tables"),
        (("train", "--device", "toaster"), "--device toaster"),
        (("train", "--threads", "0"), "--threads"),
        (("train", "--iterations", "0"), "steps must be >= 1"),
        (("sample", "nowhere"), "surrogate train"),
        (("sample", "-n", "0"), ">= 1"),
        (("sample", "-o", "x.txt"), ".nc"),
    ],
)
def test_wrong_words(here: Path, words: tuple[str, ...], says: str) -> None:
    if words == ("sample", "-n", "0"):
        run("train", *SHORT, "-q")
    assert says in run(*words, code=2).output
