"""surrogate train and surrogate sample, through the console script and in process."""

from __future__ import annotations

import errno
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from click.testing import CliRunner, Result

from cli import train
from cli.main import main
from simulators import models, simulate
from surrogate import fitting, store
from tests.cli.small import shrink

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("surrogate")
SHORT = ("--iterations", "12", "--threads", "1")


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return simulate(models.esirs(), samples=300, seed=1)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: xr.Dataset) -> Path:
    monkeypatch.chdir(tmp_path)
    data.to_netcdf("trajectories.nc")
    return tmp_path


@pytest.fixture
def small(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tiny networks, and no checkpoints but those at looks."""
    shrink(monkeypatch.setattr, seconds=1e9)
    return here


def run(*words: str, code: int = 0, **settings: str) -> Result:
    done = CliRunner(env=settings).invoke(main, words)
    assert done.exit_code == code, done.output
    assert code == 0 or isinstance(done.exception, SystemExit)
    return done


def weights(folder: str = "model") -> bytes:
    return Path(folder, "weights.safetensors").read_bytes()


def test_train_then_sample_by_the_console_script(here: Path) -> None:
    def script(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([SCRIPT, *words], capture_output=True, text=True, timeout=300)

    trained = script("train", *SHORT, "--json")
    assert trained.returncode == 0, trained.stderr
    assert "300 trajectories of S, I over 30 times" in trained.stderr
    assert "of data from data" in trained.stderr
    assert "next: surrogate sample model" in trained.stderr
    told = json.loads(trained.stdout)
    assert told["settings"]["steps"] == 12
    assert [each["name"] for each in told["card"]["variables"]] == ["S", "I", "R"]
    assert {"config.json", "weights.safetensors"} <= {each.name for each in Path("model").iterdir()}
    assert sorted(os.listdir()) == ["model", "trajectories.nc"]
    drawn = script("sample", "-n", "20", "--steps", "5")
    assert drawn.returncode == 0, drawn.stderr
    with xr.open_dataset("samples.nc") as data:
        assert dict(data.sizes) == {"sample": 20, "time": 30}
        assert (sum(data[name].astype(int) for name in "SIR") == 100).all()
        assert "surrogate sample" in data.attrs["history"]


# --- interrupted ----------------------------------------------------------------------------------


def interrupted(sent: signal.Signals, *words: str) -> tuple[int, str]:
    """A run of its own process that gets a signal as soon as it has a checkpoint."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.small", "train", *words],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    state = Path("model.training/state.json")
    limit = time.monotonic() + 120
    while not state.exists() and child.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    child.send_signal(sent)
    said = child.communicate(timeout=120)[1]
    return child.returncode, said


def test_killed_and_resumed_bit_for_bit(small: Path) -> None:
    words = ("--iterations", "40", "--threads", "1")
    code, _ = interrupted(signal.SIGKILL, *words)
    assert code == -signal.SIGKILL
    assert not Path("model").exists()
    said = run("train", *words, code=2).output
    assert "surrogate train --iterations 40 --threads 1 --resume" in said
    said = run("train", *words, "--resume").output
    assert "going on from step" in said
    assert sorted(os.listdir()) == ["model", "trajectories.nc"]
    run("train", *words, "-o", "whole", "-q")
    assert weights() == weights("whole")


def test_stopped_and_resumed_bit_for_bit(small: Path) -> None:
    words = ("--simulate", "esirs", "--iterations", "40", "--threads", "1", "-o", "model")
    code, said = interrupted(signal.SIGINT, *words)
    assert code == 1
    assert "stopped: the run is kept up to step" in said
    assert "Traceback" not in said
    again = shlex.split(said.splitlines()[-1])
    assert again[0] == "surrogate"
    step = json.loads(Path("model.training/state.json").read_text())["state"]["step"]
    assert f"going on from step {step:,}" in run(*again[1:]).output
    run("train", *words[:-1], "whole", "-q")
    assert weights() == weights("whole")


