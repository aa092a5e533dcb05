"""Samples as long tables, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from constraints import parse
from surrogate.errors import ModelError
from surrogate.kinds.labels import label
from surrogate.kinds.trajectories.sample_tables import from_frame, holds_samples, to_frame

WEEKS = np.arange("1948-01-10", "1948-02-14", 7, dtype="datetime64[D]").astype("datetime64[us]")


def samples(dated: bool = True) -> xr.Dataset:
    random = np.random.default_rng(0)
    time = WEEKS if dated else 0.5 * np.arange(len(WEEKS))
    return xr.Dataset(
        {
            "cases": (("sample", "time"), random.integers(0, 99, (4, len(WEEKS)))),
            "rate": (("time", "sample"), random.normal(size=(len(WEEKS), 4))),
            "city": ("sample", np.array(["Leeds", "York", "Leeds", "Bath"], dtype=object)),
            "people": ("sample", np.array([5, 6, 7, 8])),
        },
        {"time": ("time", time, {"step_unit": "weeks"} if dated else {"units": "1"})},
    )


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize("dated", [True, False])
def test_samples_survive_a_table(tmp_path: Path, suffix: str, dated: bool) -> None:
    rules = [parse("max(cases) >= 90"), parse("cases(0) >= 40")]
    data = label(samples(dated), rules)
    path = tmp_path / f"samples{suffix}"
    sg.write(data, path)
    back = sg.read(path)
    for name in ("cases", "rate", "city", "people", "satisfied", "robustness"):
        np.testing.assert_array_equal(back[name].values, data[name].transpose("sample", ...).values)
    np.testing.assert_array_equal(back.time.values, data.time.values)
    assert back.time.attrs.get("step_unit") == ("weeks" if dated else None)
    known = back.attrs.get("surrogate_constraint")
    assert known == (data.attrs["surrogate_constraint"] if suffix == ".parquet" else None)


def test_a_table_has_the_date_and_what_a_sample_has_once_in_each_row() -> None:
    frame = to_frame(samples())
    assert list(frame.columns) == ["sample", "date", "cases", "rate", "city", "people"]
    assert frame.city[:6].tolist() == ["Leeds"] * 5 + ["York"]
    assert to_frame(samples(dated=False)).columns[1] == "time"
    several = to_frame(label(samples(), [parse("max(cases) >= 90"), parse("cases(0) >= 40")]))
    assert "satisfied: max(cases) >= 90" in several.columns


def test_windows_keep_their_start(tmp_path: Path) -> None:
    table = pd.DataFrame({"date": [str(day)[:10] for day in WEEKS[:4]], "x": [1, 2, 4, 3]})
    table.to_csv(tmp_path / "series.csv", index=False)
    windows = sg.read(tmp_path / "series.csv", time="date", window=2)
    sg.write(windows, tmp_path / "windows.csv")
    back = sg.read(tmp_path / "windows.csv")
    assert back.start.values.tolist() == ["1948-01-10", "1948-01-24"]
    np.testing.assert_array_equal(back.x.values, windows.x.values)


@pytest.mark.parametrize(
    "table",
    [
        {"sample": [0, 0, 1, 1], "time": [0, 1, 0, 2], "x": range(4)},  # two grids
        {"sample": [0, 0, 1], "time": [0, 1, 0], "x": range(3)},  # a step lacks
        {"sample": [0, 1, 0, 1], "time": [0, 0, 1, 1], "x": range(4)},  # not sorted
        {"sample": [0, 1, 2], "time": [0, 0, 0], "x": range(3)},  # rows
        {"sample": ["a", "a"], "time": [0, 1], "x": range(2)},
        {"sample": [0, 0], "time": [0, 1]},  # no variable
        {"time": [0, 1], "sample": [0, 0], "x": range(2)},
    ],
)
def test_other_tables_are_not_samples(table: dict[str, Any]) -> None:
    assert not holds_samples(pd.DataFrame(table))
    assert holds_samples(to_frame(samples()))


def test_options_say_otherwise_or_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "samples.csv"
    sg.write(samples(), path)
    with pytest.raises(ModelError, match="20 rows are too few"):  # which are rows, then
        sg.read(path, types={"cases": "integer"})
    assert sg.read(path, id="sample", time="date").sizes == {"sample": 4, "time": 5}
    assert list(sg.read(path, columns=["cases"]).data_vars) == ["cases"]
    with pytest.raises(ModelError, match=r"holds samples, with a row for each step.*window"):
        sg.read(path, window=3)
    with pytest.raises(ModelError, match="no column 'deaths'"):
        sg.read(path, columns=["deaths"])


def test_what_a_table_cannot_hold_is_refused() -> None:
    with pytest.raises(ModelError, match="a column 'date' of its own"):
        to_frame(samples().rename(people="date"))
    several = samples().expand_dims(instance=2)
    with pytest.raises(ModelError, match="several instances"):
        to_frame(several)
    frame = to_frame(samples()).astype({"cases": float})
    frame.loc[7, "cases"] = np.nan
    with pytest.raises(ModelError, match="cases is missing in row 7"):
        from_frame(frame)
