"""What is set aside, and what a model is told of itself by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from surrogate.diffusion.split import Split, split
from surrogate.diffusion.training import Settings
from surrogate.fitting import Preset, Run
from surrogate.kinds import kind_named, kind_of
from surrogate.kinds.trajectories.from_table import trajectories_from_table
from surrogate.validation import validate
from tests.surrogate.rows import few_rounds as few_rounds
from tests.surrogate.rows import wines

TINY = Preset(Settings(steps=20, batch=64, warm_up=2, check_every=10), depth=1)


def split_of(data: xr.Dataset, seed: int) -> Split:
    return split(data.sizes["sample"], seed, kind_of(data).overlap(data))


def independent(count: int) -> xr.Dataset:
    values = np.random.default_rng(0).normal(size=(count, 4))
    return xr.Dataset({"x": (("sample", "time"), values)})


def windows(stride: int, length: int = 3000) -> xr.Dataset:
    """One random walk, cut into windows of 20 steps."""
    steps = np.random.default_rng(0).normal(size=length)
    frame = pd.DataFrame({"day": np.arange(length), "x": np.sin(np.arange(length) / 9) + steps})
    return trajectories_from_table(frame, time="day", window=20, stride=stride)[0]


@pytest.mark.parametrize(("count", "wanted"), [(50, 5), (9, 1), (5_000, 500), (300_000, 10_000)])
def test_a_tenth_of_independent_samples(count: int, wanted: int) -> None:
    data = xr.Dataset({"x": (("sample", "time"), np.zeros((count, 1), np.int8))})
    found = split_of(data, 1)
    assert len(found.held_out) == wanted == len(np.unique(found.held_out))
    np.testing.assert_array_equal(found.held_out, found.excluded)
    assert not found.overlapping
    np.testing.assert_array_equal(split_of(data, 1).held_out, found.held_out)
    if count > 9:
        assert set(split_of(data, 2).held_out.tolist()) != set(found.held_out.tolist())


@pytest.mark.parametrize("stride", [1, 4, 7, 19])
def test_windows_that_are_learned_from_share_no_step_with_those_set_aside(stride: int) -> None:
    data = windows(stride)
    found = split_of(data, 0)
    assert found.overlapping
    starts = stride * np.arange(data.sizes["sample"])
    seen = np.setdiff1d(np.arange(data.sizes["sample"]), found.excluded)
    assert len(seen) > 0.6 * data.sizes["sample"]
    assert 0.08 < len(found.held_out) / data.sizes["sample"] < 0.2
    gaps = np.abs(starts[seen][:, None] - starts[found.held_out][None])
    assert gaps.min() >= 20


def test_windows_that_do_not_overlap_are_independent() -> None:
    assert not split_of(windows(20), 0).overlapping


@pytest.mark.parametrize("length", [60, 100, 150, 300, 550])
@pytest.mark.parametrize("seed", [0, 7])
def test_few_windows(length: int, seed: int) -> None:
    """Most of them are learned from, however much they overlap."""
    data = windows(1, length)
    found = split_of(data, seed)
    assert 0 < len(found.held_out) <= len(found.excluded) <= data.sizes["sample"] / 2


def test_the_floor_of_overlapping_windows_is_what_data_have() -> None:
    data = windows(2)
    run = Run(data, 0, TINY)
    card = run.fit().about["card"]
    apart = run.split
    assert card["reference"] == len(apart.held_out)
    median = card["variables"][0]["median"]
    assert median["ratio"] == pytest.approx(median["value"] / median["floor"])
    # stretches of a walk are further from its other parts than from one another
    assert median["floor"] > 0
    assert run.fit().about["card"] == card


def test_samples_that_are_independent_have_the_floor_of_splits() -> None:
    card = Run(independent(400), 0, TINY).fit().about["card"]
    assert card["variables"][0]["median"]["floor_sd"] > 0


# --- rows -----------------------------------------------------------------------------------------


@dataclass
class Copying:
    """A model of rows that has learned them by heart, or draws new ones."""

    train: xr.Dataset | None
    shape: tuple[int, ...] = (9,)

    def sample(self, count: int, seed: int) -> xr.Dataset:
        if self.train is None:
            return rows(count, seed + 50)
        return self.train.isel(sample=slice(count))

    dataset = sample
    kind = kind_named("table")


def rows(count: int, seed: int = 0) -> xr.Dataset:
    frame = wines(count, seed)
    return xr.Dataset({name: ("sample", frame[name].to_numpy()) for name in frame})


@pytest.mark.usefixtures("few_rounds")
def test_rows_are_judged_by_those_they_were_learned_from_as_well() -> None:
    data = rows(3000)
    apart = split_of(data, 0)
    seen = np.setdiff1d(np.arange(3000), apart.excluded)
    new = validate(cast(Any, Copying(None)), data, apart, 0)
    old = validate(cast(Any, Copying(data.isel(sample=seen))), data, apart, 0)
    assert new["reference"] == old["reference"] == 300
    assert new["privacy"]["trained"] == old["privacy"]["trained"] == 2700
    assert new["privacy"]["held_out"]
    assert not new["privacy"]["memorised"]
    assert old["privacy"]["memorised"]
    assert old["privacy"]["samples"]["copies"] == 1
    assert new["overall"]["median"]["ratio"] < 2
    assert "memorised" in kind_named("table").card_table(old)
    assert "memorised" not in kind_named("table").card_table(new)
