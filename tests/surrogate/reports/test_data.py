"""Pages of little, long, weighted or incomplete data, and data that cannot be compared."""

from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr

from constraints import parse
from simulators import models, simulate
from surrogate.errors import ModelError
from surrogate.kinds.labels import label
from surrogate.kinds.trajectories import report as section
from tests.surrogate.reports.pages import Page, facts, report


@pytest.mark.usefixtures("undrawn")
def test_weights_count(plain: xr.Dataset) -> None:
    """Samples without weight might as well not be there."""
    rules = [parse("forall t: I(t) <= 40")]
    kept = label(plain, rules).isel(sample=slice(0, None, 2))
    logs = np.where(np.arange(120) % 2, -np.inf, -2.0)
    data = label(plain, rules).assign(log_weight=("sample", logs))
    found = facts(data)
    assert found.satisfied == pytest.approx(float(kept.satisfied.mean()))
    assert found.rules[0].share == pytest.approx(found.satisfied)
    assert found.effective == pytest.approx(60)
    page = Page(report(data))
    assert "count by their weight" in page.said
    median = float(np.quantile(kept.rule_robustness, 0.5, method="inverted_cdf"))
    assert f"{median:g}".replace("-", "−") in page.words


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1), (2, 2)])
def test_little_data(shape: tuple[int, int]) -> None:
    data = xr.Dataset({"x": (("sample", "time"), np.arange(math.prod(shape)).reshape(shape))})
    assert "How it unfolds" in Page(report(data)).sections


def test_gaps_dates_and_many_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, 8))
    values[2, 3] = values[:, 5] = np.nan
    arrays = {f"v{k}": (("sample", "time"), values + k) for k in range(4)}
    dates = np.datetime64("2024-03-01", "ns") + np.arange(8) * np.timedelta64(1, "D")
    monkeypatch.setattr(section, "MAX_SHOWN_VARIABLES", 2)
    page = Page(report(xr.Dataset(arrays, {"time": dates})))
    assert "The first 2 of 4 variables are shown" in page.said
    assert "2024-03-01 to 2024-03-08" in page.said


def test_long_series_become_pixels() -> None:
    walk = np.random.default_rng(0).normal(size=(60, 1_000)).cumsum(1)
    page = Page(report(xr.Dataset({"x": (("sample", "time"), walk)})))
    assert str(page.pictures()[0]["src"]).startswith("data:image/png")
    assert len(page.text) < 300_000


@pytest.mark.usefixtures("undrawn")
def test_only_what_both_sides_have_is_compared(plain: xr.Dataset) -> None:
    page = Page(report(plain, simulate(models.esirs(), samples=50, seed=3).drop_vars("R")))
    assert "not compared: R" in page.said
    assert "D(R), median" not in page.said


def test_what_cannot_be_compared_is_refused(plain: xr.Dataset) -> None:
    with pytest.raises(ModelError, match=r"nothing to compare: the data have S, I, R.*has X"):
        report(plain, plain[["S"]].rename(S="X"))
    with pytest.raises(ModelError, match=r"30 times.*times="):
        report(plain, plain.isel(time=slice(9)))
    with pytest.raises(ModelError, match="no variables over"):
        report(plain.drop_vars([*plain.data_vars]))
    with pytest.raises(ModelError, match="give data of one kind"):
        report(plain, plain.isel(time=0).to_dataframe())
