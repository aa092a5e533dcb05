"""Cycles of the calendar: places of dates, their harmonics, the trial, and what a date fixes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import xarray as xr

import surrogate as sg
from surrogate.data import evaluate
from surrogate.errors import ModelError
from surrogate.io.attributes import CALENDAR
from surrogate.kinds.noising import BLIND
from surrogate.kinds.trajectories.chosen_codec import fit_to
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.cycle_trial import possible, trial, with_cycles
from surrogate.kinds.trajectories.cycles import SECONDS, Cycle
from surrogate.kinds.trajectories.decoder import TrajectoryDecoder
from surrogate.kinds.trajectories.from_table import trajectories_from_table
from surrogate.model import Surrogate
from tests.surrogate.analytic import generator
from tests.surrogate.kinds.trajectories.decoders import decoder_of, drawn_from

WEEKLY = Cycle("year", 365.2425 / 7, 52)


def series(dates: pd.DatetimeIndex, season: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """An autoregression about a season, as a table."""
    random, x = np.random.default_rng(seed), np.zeros(len(dates))
    for t in range(1, len(x)):
        x[t] = 0.6 * x[t - 1] + random.normal()
    return pd.DataFrame({"date": dates.strftime("%Y-%m-%dT%H:%M"), "x": x + season})


def windows(table: pd.DataFrame, window: int = 8, **options: object) -> xr.Dataset:
    return trajectories_from_table(table, window=window, stride=1, **options)[0]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def seasonal() -> xr.Dataset:
    """Windows of thirty years of weeks."""
    dates = pd.date_range("1950-01-07", periods=1_500, freq="7D")
    return windows(series(dates, 2 * np.cos(2 * np.pi * np.asarray(dates.day_of_year) / 365)))


@pytest.mark.parametrize(
    ("cycle", "date", "value"),
    [
        (Cycle("day", 24.0, 24), "2024-03-05T17:30", 17.0),
        (Cycle("day", 24.0, 48), "2024-03-05T17:30", 17.5),
        (Cycle("week", 7.0, 7), "2024-03-05", 1.0),  # a Tuesday
        (Cycle("week", 168.0, 168), "2024-03-05T18:00", 1.75),
        (WEEKLY, "2024-01-01", 1.0),
        (WEEKLY, "2024-12-31", 52.0),
        (Cycle("year", 12.0, 12), "2024-03-31", 3.0),
        (Cycle("year", 12.0, 4), "2024-12-01", 4.0),
    ],
)
def test_places_are_counted_as_people_do(cycle: Cycle, date: str, value: float) -> None:
    found = cycle.begins(np.array([date], "datetime64[us]"))
    assert found.tolist() == [value]
    assert value in cycle.values
    assert Cycle.of(json.loads(json.dumps(cycle.attrs))) == cycle


@pytest.mark.parametrize(("name", "places"), [("day", 24), ("week", 168)])
def test_harmonics_go_on_as_the_calendar_does(name: str, places: int) -> None:
    """The phase of step t of a window is that of a window which begins at t."""
    cycle = Cycle(name, SECONDS[name] / 3600, places)
    dates = pd.date_range("2024-03-05", periods=200, freq="h").to_numpy()
    first = torch.as_tensor(cycle.begins(dates[:1]))
    later = cycle.harmonics(first, torch.arange(200.0, dtype=torch.float64))
    own = cycle.harmonics(torch.as_tensor(cycle.begins(dates)), torch.zeros(1))
    torch.testing.assert_close(torch.stack(later), torch.stack(own), atol=1e-5, rtol=0)
    torch.testing.assert_close(later[0].square() + later[1].square(), torch.ones(200))


def test_a_season_is_found_and_none_where_there_is_none(seasonal: xr.Dataset) -> None:
    assert [cycle.name for cycle in possible(seasonal)] == ["year"]
    found = trial(seasonal, possible(seasonal))
    # AR residuals of deviation 1 with and without a season of 2 cos: its increments' share
    assert 0.005 < found["year"] < 0.2
    dates = pd.date_range("1950-01-07", periods=1_500, freq="7D")
    plain = [windows(series(dates, np.zeros(1_500), seed)) for seed in range(10)]
    assert sum(bool(trial(each, possible(each))) for each in plain) <= 1


def test_each_cycle_is_judged_beside_the_others() -> None:
    dates = pd.date_range("2024-01-01", periods=2_400, freq="h")
    daily = 2 * np.sin(2 * np.pi * np.asarray(dates.hour) / 24)
    data = windows(series(dates, daily))
    assert [cycle.name for cycle in possible(data)] == ["day", "week"]
    assert list(trial(data, possible(data))) == ["day"]
    weekend = np.where(np.asarray(dates.day_of_week) >= 5, -3.0, 0.0)
    both = windows(series(dates, daily + weekend))
    assert set(trial(both, possible(both))) == {"day", "week"}


@pytest.mark.parametrize(
    ("freq", "count", "expected"),
    [
        ("15min", 2_000, {"day": 96, "week": 168}),
        ("D", 800, {"week": 7, "year": 52}),
        ("MS", 60, {"year": 12}),
        ("QS", 60, {"year": 4}),
        ("YS", 60, {}),
        ("7D", 60, {}),  # of little more than a year
        ("B", 800, {"year": 52}),
    ],
)
def test_cycles_suit_the_step_and_the_length_of_a_series(
    freq: str, count: int, expected: dict[str, int]
) -> None:
    dates = pd.date_range("2019-01-01", periods=count, freq=freq)
    data = windows(series(dates, np.zeros(count)))
    assert {cycle.name: cycle.places for cycle in possible(data)} == expected


def test_series_without_dates_and_windows_that_begin_alike_have_no_cycles() -> None:
    dates = pd.date_range("2024-01-01", periods=480, freq="h")
    table = series(dates, np.zeros(480))
    assert possible(windows(table.drop(columns="date"))) == []
    daily = trajectories_from_table(table, window=24)[0]
    assert [cycle.name for cycle in possible(daily)] == ["week"]


def test_cycles_are_named_or_refused(seasonal: xr.Dataset) -> None:
    chosen, gains = with_cycles(seasonal.assign_attrs({CALENDAR: "year"}))
    assert list(chosen.data_vars) == ["x", "week_of_year"]
    assert gains == {}
    assert with_cycles(seasonal.assign_attrs({CALENDAR: "none"}))[0].data_vars.keys() == {"x"}
    with pytest.raises(ModelError, match="the day cannot be learned") as problem:
        with_cycles(seasonal.assign_attrs({CALENDAR: "day"}))
    assert "year, none" in str(problem.value)
    table = pd.DataFrame({"date": ["2024-01-01", "2024-01-02"], "x": [1.0, 2.0]})
    with pytest.raises(ModelError, match="calendar is about windows"):
        trajectories_from_table(table, id="date", calendar="year")


def model_of(data: xr.Dataset) -> Surrogate:
    """Untrained, of windows with the cycles that their trial finds."""
    codec = fit_to(data, np.arange(0, data.sizes["sample"], 2), {})
    return Surrogate.untrained(codec, 0, width=8, depth=1)


@pytest.fixture(scope="module")
def model(seasonal: xr.Dataset) -> Surrogate:
    return model_of(seasonal)


def test_the_place_is_a_variable_that_is_drawn_first(
    model: Surrogate, seasonal: xr.Dataset
) -> None:
    codec = model.codec
    assert isinstance(codec, TimeSeriesCodec)
    assert isinstance(model.decoder, TrajectoryDecoder)
    assert [v.name for v in model.decoder.sites.statics] == ["week_of_year"]
    assert "week_of_year beside them, by a trial on held-out samples" in codec.learned
    codec.matches(seasonal)  # which holds dates in its place
    x = codec.encode(seasonal, slice(5), torch.Generator())
    back = codec.to_dataset(x)
    np.testing.assert_array_equal(
        back.week_of_year, WEEKLY.begins(seasonal.start.values[:5].astype("datetime64[us]"))
    )
    again = TimeSeriesCodec.from_config(json.loads(json.dumps(codec.to_config())))
    assert again.gains == codec.gains
    drawn = model.sample(500, seed=1).week_of_year.values
    assert set(drawn) <= set(range(1, 53))
    assert len(set(drawn)) > 45


def test_a_start_fixes_the_place_and_has_no_probability(model: Surrogate) -> None:
    given = "x(0) = 1 and x(1) = 0.5"
    week = float(WEEKLY.begins(np.array(["1985-05-04"], "datetime64[us]"))[0])
    settings = {"method": "sequential", "particles": 400, "seed": 1}
    dated = model.sample(50, where=given, start="1985-05-04", **settings)
    assert set(dated.week_of_year.values) == {week}
    assert str(dated.time.values[0])[:10] == "1985-05-04"
    stated = model.sample(50, where=f"{given} and week_of_year = {week:g}", **settings)
    log_p = [float(each.attrs["surrogate_log_probability"]) for each in (dated, stated)]
    assert log_p[0] - log_p[1] == pytest.approx(math.log(52), abs=1e-4)  # of an untrained head
    assert dated.attrs["surrogate_ess"] == pytest.approx(400, rel=1e-6)
    assert set(model.sample(20, start="1985-05-04").week_of_year.values) == {week}
    assert len(set(model.sample(200).week_of_year.values)) > 30  # the model itself is as before
    with pytest.raises(ModelError, match="ode knows no dates"):
        model.sample(20, start="1985-05-04", solver="ode")


def test_given_a_noisy_point_a_known_place_is_weighed_by_its_probability(
    seasonal: xr.Dataset,
) -> None:
    """The weight is p(place | noisy point) / p(place): times p(place), it sums to 1."""
    decoder = decoder_of(with_cycles(seasonal)[0].isel(sample=slice(0, None, 7)))
    codec = decoder.sites.codec
    noisy = torch.randn(30, *codec.shape, generator=generator(0))
    total = torch.zeros(30, dtype=torch.float64)
    for value, log_p in zip(WEEKLY.values, _blind(decoder), strict=True):
        known = decoder.knowing(replace(codec, known={"week_of_year": value}))
        x, log_weights = drawn_from(known, noisy, 1.0)
        assert (decoder.sites.values(x)["week_of_year"] == value).all()
        total += (log_weights + log_p).exp()
    torch.testing.assert_close(total, torch.ones_like(total), atol=1e-4, rtol=0)


def _blind(decoder: TrajectoryDecoder) -> list[float]:
    """log p of each place, without a noisy point."""
    own, nothing = decoder.conditionals, torch.zeros(1, *decoder.sites.codec.shape)
    sigma = torch.full((1,), BLIND)
    seen = own.static_input(0, own.context(nothing, sigma)[0], nothing, sigma)
    return torch.log_softmax(own.static_heads[0](seen)[0], -1).tolist()


def test_samples_are_compared_by_their_series(model: Surrogate, seasonal: xr.Dataset) -> None:
    found = evaluate(model.sample(60), seasonal.isel(sample=slice(60)))
    assert [each.name for each in found.variables] == ["x"]


def test_the_first_observed_date_is_the_start(model: Surrogate) -> None:
    frame = pd.DataFrame({"date": ["1985-05-04", "1985-05-12"], "x": [1.0, 0.5]})  # a day late
    made = model.sample(20, given=frame, method="sequential", particles=200)
    assert [str(day)[:10] for day in made.time.values[:2]] == ["1985-05-04", "1985-05-11"]
    np.testing.assert_allclose(made.x.values[:, :2], [[1.0, 0.5]] * 20, atol=0.01)
    later = model.sample(20, given=frame, start="1985-04-27", method="sequential", particles=200)
    np.testing.assert_allclose(later.x.values[:, 1:3], [[1.0, 0.5]] * 20, atol=0.01)


def test_holidays_of_observed_days_move_no_later_day() -> None:
    days = pd.bdate_range("2023-01-02", periods=80).strftime("%Y-%m-%d")
    table = pd.DataFrame({"date": days, "price": np.random.default_rng(0).normal(size=80)})
    model = model_of(windows(table, 5))
    frame = pd.DataFrame({"date": ["2024-12-24", "2024-12-26"], "price": [0.5, 0.25]})
    made = model.sample(20, given=frame, method="sequential", particles=200)
    expected = ["2024-12-24", "2024-12-26", "2024-12-27", "2024-12-30", "2024-12-31"]
    assert [str(day)[:10] for day in made.time.values] == expected
    np.testing.assert_allclose(made.price.values[:, :2], [[0.5, 0.25]] * 20, atol=0.01)


def test_a_model_with_a_cycle_is_kept_and_read(model: Surrogate, tmp_path: Path) -> None:
    model.save(tmp_path / "m")
    one, two = (
        each.sample(5, seed=2, start="1985-05-04") for each in (model, sg.load(tmp_path / "m"))
    )
    np.testing.assert_allclose(one.x, two.x, atol=0.05)  # weights are kept in half precision
