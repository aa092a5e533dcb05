"""Replicates of a bundled model: what they depend on, and going on with an earlier run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from simulators import models, simulate
from surrogate.calibration import run
from surrogate.errors import ModelError

FAST: dict[str, Any] = {
    "samples": 10,
    "particles": 60,
    "given": "I",
    "steps_observed": [10],
    "noise": "poisson(I)",
    "quantities": ["I(12)"],
    "method": "sequential",
}


@pytest.fixture(scope="module")
def model() -> sg.Surrogate:
    return sg.pretrained("esirs")


@pytest.fixture(scope="module")
def truths() -> xr.Dataset:
    return simulate(models.esirs(), samples=3, seed=5)


def test_more_replicates_add_to_the_first_ones(model: sg.Surrogate, truths: xr.Dataset) -> None:
    first = sg.calibrate(model, truths.isel(sample=slice(2)), **FAST)
    seen: list[int] = []
    whole = sg.calibrate(model, truths, known=first.ranks, progress=seen.append, **FAST)
    assert seen == [2, 1]
    assert whole.replicates == 3
    assert whole.ranks[whole.ranks.replicate < 2].equals(first.ranks)
    u = whole.ranks["rank"].to_numpy()
    assert np.all((u > 0) & (u < 1))
    assert whole.quantities == ("I(12)", "log likelihood")
    with pytest.raises(ModelError, match="ranks are of another run"):
        sg.calibrate(model, truths, known=first.ranks, **{**FAST, "seed": 1})


def test_an_interrupted_run_keeps_what_is_known(
    model: sg.Surrogate, truths: xr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [dict.fromkeys(run.REPLICATE_COLUMNS, 0.5)]

    def replicate(self: run.Replicates, i: int) -> list[dict[str, Any]]:
        if i == 1:
            raise KeyboardInterrupt
        return [{**rows[0], "replicate": i, "quantity": "I(12)", "problem": ""}]

    monkeypatch.setattr(run.Replicates, "replicate", replicate)
    found = sg.calibrate(model, truths, **FAST)
    assert found.interrupted
    assert found.replicates == 1
    assert "interrupted after 1 of 3 replicates" in found.notes


def test_data_of_another_kind_are_refused(model: sg.Surrogate) -> None:
    with pytest.raises(ModelError, match="the truths are no trajectories"):
        sg.calibrate(model, pd.DataFrame({"a": [1.0]}))