def test_what_is_resumed_must_be_the_same(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "no interrupted run" in run("train", "--resume", code=2).output
    monkeypatch.setattr(train, "_stoppable", lambda: _Now())
    said = run("train", *SHORT, code=1).output
    assert "kept up to step 1; go on with\n  surrogate train --iterations 12" in said
    monkeypatch.undo()
    monkeypatch.chdir(small)
    shrink(monkeypatch.setattr, seconds=1e9)
    assert "other seed" in run("train", *SHORT, "--resume", "--seed", "1", code=2).output
    assert "other settings" in run("train", "--resume", code=2).output
    fresh = run("train", *SHORT, "--simulate", "esirs", "--resume", code=2).output
    assert "other source" in fresh
    # what is in its place is lost by nothing but a new checkpoint
    assert "there is no file" in run("train", "none.nc", *SHORT, "--force", code=2).output
    kept = Path("model.training/state.json").read_bytes()
    file = Path("model.training", json.loads(kept)["tensors"])
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    assert "cut short" in run("train", *SHORT, "--resume", code=2).output
    file.unlink()
    assert "there is no" in run("train", *SHORT, "--resume", code=2).output
    file.write_bytes(content)
    for damage in (b"{", b"[]", b'{"version": 1}', b'{"version": 99}', kept.replace(b"step", b"x")):
        Path("model.training/state.json").write_bytes(damage)
        run("train", *SHORT, "--resume", code=2)
    Path("model.training/mine.txt").write_text("keep", encoding="utf-8")
    run("train", *SHORT, "--force", "-q")
    assert os.listdir("model.training") == ["mine.txt"]


class _Now:
    """As `_stoppable`, with Ctrl-C in the first step."""

    def __enter__(self) -> object:
        return lambda: True

    def __exit__(self, *problem: object) -> None:
        pass


# --- nothing is lost ------------------------------------------------------------------------------


def test_a_model_is_replaced_only_when_told(small: Path) -> None:
    run("train", *SHORT, "-q")
    before = weights()
    assert "--force" in run("train", *SHORT, code=2).output
    run("train", *SHORT, "--force", "--seed", "1", "-q")
    assert weights() != before
    run("sample", "-n", "5", "--steps", "3", "-q")
    assert "--force" in run("sample", "-n", "5", code=2).output
    assert sorted(os.listdir()) == ["model", "samples.nc", "trajectories.nc"]


def test_a_failed_run_leaves_the_model_before_it(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("train", *SHORT, "-q")
    before = weights()
    shrink(monkeypatch.setattr)
    preset = fitting.PRESETS["default"]
    wild = replace(preset, settings=replace(preset.settings, rate=1e30, warm_up=0))
    monkeypatch.setitem(fitting.PRESETS, "default", wild)
    said = run("train", *SHORT, "--force", code=1).output
    assert "diverged" in said
    assert "kept up to step" in said
    assert Path("model.training/state.json").exists()
    assert weights() == before
    assert run("sample", "-n", "3", "--steps", "3", "-q").output == ""


def test_a_full_disk(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run("train", *SHORT, "-q")
    before = weights()
    full: list[str] = []
    write = store.write_bytes

    def fill(target: Path, content: bytes) -> None:
        if any(target.match(each) for each in full):
            target.with_name(f".{target.name}.half").write_bytes(content[:10])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(target, content)

    monkeypatch.setattr(store, "write_bytes", fill)
    full[:] = ["state*"]  # at a checkpoint
    said = run("train", *SHORT, "--seed", "1", "--force", code=1).output
    assert "cannot write a checkpoint to 'model.training': No space left" in said
    assert "there is no checkpoint yet" in said
    full[:] = ["config.json"]  # when all is done
    said = run("train", *SHORT, "--seed", "1", "--force", code=1).output
    assert "cannot write the model to 'model': No space left" in said
    assert weights() == before
    again = said.splitlines()[-1].split()
    full.clear()
    run(*again[1:], "-q")
    assert weights() != before
    assert sorted(os.listdir()) == ["model", "trajectories.nc"]


def test_a_model_that_was_half_replaced_is_put_back(small: Path) -> None:
    run("train", *SHORT, "-q")
    before = weights()
    os.rename("model", ".model.old")  # as a process that is killed between two steps leaves it
    shutil.copytree(".model.old", ".model.new")
    assert "exists" in run("train", *SHORT, code=2).output
    assert weights() == before
    assert sorted(os.listdir()) == ["model", "trajectories.nc"]


@pytest.mark.parametrize(
    ("out", "says"),
    [
        ("", "is no name"),
        (".", "is no name"),
        ("..", "is no name"),
        ("a\nb", "is no name"),
        ("trajectories.nc", "is a file"),
        ("none/model", "there is no folder 'none'"),
        ("/proc/model", "cannot write to the folder '/proc'"),
        ("x" * 300, "File name too long"),
        ("loop", "is a file"),
        ("notes", "other things in it, such as 'mine.txt'"),
        ("web", "other things in it, such as 'index.html'"),
        ("busy", "'busy.training' is a file"),
    ],
)
def test_places_that_cannot_be_written(small: Path, out: str, says: str) -> None:
    """Refused before anything is read, and left as they are."""
    os.symlink("loop", "loop")
    for name in ("notes/mine.txt", "web/config.json", "web/index.html", "busy.training"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text("keep", encoding="utf-8")
    before = sorted(Path().rglob("*"))
    assert says in run("train", "none.nc", "-o", out, "--force", code=2).output
    assert sorted(Path().rglob("*")) == before


def test_an_empty_folder_is_filled_and_a_link_is_followed(small: Path) -> None:
    Path("models/esirs").mkdir(parents=True)
    os.symlink("models/esirs", "link")
    run("train", *SHORT, "-o", "link", "-q")
    assert Path("link").is_symlink()
    assert weights("models/esirs")


# --- what is said ---------------------------------------------------------------------------------


def test_progress(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "TELL", 0.0)
    said = run("train", *SHORT).stderr.splitlines()
    assert said[1].startswith("step 1 of 12")
    assert said[1].endswith("s left")
    assert said[12].startswith("step 12 of 12  loss ")
    assert ", held-out " in said[12]
    quiet = run("train", *SHORT, "--force", "--quiet", "--json")
    assert quiet.stderr == ""
    told = json.loads(quiet.stdout)
    assert told["path"] == "model"
    assert told["looks"][-1]["step"] == 12
    bar = run("train", *SHORT, "--force", FORCE_COLOR="1", COLUMNS="150").stderr
    assert "training  loss" in bar
    assert "12/12" in bar
    assert train._duration(20) == "20 s"
    assert train._duration(600) == "10 min"


# --- data -----------------------------------------------------------------------------------------


def test_a_simulator_as_the_source(small: Path) -> None:
    said = run("train", "--simulate", "sir", *SHORT, "-o", "sir")
    assert "200 trajectories" in said.output


def test_a_series_cut_into_windows(small: Path) -> None:
    weeks = np.arange(200)
    cases = np.random.default_rng(0).poisson(20 + 10 * np.sin(weeks / 8))
    pd.DataFrame({"week": weeks, "cases": cases}).to_csv("cases.csv", index=False)
    said = run("train", "cases.csv", "--time", "week", "--window", "20", "--stride", "2", *SHORT)
    assert "one series of 200 steps: 91 windows of 20 steps, one every 2" in said.output
    run("sample", "-n", "4", "--steps", "3")
    with xr.open_dataset("samples.nc") as data:
        assert data.cases.shape == (4, 20)


@pytest.fixture
def table() -> pd.DataFrame:
    """60 runs of 10 steps of two variables."""
    random = np.random.default_rng(0)
    runs, times = np.repeat(np.arange(60), 10), np.tile(np.arange(10), 60)
    x, y = random.normal(size=600), random.poisson(9, 600)
    return pd.DataFrame({"run": runs, "t": times, "x": x, "y": y})


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_of_several_makes(small: Path, table: pd.DataFrame, encoding: str) -> None:
    mixed = table.rename(columns={"x": "body größe"}).sample(frac=1, random_state=0)
    mixed.to_csv("t.csv", index=False, encoding=encoding, sep=";")
    words = ("--id", "run", "--time", "t", "--columns", "body größe, y")
    said = run("train", "t.csv", *words, *SHORT).stderr
    assert "60 trajectories of body größe, y over 10 times" in said


@pytest.mark.parametrize(
    ("changed", "words", "says"),
    [
        (
            {},
            ("--id", "runn"),
            "there is no column 'runn' (did you mean 'run'?); have run, t, x, y",
        ),
        ({}, ("--columns", "x,z"), "there is no column 'z'"),
        ({}, ("--columns", "x,x"), "different names"),
        ({}, ("--columns", "t"), "cannot be a variable and the time"),
        ({}, ("--time", "x", "--id", "t"), "has other times than most"),
        ({}, ("--window", "50"), "windows of 50 steps do not fit into 10 steps"),
        ({}, ("--window", str(10**25)), "do not fit"),
        ({}, ("--window", "5", "--stride", "0"), "stride is a number of steps >= 1, not 0"),
        ({}, ("--window", "1"), "window is a number of steps >= 2, not 1"),
        ({}, ("--stride", "2"), "give window as well"),
        ({}, ("--pool", " "), "pool is a name"),
        ({"x": (123, np.nan)}, (), "x is missing at 3 of run 12"),
        ({"x": (123, np.nan)}, (), "(--missing drop)"),
        ({"x": (123, np.inf)}, (), "x has infinite values: 1 values in 1 of 60 samples"),
        ({"x": (123, "oops")}, (), "x is 'oops' in row 123"),
        ({"y": (5, 2**63 + 5)}, (), "such as 9223372036854775813"),
        ({"y": (5, 2**62)}, (), "below 2^53"),
        ({"y": (5, 10**308)}, (), "too large or too small"),
        ({"run": (3, None)}, (), "run is missing in row 3"),
        ({"t": (3, None)}, (), "t is missing in row 3"),
        ({"t": (3, "soon")}, (), "t is 'soon' in row 3, neither a number nor a date"),
        ({"t": (75, 5.5)}, (), "run 7 has other times than most: step 5 is at 5.5"),
        ({"t": (75, 4)}, (), "run 7 has two rows for the time 4"),
    ],
)
def test_bad_tables(
    small: Path,
    table: pd.DataFrame,
    changed: dict[str, tuple[int, object]],
    words: tuple[str, ...],
    says: str,
) -> None:
    for name, (row, value) in changed.items():
        table[name] = table[name].astype(object)
        table.loc[row, name] = value
    table.to_csv("t.csv", index=False)
    usual = () if "--id" in words else ("--id", "run", "--time", "t")
    assert says in run("train", "t.csv", *usual, *words, code=2).output
    assert sorted(os.listdir()) == ["t.csv", "trajectories.nc"]


def test_runs_with_other_times_are_named(small: Path, table: pd.DataFrame) -> None:
    table.drop(index=[15, 16, 333]).to_csv("t.csv", index=False)
    words = ("train", "t.csv", "--id", "run", *SHORT)
    said = run(*words, code=2).output
    assert "run 1 has other times than most: step 5 is at 7 where most have 5" in said
    assert "(2 runs have: 1, 33)" in said
    assert "58 trajectories" in run(*words, "--missing", "drop").output


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "is empty: it has no header"),
        ("a.csv", b"a,b\n", "0 rows below its header"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", "line 3"),
        ("a.csv", b'a,b\n1,2\n3,"4\n', "starting at row 2"),
        ("a.csv", "größe\n1\n2\n".encode("latin-1"), "save it as UTF-8"),
        ("a.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "not UTF-8 text"),
        ("a.csv", b"x;y\n1,5;2\n2,5;3\n", "x is '1,5' in row 0, with a decimal comma"),
        ("a.csv", b"x\n1\n2\n3\n", "one series of 3 steps, which is a single sample"),
        ("a.csv", b"time,x\n1,2\n", "single sample"),
        ("a.csv.gz", b"junk", "Not a gzipped file"),
        ("a.nc", b"", "is an empty file"),
        ("a.nc", b"a,b\n1,2\n", "is not a netCDF file"),
        ("a.nc", b"\x89HDF\r\n\x1a\n" + bytes(100), "cannot read 'a.nc' as trajectories"),
        ("a.txt", b"a,b\n1,2\n", "trajectories end in .nc or .zarr, tables in .csv"),
        ("a.zarr", b"", "neither a netCDF file"),
    ],
)
def test_files_of_another_kind(small: Path, name: str, content: bytes, says: str) -> None:
    Path(name).write_bytes(content)
    assert says in run("train", name, code=2).output
    assert sorted(os.listdir()) == [name, "trajectories.nc"]


def test_bad_trajectories(small: Path, data: xr.Dataset) -> None:
    def refused(changed: xr.Dataset, says: str) -> None:
        changed.to_netcdf("bad.nc")
        assert says in run("train", "bad.nc", code=2).output
        Path("bad.nc").unlink()

    def with_value(value: float) -> xr.Dataset:
        made = data.astype(float)
        made["I"][7, 3] = value
        return made

    plain = data.drop_attrs(deep=False)
    refused(data.isel(sample=slice(10)), "10 trajectories are too few")
    refused(plain.map(lambda each: 0 * each + 5), "all trajectories are the same")
    refused(with_value(np.nan), "first at sample 7, step 3")
    refused(with_value(np.inf), "I has infinite values")
    refused(data.isel(time=0, drop=True), "no dimensions (sample, time)")
    refused(data.rename(sample="draw"), "no dimensions (sample, time)")
    refused(data.isel(sample=slice(0)), "is empty")
    refused(data.isel(time=slice(None, None, -1)), "increase")
    refused(data.drop_vars(["S", "I", "R"]), "no signals")
    refused(plain.assign(S=plain.S * 1e200), "too large or too small")
    refused(plain.assign(S=(plain.S + 1).astype(np.int64) * 2**55), "below 2^53")
    refused(data.assign(R=0 * data.R), "said to be conserved")


def test_constant_channels_and_turned_arrays(small: Path, data: xr.Dataset) -> None:
    plain = data.drop_attrs(deep=False)
    plain.assign(R=0 * data.R + 3).transpose("time", "sample").to_netcdf("odd.nc")
    assert "trajectories of S, I over 30" in run("train", "odd.nc", *SHORT).output
    run("sample", "-n", "4", "--steps", "3", "-q")
    with xr.open_dataset("samples.nc") as drawn:
        assert drawn.S.dims == ("time", "sample")
        assert (drawn.R == 3).all()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train", "nothing.nc"), "there is no file"),
        (("train", "x" * 300 + ".nc"), "File name too long"),
        (("train", ""), "neither a netCDF file"),
        (("train", "trajectories.nc", "--simulate", "esirs"), "not both"),
        (("train", "--simulate", "essirs"), "did you mean 'esirs'"),
        (("train", "--window", "5"), "is for tables"),
        (("train", "--device", "toaster"), "--device toaster"),
        (("train", "--threads", "0"), "--threads"),
        (("train", "--iterations", "0"), "steps must be >= 1"),
        (("train", "--seed", "-1"), "seed must be a whole number from 0"),
        (("train", "--seed", str(2**70)), "seed must be a whole number from 0"),
        (("sample", "nowhere"), "surrogate train"),
        (("sample", "-o", "x.txt"), ".nc"),
    ],
)
def test_wrong_words(small: Path, words: tuple[str, ...], says: str) -> None:
    assert says in run(*words, code=2).output
    assert os.listdir() == ["trajectories.nc"]
