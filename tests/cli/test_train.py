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
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import xarray as xr

import surrogate as sg
from cli import train
from surrogate.diffusion import presets
from surrogate.io import model_folder as store
from tests.cli.small import SHORT, run, shrink

ROOT = Path(__file__).parents[2]
SCRIPT = Path(sys.executable).with_name("surrogate")


def weights(folder: str = "model") -> bytes:
    return Path(folder, "weights.safetensors").read_bytes()


def test_train_by_the_console_script_then_sample(small: Path, data: xr.Dataset) -> None:
    data.isel(sample=slice(100), time=slice(8)).to_netcdf("trajectories.nc", mode="w")
    words = [SCRIPT, "train", *SHORT, "--preset", "quick", "--json"]
    trained = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert trained.returncode == 0, trained.stderr
    assert "100 trajectories of S, I, R (R from conservation) over 8 times" in trained.stderr
    assert "of data from data" in trained.stderr
    assert "next: surrogate sample model" in trained.stderr
    told = json.loads(trained.stdout)
    assert told["settings"]["steps"] == 12
    assert [each["name"] for each in told["card"]["variables"]] == ["S", "I", "R"]
    verdict = told["card"]["verdict"]
    assert f"verdict: {verdict['words']}" in trained.stderr
    assert {"config.json", "weights.safetensors"} <= {each.name for each in Path("model").iterdir()}
    assert sorted(os.listdir()) == ["model", "trajectories.nc"]
    said = run("sample", "-n", "20", "--steps", "5").stderr
    assert ("its card says: " in said) == (verdict["level"] != "good")
    with xr.open_dataset("samples.nc") as drawn:
        assert dict(drawn.sizes) == {"sample": 20, "time": 8}
        assert (sum(drawn[name].astype(int) for name in "SIR") == 100).all()
        assert "history" in drawn.attrs


# --- interrupted ----------------------------------------------------------------------------------


