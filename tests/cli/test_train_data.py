"""surrogate train on data of every kind: what is understood, and what is refused and why."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from tests.cli.small import SHORT, run


def test_a_simulator_as_the_source(small: Path) -> None:
    said = run("train", "--simulate", "sir", *SHORT, "-o", "sir")
    assert "200 trajectories" in said.output
    said = run("train", "--simulate", "sir", "--type", "S=number", "-o", "b", code=2)
    assert "--type is for tables; --simulate makes trajectories" in said.output
    said = run("train", "trajectories.nc", "--type", "S=number", "-o", "b", code=2)
    assert "holds trajectories; leave out --type, which is for rows" in said.output


def test_a_series_cut_into_windows(small: Path) -> None:
    weeks = np.arange(200)
    cases = np.random.default_rng(0).poisson(20 + 10 * np.sin(weeks / 8))
    pd.DataFrame({"week": weeks, "cases": cases}).to_csv("cases.csv", index=False)
    said = run("train", "cases.csv", "--time", "week", "--window", "20", "--stride", "2", *SHORT)
    assert "one series of 200 steps: 91 windows of 20 steps, one every 2" in said.output
    run("sample", "-n", "4", "--steps", "3")
    with xr.open_dataset("samples.nc") as data:
        assert data.cases.shape == (4, 20)


@pytest.fixture
def table() -> pd.DataFrame:
    """60 runs of 10 steps of two variables."""
    random = np.random.default_rng(0)
    runs, times = np.repeat(np.arange(60), 10), np.tile(np.arange(10), 60)
    x, y = random.normal(size=600), random.poisson(9, 600)
    return pd.DataFrame({"run": runs, "t": times, "x": x, "y": y})


def test_a_run_in_each_row(small: Path, table: pd.DataFrame) -> None:
    table.pivot(index="run", columns="t", values="y").add_prefix("y").to_csv("w.csv", index=False)
    said = run("train", "w.csv", "--wide", *SHORT).stderr
    assert "a run in each row: 60 runs of 10 steps, y" in said
    assert "60 trajectories of y over 10 times" in said
    assert (
        "leave out --time"
        in run("train", "w.csv", "--wide", "--time", "y1", "-o", "b", code=2).output
    )
    table.to_csv("t.csv", index=False)
    assert "columns that are steps" in run("train", "t.csv", "--wide", "-o", "b", code=2).output


@pytest.mark.parametrize("words", [("--time", "t"), ("--id", "run"), ("--window", "5")])
def test_kinds_and_models_of_gaps_are_for_rows(
    small: Path, table: pd.DataFrame, words: tuple[str, str]
) -> None:
    table.to_csv("t.csv", index=False)
    said = run("train", "t.csv", *words, "--type", "y=number", code=2).output
    assert "holds trajectories; leave out --type, which is for rows" in said
    said = run("train", "t.csv", *words, "--missing", "model", code=2).output
    assert "missing values of runs cannot be modelled" in said


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_tables_in_several_encodings_are_read(
    small: Path, table: pd.DataFrame, encoding: str
) -> None:
    mixed = table.rename(columns={"x": "body größe"}).sample(frac=1, random_state=0)
    mixed.to_csv("t.csv", index=False, encoding=encoding, sep=";")
    words = ("--id", "run", "--time", "t", "--columns", "body größe, y")
    said = run("train", "t.csv", *words, *SHORT).stderr
    assert "60 trajectories of body größe, y over 10 times" in said


@pytest.mark.parametrize(
    ("changed", "words", "says"),
    [
        (
            {},
            ("--id", "runn"),
            "there is no column 'runn' (have: run, t, x, y); did you mean 'run'?",
        ),
        ({}, ("--columns", "x,z"), "there is no column 'z'"),
        ({}, ("--columns", "x,x"), "different names"),
        ({}, ("--columns", "t"), "cannot be a variable and the time"),
        ({}, ("--time", "x", "--id", "t"), "has other times than most"),
        ({}, ("--window", "50"), "windows of 50 steps do not fit into 10 steps"),
        ({}, ("--window", str(10**25)), "do not fit"),
        ({}, ("--window", "5", "--stride", "0"), "stride is a number of steps >= 1, not 0"),
        ({}, ("--window", "1"), "window is a number of steps >= 2, not 1"),
        ({}, ("--stride", "2"), "give the length of windows as well"),
        ({}, ("--pool", " "), "pool is a name"),
        ({"x": (123, np.nan)}, (), "x is missing at 3 of run 12"),
        ({"x": (123, np.nan)}, (), "(--missing drop)"),
        ({"x": (123, np.inf)}, (), "x has infinite values: 1 values in 1 of 60 samples"),
        ({"x": (123, "oops")}, (), "x is 'oops' in row 123"),
        ({"y": (5, 2**63 + 5)}, (), "such as 9223372036854775813"),
        ({"y": (5, 2**62)}, (), "below 2^53"),
        ({"y": (5, 10**308)}, (), "too large or too small"),
        ({"run": (3, None)}, (), "run is missing in row 3"),
        ({"t": (3, None)}, (), "t is missing in row 3"),
        ({"t": (3, "soon")}, (), "t is 'soon' in row 3, neither a number nor a date"),
        ({"t": (75, 5.5)}, (), "run 7 has other times than most: step 5 is at 5.5"),
        ({"t": (75, 4)}, (), "run 7 has two rows for the time 4"),
    ],
)
def test_bad_tables(
    small: Path,
    table: pd.DataFrame,
    changed: dict[str, tuple[int, object]],
    words: tuple[str, ...],
    says: str,
) -> None:
    for name, (row, value) in changed.items():
        table[name] = table[name].astype(object)
        table.loc[row, name] = value
    table.to_csv("t.csv", index=False)
    usual = () if "--id" in words else ("--id", "run", "--time", "t")
    assert says in run("train", "t.csv", *usual, *words, code=2).output
    assert sorted(os.listdir()) == ["t.csv", "trajectories.nc"]


def test_runs_with_other_times_are_named(small: Path, table: pd.DataFrame) -> None:
    table.drop(index=[15, 16, 333]).to_csv("t.csv", index=False)
    words = ("train", "t.csv", "--id", "run", *SHORT)
    said = run(*words, code=2).output
    assert "run 1 has other times than most: step 5 is at 7 where most have 5" in said
    assert "(2 runs have: 1, 33)" in said
    assert "58 trajectories" in run(*words, "--missing", "drop").output


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.csv", b"", "it is empty, without a header"),
        ("a.csv", b"a,b\n", "0 rows below its header"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", "line 3"),
        ("a.csv", b'a,b\n1,2\n3,"4\n', "line 3 opens a quote that is never closed"),
        ("a.csv", "größe\n1\n2\n".encode("latin-1"), "save it as UTF-8"),
        ("a.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "it is a binary file"),
        ("a.csv", b"x;y\n1,5;2\n2,5;3\n", "numbers with decimal commas: x"),
        ("a.csv", b"x\n1\n2\n3\n", "3 rows are too few to learn from"),
        ("a.csv.gz", b"junk", "Not a gzipped file"),
        ("a.nc", b"", "is an empty file"),
        ("a.nc", b"a,b\n1,2\n", "is not a netCDF file"),
        ("a.nc", b"\x89HDF\r\n\x1a\n" + bytes(100), "cannot read 'a.nc' as netCDF"),
        ("a.txt", b"a,b\n1,2\n", "(have: .nc, "),
        ("a.zarr", b"", "is a file, and Zarr is a folder"),
    ],
)
def test_files_of_another_kind(small: Path, name: str, content: bytes, says: str) -> None:
    Path(name).write_bytes(content)
    assert says in run("train", name, code=2).output
    assert sorted(os.listdir()) == [name, "trajectories.nc"]


def test_bad_trajectories(small: Path, data: xr.Dataset) -> None:
    def refused(changed: xr.Dataset, says: str) -> None:
        changed.to_netcdf("bad.nc")
        assert says in run("train", "bad.nc", code=2).output
        Path("bad.nc").unlink()

    def with_value(value: float) -> xr.Dataset:
        made = data.astype(float)
        made["I"][7, 3] = value
        return made

    plain = data.drop_attrs(deep=False)
    refused(data.isel(sample=slice(10)), "10 trajectories are too few")
    refused(plain.map(lambda each: 0 * each + 5), "all trajectories are the same")
    refused(with_value(np.nan), "first at sample 7, step 3")
    refused(with_value(np.inf), "I has infinite values")
    refused(data.rename(sample="draw"), "holds no samples")
    refused(data.isel(sample=slice(0)), "is empty")
    refused(data.isel(time=slice(None, None, -1)), "increase")
    refused(data.drop_vars(["S", "I", "R"]), "no signals")
    refused(plain.assign(S=plain.S * 1e200), "too large or too small")
    refused(plain.assign(S=(plain.S + 1).astype(np.int64) * 2**55), "below 2^53")
    refused(data.assign(R=0 * data.R), "said to be conserved")


def test_constant_channels_and_turned_arrays(small: Path, data: xr.Dataset) -> None:
    plain = data.drop_attrs(deep=False)
    plain.assign(R=0 * data.R + 3).transpose("time", "sample").to_netcdf("odd.nc")
    said = run("train", "odd.nc", *SHORT).output
    assert "trajectories of S, I, R (R constant) over 30" in said
    run("sample", "-n", "4", "--steps", "3", "-q")
    with xr.open_dataset("samples.nc") as drawn:
        assert drawn.S.dims == ("time", "sample")
        assert (drawn.R == 3).all()
