"""Tables of rows through the console script: train, sample, check."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.cli.small import SHORT, run

N = 80


@pytest.fixture
def frame() -> pd.DataFrame:
    """A table with a column of each kind, two with gaps."""
    random = np.random.default_rng(0)
    alcohol = random.normal(10, 1, N).round(2)
    return pd.DataFrame(
        {
            "fixed acidity": random.normal(7, 1, N).round(2),
            "alcohol": np.where(random.random(N) < 0.1, np.nan, alcohol),
            "quality": random.integers(3, 9, N),
            "colour": random.choice(["red", "white", "rosé"], N),
            "grade": random.choice(["a", "b", None], N),
            "day": pd.Series(pd.date_range("2020-01-01", periods=N)).sample(frac=1, random_state=0),
            "bottle": [f"bottle {i}" for i in range(N)],
        }
    )


@pytest.fixture
def wine(small: Path, frame: pd.DataFrame) -> Path:
    frame.to_csv("wine.csv", index=False)
    return small


def test_train_sample_and_check(wine: Path) -> None:
    said = run("train", "wine.csv", "--type", "quality=category", *SHORT).stderr
    assert "categories: quality (6), colour (3), grade (2)" in said
    assert "dates: day" in said
    assert "left out: bottle (an identifier: 80 different words in 80 rows)" in said
    assert "missing values, which are modelled: alcohol" in said
    assert "80 rows of 6 columns; a network of" in said
    done = run("sample", "-n", "40", "--steps", "3", "--json")
    assert json.loads(done.stdout)["path"] == "rows.csv"
    assert "40 rows of fixed acidity, alcohol, quality, colour, grade, day" in done.stderr
    assert "next: surrogate evaluate rows.csv --against wine.csv" in done.stderr
    rows = pd.read_csv("rows.csv", dtype=str, keep_default_na=False)
    assert list(rows) == ["fixed acidity", "alcohol", "quality", "colour", "grade", "day"]
    assert set(rows["quality"]) <= set("345678")
    assert set(rows["colour"]) <= {"red", "white", "rosé"}
    assert set(rows["grade"]) <= {"a", "b", ""}
    assert rows["day"].str.fullmatch(r"2020-\d\d-\d\d").all()
    assert "of 40 samples" in run("check", "rows.csv", "--where", "colour = red").stderr


@pytest.mark.parametrize("ending", ["tsv", "nc"])
def test_rows_are_written_and_read_in_each_format(wine: Path, ending: str) -> None:
    run("train", "wine.csv", *SHORT, "-q")
    name = f"rows.{ending}"
    words = ("sample", "-n", "20", "--steps", "3", "-o", name)
    assert "20 rows" in run(*words).stderr
    assert "exists" in run(*words, code=2).output
    checked = run("check", name, "--where", "quality >= 5", "-o", f"labelled.{ending}")
    assert "of 20 samples" in checked.stderr
    again = run("train", f"labelled.{ending}", *SHORT, "-o", "again", code=2).output
    assert "20 rows are too few to learn from" in again


def test_rows_from_netcdf(small: Path, data: xr.Dataset) -> None:
    data.drop_attrs(deep=False).isel(time=3, drop=True).to_netcdf("rows.nc")
    said = run("train", "rows.nc", *SHORT).stderr
    assert "whole numbers: S, I, R" in said
    assert "300 rows of 3 columns" in said
    assert "rows.nc' holds rows" in run("train", "rows.nc", "--id", "S", "-o", "b", code=2).output


def test_rows_of_a_scenario(wine: Path) -> None:
    run("train", "wine.csv", *SHORT, "-q")
    rules = ("--where", "quality >= 5", "--where", "colour != red")
    done = run("sample", "-n", "10", "--method", "rejection", "--steps", "3", *rules)
    assert "next: surrogate report rows.csv" in done.stderr
    rows = pd.read_csv("rows.csv")
    labels = ["satisfied", "robustness", "log_weight"]
    assert list(rows)[6:9] == labels
    assert all(name.startswith("satisfied: ") for name in list(rows)[9:])
    assert rows["satisfied"].all()
    assert (rows["quality"] >= 5).all()
    assert (rows["colour"] != "red").all()


def test_some_columns_and_missing_values(wine: Path) -> None:
    said = run("train", "wine.csv", "--columns", "alcohol, quality", *SHORT, "--missing", "drop")
    assert "rows that have some are dropped" in said.stderr
    assert "rows of 2 columns" in said.stderr
    refused = run("train", "wine.csv", "--missing", "refuse", "-o", "b", code=2).output
    assert "some values are missing: alcohol" in refused
    assert "drop their rows (--missing drop)" in refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--type", "quality"), "'quality' is no type of a column; give COLUMN=TYPE, as in"),
        (("--type", "=category"), "give COLUMN=TYPE"),
        (("--type", "qualty=category"), "unknown column 'qualty'"),
        (
            ("--type", "quality=word"),
            "the type of quality is not 'word' (have: number, integer",
        ),
        (("--type", "colour=number"), "colour cannot be a number: it is '"),
        (("--type", "colour=number"), "(--type colour=category)"),
        (("--type", "fixed acidity=integer"), "(--type 'fixed acidity=number')"),
        (("--type", "quality=number", "--type", "quality=date"), "given as number and as date"),
        (("--columns", "alcohol,qualty"), "did you mean 'quality'?"),
        (("--columns", "alcohol,alcohol"), "columns must be different names"),
        (("--transform", "alcohol=log"), "no transform of 'alcohol'"),
        (("--missing", "keep"), "unknown --missing 'keep' (have: refuse, drop, model)"),
    ],
)
def test_bad_arguments_of_train_with_a_table_are_refused(
    wine: Path, words: tuple[str, ...], says: str
) -> None:
    assert says in run("train", "wine.csv", *words, code=2).output
    assert sorted(os.listdir()) == ["trajectories.nc", "wine.csv"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--bridge", "alcohol3=2"), "use --where '\"fixed acidity\" = 11'"),
        (("-o", "rows.txt"), "must end in .csv or .tsv or .parquet or .nc"),
        (("-o", "nowhere/rows.csv"), "there is no folder"),
        (("--where", "alcohl >= 3"), "did you mean 'alcohol'"),
        (("--where", "colour = pink"), "unknown category of colour"),
    ],
)
def test_bad_arguments_of_sample_with_a_model_of_rows_are_refused(
    wine: Path, words: tuple[str, ...], says: str
) -> None:
    run("train", "wine.csv", *SHORT, "-q")
    assert says in run("sample", "-n", "5", *words, code=2).output


def test_trajectories_are_tables_with_a_row_for_each_step(small: Path) -> None:
    assert "must end in .nc or .zarr or .csv" in run("sample", "-o", "rows.txt", code=2).output
    run("sample", "-n", "40", "-o", "rows.csv")
    table = pd.read_csv("rows.csv")
    assert list(table.columns) == ["sample", "time", "S", "I", "R"]
    assert len(table) == 40 * 30
    assert "40 of 30 steps" in run("check", "rows.csv", "--where", "S(0) >= 0").stderr


def test_no_column_is_lost_in_silence(small: Path, frame: pd.DataFrame) -> None:
    """A column with the name of a label is learned under another, beside the label."""
    frame.rename(columns={"colour": "origin", "quality": "satisfied"}).to_csv(
        "odd.csv", index=False
    )
    said = run("train", "odd.csv", *SHORT).stderr
    assert "origin_: called 'origin' in the table" in said
    run("sample", "-n", "5", "--steps", "3", "--where", "satisfied_ >= 5")
    rows = pd.read_csv("rows.csv")
    assert set(rows["origin_"]) <= {"red", "white", "rosé"}
    assert (rows["satisfied_"] >= 5).all()
    assert rows["satisfied"].dtype == bool


def test_names_that_netcdf_lacks(small: Path, frame: pd.DataFrame) -> None:
    frame.rename(columns={"alcohol": "km/h"}).to_csv("odd.csv", index=False)
    run("train", "odd.csv", *SHORT, "-q")
    assert "no column named 'km/h'" in run("sample", "-o", "rows.nc", code=2).output


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"run": np.repeat(np.arange(20), 4), "t": np.tile(np.arange(4), 20)}, "--id run --time t"),
        ({"date": pd.date_range("2020-01-01", periods=N).astype(str)}, "--time date --window 52"),
        ({f"x{i}": np.arange(N) % (i + 2) for i in range(20)}, "its steps in columns: --wide"),
        ({"time": np.arange(N) % 7}, ""),
        ({"x1": np.arange(N) % 3, "x2": np.arange(N) % 5}, ""),
    ],
)
def test_tables_that_look_like_runs(small: Path, columns: dict[str, object], says: str) -> None:
    real = np.random.default_rng(1).normal(size=N)
    pd.DataFrame({**columns, "y": real}).to_csv("t.csv", index=False)
    said = run("train", "t.csv", *SHORT).stderr
    assert "80 rows of" in said
    assert says in said
    assert bool(says) == ("if the" in said)


def test_rows_that_belong_together_are_checked_together(small: Path) -> None:
    together = {"sample": [0, 0, 1, 1], "instance": [1, 2, 1, 2], "a": [1.5, 2.5, 4.5, 3.5]}
    pd.DataFrame(together).to_csv("two.csv", index=False)
    done = run("check", "two.csv", "--where", "a[1] < a[2]", "-o", "out.csv")
    assert "1 of 2 samples" in done.stderr
    assert pd.read_csv("out.csv")["satisfied"].tolist() == [True, True, False, False]


def test_dates_are_checked_as_dates(wine: Path) -> None:
    done = run("check", "wine.csv", "--where", 'day < "2020-01-11"')
    assert "10 of 80 samples" in done.stderr


def test_a_missing_value_satisfies_nothing(small: Path) -> None:
    Path("a.csv").write_text("x,y\n1,2\n1,\n", encoding="utf-8")
    assert "1 of 2 samples" in run("check", "a.csv", "--where", "y >= 1").stderr


def test_parquet_keeps_the_types_of_columns(wine: Path, frame: pd.DataFrame) -> None:
    pytest.importorskip("pyarrow")
    frame.to_parquet("wine.parquet")
    assert "dates: day" in run("train", "wine.parquet", *SHORT).stderr
    run("sample", "-n", "20", "--steps", "3", "-o", "rows.parquet")
    rows = pd.read_parquet("rows.parquet")
    assert str(rows["day"].dtype).startswith("datetime64")
    assert "of 20 samples" in run("check", "rows.parquet", "--where", "quality >= 5").stderr
