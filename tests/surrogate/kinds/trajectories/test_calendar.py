"""Dates as steps: units, trading days, irregular dates, and dates that all samples share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import surrogate as sg
from constraints import FormulaError, parse
from surrogate.errors import ModelError
from surrogate.kinds.labels import label
from surrogate.kinds.signals import layout_of
from surrogate.kinds.trajectories.calendar import dates_from, step_times, trading_days
from surrogate.kinds.trajectories.from_table import trajectories_from_table

HOLIDAYS = ["2020-01-01", "2020-04-10", "2020-12-25", "2021-01-01"]


def trading(start: str = "2020-01-01", end: str = "2021-06-30") -> pd.DataFrame:
    """Prices on weekdays that are no holidays, as an exchange gives them."""
    days = pd.bdate_range(start, end).difference(pd.to_datetime(HOLIDAYS))
    return pd.DataFrame({"date": days.strftime("%Y-%m-%d"), "price": np.arange(len(days)) + 0.5})


def weekly(cities: int = 3, steps: int = 6) -> pd.DataFrame:
    """A long table: cases of cities in the same weeks."""
    days = pd.date_range("1948-01-10", periods=steps, freq="7D").strftime("%Y-%m-%d")
    rows = [(f"c{i}", day, 10 * i + k * k) for i in range(cities) for k, day in enumerate(days)]
    return pd.DataFrame(rows, columns=["city", "date", "cases"])


# --- trading days ---------------------------------------------------------------------------------


def test_trading_days_are_steps_and_keep_their_dates() -> None:
    table = trading()
    data, said = trajectories_from_table(table, window=20, stride=20)
    assert "5 days a week, 3 holidays left out: steps are trading days" in said
    assert data.price.values[0].tolist() == table.price[:20].tolist()  # over weekends
    assert data.time.values.tolist() == list(range(20))
    assert data.time.attrs["units"] == "trading days"
    assert data.start.values.tolist() == table.date[::20][: data.sizes["sample"]].tolist()


def test_a_day_that_one_of_several_shares_lacks_is_a_missing_step() -> None:
    one = trading().assign(share="A")
    other = trading().assign(share="B").drop(index=50)
    table = pd.concat([one, other])
    with pytest.raises(ModelError, match="1 steps of run B are missing, first after 2020-03-11"):
        trajectories_from_table(table, id="share", window=20)
    data, _ = trajectories_from_table(table, id="share", window=20, missing="drop")
    assert (np.diff(data.price.values, axis=1) == 1).all()


@pytest.mark.parametrize(
    ("days", "note"),
    [
        (pd.bdate_range("2020-02-03", "2020-03-31"), "5 days a week: steps"),
        (pd.bdate_range("2020-02-02", "2020-03-31", freq="C", weekmask="Sun Mon Tue Wed Thu"), "5"),
        (pd.bdate_range("2020-02-02", "2020-03-31", freq="C", weekmask="1111110"), "6 days a week"),
        (trading().date.astype("datetime64[us]"), "3 holidays"),
    ],
)
def test_weeks_of_five_and_six_days_are_trading_days(days: Any, note: str) -> None:
    found = trading_days([np.asarray(days, "datetime64[us]")])
    assert found is not None
    assert note in found.note


@pytest.mark.parametrize(
    "days",
    [
        pd.date_range("2020-01-01", periods=60),  # every day
        pd.bdate_range("2020-02-03", "2020-02-12"),  # a week and a half
        pd.bdate_range("2020-01-01", periods=60)[::2],  # all weekdays, and gaps
        pd.bdate_range("2020-01-01", periods=60).delete(slice(20, 35)),  # three weeks lack
        pd.bdate_range("2020-01-01", periods=60) + pd.to_timedelta(np.arange(60), unit="min"),
    ],
)
def test_other_dates_are_not_trading_days(days: pd.DatetimeIndex) -> None:
    assert trading_days([np.asarray(days, "datetime64[us]")]) is None


# --- irregular dates ------------------------------------------------------------------------------


def test_irregular_dates_are_refused_with_their_place_or_taken_as_steps() -> None:
    days = pd.to_datetime(["2020-01-01", "2020-01-03", "2020-01-05", "2020-01-08", "2020-01-10"])
    table = pd.DataFrame({"date": days.strftime("%Y-%m-%d"), "x": range(5)})
    with pytest.raises(ModelError, match=r"2020-01-05 and 2020-01-08 are 1.5 steps") as problem:
        trajectories_from_table(table, window=2)
    assert "--irregular steps" in problem.value.render("command")
    data, said = trajectories_from_table(table, window=2, irregular="steps")
    assert "the times are not even: rows are steps" in said
    assert data.x.values.tolist() == [[0, 1], [2, 3]]
    assert data.start.values.tolist() == ["2020-01-01", "2020-01-05"]
    assert data.time.values.tolist() == [0, 1]


def test_missing_days_may_be_taken_as_steps() -> None:
    days = pd.date_range("2020-01-01", periods=12).delete([4, 5])
    table = pd.DataFrame({"date": days.strftime("%Y-%m-%d"), "x": range(10)})
    with pytest.raises(ModelError, match="2 steps are missing, first after 2020-01-04") as problem:
        trajectories_from_table(table, window=5)
    assert "irregular='steps'" in str(problem.value)
    data, _ = trajectories_from_table(table, window=5, irregular="steps")
    assert data.x.values.tolist() == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]


def test_numbers_that_are_not_even_may_be_taken_as_steps() -> None:
    table = pd.DataFrame({"t": [0.0, 1.0, 2.5, 3.5], "x": range(4)})
    with pytest.raises(ModelError, match="not evenly spaced"):
        trajectories_from_table(table, time="t", window=2)
    data, _ = trajectories_from_table(table, time="t", window=2, irregular="steps")
    assert data.x.values.tolist() == [[0, 1], [2, 3]]


def test_irregular_is_one_of_two_policies() -> None:
    with pytest.raises(ModelError, match="irregular is not 'maybe'"):
        trajectories_from_table(weekly(), id="city", irregular="maybe")


# --- one calendar for all samples -----------------------------------------------------------------


def test_runs_over_the_same_dates_keep_them_and_formulas_read_them(tmp_path: Path) -> None:
    data, said = trajectories_from_table(weekly(), id="city")
    assert "3 runs of 6 steps, from 1948-01-10 to 1948-02-14" in said
    assert data.time.dtype.kind == "M"
    layout = layout_of(data)
    assert layout.times == tuple(range(6))  # weeks, as for runs that begin at different dates
    assert layout.dates[1] == "1948-01-17"
    met = label(data, [parse('cases@"1948-01-24" >= 14')])
    assert met.satisfied.values.tolist() == [False, True, True]
    sg.write(data, tmp_path / "cases.nc")
    with xr.open_dataset(tmp_path / "cases.nc", decode_times=False) as raw:
        assert raw.time.attrs["units"].startswith("days since 1948-01-10")
    back = sg.read(tmp_path / "cases.nc")
    assert layout_of(back).times == layout.times
    assert layout_of(back).dates == layout.dates


def test_columns_of_one_series_are_runs_over_its_dates() -> None:
    table = trading()[["date"]].assign(A=lambda t: range(len(t)), B=lambda t: range(1, len(t) + 1))
    data, said = trajectories_from_table(table, time="date", pool="price")
    assert "steps are trading days" in said
    assert layout_of(data).dates[:2] == ("2020-01-02", "2020-01-03")
    assert layout_of(data).times[-1] == len(table) - 1


def test_a_wide_table_with_dates_in_its_header_keeps_them() -> None:
    days = pd.date_range("2020-01-31", periods=4, freq="ME").strftime("%Y-%m-%d")
    table = pd.DataFrame(np.arange(12).reshape(3, 4) ** 2, columns=list(days))
    data, said = trajectories_from_table(table)
    assert "3 runs of 4 steps, value; from 2020-01-31 to 2020-04-30" in said
    assert layout_of(data).times == (0, 1, 2, 3)
    assert data.time.attrs["step_unit"] == "months"
    named = table.rename(columns=lambda day: f"cases {day}").assign(city=list("aab"))
    data, _ = trajectories_from_table(named)
    assert data.cases.values.tolist() == table.to_numpy().tolist()
    with pytest.raises(ModelError, match="no column for the step after 2020-02-29"):
        trajectories_from_table(table.drop(columns="2020-03-31").assign(**{"2020-05-31": 0}))


@pytest.mark.parametrize("frequency", ["QE", "QS", "ME", "YS"])
def test_quarters_and_months_are_steps_of_the_calendar(frequency: str) -> None:
    days = pd.date_range("2000-01-01", periods=30, freq=frequency)
    data, _ = trajectories_from_table(pd.DataFrame({"date": days, "x": range(30)}), window=8)
    unit, length = data.time.attrs["units"], float(data.time.values[1])
    found = {"QE": ("months", 3), "QS": ("months", 3), "ME": ("months", 1), "YS": ("years", 1)}
    assert (unit, length) == found[frequency]
    start = str(days[0])[:10]
    dates = dates_from(start, data.time.values.tolist(), unit)
    assert [str(day)[:7] for day in dates] == [str(day)[:7] for day in days[:8]]
    assert step_times(np.asarray(days, "datetime64[us]"), unit)[:3].tolist() == [
        0,
        length,
        2 * length,
    ]


# --- a grid of dates ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "length", "start"),
    [
        ("weeks", 1.0, "1948-01-10"),
        ("days", 1.0, "1948-01-10"),
        ("hours", 6.0, "2016-07-01 12:00"),
        ("minutes", 0.5, "2016-07-01"),
        ("months", 1.0, "2020-01-31"),
        ("months", 3.0, "2020-01-31"),
        ("years", 1.0, "2020-02-29"),
        ("trading days", 1.0, "2020-01-02"),
    ],
)
def test_dates_lead_to_steps_and_back(unit: str, length: float, start: str) -> None:
    times = length * np.arange(30)
    dates = dates_from(start, list(times), unit)
    assert dates[0] == np.datetime64(start)
    assert (np.diff(dates).astype(np.int64) > 0).all()
    np.testing.assert_allclose(step_times(dates, unit), times)


def test_the_shortest_month_is_a_month() -> None:
    dates = np.array(["2023-02-01", "2023-03-01"], "datetime64[us]")
    assert step_times(dates, "months").tolist() == [0, 1]


def test_trading_days_skip_weekends_and_begin_on_a_weekday() -> None:
    dates = dates_from("2024-01-05", [0, 1, 2], "trading days")
    assert [str(day)[:10] for day in dates] == ["2024-01-05", "2024-01-08", "2024-01-09"]
    with pytest.raises(ModelError, match=r"is a Saturday.*nearby are 2024-01-05 and 2024-01-08"):
        dates_from("2024-01-06", [0, 1, 2], "trading days")


@pytest.mark.parametrize(
    ("start", "unit", "words"),
    [("10/01/1948", "weeks", "start is a date, not '10/01/1948'"), ("1948-01-10", "1", "no dates")],
)
def test_a_start_is_a_date_and_steps_have_a_unit(start: str, unit: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        dates_from(start, [0, 1], unit)


def test_samples_that_begin_at_different_dates_have_no_dates() -> None:
    data, _ = trajectories_from_table(trading(), window=20)
    with pytest.raises(FormulaError, match="no calendar dates"):
        label(data, [parse('price@"2020-01-02" >= 1')])