def killed(*words: str) -> int:
    """The exit code of a process of its own that is killed as soon as it has a checkpoint."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.cli.small", "train", *words],
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    state = Path("model.training/state.json")
    limit = time.monotonic() + 120
    while not state.exists() and child.poll() is None and time.monotonic() < limit:
        time.sleep(0.01)
    child.kill()
    return child.wait(timeout=120)


def stopped(*words: str) -> str:
    """What a run says that gets SIGINT, as by Ctrl-C, as soon as it has a checkpoint."""
    state = Path("model.training/state.json")
    done = threading.Event()

    def press() -> None:
        while not state.exists() and not done.wait(0.005):
            pass
        if not done.is_set():
            signal.raise_signal(signal.SIGINT)

    watcher = threading.Thread(target=press)
    watcher.start()
    try:
        return run("train", *words, code=1).stderr
    finally:
        done.set()
        watcher.join()


def test_killed_and_resumed_bit_for_bit(small: Path) -> None:
    words = ("--iterations", "40", "--threads", "1")
    assert killed(*words) == -signal.SIGKILL
    assert not Path("model").exists()
    said = run("train", *words, code=2).output
    assert "surrogate train --iterations 40 --threads 1 --resume" in said
    said = run("train", *words, "--resume").output
    assert "going on from step" in said
    assert sorted(os.listdir()) == ["model", "trajectories.nc"]
    run("train", *words, "-o", "whole", "-q")
    assert weights() == weights("whole")


def test_stopped_and_resumed_bit_for_bit(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink(monkeypatch.setattr)  # a checkpoint at each step
    words = ("--simulate", "esirs", "--iterations", "40", "--threads", "1", "-o", "model")
    said = stopped(*words)
    assert "stopped: the run is kept up to step" in said
    assert "Traceback" not in said
    again = shlex.split(said.splitlines()[-1])
    assert again[0] == "surrogate"
    step = json.loads(Path("model.training/state.json").read_text())["state"]["step"]
    assert f"going on from step {step:,}" in run(*again[1:]).output
    run("train", *words[:-1], "whole", "-q")
    assert weights() == weights("whole")


def test_a_simulator_takes_the_options_of_simulate(small: Path) -> None:
    words = ("--simulate", "sir", "--param", "beta=0.5..3", "--points", "5", "--initial", "I=4")
    said = run("train", *words, "--iterations", "2", "--threads", "1", "-o", "drawn").output
    assert "logit of beta between known ends" in said
    assert "logit of beta between known ends" in Path("drawn/card.md").read_text()
    draws = sg.load("drawn").sample(50, seed=1)
    assert set(draws.I.values[:, 0].tolist()) == {4}
    assert 0.5 <= float(draws.beta.min()) < float(draws.beta.max()) <= 3.0
    refused = run("sample", "drawn", "--where", "beta >= 9", code=3).output
    assert "beta" in refused


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


def test_a_model_is_replaced_only_with_force(small: Path) -> None:
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
    preset = presets.PRESETS["default"]
    wild = replace(preset, settings=replace(preset.settings, rate=1e30, warm_up=0))
    monkeypatch.setitem(presets.PRESETS, "default", wild)
    said = run("train", *SHORT, "--force", code=1).output
    assert "diverged" in said
    assert "kept up to step" in said
    assert Path("model.training/state.json").exists()
    assert weights() == before
    assert run("sample", "-n", "3", "--steps", "3", "-q").output == ""


def test_a_full_disk_keeps_the_checkpoint(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert "(there is no checkpoint yet); free some room and start again" in said
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


def test_train_prints_progress_lines_unless_quiet(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(train, "SECONDS_BETWEEN_LINES", 0.0)
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


# --- models ---------------------------------------------------------------------------------------


def test_damaged_models_are_refused_by_sample(small: Path) -> None:
    run("train", *SHORT, "-q")
    config, tensors = Path("model/config.json"), Path("model/weights.safetensors")
    text, content = config.read_text(), tensors.read_bytes()

    def refused(says: str) -> None:
        assert says in run("sample", "model", "-n", "3", code=2).output
        config.write_text(text)
        tensors.write_bytes(content)
        assert sorted(os.listdir()) == ["model", "trajectories.nc"]

    def edited(**parts: object) -> None:
        whole = {name: value for name, value in json.loads(text).items() if name != "seal"}
        config.write_text(json.dumps(store.sealed(whole | parts)))

    tensors.write_bytes(content[:1000])
    refused("changed, cut short or mixed up")
    tensors.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
    refused("its hash differs")
    tensors.unlink()
    refused("there is no model/weights.safetensors")
    config.write_text(text[:99])
    refused("not JSON")
    config.write_text(text.replace('"mean": [', '"mean": [NaN, ', 1))
    refused("not JSON")
    edited(version=99)
    refused("update surrogate-toolkit")
    edited(codec={})
    refused("no codec of time series")
    for network in ({}, {"width": 10**9, "depth": 1}, {"width": None, "depth": -1}, None):
        edited(network=network)
        refused("Error: ")
    edited(network={"width": None, "depth": 10**9})
    refused("depth 1000000000")


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("train", "nothing.nc"), "there is no file"),
        (("train", "x" * 300 + ".nc"), "File name too long"),
        (("train", ""), "neither a Zarr folder"),
        (
            ("train", "trajectories.nc", "--simulate", "esirs"),
            "exclude each other; give one of them",
        ),
        (("train", "--simulate", "essirs"), "did you mean 'esirs'"),
        (("train", "--param", "beta=1..2"), "--param is about a simulator, and there is none"),
        (("train", "--simulate", "sir", "--param", "betta=1..2"), "betta"),
        (("train", "--window", "5"), "is for tables"),
        (("train", "--device", "toaster"), "toaster"),
        (("train", "--threads", "0"), "--threads"),
        (("train", "--iterations", "0"), "--iterations must be a whole number >= 1, not 0"),
        (("train", "--seed", "-1"), "--seed must be a whole number >= 0, not -1"),
        (("train", "--seed", str(2**70)), "seed must be a whole number from 0"),
        (("sample", "nowhere"), "surrogate train"),
        (("sample", "-o", "x.txt"), ".nc"),
    ],
)
def test_bad_arguments_of_train_are_refused(small: Path, words: tuple[str, ...], says: str) -> None:
    assert says in run(*words, code=2).output
    assert os.listdir() == ["trajectories.nc"]
