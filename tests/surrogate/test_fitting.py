"""Runs: checkpoints change nothing, what is unfit is refused, what is stopped is kept."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

from simulators import models, simulate
from surrogate import fitting
from surrogate.diffusion import presets
from surrogate.diffusion.checkpoints import STATE, Checkpoints
from surrogate.diffusion.split import Split, split
from surrogate.diffusion.training import Settings, State, Trainer
from surrogate.errors import ModelError, TrainingError
from surrogate.fitting import Preset, Run
from surrogate.io import model_folder as store
from surrogate.kinds import Trajectories, kind_of
from surrogate.kinds.tables.schema import infer_types
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from tests.surrogate.rows import wines

TINY = Preset(Settings(steps=12, batch=32, warm_up=2, check_every=5), depth=1)
RUN = {"seed": 1}


def split_of(data: xr.Dataset, seed: int) -> Split:
    return split(data.sizes["sample"], seed, kind_of(data).overlap(data))


@pytest.fixture(scope="module")
def data() -> xr.Dataset:
    return simulate(models.esirs(), samples=120, seed=3)


def same(one: Run, other: Run) -> bool:
    a, b = one.trainer.state(), other.trainer.state()
    tensors = all(torch.equal(value, b.tensors[name]) for name, value in a.tensors.items())
    return tensors and a.to_config() == b.to_config()


# --- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
def test_checkpoints_at_any_time_change_nothing(
    data: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    def make(first: int, samples: int) -> xr.Dataset:
        return simulate(models.esirs(), samples=100, seed=3, first=1000 + first)

    simulated = make if fresh else None
    whole = Run(data, 4, TINY, simulated)
    whole.train()
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    steps: list[int] = []
    stopped = Run(data, 4, TINY, simulated, tmp_path)
    for stop in (3, 5, 9):  # between looks, at a look, after it
        with pytest.raises(KeyboardInterrupt):
            stopped.train(
                lambda trainer: steps.append(trainer.step),
                lambda at=stop: steps[-1] == at,  # type: ignore[misc]
            )
        stopped = Run(data, 4, TINY, simulated, tmp_path)
        assert stopped.trainer.step == stop
    stopped.train()
    assert same(whole, stopped)


def test_checkpoints_are_written_by_the_clock(
    data: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, kept = 0.0, list[int]()
    monkeypatch.setattr(fitting.time, "monotonic", lambda: now)
    monkeypatch.setattr(Checkpoints, "keep", lambda self, state, run: kept.append(state.step))

    def pass_time(trainer: Trainer) -> None:
        nonlocal now
        now += 10

    Run(data, 0, TINY, checkpoints=tmp_path).train(pass_time)
    assert kept == [3, 5, 7, 10, 12]  # 30 s after the last one, and at looks


def test_a_run_that_diverges_keeps_what_was_good(
    data: xr.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wild = Preset(Settings(steps=12, batch=32, warm_up=0, rate=1e30), depth=1)
    with pytest.raises(TrainingError, match=r"diverged .*there is no checkpoint yet"):
        Run(data, 0, wild, checkpoints=tmp_path).train()
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr(fitting, "CHECKPOINT_SECONDS", 0.0)
    with pytest.raises(TrainingError, match=r"diverged .*kept up to step \d"):
        Run(data, 0, wild, checkpoints=tmp_path).train()
    assert Run(data, 0, wild, checkpoints=tmp_path).trainer.step > 0
    with pytest.raises(TrainingError, match="diverged"):
        Run(data, 0, wild).train()


def test_a_run_is_not_lost_for_its_card(data: xr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: Any) -> None:
        raise ModelError("S decodes to numbers beyond any data")

    monkeypatch.setattr(fitting, "validate", fail)
    about = Run(data, 0, TINY).fit().about
    assert about["card"] is None
    assert "beyond any data" in about["problem"]


def test_judges_are_from_all_over_the_data(
    data: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[np.ndarray] = []
    monkeypatch.setattr(Trajectories, "validation_samples", 4)
    encode = TimeSeriesCodec.encode

    def watched(self: Any, data: xr.Dataset, samples: Any, generator: torch.Generator) -> Any:
        rows.append(samples)
        return encode(self, data, samples, generator)

    monkeypatch.setattr(TimeSeriesCodec, "encode", watched)
    Run(data, 0, TINY)
    every = split_of(data, 0).held_out
    assert rows[0].tolist() == every[::3].tolist()


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_seeds_that_are_none(data: xr.Dataset, seed: int) -> None:
    with pytest.raises(ModelError, match="from 0 to 2"):
        Run(data, seed, TINY)


@pytest.mark.parametrize("unit", [1e200, 1e-300])
def test_numbers_whose_variance_is_none(data: xr.Dataset, unit: float) -> None:
    odd = data.drop_attrs(deep=False).astype(float) * unit
    with pytest.raises(ModelError, match="another unit"):
        Run(odd, 0, TINY)


# --- rows -----------------------------------------------------------------------------------------


@pytest.fixture
def unjudged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "validate", lambda *words: None)


def test_a_table_is_fitted_the_same_every_time(unjudged: None, tmp_path: Path) -> None:
    frame = wines(200)
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        fitting.fit(frame, seed=seed, preset="quick", iterations=4).save(tmp_path / name)
    content = {
        each.name: [(each / file).read_bytes() for file in ("config.json", "weights.safetensors")]
        for each in tmp_path.iterdir()
    }
    assert content["one"] == content["two"]
    assert content["one"] != content["other"]


def test_a_run_of_rows_goes_on_bit_for_bit(tmp_path: Path) -> None:
    rows = infer_types(wines(200)).data
    whole = Run(rows, 4, TINY)
    whole.train()
    steps: list[int] = []
    first = Run(rows, 4, TINY, checkpoints=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        first.train(lambda trainer: steps.append(trainer.step), lambda: steps[-1] == 7)
    again = Run(rows, 4, TINY, checkpoints=tmp_path)
    assert again.trainer.step == 7
    again.train()
    assert same(whole, again)
    other = infer_types(wines(200, seed=1)).data
    with pytest.raises(ModelError, match="another run"):
        Run(other, 4, TINY, checkpoints=tmp_path)


def test_what_is_said_of_a_table_and_what_is_not(unjudged: None) -> None:
    frame = wines(120)
    model = fitting.fit(frame, iterations=1, types={"quality": "category", "sugar": "ignore"})
    assert {c.name: c.kind for c in model.codec.columns}["quality"] == "category"  # type: ignore[attr-defined]
    assert "sugar" not in model.codec.learned
    complete = fitting.fit(frame, iterations=1, missing="drop")
    assert not any(signal.optional for signal in complete.codec.layout().signals)
    assert model.kind.stored == "table"
    with pytest.raises(ModelError, match="too few"):
        fitting.fit(frame.head(20))
    with pytest.raises(ModelError, match="no transform of 'sugar' to choose"):
        fitting.fit(frame, transforms={"sugar": "log"})
    with pytest.raises(ModelError, match="types applies to a DataFrame"):
        fitting.fit(infer_types(frame).data, types={"sugar": "ignore"})


def test_gaps_that_only_judges_have(unjudged: None) -> None:
    """A tenth of the rows is set aside, and may hold the only missing value."""
    frame = wines(100).drop(columns="density")
    row = int(split_of(infer_types(frame).data, 0).held_out[2])
    frame.loc[row, "sugar"] = np.nan
    model = fitting.fit(frame, iterations=1)
    assert model.codec.layout().find("sugar").optional  # type: ignore[union-attr]


# --- checkpoints ----------------------------------------------------------------------------------


def state(step: int) -> State:
    return State(step, {"weights": torch.full((3,), float(step))})


def test_a_checkpoint_is_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path / "run", ["surrogate", "train"])
    assert not checkpoints.exists()
    assert checkpoints.kept() == "there is no checkpoint yet"
    checkpoints.keep(state(3), RUN)
    (tmp_path / "run" / ".state-4.safetensors.x1y2").write_bytes(b"half")  # killed while it wrote
    (tmp_path / "run" / ".state.json.x1y2").write_bytes(b"half")
    checkpoints.keep(state(1_000), RUN)
    assert sorted(os.listdir(tmp_path / "run")) == ["state-1000.safetensors", STATE]
    assert checkpoints.kept() == "the run is kept up to step 1,000"

    def full(*words: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store, "write_json", full)
    says = r"cannot write a checkpoint.*No space left.*resume=True"
    with pytest.raises(TrainingError, match=says) as caught:
        checkpoints.keep(state(2_000), RUN)
    assert caught.value.render("command").endswith("go on with --resume")
    again = Checkpoints(tmp_path / "run")
    assert again.last(RUN).step == 1_000
    assert torch.equal(again.last(RUN).tensors["weights"], torch.full((3,), 1000.0))
    assert again.step == 1_000


def test_only_what_is_ones_own_is_removed(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "run")
    checkpoints.discard()  # nothing there
    checkpoints.keep(state(3), RUN)
    (tmp_path / "run" / "mine.txt").write_text("keep")
    checkpoints.discard()
    assert os.listdir(tmp_path / "run") == ["mine.txt"]


def test_checkpoints_that_cannot_be_used(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    with pytest.raises(ModelError, match="there is no"):
        checkpoints.last(RUN)
    checkpoints.keep(state(3), RUN)
    says = r"another run \(other seed, device\).*resume=False"
    with pytest.raises(ModelError, match=says) as caught:
        checkpoints.last({"seed": 2, "device": "cpu"})
    assert caught.value.render("command").endswith("start again with --force")
    good = store.read_json(tmp_path / STATE)
    for key, value in (
        ("version", 99), ("run", None), ("state", []), ("state", {}), ("tensors", "../x"),
        ("tensors", None), ("digest", "0"),
    ):  # fmt: skip
        store.write_json(tmp_path / STATE, good | {key: value})
        with pytest.raises(ModelError):
            checkpoints.last(RUN)


def test_few_data_are_seen_so_often_and_no_more() -> None:
    long = Preset(Settings(steps=12_000, batch=512))
    assert long.within(10**6).settings.steps == 12_000
    assert long.within(3_000).settings.steps == 300 * 3_000 // 512
    assert long.within(50).settings.steps == presets.MIN_STEPS
    assert presets.preset_named("default", 7_000).within(50).settings.steps == 7_000
    short = long.with_steps(10).settings
    assert (short.warm_up, short.check_every) == (2, 10)


def test_transforms(data: xr.Dataset) -> None:
    codec = Run(data, 0, TINY, transforms={"I": "log"}).model.codec
    kinds = {v.name: v.transform.kind for v in codec.variables}
    assert kinds == {"S": "identity", "I": "log", "R": "identity"}
    with pytest.raises(ModelError, match="no variable 'X'"):
        Run(data, 0, TINY, transforms={"X": "log"})
