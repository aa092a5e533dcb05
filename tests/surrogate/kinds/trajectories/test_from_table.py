"""People's tables: what is understood, what is said, what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.kinds.signals import layout_of
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.from_table import trajectories_from_table

MEASLES = Path(__file__).parents[5] / "shared" / "data" / "measles_england_wales.csv"


def long(runs: int = 4, steps: int = 6) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    count = runs * steps
    return pd.DataFrame(
        {
            "run": np.repeat([f"r{i}" for i in range(runs)], steps),
            "t": np.tile(0.5 * np.arange(steps), runs),
            "a": rng.integers(0, 300, count),
            "b": rng.normal(size=count),
            "beta": np.repeat(rng.random(runs), steps),
        }
    )


def weekly(steps: int = 40) -> pd.DataFrame:
    dates = pd.date_range("2000-01-03", periods=steps, freq="7D")
    return pd.DataFrame(
        {"date": dates.strftime("%Y-%m-%d"), "x": np.arange(steps), "y": 0.5 * np.arange(steps)}
    )


# --- long tables ----------------------------------------------------------------------------------


def test_a_long_table() -> None:
    table = long()
    data, said = trajectories_from_table(table, time="t", id="run")
    assert said == (
        "long table: 4 runs of 6 steps; time from t; columns a, b, beta; one value for each run: "
        "beta"
    )
    assert dict(data.sizes) == {"sample": 4, "time": 6}
    assert data.a.dtype == np.int16
    assert data.a.dims == ("sample", "time")
    assert data.beta.dims == ("sample",)
    assert data.sample.attrs["standard_name"] == "realization"
    assert data.time.values.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
    assert data.run.values.tolist() == ["r0", "r1", "r2", "r3"]
    assert np.array_equal(data.b.values.ravel(), table.b)
    assert layout_of(data).names == ["a", "b", "beta"]
    codec = TimeSeriesCodec.fit(data)
    x = codec.encode(data, slice(None), torch.Generator().manual_seed(0))
    assert np.array_equal(codec.finish(x)["a"], data.a)


def test_rows_may_come_in_any_order() -> None:
    data, _ = trajectories_from_table(long(), time="t", id="run")
    mixed = long().sample(frac=1, random_state=1)
    again, _ = trajectories_from_table(mixed, time="t", id="run")
    order = [list(again.run.values).index(name) for name in data.run.values]
    assert np.array_equal(again.a.values[order], data.a.values)


def test_columns_may_be_chosen_and_time_may_be_lacking() -> None:
    data, said = trajectories_from_table(long().drop(columns="t"), id="run", columns=["b"])
    assert list(data.data_vars) == ["b"]
    assert "rows are steps 0, 1, 2, ...; columns b" in said
    assert data.time.values.tolist() == [0, 1, 2, 3, 4, 5]


def test_dates_are_counted_from_the_start_of_each_run() -> None:
    table = long(2, 3).drop(columns="t")
    table["day"] = [f"{start}-0{day}" for start in ("2020-01", "2021-05") for day in (1, 2, 3)]
    data, said = trajectories_from_table(table, id="run")
    assert "time from day" in said
    assert data.time.values.tolist() == [0, 1, 2]
    assert data.time.attrs["units"] == "days"
    assert data.time.attrs["long_name"] == "days since the start of each sample"


@pytest.mark.parametrize(
    ("frequency", "unit", "step"),
    [("7D", "weeks", 1), ("14D", "weeks", 2), ("2D", "days", 2), ("MS", "months", 1),
     ("YS", "years", 1), ("90min", "minutes", 90), ("6h", "hours", 6), ("10s", "seconds", 10)],
)  # fmt: skip
def test_units_of_dates(frequency: str, unit: str, step: float) -> None:
    table = pd.DataFrame({"when": pd.date_range("2000-01-01", periods=30, freq=frequency)})
    table["x"] = np.arange(30.0)
    data, _ = trajectories_from_table(table, time="when", window=5)
    assert data.time.attrs["units"] == unit
    assert data.time.values.tolist() == [i * step for i in range(5)]
    assert data.start.dtype.kind == "M"


def test_other_grids_are_refused_with_the_first_run_that_has_one() -> None:
    table = long()
    table.loc[15, "t"] = 1.6
    with pytest.raises(ModelError, match=r"run r2 has other times.* step 3 is at 1.6 where most"):
        trajectories_from_table(table, time="t", id="run")
    with pytest.raises(ModelError, match="run r2 has other times"):
        trajectories_from_table(table, time="t", id="run", missing="drop")
    table = long().drop(index=[11, 17])
    with pytest.raises(ModelError, match=r"run r1 has other times.* it has 5 steps where most"):
        trajectories_from_table(table, time="t", id="run")
    data, said = trajectories_from_table(table, time="t", id="run", missing="drop")
    assert data.run.values.tolist() == ["r0", "r3"]
    assert "4 runs of 6 steps, 2 dropped for gaps" in said


def test_missing_values_in_runs() -> None:
    table = long()
    table.loc[[8, 9], "a"] = np.nan
    with pytest.raises(ModelError, match=r"a is missing at 1.0 of run r1 \(2 values"):
        trajectories_from_table(table, time="t", id="run")
    data, said = trajectories_from_table(table, time="t", id="run", missing="drop")
    assert "1 dropped for gaps" in said
    assert data.a.dtype == np.int16  # gaps had made real numbers of the counts
    assert data.sizes["sample"] == 3


def test_words_and_truth_values_are_kept() -> None:
    table = long()
    table["sky"] = np.where(table.b > 0, "clear", "fog")
    table["wet"] = table.b > 0
    table["site"] = np.repeat(["hill", "shore"], 12)
    data, _ = trajectories_from_table(table, time="t", id="run")
    assert data.wet.dtype == bool
    assert data.site.dims == ("sample",)
    codec = TimeSeriesCodec.fit(data)
    made = codec.finish(codec.encode(data, slice(None), torch.Generator().manual_seed(0)))
    for name in ("sky", "wet", "site"):
        assert np.array_equal(made[name], data[name])


# --- one long series ------------------------------------------------------------------------------


@given(st.integers(2, 12), st.integers(1, 12), st.integers(12, 40))
@settings(max_examples=40)
def test_windows_are_where_they_should_be(window: int, stride: int, steps: int) -> None:
    data, said = trajectories_from_table(weekly(steps), window=window, stride=stride)
    starts = list(range(0, steps - window + 1, stride))
    assert data.x.values.tolist() == [list(range(s, s + window)) for s in starts]
    assert f"one series of {steps} steps: {len(starts)} windows of {window} steps" in said
    assert data.time.values.tolist() == list(range(window))
    assert data.start.values.tolist() == [weekly(steps).date[s] for s in starts]


def test_windows_follow_each_other_unless_told() -> None:
    data, said = trajectories_from_table(weekly(), window=10)
    assert data.sizes["sample"] == 4
    assert said.endswith("4 windows of 10 steps, one every 10; time from date; columns x, y")


def test_missing_weeks_are_refused_or_their_windows_dropped() -> None:
    table = weekly().drop(index=[12, 13])
    with pytest.raises(ModelError, match="2 steps are missing, first after 2000-03-20; repair"):
        trajectories_from_table(table, window=10, stride=5)
    data, said = trajectories_from_table(table, window=10, stride=5, missing="drop")
    assert data.x.values[:, 0].tolist() == [0, 15, 20, 25, 30]
    assert "5 windows of 10 steps, one every 5 (2 more dropped for gaps)" in said
    table = weekly()
    table.loc[3, "y"] = np.nan
    with pytest.raises(ModelError, match="y is missing at 2000-01-24"):
        trajectories_from_table(table, window=10)
    data, said = trajectories_from_table(table, window=10, missing="drop")
    assert data.sizes["sample"] == 3


def test_columns_pooled_as_samples_of_one_variable() -> None:
    table = weekly()
    table.loc[3, "y"] = np.nan
    data, said = trajectories_from_table(table, window=10, missing="drop", pool="cases")
    assert list(data.data_vars) == ["cases"]
    assert data.run.values.tolist() == ["x"] * 4 + ["y"] * 3
    assert "each of 2 columns (x, y) a run of cases" in said
    assert data.cases.dtype.kind == "f"  # one of them is not whole
    whole, said = trajectories_from_table(weekly(), pool="cases")
    assert dict(whole.sizes) == {"sample": 2, "time": 40}
    with pytest.raises(
        ModelError, match="w holds words, which cannot be pooled; name columns of numbers"
    ):
        trajectories_from_table(weekly().assign(w="a"), pool="cases")


def test_windows_of_runs() -> None:
    data, said = trajectories_from_table(long(), time="t", id="run", window=4, stride=2)
    assert data.run.values.tolist() == ["r0", "r0", "r1", "r1", "r2", "r2", "r3", "r3"]
    assert data.time.values.tolist() == [0, 0.5, 1, 1.5]
    assert said.startswith("long table: 4 runs: 8 windows of 4 steps, one every 2")


# --- a run in each row ----------------------------------------------------------------------------


@pytest.mark.parametrize("names", [["0", "1", "2.5"], ["t0", "t1", "t2.5"], [0, 1, 2.5]])
def test_steps_in_columns(names: list[Any]) -> None:
    values = np.arange(12).reshape(4, 3)[:, [2, 0, 1]]
    table = pd.DataFrame(values, columns=[names[2], names[0], names[1]])
    data, said = trajectories_from_table(table)
    assert said == "a run in each row: 4 runs of 3 steps, value"
    assert data.value.values.tolist() == np.arange(12)[:, None].reshape(4, 3)[:, [0, 1, 2]].tolist()
    assert data.time.values.tolist() == [0, 1, 2.5]
    assert data.value.dtype == np.int8


def test_several_variables_and_values_of_a_run_in_each_row() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((5, 6)), columns=["S_0", "S_1", "S_2", "I_0", "I_1", "I_2"])
    table["beta"] = rng.random(5)
    table["patient"] = list("vwxyz")
    table["Unnamed: 0"] = range(5)
    data, said = trajectories_from_table(table)
    assert said == (
        "a run in each row: 5 runs of 3 steps, S, I; one value for each run: beta; left out, a "
        "different word in each row: patient"
    )
    assert np.array_equal(data.I.values, table[["I_0", "I_1", "I_2"]])
    assert data.beta.dims == ("sample",)
    table.loc[2, "I_1"] = np.nan
    with pytest.raises(ModelError, match=r"I_1 is missing in row 2 \(1 rows have gaps\)"):
        trajectories_from_table(table)
    data, said = trajectories_from_table(table, missing="drop")
    assert data.sizes["sample"] == 4
    assert "1 dropped for gaps" in said


# --- bad tables -----------------------------------------------------------------------------------


def changed(table: pd.DataFrame, row: int, column: str, value: Any) -> pd.DataFrame:
    table = table.astype({column: object})
    table.loc[row, column] = value
    return table


REFUSED: list[tuple[pd.DataFrame, dict[str, Any], str]] = [
    (pd.DataFrame(), {}, "the table is empty"),
    (pd.DataFrame({"a": []}), {}, "the table is empty"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), {}, "two columns named 'a'"),
    (weekly(), {}, "one series of 40 steps, which is a single sample; cut it into windows"),
    (weekly(), {"time": "when"}, "no column 'when' \\(have: date, x, y\\)"),
    (weekly(), {"window": 1}, "window is a number of steps >= 2, not 1"),
    (weekly(), {"window": 5, "stride": 0}, "stride is a number of steps >= 1, not 0"),
    (weekly(), {"stride": 4}, "give the length of windows as well"),
    (weekly(), {"window": 50}, "windows of 50 steps do not fit into 40 steps"),
    (weekly(), {"window": 5, "missing": "keep"}, "missing is not 'keep' in a table"),
    (weekly(), {"window": 5, "columns": []}, "at least one"),
    (weekly(), {"window": 5, "time": "date", "columns": ["date"]}, "'date' cannot be a variable"),
    (weekly()[["date"]], {"window": 5}, "no columns besides time and id"),
    (changed(weekly(), 3, "date", "Tuesday"), {"window": 5}, "'Tuesday' in row 3, neither a nu"),
    (changed(weekly(), 3, "date", None), {"window": 5}, "date is missing in row 3"),
    (changed(weekly(), 3, "date", "2000-01-17"), {"window": 5}, "two rows for the time 2000-01-17"),
    (changed(weekly(), 3, "date", "2000-01-20"), {"window": 5}, "not evenly spaced: 2000-01-17 an"),
    (changed(weekly(), 3, "x", "?"), {"window": 5}, r"x is '\?' in row 3, where most are numbers"),
    (weekly().assign(x=weekly().y * np.nan), {"window": 5, "missing": "drop"}, "no window of 5 st"),
    (weekly().assign(x=pd.Timestamp("2000-01-01")), {"window": 5}, "x holds dates; name the vari"),
    (weekly().rename(columns={"x": "start"}), {"window": 5}, "cannot be named 'start' here"),
    (long(), {"id": "run", "time": "run"}, "neither a number nor a date"),
    (changed(long(), 3, "run", None), {"id": "run"}, "run is missing in row 3"),
    (changed(long(), 3, "t", np.inf).astype({"t": float}), {"id": "run"}, "t is infinite in row 3"),
    (long(4, 1), {"id": "run"}, "every run has a single step"),
    (long().assign(a=np.nan), {"id": "run", "missing": "drop"}, "every run has missing values"),
    (long()[["run", "t", "beta"]], {"id": "run"}, "no column changes with time"),
    (long().assign(t=0.0), {"id": "run"}, "run r0 has two rows for the time 0.0; drop one"),
    (pd.DataFrame({"t1": [1], "t2": [1], "t3": [1], "t03": [1]}), {}, "'t3' and 't03' are"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "given", "words"), REFUSED, ids=[case[2] for case in REFUSED])
def test_tables_that_are_refused(table: pd.DataFrame, given: dict[str, Any], words: str) -> None:
    with pytest.raises(ModelError, match=words):
        trajectories_from_table(table, **given)


# --- a real one -----------------------------------------------------------------------------------


@pytest.mark.skipif(not MEASLES.exists(), reason="the measles table is not here")
def test_measles_in_seven_cities(tmp_path: Path) -> None:
    table = pd.read_csv(MEASLES)
    with pytest.raises(ModelError, match="London is missing at 1948-01-10"):
        trajectories_from_table(table, window=52, stride=4)
    data, said = trajectories_from_table(table, window=52, stride=4, missing="drop", pool="cases")
    assert "3,510 windows of 52 steps, one every 4 (53 more dropped for gaps)" in said
    assert data.cases.dtype == np.int16
    assert data.time.attrs["units"] == "weeks"
    first = data.sel(sample=0)
    assert (str(first.run.values), str(first.start.values)) == ("London", "1948-02-07")
    assert np.array_equal(first.cases, table.London[4:56])
    path = tmp_path / "measles.nc"
    data.to_netcdf(path)
    with xr.open_dataset(path) as read:
        assert read.time.dtype == np.float64
        codec = TimeSeriesCodec.fit(read, transforms={"*": "auto"}, chunk=500)
        assert codec.variables[0].transform.kind == "log"
        assert codec.names == ("cases",)
        x = codec.encode(read, slice(None), torch.Generator().manual_seed(0))
        assert np.array_equal(codec.finish(x)["cases"], read.cases)
        assert float(x.max()) < 5  # no spikes are left
    apart, said = trajectories_from_table(table, window=52, stride=4, missing="drop")
    assert list(apart.data_vars) == list(table.columns[1:])
    assert apart.sizes["sample"] == 456


def test_times_that_differ_by_rounding_are_the_same() -> None:
    frame = pd.DataFrame(
        {
            "run": ["a"] * 4 + ["b"] * 4,
            "t": [0.0, 0.1, 0.2, 0.3, 0.0, 0.1, 0.1 + 0.1, 0.1 * 3],
            "x": np.arange(8.0),
        }
    )
    data, said = trajectories_from_table(frame, time="t", id="run")
    assert dict(data.sizes) == {"sample": 2, "time": 4}
    assert "2 runs" in said
