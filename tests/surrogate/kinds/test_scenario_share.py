"""Samples of a scenario beside data that do not satisfy it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from constraints import parse
from surrogate.kinds.labels import label
from surrogate.kinds.scenario_share import scenario_share


def series(samples: int = 40, steps: int = 4, seed: int = 0) -> xr.Dataset:
    values = np.random.default_rng(seed).normal(size=(samples, steps))
    return xr.Dataset({"x": (("sample", "time"), values)}, {"time": np.arange(float(steps))})


def given(rule: str, data: xr.Dataset) -> xr.Dataset:
    """Those of the data that satisfy a rule, labelled with it."""
    judged = label(data, [parse(rule)])
    return judged.isel(sample=np.flatnonzero(judged.satisfied.values))


def test_the_share_of_the_reference_that_satisfies_the_scenario() -> None:
    reference = series()
    samples = given("x(0) >= 0", series(80, seed=1))
    found = scenario_share(samples, reference)
    assert found is not None
    assert found.share == np.mean(reference.x.values[:, 0] >= 0)
    assert found.rules == ("x(0) >= 0",)
    weighted = reference.assign(log_weight=("sample", np.log(np.arange(1.0, 41.0))))
    heavier = scenario_share(samples, weighted)
    assert heavier is not None
    weights = np.arange(1.0, 41.0)
    expected = np.average(reference.x.values[:, 0] >= 0, weights=weights)
    assert heavier.share == pytest.approx(expected)


def test_no_warning_where_the_two_are_comparable() -> None:
    samples = given("x(0) >= 0", series(80, seed=1))
    assert scenario_share(samples, given("x(0) >= 0", series())) is None
    assert scenario_share(series(), samples) is None
    judged = label(series(), [parse("x(0) >= 0")])  # by `check`: no scenario
    assert scenario_share(judged, series(seed=1)) is None


def test_observations_are_not_judged_in_the_reference() -> None:
    seen = label(series(), [parse("0.5 ~ normal(x(1), 0.2)")])
    assert scenario_share(seen, series(seed=1)) is None
    both = given("x(0) >= 0 and 0.5 ~ normal(x(1), 0.2)", series(80, seed=1))
    found = scenario_share(both, series())
    assert found is not None
    assert found.rules == ("x(0) >= 0",)


def test_dates_of_the_samples_are_the_steps_of_the_reference() -> None:
    days = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]").astype("datetime64[ns]")
    samples = given('x@"2024-01-03" >= 0', series(80, seed=1).assign_coords(time=days))
    found = scenario_share(samples, series())
    assert found is not None
    assert found.share == np.mean(series().x.values[:, 2] >= 0)


def test_a_scenario_that_the_reference_cannot_be_judged_by() -> None:
    found = scenario_share(given("x(0) >= 0", series()), series().rename(x="y"))
    assert found is not None
    assert found.share is None
    assert "cannot be judged" in found.sentence


def test_an_evaluation_reports_it() -> None:
    found = sg.evaluate(given("x(0) >= 0", series(80, seed=1)), series())
    assert 0 < found.scenario_share < 1
    assert found.to_dict()["scenario"] == ["x(0) >= 0"]
    assert any("not comparable" in reason for reason in found.verdict.against)
    assert "scenario in the reference" in found.table()


def test_rows_have_it_too() -> None:
    rows = pd.DataFrame({"x": np.random.default_rng(0).normal(size=50)})
    samples = rows[rows.x >= 0].reset_index(drop=True)
    samples.attrs["surrogate_constraint"] = "x >= 0"
    found = scenario_share(samples, rows)
    assert found is not None
    assert found.share == np.mean(rows.x >= 0)
