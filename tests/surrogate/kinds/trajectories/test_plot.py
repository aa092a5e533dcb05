"""Pictures: the panels, lines and bands that should be there are there."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from constraints import parse
from surrogate.errors import ModelError
from surrogate.evaluation.weights import normalised_weights, weighted_quantiles
from surrogate.kinds.labels import label
from surrogate.kinds.trajectories.plot import fan_chart, plot, series


def trajectories(samples: int = 200) -> xr.Dataset:
    rng = np.random.default_rng(0)
    walk = rng.poisson(5, (samples, 12)).cumsum(axis=1)
    time = ("time", np.linspace(0, 2, 12), {"units": "day"})
    data = {
        "A": (("sample", "time"), walk),
        "B": (("sample", "time"), 2 * walk),
        "k": ("sample", walk[:, 0]),
    }
    return xr.Dataset(data, {"time": time})


def test_series_are_the_variables_over_sample_and_time() -> None:
    assert series(trajectories()) == ["A", "B"]


def test_a_panel_for_each_variable_with_median_bands_and_trajectories() -> None:
    data = trajectories()
    figure = fan_chart(data, trajectories=7)
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["A", "B"]
    for axis, name in zip(figure.axes, "AB", strict=True):
        assert len(axis.lines) == 7 + 1
        assert len(axis.collections) == 2
        np.testing.assert_allclose(axis.lines[-1].get_ydata(), data[name].median("sample"))
        assert axis.get_xlabel() == "time (day)"


def test_a_second_dataset_is_drawn_as_three_lines() -> None:
    figure = fan_chart(trajectories(), ["A"], against=trajectories(50), trajectories=0)
    assert len(figure.axes[0].lines) == 1 + 3


def test_a_single_time_is_drawn_with_marks() -> None:
    figure = fan_chart(trajectories().isel(time=[3]))
    assert all(line.get_marker() == "_" for line in figure.axes[0].lines)


def test_what_cannot_be_drawn_is_left_out_and_gaps_are_quiet() -> None:
    data = trajectories()
    data["word"] = data.A.astype(str)
    data["empty"] = data.A * np.nan
    assert series(data) == ["A", "B", "empty"]
    assert len(fan_chart(data).axes) == 3


def test_a_single_trajectory_is_enough() -> None:
    assert len(fan_chart(trajectories(1)).axes) == 2


# --- weights --------------------------------------------------------------------------------------


def test_weighted_quantiles_are_those_of_repeated_samples() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(30, 4))
    values[3, 2] = np.nan
    counts = rng.integers(0, 4, 30)
    repeated = np.repeat(values, counts, axis=0)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95, 1.0]
    found = weighted_quantiles(values, levels, counts / counts.sum())
    for column in range(4):
        known = repeated[:, column][~np.isnan(repeated[:, column])]
        expected = np.quantile(known, levels, method="inverted_cdf")
        np.testing.assert_array_equal(found[:, column], expected)


def test_unknown_values_have_no_weighted_quantile() -> None:
    found = weighted_quantiles(np.full((3, 2), np.nan), [0.5], np.array([0.5, 0.25, 0.25]))
    assert np.isnan(found).all()


def test_samples_without_weight_are_not_drawn() -> None:
    data = trajectories(200)
    half = data.isel(sample=slice(0, None, 2))
    weighted = data.assign(log_weight=("sample", np.where(np.arange(200) % 2, -np.inf, 1.5)))
    shown = fan_chart(weighted, ["A"], trajectories=9).axes[0]
    values = half.A.values
    assert all((values == line.get_ydata()).all(1).any() for line in shown.lines[:9])
    expected = np.quantile(values, 0.5, axis=0, method="inverted_cdf")
    np.testing.assert_array_equal(np.asarray(shown.lines[-1].get_ydata()), expected)


def test_equal_weights_are_none() -> None:
    data = trajectories(5)
    assert normalised_weights(data) is None
    assert normalised_weights(data.assign(log_weight=("sample", np.full(5, -3.0)))) is None


@pytest.mark.parametrize(
    "logs", [np.full(5, -np.inf), np.array([0, np.nan, 0, 0, 0.0]), list("abcde")]
)
def test_weights_that_are_none_are_refused(logs: object) -> None:
    with pytest.raises(ModelError, match="log_weight must be a number"):
        normalised_weights(trajectories(5).assign(log_weight=("sample", np.asarray(logs))))


# --- what was required ----------------------------------------------------------------------------


def test_required_values_and_bounds_are_drawn() -> None:
    plain = trajectories()
    rules = [parse(text) for text in ("A(3) = 20", "forall t in [4, 8]: A(t) <= 50")]
    rules += [parse("B(2) = 30 or B(2) = 40"), parse("exists t: B(t) >= 100")]
    data = label(plain, rules)
    without = fan_chart(data, trajectories=0, marks=())
    drawn = fan_chart(data, trajectories=0)
    a, b = drawn.axes
    times = data.time.values
    dot = a.lines[-1]
    assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (times[3], 20)
    bound = a.lines[-2]
    np.testing.assert_allclose(bound.get_xdata(), times[[4, 8]])
    assert set(bound.get_ydata()) == {50}
    assert len(a.collections) == len(without.axes[0].collections) + 1  # hatched
    assert [line.get_markerfacecolor() for line in b.lines[-2:]] == ["white", "white"]
    assert b.lines[-3].get_linestyle() == ":"
    assert len(b.collections) == len(without.axes[1].collections)
    assert a.get_ylim()[1] > 50


def test_dates_and_odd_names_are_drawn() -> None:
    data = trajectories(20).rename(A="$\\frac{$ <b>", B="B")
    dates = np.datetime64("2024-03-01") + np.arange(12)
    data = label(data.assign_coords(time=dates), [parse("B(2) >= 3"), parse("B(4) = 5 +- 2")])
    figure = fan_chart(data)
    figure.draw_without_rendering()
    assert figure.axes[0].get_title(loc="left") == "$\\frac{$ <b>"


def test_dimensions_in_another_order() -> None:
    data = trajectories()
    turned = fan_chart(data.transpose("time", "sample"), ["A"]).axes[0].lines[-1]
    np.testing.assert_allclose(turned.get_ydata(), data.A.median("sample"))


def dated(samples: int = 8) -> xr.Dataset:
    days = np.arange("1948-01-10", "1948-03-06", 7, dtype="datetime64[D]").astype("datetime64[us]")
    values = np.random.default_rng(0).normal(size=(samples, len(days)))
    return xr.Dataset({"x": (("sample", "time"), values)}, {"time": days})


def test_dates_are_ticks_and_data_without_dates_lie_on_the_same_steps() -> None:
    other = dated().assign_coords(time=np.arange(8.0))
    axis = plot(dated(), against=other)
    axis.figure.canvas.draw()
    labels = [each.get_text() for each in axis.get_xticklabels()]
    assert {"Feb", "Mar"} & set(labels)
    assert axis.get_xlabel() == ""
    low, high = axis.get_xlim()
    assert high - low < 100  # days: nothing was drawn at 1970


def test_observed_dates_are_drawn_over_dates_and_refused_over_steps() -> None:
    points = pd.DataFrame({"date": ["1948-01-17", "1948-02-14"], "x": [0.0, 1.0]})
    axis = plot(dated(), observed=points)
    assert [str(day)[:10] for day in axis.lines[-1].get_xdata()] == ["1948-01-17", "1948-02-14"]
    with pytest.raises(
        ModelError, match="date of the observed data holds dates, and the axis numb"
    ):
        plot(dated().assign_coords(time=np.arange(8.0)), observed=points)
    with pytest.raises(
        ModelError, match="time of the observed data holds numbers, and the axis dat"
    ):
        plot(dated(), observed=pd.DataFrame({"time": [1, 2], "x": [0.0, 1.0]}))


def test_points_after_the_last_one_conditioned_on_are_hollow() -> None:
    record = {"time": "date", "columns": {"cases": "x"}, "last_step": 3}
    data = dated().assign_attrs(surrogate_observed=json.dumps(record))
    days = [str(day)[:10] for day in data.time.values]
    points = pd.DataFrame({"date": days, "cases": np.arange(len(days))})
    given, later = plot(data, observed=points).lines[-2:]
    assert (len(given.get_xdata()), len(later.get_xdata())) == (4, len(days) - 4)
    assert later.get_markerfacecolor() == "none"
    assert given.get_markerfacecolor() != "none"
    with pytest.raises(ModelError, match="say what a column observes"):
        plot(dated(), observed=points)
    mapped = plot(dated(), observed=points, observed_columns={"cases": "x"}).lines[-1]
    assert len(mapped.get_xdata()) == len(days)
