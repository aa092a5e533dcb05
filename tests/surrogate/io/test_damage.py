"""Model folders that were damaged by chance or on purpose: only ModelError, and no code is run."""

from __future__ import annotations

import copy
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import surrogate as sg
from simulators import models, simulate
from surrogate.diffusion.training import Settings
from surrogate.fitting import Preset, Run
from surrogate.io import model_folder as store
from surrogate.kinds.tables.schema import infer_types

TINY = Preset(Settings(steps=1, batch=8, warm_up=0, check_every=1), depth=1)
ODD = (None, "x", -1, 1e30, [], {}, 10**9, 2**70, True, 0.5)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with counts, a relation, a real parameter and words."""
    data = simulate(models.esirs(), samples=60, seed=3, initial="uniform").isel(time=slice(3))
    random = np.random.default_rng(0)
    beta, town = random.normal(size=60), random.choice(["a", "b"], 60)
    data = data.assign(beta=("sample", beta), town=("sample", town))
    folder = tmp_path_factory.mktemp("damage") / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surrogate.fitting.validate", lambda *words: None)
        Run(data, 1, TINY).fit().save(folder)
    return folder


@pytest.fixture
def model(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A model of rows: numbers with gaps, whole ones, dates, words, and what follows from them."""
    random = np.random.default_rng(0)
    town = random.choice(["a", "b"], 60)
    frame = pd.DataFrame(
        {
            "x": np.where(random.uniform(size=60) < 0.2, np.nan, random.normal(size=60)),
            "n": random.integers(0, 4, 60),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(60) % 9, unit="D"),
            "town": town,
            "land": np.where(town == "a", "here", "there"),
        }
    )
    folder = tmp_path / "table"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surrogate.fitting.validate", lambda *words: None)
        Run(infer_types(frame).data, 1, TINY).fit().save(folder)
    return folder


def at(node: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        node = node[key]
    return node


def every(config: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    return list(enumerate(config["codec"]["columns"]))


def resealed(config: dict[str, Any]) -> str:
    """As one who changes a description on purpose would write it."""
    rest = {name: value for name, value in config.items() if name != "seal"}
    return json.dumps(store.sealed(rest) if "seal" in config else rest)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a tree of JSON; of a list the first only."""
    if path:
        yield path
    if isinstance(node, list):
        node = dict(enumerate(node[:1]))
    for key, value in node.items() if isinstance(node, dict) else ():
        yield from places(value, (*path, key))


def test_every_change_to_the_description_is_refused(model: Path) -> None:
    config = model / "config.json"
    good = json.loads(config.read_text())
    good["about"] = {}
    found = 0
    for path in places(good):
        for value in (*ODD, KeyError):
            bad = copy.deepcopy(good)
            node = bad
            for key in path[:-1]:
                node = node[key]
            node[path[-1]] = value
            if value is KeyError:
                del node[path[-1]]
            config.write_text(resealed(bad))
            try:
                sg.load(model)
            except sg.ModelError:
                found += 1
    assert found > 400
    config.write_text(resealed(good))
    sg.load(model)
    config.write_text(json.dumps(good | {"about": {"seed": 3}}))
    with pytest.raises(sg.ModelError, match="was changed after it was written"):
        sg.load(model)


def test_every_change_to_the_description_of_a_table_is_refused(table: Path) -> None:
    config = table / "config.json"
    good = json.loads(config.read_text())
    good["about"] = {}
    columns = {each["name"]: ("codec", "columns", i) for i, each in every(good)}
    found = tried = 0
    for path in [path for start in columns.values() for path in places(at(good, start), start)]:
        for value in ("x", -1, [], 1e30, 10**400, KeyError):
            bad = copy.deepcopy(good)
            node = at(bad, path[:-1])
            node[path[-1]] = value
            if value is KeyError:
                del node[path[-1]]
            config.write_text(resealed(bad))
            tried += 1
            try:
                model = sg.load(table)
                model.codec.to_dataset(torch.zeros(2, *model.shape))
            except sg.ModelError:
                found += 1
    assert found > 0.7 * tried
    config.write_text(resealed(good))
    sg.load(table)


@pytest.mark.parametrize("width", [10**9, 10**18, -1, 0, 1.5, "64", True, [64]])
@pytest.mark.parametrize("key", ["width", "depth"])
def test_absurd_networks_take_no_memory(model: Path, key: str, width: object) -> None:
    config = json.loads((model / "config.json").read_text())
    config["network"][key] = width
    (model / "config.json").write_text(resealed(config))
    with pytest.raises(sg.ModelError):
        sg.load(model)


def test_damaged_weights_are_refused(model: Path) -> None:
    weights = model / "weights.safetensors"
    content = weights.read_bytes()
    changed = bytearray(content)
    changed[len(changed) // 2] ^= 1
    for bad in (b"", content[:-1], content[: len(content) // 2], bytes(changed), content + b"x"):
        weights.write_bytes(bad)
        with pytest.raises(sg.ModelError, match="its hash differs"):
            sg.load(model)


@pytest.mark.parametrize("name", ["config.json", "weights.safetensors"])
def test_links_pipes_and_folders_in_place_of_files_are_refused(model: Path, name: str) -> None:
    place = model / name

    def refused(text: str) -> None:
        with pytest.raises(sg.ModelError, match=text):
            sg.load(model)

    place.unlink()
    refused("no model folder" if name == "config.json" else "there is no")
    place.symlink_to(place.name)
    refused("no model folder" if name == "config.json" else "cannot read .*symbolic links")
    place.unlink()
    place.symlink_to("/dev/zero")
    refused("is no file")
    place.unlink()
    os.mkfifo(place)
    refused("is no file")
    place.unlink()
    place.mkdir()
    refused("Is a directory")


def test_folders_without_a_model_are_refused(tmp_path: Path) -> None:
    for name in ("none", "loop", "file"):
        (tmp_path / "file").write_text("x")
        if name == "loop":
            (tmp_path / name).symlink_to(name)
        with pytest.raises(sg.ModelError, match="no model folder"):
            sg.load(tmp_path / name)
    with pytest.raises(sg.ModelError, match=r"no model folder: it has no config\.json"):
        sg.load(tmp_path)
