"""Observed series as statements: where they stand on the grid, and what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from constraints import Layout, conjunction, parse
from surrogate.errors import ModelError, SurrogateError
from surrogate.io.reading import ObservationOptions, pairs_in
from surrogate.kinds.observed import Observed
from surrogate.kinds.trajectories.observations import observations

LAYOUT = Layout.series("S I", [0.25 * k for k in range(9)], integer=True)
FRAME = pd.DataFrame({"time": [0.5, 1.0, 1.5, 2.0], "B": [3, 8, np.nan, 76], "note": list("abcd")})


def seen(data: Any, layout: Layout = LAYOUT, **options: Any) -> Observed:
    return observations(data, layout, ObservationOptions(**options))


def only(found: Observed) -> Any:
    return conjunction(*found.statements.values())


def test_rows_become_observations_at_their_steps_and_missing_values_none() -> None:
    found = seen(FRAME, columns={"B": "I"}, noise=("poisson(0.9*I)",))
    wanted = "3 ~ poisson(0.9*I(2)) and 8 ~ poisson(0.9*I(4)) and 76 ~ poisson(0.9*I(8))"
    assert only(found) == parse(wanted)
    assert found.notes == ("observed: B ~ poisson(0.9 * I), 3 values at time 0.5 to time 2",)


def test_without_noise_values_are_exact_and_terms_may_be_sums() -> None:
    found = seen(FRAME, columns={"B": "S + I"}, upto="1")
    assert only(found) == parse("S(2) + I(2) = 3 and S(4) + I(4) = 8")


def test_columns_of_the_variables_need_no_mapping() -> None:
    frame = pd.DataFrame({"step": [1, 2], "I": [4, 5], "S": [9.0, 8.5], "other": [0, 0]})
    found = seen(frame)
    assert only(found) == parse("I(1) = 4 and I(2) = 5 and S(1) = 9 and S(2) = 8.5")
    assert found.notes[-1] == "not observed: other"


def test_with_a_distribution_only_what_it_names_is_observed() -> None:
    frame = pd.DataFrame({"step": [1, 2], "I": [4, 5], "S": [9.0, 8.5]})
    found = seen(frame, noise=("normal(S, 0.5)",))
    assert only(found) == parse("9 ~ normal(S(1), 0.5) and 8.5 ~ normal(S(2), 0.5)")
    assert found.notes[-1] == "not observed: I"
    named = seen(frame, noise=("I ~ poisson(S)",))
    assert only(named) == parse("4 ~ poisson(S(1)) and 5 ~ poisson(S(2))")
    both = seen(frame, columns={"S": "S"}, noise=("poisson(I)",))
    assert only(both) == parse(
        "S(1) = 9 and S(2) = 8.5 and 4 ~ poisson(I(1)) and 5 ~ poisson(I(2))"
    )
    mapped = seen(frame, columns={"I": "S"})
    assert only(mapped) == parse("S(1) = 4 and S(2) = 5")


@pytest.mark.parametrize(
    "data",
    [
        pd.Series([3, 8], index=pd.Index([0.5, 1.0], name="time"), name="I"),
        pd.DataFrame({"I": [3, 8]}, index=pd.Index([0.5, 1.0], name="time")),
        xr.Dataset({"I": ("time", [3, 8])}, {"time": [0.5, 1.0]}),
        xr.Dataset({"I": (("sample", "time"), [[3, 8]])}, {"time": [0.5, 1.0]}),
        pd.DataFrame({"t": [1.0, 0.5], "I": [8, 3]}),  # in any order
    ],
)
def test_all_forms_of_a_series_say_the_same(data: Any) -> None:
    assert only(seen(data)) == parse("I(2) = 3 and I(4) = 8")


def test_dates_are_placed_by_the_calendar_of_the_grid() -> None:
    days = tuple(f"1978-01-{day}" for day in range(21, 30))
    dated = Layout.series("S I", 9, integer=True, dates=days)
    frame = pd.DataFrame({"date": ["1978-01-22", "1978-01-24", "1978-01-25"], "I": [1, 26, 73]})
    assert only(seen(frame, dated, upto="1978-01-24")) == parse("I(1) = 1 and I(3) = 26")
    assert only(seen(frame, dated, upto="3")) == parse("I(1) = 1 and I(3) = 26")
    assert only(seen(frame, dated, every=2)) == parse("I(1) = 1 and I(4) = 73")
    with pytest.raises(ModelError, match="counts times from 0; say when they begin"):
        seen(frame)


def test_rows_before_the_window_are_counted_and_dates_may_lie_a_little_off_the_grid() -> None:
    weeks = tuple(str(day)[:10] for day in pd.date_range("1978-01-07", periods=5, freq="7D"))
    dated = Layout.series("S I", 5, integer=True, dates=weeks)
    dates = ["1977-12-24", "1977-12-31", "1978-01-07", "1978-01-13", "1978-01-21", "1978-02-11"]
    frame = pd.DataFrame({"date": dates, "I": [9, 9, 1, 2, 3, 4]})
    found = seen(frame, dated, upto="1978-01-28")
    assert only(found) == parse("I(0) = 1 and I(1) = 2 and I(2) = 3")
    assert found.notes[-1] == "not observed: 2 rows before 1978-01-07"
    with pytest.raises(ModelError, match=r"1978-02-11; leave them out .*, or begin later"):
        seen(frame, dated)
    with pytest.raises(ModelError, match=r"1978-01-10 \(nearest 1978-01-07\)"):
        seen(frame.assign(date=[*dates[:3], "1978-01-10", *dates[4:]]), dated, upto="1978-01-28")


def test_rows_chosen_of_a_longer_table_keep_their_column_of_times() -> None:
    frame = pd.DataFrame({"time": [0.5, 0.75, 1.0], "I": [3, 5, 8]}, index=[7, 8, 9])
    assert only(seen(frame.loc[[7, 9]])) == parse("I(2) = 3 and I(4) = 8")


def test_times_off_the_grid_are_refused_with_the_nearest_or_moved() -> None:
    frame = pd.DataFrame({"time": [0.5, 1.1], "I": [3, 8]})
    with pytest.raises(ModelError, match=r"1\.1 \(nearest time 1\)"):
        seen(frame)
    assert only(seen(frame, nearest=True)) == parse("I(2) = 3 and I(4) = 8")
    with pytest.raises(ModelError, match="1 of the observed times lie outside of the model's"):
        seen(pd.DataFrame({"time": [0.5, 9.0], "I": [3, 8]}), nearest=True)


@pytest.mark.parametrize(
    ("data", "options", "says"),
    [
        (FRAME, {}, "no column of the observed data has the name of a variable"),
        (FRAME, {"columns": {"D": "I"}}, "no column 'D'"),
        (FRAME, {"columns": {"note": "I"}}, "holds 'a' in row 0, which is no number"),
        (FRAME, {"noise": ("Q ~ poisson(I)",)}, "no column 'Q', which 'Q ~ poisson(I)' is about"),
        (FRAME, {"columns": {"B": "Q"}}, "the model has no 'Q'"),
        (FRAME, {"columns": {"B": "I +"}}, "I +"),
        (FRAME, {"columns": {"B": "I"}, "noise": ("poison(I)",)}, "did you mean 'poisson'"),
        (FRAME, {"columns": {"B": "I"}, "noise": ("poisson(rho*I)",)}, "the model has no 'rho'"),
        (FRAME, {"columns": {"B": "I"}, "noise": ("A ~ poisson(I)",)}, "no column 'A'"),
        (FRAME, {"columns": {"B": "I"}, "time": "when"}, "no column 'when'"),
        (FRAME, {"columns": {"B": "I"}, "upto": "monday"}, "'monday' is no time"),
        (FRAME, {"columns": {"B": "I"}, "upto": "0.1"}, "nothing was observed"),
        (FRAME.rename(columns={"time": "x"}), {"columns": {"B": "I"}}, "is a time by its name"),
        (3, {}, "not int"),
        (
            pd.DataFrame({"time": [0.5, 1.0], "I": [3, 8.5]}),
            {"noise": ("poisson(I)",)},
            "I at time 1.0: 8.5 cannot be observed under poisson",
        ),
        (
            pd.DataFrame({"time": [0.5], "I": [3]}),
            {"noise": ("poisson(I)", "poisson(2*I)")},
            "two distributions",
        ),
    ],
)
def test_what_cannot_be_understood_is_an_error(data: Any, options: Any, says: str) -> None:
    with pytest.raises(SurrogateError) as caught:
        seen(data, **options)
    assert says in str(caught.value)


def test_mappings_are_written_as_pairs() -> None:
    assert pairs_in(("B=I, C=R", "cases=0.5*I")) == {"B": "I", "C": "R", "cases": "0.5*I"}
    with pytest.raises(ModelError, match="maps no column"):
        pairs_in(("B",))
    with pytest.raises(ModelError, match="I is mapped twice, to I and to S"):
        pairs_in(("I=I", "I=S"))


def test_several_values_at_a_time_are_reported() -> None:
    frame = pd.DataFrame({"time": [0.5, 1.0, 1.0], "I": [3, 8, 9]})
    found = seen(frame, noise=("poisson(I)",))
    assert found.notes[-1] == "several values at time 1 count as independent observations"
    assert seen(frame[:1]).notes == ("observed: I = I, 1 value at time 0.5",)
