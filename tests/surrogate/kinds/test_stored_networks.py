"""Decoders of stored models: the weights of the file, if they fit the description."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import surrogate as sg
from simulators import models, simulate
from surrogate.io import model_folder as store
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.model import Surrogate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An untrained model with a decoder."""
    data = simulate(models.esirs(), samples=60, seed=3).isel(time=slice(3))
    codec = TimeSeriesCodec.fit(data)
    model = Surrogate.untrained(codec, seed=1, width=16, depth=1)
    assert model.decoder is not None
    model.decoder.measure(codec.encode(data, slice(None), torch.Generator().manual_seed(0)))
    model.save(tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, decoder: Any) -> None:
    """Describe another decoder."""
    config = json.loads((folder / "config.json").read_text())
    del config["seal"]
    config["network"]["decoder"] = decoder
    (folder / "config.json").write_text(json.dumps(store.sealed(config)))


def test_a_decoder_is_restored(folder: Path, tmp_path: Path) -> None:
    model = sg.load(folder)
    assert model.default_solver == "autoregressive"
    model.save(tmp_path / "again")
    again = sg.load(tmp_path / "again")
    assert model.digest == again.digest
    assert model.sample(20, seed=2).identical(again.sample(20, seed=2))


@pytest.mark.parametrize(
    "decoder",
    [
        None,
        {"width": None, "depth": 10**9},
        {"width": None, "depth": 3},
        {"width": 10**9, "depth": None},
        {"width": 64, "depth": None},
        {"width": "x", "depth": None},
        {"width": None, "depth": True},
        [],
        3,
    ],
    ids=str,
)
def test_weights_that_do_not_fit_the_description_are_refused(folder: Path, decoder: Any) -> None:
    """Before memory or time is spent on what a description claims."""
    change(folder, decoder)
    start = time.process_time()
    with pytest.raises(sg.ModelError):
        sg.load(folder)
    assert time.process_time() - start < 5


def test_a_decoder_without_weights_is_refused() -> None:
    model = sg.pretrained("digits")
    assert model.decoder is None
    with pytest.raises(sg.ModelError, match="no decoder"):
        model.sample(2, solver="autoregressive")
