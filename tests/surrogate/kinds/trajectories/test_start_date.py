"""The date of the first step puts a calendar on samples of windows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import surrogate as sg
from constraints import FormulaError
from surrogate.errors import ModelError
from surrogate.kinds import kind_of
from surrogate.kinds.signals import layout_of
from surrogate.kinds.trajectories.align import Side, align
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.from_table import trajectories_from_table
from surrogate.model import Surrogate

WEEKS = pd.date_range("1948-01-10", periods=60, freq="7D").strftime("%Y-%m-%d")


@pytest.fixture(scope="module")
def model() -> Surrogate:
    """Untrained, of windows of six weeks."""
    values = np.random.default_rng(0).normal(size=60)
    table = pd.DataFrame({"date": WEEKS, "x": values})
    data, _ = trajectories_from_table(table, window=6, stride=2)
    return Surrogate.untrained(TimeSeriesCodec.fit(data), 0, width=8, depth=1)


def test_samples_have_dates_from_the_start(model: Surrogate, tmp_path: Path) -> None:
    made = model.sample(20, start="1950-05-06", where='x@"1950-05-20" >= 0')
    assert [str(day)[:10] for day in made.time.values[:2]] == ["1950-05-06", "1950-05-13"]
    assert (made.x.values[:, 2] >= 0).all()
    assert layout_of(made).times == model.codec.layout().times
    plain = model.sample(20, seed=3)
    assert plain.time.dtype.kind == "f"
    dated = model.sample(20, seed=3, start="1950-05-06")
    np.testing.assert_array_equal(plain.x.values, dated.x.values)
    sg.write(made, tmp_path / "made.nc")
    back = sg.read(tmp_path / "made.nc")
    assert layout_of(back).dates == layout_of(made).dates
    assert back.attrs["surrogate_constraint"] == 'x@"1950-05-20" >= 0'


def test_samples_with_dates_are_compared_with_windows_without(model: Surrogate) -> None:
    plain = model.sample(40, seed=1)
    dated = model.sample(40, seed=2, start="1950-05-06")
    align(Side(dated, "the samples"), Side(plain, "the reference"))
    model.codec.matches(dated)


def test_without_a_start_a_date_is_an_error_that_shows_the_remedy(model: Surrogate) -> None:
    with pytest.raises(FormulaError, match="no calendar dates") as problem:
        model.sample(20, where='x@"1950-05-20" >= 0')
    assert "start='1950-05-20'" in str(problem.value)


def test_a_date_between_two_steps_shows_both(model: Surrogate) -> None:
    with pytest.raises(FormulaError, match=r"1950-05-20.*1950-05-27"):
        model.sample(20, start="1950-05-06", where='x@"1950-05-21" >= 0')


def test_a_model_with_dates_of_its_own_takes_no_start() -> None:
    rows = [(i, day, float(i + k * k)) for i in range(8) for k, day in enumerate(WEEKS[:5])]
    table = pd.DataFrame(rows, columns=["run", "date", "x"])
    data, _ = trajectories_from_table(table, id="run")
    config = json.loads(json.dumps(TimeSeriesCodec.fit(data).to_config()))
    codec = TimeSeriesCodec.from_config(config)
    made = codec.to_dataset(torch.zeros(4, *codec.shape))
    np.testing.assert_array_equal(made.time.values, data.time.values)
    assert "5 times from 1948-01-10 to 1948-02-07" in kind_of(data).summary(codec)[0]
    with pytest.raises(ModelError, match="dates already, from 1948-01-10 to 1948-02-07"):
        codec.knowing(start="1950-05-06")


def test_windows_of_trading_days_get_weekdays(tmp_path: Path) -> None:
    days = pd.bdate_range("2023-01-02", periods=60).strftime("%Y-%m-%d")
    table = pd.DataFrame({"date": days, "price": np.random.default_rng(0).normal(size=60)})
    data, _ = trajectories_from_table(table, window=4, stride=1)
    codec = TimeSeriesCodec.fit(data).knowing(start="2024-01-05")
    made = codec.to_dataset(torch.zeros(3, *codec.shape))
    expected = ("2024-01-05", "2024-01-08", "2024-01-09", "2024-01-10")
    assert layout_of(made).dates == expected
    for name in ("made.csv", "made.zarr"):
        sg.write(made, tmp_path / name)
        back = sg.read(tmp_path / name)
        assert layout_of(back).dates == expected
        assert layout_of(back).times == layout_of(made).times == (0, 1, 2, 3)
