"""Summaries of samples: against numpy, with weights against copies, for tables and dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from simulators import models, simulate


def test_a_summary_has_a_row_for_each_parameter_and_each_step() -> None:
    data = simulate(models.sir(), samples=500, seed=0, parameters={"beta": (0.5, 3.0)}, points=4)
    table = sg.summary(data)
    assert table.groupby("variable").size().to_dict() == {"S": 4, "I": 4, "R": 4, "beta": 1}
    beta = table[table.variable == "beta"].iloc[0]
    assert pd.isna(beta.time)
    assert beta["mean"] == pytest.approx(float(data.beta.mean()))
    assert beta["q5"] == pytest.approx(float(data.beta.quantile(0.05)))
    last = table[(table.variable == "I") & (table.time == float(data.time[-1]))].iloc[0]
    values = data.I.values[:, -1].astype(float)
    assert last["sd"] == pytest.approx(values.std())
    assert last["q97.5"] == pytest.approx(np.quantile(values, 0.975))


def test_a_weight_of_two_is_a_sample_twice() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    twice = rng.integers(1, 3, 60)
    weighted = xr.Dataset(
        {"x": (("sample", "time"), x), "log_weight": ("sample", np.log(twice))},
        {"time": np.arange(3.0)},
    )
    copies = xr.Dataset({"x": (("sample", "time"), x.repeat(twice, 0))}, {"time": np.arange(3.0)})
    a, b = sg.summary(weighted), sg.summary(copies)
    assert set(a.variable) == {"x"}
    np.testing.assert_allclose(a[["mean", "sd"]], b[["mean", "sd"]])
    # between two values of the copies numpy interpolates, weights take the lower: within a gap
    assert (a["q50"] - b["q50"]).abs().max() < 0.2


def test_dates_and_tables() -> None:
    days = pd.date_range("1978-01-22", periods=2)
    series = xr.Dataset({"B": (("sample", "time"), [[3, 8], [3, 9]])}, {"time": days})
    assert sg.summary(series).time.tolist() == ["1978-01-22", "1978-01-23"]
    table = pd.DataFrame({"age": [20.5, 30.0, 40.0, 41.5], "colour": list("abab")})
    assert sg.summary(table).variable.tolist() == ["age"]
