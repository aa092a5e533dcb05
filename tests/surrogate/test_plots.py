"""Pictures: the panels, lines and bands that should be there are there."""

from __future__ import annotations

import numpy as np
import xarray as xr

from surrogate.plots import fan_chart, series


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
