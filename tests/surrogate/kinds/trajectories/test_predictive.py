"""Predictive checks against samples whose predictive distribution is known."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from surrogate.kinds.trajectories.predictive import checks

STEPS = 6
OBSERVED = pd.DataFrame({"step": range(9), "seen": [2, 3, 90, 4, 12, 0, 1, 1, 1]})


def samples(values: np.ndarray, **attrs: object) -> xr.Dataset:
    data = xr.Dataset({"I": (("sample", "time"), values)}, {"time": np.arange(STEPS, dtype=float)})
    data["I"].attrs["units"] = "1"
    return data.assign_attrs(attrs)


def test_bands_go_through_the_noise() -> None:
    """One in five of ten infected is seen: of binomial(10, 0.2) 90 % are 0..4 and 50 % 1..3."""
    data = samples(np.full((4_000, STEPS), 10))
    found = checks(data, OBSERVED, {"columns": {"seen": "I"}, "noise": ("binomial(I, 0.2)",)})
    assert [each.source for each in found] == ["seen ~ binomial(I, 0.2)"]
    check = found[0]
    assert check.steps.tolist() == list(range(STEPS))  # what is past the grid is left out
    np.testing.assert_array_equal(check.quantiles[[0, 2, 4]].T, [[0, 2, 4]] * STEPS)
    assert check.covered(90, False) == (4, 6)  # 2, 3, 4, 0
    assert check.covered(50, False) == (2, 6)  # 2, 3
    assert list(check.words()) == [
        "seen ~ binomial(I, 0.2): of 6 later values, 4 within the 90 % band and 2 within the "
        "50 % band"
    ]


def test_samples_tell_how_they_were_conditioned_and_count_by_their_weight() -> None:
    record = {
        "time": "step", "columns": {"seen": "I"}, "noise": {"seen": "normal(I, 0.001)"},
        "nearest": False, "last_step": 1,
    }  # fmt: skip
    values = np.repeat([[5], [90]], STEPS, axis=1)
    data = samples(values, surrogate_observed=json.dumps(record))
    data["log_weight"] = ("sample", [0.0, -100.0])
    check = checks(data, OBSERVED, {})[0]
    assert check.given.tolist() == [True, True, False, False, False, False]
    assert check.quantiles[4] == pytest.approx(5, abs=0.01)
    assert check.coverage == {"given": 2, "later": 4, "within_90": 0, "within_50": 0}
