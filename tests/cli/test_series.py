"""A series of one's own on the command line: dates, windows, trading days, samples as tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.from_table import trajectories_from_table
from surrogate.model import Surrogate
from tests.cli.small import run

WINDOWS = ("--time", "date", "--columns", "cases", "--window", "6", "--stride", "2")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A weekly series with a second column, and an untrained model of its windows."""
    folder = tmp_path_factory.mktemp("series")
    weeks = pd.date_range("1948-01-10", periods=80, freq="7D").strftime("%Y-%m-%d")
    random = np.random.default_rng(0)
    table = pd.DataFrame(
        {"date": weeks, "cases": random.poisson(20, 80), "rain": random.random(80)}
    )
    table.to_csv(folder / "cases.csv", index=False)
    data, _ = trajectories_from_table(table, columns=["cases"], window=6, stride=2)
    data.to_netcdf(folder / "windows.nc")
    codec = TimeSeriesCodec.fit(data)
    Surrogate.untrained(codec, 0, width=8, depth=1).save(folder / "model")
    return folder


@pytest.fixture(autouse=True)
def here(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    return made


def test_a_start_makes_dates_usable_in_rules() -> None:
    rule = 'cases@"1950-01-21" >= 0'
    words = ("--start", "1950-01-07", "--where", rule, "-n", "30", "-o", "dated.nc", "--force")
    assert "dates from 1950-01-07 to 1950-02-11" in run("sample", *words).stderr
    with xr.open_dataset("dated.nc") as samples:
        assert str(samples.time.values[2])[:10] == "1950-01-21"
    assert f"{rule}      100 %" in run("check", "dated.nc", "--where", rule).stdout
    assert "at 2 (1950-01-21)" in run("check", "dated.nc", "--where", rule).stdout
    run("plot", "dated.nc", "--against", "cases.csv", *WINDOWS, "-o", "dated.png", "--force")


def test_a_date_without_a_start_or_off_the_grid_is_refused() -> None:
    rule = 'cases@"1950-01-21" >= 0'
    refused = run("sample", "--where", rule, "-n", "30", "-o", "none.nc", code=2).output
    assert "no calendar dates" in refused
    assert "--start 1950-01-21" in refused
    off = ("sample", "--start", "1950-01-07", "--where", 'cases@"1950-01-22" >= 0')
    assert '"1950-01-21" (step 2) and "1950-01-28" (step 3)' in run(*off, code=2).output
    words = ("sample", "--start", "7 January", "-n", "30", "-o", "none.nc")
    assert "start is a date, not '7 January'" in run(*words, code=2).output
    assert "no dates" in run("sample", "esirs", "--start", "1950-01-07", code=2).output
    assert not Path("none.nc").exists()


def test_observed_dates_begin_the_window() -> None:
    weeks = ["1950-01-07", "1950-01-14", "1950-01-22", "1950-01-28"]  # one a day late
    seen = pd.DataFrame({"date": weeks, "cases": [12, 15, None, 18], "rain": 0.5})
    seen.to_csv("seen.csv", index=False)
    few = ("-n", "30", "--method", "sequential", "--particles", "200", "-o", "ahead.nc", "--force")
    said = run("sample", "--observe", "seen.csv", *few).stderr
    assert "first step: 1950-01-07, as first observed (--start says otherwise)" in said
    assert "observed: cases = cases, 3 values at 1950-01-07 to 1950-01-28" in said
    assert "not observed: rain" in said
    with xr.open_dataset("ahead.nc") as samples:
        assert str(samples.time.values[5])[:10] == "1950-02-11"
        assert samples.cases.values[:, [0, 1, 3]].tolist() == [[12, 15, 18]] * 30
    said = run("sample", "--observe", "seen.csv", "--start", "1949-12-31", *few).stderr
    assert "first step" not in said
    with xr.open_dataset("ahead.nc") as samples:
        assert samples.cases.values[:, [1, 2, 4]].tolist() == [[12, 15, 18]] * 30
    run("plot", "ahead.nc", "--observed", "seen.csv", "-o", "ahead.png", "--force")


def test_a_cycle_that_the_windows_do_not_have_is_refused_before_training() -> None:
    words = ("train", "cases.csv", *WINDOWS, "--stride", "1", "--calendar", "day", "-o", "none")
    assert "the day cannot be learned of these windows" in run(*words, code=2).output
    assert not Path("none").exists()


@pytest.mark.parametrize("name", ["samples.csv", "samples.parquet"])
def test_samples_are_written_as_a_table_and_read_back_beside_the_series(name: str) -> None:
    run("sample", "-n", "30", "--start", "1950-01-07", "-o", name, "--force")
    table = pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
    assert list(table.columns) == ["sample", "date", "cases"]
    assert len(table) == 30 * 6
    assert (
        "30 samples against 38" in run("evaluate", name, "--against", "cases.csv", *WINDOWS).stderr
    )
    run("plot", name, "--against", "cases.csv", *WINDOWS, "-o", "both.png", "--force")
    assert "30 samples" in run("check", name, "--where", 'cases@"1950-01-07" >= -99').stderr
    refused = run("check", name, "--where", "max(cases) >= 0", "--window", "3", code=2).output
    assert "holds samples, with a row for each step of each; leave out --window" in refused


def test_samples_of_a_scenario_are_not_compared_in_silence_with_all_data() -> None:
    rule = 'cases@"1950-01-21" >= 20'
    days = np.arange("1950-01-07", "1950-02-18", 7, dtype="datetime64[D]")
    with xr.open_dataset("windows.nc") as windows:
        high = windows.isel(sample=np.flatnonzero(windows.cases.values[:, 2] >= 20))
        dated = high.assign_coords(time=days.astype("datetime64[ns]")).drop_vars("start")
        dated.time.attrs["step_unit"] = "weeks"
        dated.assign_attrs(surrogate_constraint=rule).to_netcdf("high.nc")
    pair = ("high.nc", "--against", "cases.csv", *WINDOWS)
    done = run("evaluate", *pair)
    assert "the two are not comparable; compare with what meets them" in done.stderr
    assert f"--where '{rule}'" in done.stderr
    assert "scenario in the reference" in done.stdout
    assert "not comparable" in run("report", *pair, "--force").stderr
    assert "are not comparable." in Path("high.html").read_text(encoding="utf-8")
    chosen = run("evaluate", *pair, "--where", rule)
    assert "warning" not in chosen.stderr
    assert "scenario in the reference" not in chosen.stdout


def test_a_series_is_looked_at_with_the_options_it_is_trained_with() -> None:
    said = run("check", "cases.csv", *WINDOWS, "--where", "max(cases) >= 0", "-o", "judged.csv")
    assert "38 windows of 6 steps" in said.stderr
    assert "38 of 38 samples satisfy the rule" in said.stderr
    assert pd.read_csv("judged.csv").start[6] == "1948-01-24"
    assert "cases" in run("plot", "cases.csv", *WINDOWS, "--force").stderr
    assert Path("cases.png").read_bytes()[:4] == b"\x89PNG"
    refused = run("plot", "windows.nc", "--window", "3", code=2).output
    assert "--window is for tables; none of these files is one" in refused


def series(days: list[str], values: list[float] | None = None) -> None:
    values = list(np.arange(len(days)) + 1.0) if values is None else values
    pd.DataFrame({"date": days, "price": values}).to_csv("own.csv", index=False)


DAYS = [str(day)[:10] for day in pd.date_range("2024-01-01", periods=60)]
MISTAKES = [
    (DAYS, {}, ("--window", "70"), ["windows of 70 steps do not fit into 60 steps", "shorter"]),
    (
        DAYS,
        {3: -2.0},
        ("--window", "5", "--stride", "1", "--transform", "price=log"),
        ["price", "-2", "log", "identity"],
    ),
    (
        DAYS,
        {3: 99.0},
        ("--window", "5", "--stride", "1", "--transform", "price=logit(0, 50)"),
        ["price", "99", "logit"],
    ),
    ([*DAYS[:9], "2024-01-09", *DAYS[9:]], {}, ("--window", "5"), ["two rows for", "2024-01-09"]),
    ([*DAYS[:9], "2024-01-09T15:00", *DAYS[10:]], {}, ("--window", "5"), ["not evenly", "steps"]),
    ([*DAYS[:9], *DAYS[12:]], {}, ("--window", "5"), ["3 steps are missing", "--irregular steps"]),
    ([*DAYS[:9], "soon", *DAYS[10:]], {}, ("--window", "5"), ["'soon' in row 9", "1948-01-31"]),
    ([f"0{i}/01/2024" for i in range(1, 9)], {}, ("--window", "5"), ["'01/01/2024'", "either"]),
]


@pytest.mark.parametrize(("days", "changed", "words", "says"), MISTAKES)
def test_mistakes_are_named_before_training(
    days: list[str], changed: dict[int, float], words: tuple[str, ...], says: list[str]
) -> None:
    values = [changed.get(i, i + 1.0) for i in range(len(days))]
    series(days, values)
    said = run("train", "own.csv", "--time", "date", *words, "-o", "none", code=2).output
    for each in says:
        assert each in said
    assert not Path("none").exists()


def test_trading_days_are_read_with_the_defaults() -> None:
    days = pd.bdate_range("2023-01-02", "2023-12-29").delete([20, 80])
    series([str(day)[:10] for day in days])
    said = run("check", "own.csv", "--time", "date", "--window", "20", "--where", "min(price) > 0")
    assert "5 days a week, 2 holidays left out: steps are trading days" in said.stderr


def test_a_wide_table_with_dates_in_its_header_is_hinted_at_and_read() -> None:
    days = pd.date_range("2024-01-31", periods=4, freq="ME").strftime("%Y-%m-%d")
    values = np.random.default_rng(0).normal(size=(60, 4))
    pd.DataFrame(values, columns=list(days)).to_csv("wide.csv", index=False)
    assert "--wide" in run("check", "wide.csv", "--where", '"2024-01-31" >= -9').stderr
    said = run("check", "wide.csv", "--wide", "--where", 'value@"2024-02-29" >= -9')
    assert "60 runs of 4 steps, value; from 2024-01-31 to 2024-04-30" in said.stderr
    assert "at 1 (2024-02-29)" in said.stdout
