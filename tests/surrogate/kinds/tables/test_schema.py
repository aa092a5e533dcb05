"""Tables of rows: the kinds of their columns, what is left out, what is refused, and back."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.kinds.tables.schema import ColumnSummary, TypedTable, infer_types, to_frame

SHARED = Path(__file__).parents[5] / "shared" / "data"
N = 60
RANDOM = np.random.default_rng(0)
REAL = RANDOM.normal(size=N)


def table(**columns: Any) -> pd.DataFrame:
    """A table with a column of real numbers, `real`, and others."""
    return pd.DataFrame({"real": REAL, **columns})


def one(
    values: Any, kind: str | None = None, missing: str = "model"
) -> tuple[ColumnSummary, xr.DataArray]:
    """What is understood of a column `x`."""
    found = infer_types(table(x=values), {} if kind is None else {"x": kind})
    assert found.columns[1].name == "x"
    return found.columns[1], found.data["x"]


def cycle(*values: object) -> list[object]:
    return [values[i % len(values)] for i in range(N)]


def refused(values: Any, kind: str | None = None) -> str:
    with pytest.raises(ModelError) as problem:
        infer_types(table(x=values), {} if kind is None else {"x": kind})
    return str(problem.value)


# --- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "dtype"),
    [
        (REAL, "number", "float64"),
        (cycle(1, 2), "integer", "int64"),
        (cycle(5000.0, 4996.0), "integer", "int64"),
        (cycle(5000.0, np.nan), "integer", "float64"),
        (pd.array(cycle(3, None), dtype="Int64"), "integer", "float64"),
        (cycle(0.5, None), "number", "float64"),
        (cycle(1e300, 2e300), "number", "float64"),
        (cycle(10**30, 1), "number", "float64"),
        (np.array(cycle(1, 2), np.uint8), "integer", "int64"),
        (cycle("red", "white"), "category", "object"),
        (pd.Categorical(cycle("a", "b", None)), "category", "object"),
        (pd.Categorical(cycle(1, 2)), "category", "object"),
        (cycle("true", "false"), "category", "object"),
        (cycle("yes", "no"), "category", "object"),
        (cycle(b"a", b"b"), "category", "object"),
        (cycle("00501", "10001"), "category", "object"),
        (cycle("A1", "12", "13"), "category", "object"),
        (cycle("2020-01", "2020-02"), "category", "object"),
        (cycle(True, False), "boolean", "bool"),
        (cycle(True, False, None), "boolean", "object"),
        (pd.array(cycle(True, None), dtype="boolean"), "boolean", "object"),
        (cycle("1.5", "2"), "number", "float64"),
        (cycle("3", " 2 "), "integer", "int64"),
        (cycle("2020-01-31", "2021-02-01"), "date", "datetime64[ns]"),
        (pd.to_datetime(cycle("2020-01-31", None)), "date", "datetime64[ns]"),
        (cycle(date(2020, 1, 31), date(2021, 1, 1)), "date", "datetime64[ns]"),
    ],
)
def test_types_are_inferred(values: Any, kind: str, dtype: str) -> None:
    column, data = one(values)
    assert (column.kind, data.dtype, data.attrs["kind"]) == (kind, dtype, kind)
    assert data.dims == ("sample",)
    assert column.missing == int(pd.isna(pd.Series(values)).sum())


def test_missing_values_of_every_kind() -> None:
    assert one(cycle("a", None, " ", np.nan, "?"))[1].values[:5].tolist() == ["a", *3 * [None], "?"]
    assert one(cycle(True, None, False))[1].values[:3].tolist() == [True, None, False]
    assert np.isnan(one(cycle(1.5, np.nan))[1].values[1])
    dates = one(cycle("2020-01-31", "", "2020-02-01T12:30"))[1]
    assert np.isnat(dates.values[1])
    assert dates.attrs["format"] == "datetime"
    assert one(cycle("2020-01-31", "2020-02-01"))[1].attrs["format"] == "date"


def test_markers_among_numbers_are_missing_and_reported() -> None:
    column, data = one(cycle("1", "?", "3", "n/a"))
    assert column == ColumnSummary(
        "x", "integer", 30, 2, "'?' or 'n/a' is taken as missing, 30 times"
    )
    assert np.isnan(data.values[1])
    column, _ = one(cycle("2020-01-31", "-"))
    assert (column.kind, column.missing) == ("date", 30)


def test_words_are_stripped() -> None:
    column, data = one(cycle(" red", "red ", "white"))
    assert column.distinct == 2
    assert data.values[:3].tolist() == ["red", "red", "white"]


def test_times_with_zones_are_converted_to_utc() -> None:
    column, data = one(cycle("2020-01-31T12:00+02:00", "2020-01-31T12:00Z"))
    assert column.note == "times in UTC"
    assert str(data.values[0])[:16] == "2020-01-31T10:00"
    zoned = pd.date_range("2020-01-01", periods=N, tz="Europe/Berlin")
    assert str(one(zoned)[1].values[0])[:16] == "2019-12-31T23:00"
    assert one(cycle("2020-01-31", "2021-01-31"))[0].note == ""


# --- what is left out -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "note"),
    [
        ([f"word {i}" for i in range(N)], "an identifier: 60 different words in 60 rows"),
        (np.arange(N), "a row number: 0, 1, 2, ..."),
        (np.arange(1, N + 1), "a row number: 1, 2, 3, ..."),
        ([None] * N, "all values are missing"),
        ([""] * N, "all values are missing"),
        (cycle([1, 2]), "holds a list in row 0"),
        (cycle("a", {"b": 1}), "holds a dict in row 1"),
        (pd.to_timedelta(cycle("1s")), "holds durations"),
        (np.array(cycle(1j)), "holds complex numbers"),
        (pd.period_range("2020-01", periods=N, freq="M"), "holds values of the type period[M]"),
        (2**60 + 999 * np.arange(N), "an identifier: 60 different numbers of 16 digits or more"),
        (
            [f"a text of several words on the number {i % 40} of them" for i in range(N)],
            "text: 40 different ones in 60 rows",
        ),
    ],
)
def test_columns_that_cannot_be_learned_are_left_out(values: Any, note: str) -> None:
    found = infer_types(table(x=values))
    assert list(found.data) == ["real"]
    assert (found.columns[1].kind, found.columns[1].note) == ("ignore", note)
    assert found.lines() == ["numbers: real", f"left out: x ({note})"]


def test_columns_that_resemble_identifiers_are_kept() -> None:
    assert one(np.arange(N)[::-1])[0].kind == "integer"
    assert one(np.arange(2, N + 2))[0].kind == "integer"
    assert one(np.arange(N), "number")[0].kind == "number"
    assert one([f"word {i}" for i in range(N)], "category")[0].distinct == N
    assert one([7] * N)[0].distinct == 1
    assert list(infer_types(table(x=cycle(1, 2)), {"x": "ignore"}).data) == ["real"]


def test_a_saved_index_is_left_out() -> None:
    shuffled = RANDOM.permutation(N) + 5
    found = infer_types(pd.DataFrame({"Unnamed: 0": shuffled, "real": REAL}))
    assert found.columns[0].note.startswith("a row number")
    frame = pd.DataFrame({"real": REAL, "Unnamed: 1": REAL})
    assert infer_types(frame).columns[1].note == "it has no name in the header"
    assert "Unnamed: 1" in infer_types(frame, {"Unnamed: 1": "number"}).data


def test_labels_are_not_learned() -> None:
    found = infer_types(table(satisfied=cycle(True, False), robustness=REAL))
    assert list(found.data) == ["real"]
    assert "left out: satisfied (a verdict of surrogate)" in found.lines()[1]
    assert "satisfied_" in infer_types(table(satisfied=cycle(True, False))).data


def test_too_many_categories_are_left_out_or_refused() -> None:
    words = [f"w{i % 2500}" for i in range(5000)]
    frame = pd.DataFrame({"x": words, "real": np.arange(5000) % 7})
    assert "2,500 different words" in infer_types(frame).columns[0].note
    with pytest.raises(ModelError, match="at most 2,000"):
        infer_types(frame, {"x": "category"})


# --- overruled ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "first"),
    [
        (cycle(6, 5), "category", "6"),
        (cycle(6.0, 5.0), "category", "6"),
        (cycle(0.5, 5.0), "category", "0.5"),
        (cycle(True, False), "category", "True"),
        (pd.to_datetime(cycle("2020-01-31")), "category", "2020-01-31"),
        (cycle("12", "x"), "category", "12"),
        (cycle(6, 5), "number", 6.0),
        (cycle(True, False), "number", 1.0),
        (cycle("6", "?"), "integer", 6.0),
        (cycle("yes", "no"), "boolean", True),
        (cycle(1, 0), "boolean", True),
        (cycle(1, 0, None), "boolean", True),
        (cycle("2020-01", "2020-02"), "date", np.datetime64("2020-01-01", "ns")),
    ],
)
def test_given_types_overrule_inferred_ones(values: Any, kind: str, first: object) -> None:
    column, data = one(values, kind)
    assert column.kind == kind
    assert data.values[0] == first


@pytest.mark.parametrize(
    ("values", "kind", "says"),
    [
        (cycle("1", "red"), "number", "x cannot be a number: it is 'red' in row 1; take all as"),
        (cycle("1", "red"), "integer", "it is 'red' in row 1"),
        (cycle(1, 1.5), "integer", "cannot be whole numbers: it is '1.5' in row 1"),
        (cycle("yes", "red"), "boolean", "cannot be true or false: it is 'red' in row 1"),
        (cycle(1, 2), "boolean", "it is '2' in row 1"),
        (cycle(1, 2), "date", "cannot be a date: it holds numbers"),
        (cycle("2020-01-31", "red"), "date", "it is 'red' in row 1; write dates as 2020-01-31"),
        (pd.to_datetime(cycle("2020-01-31")), "number", "it holds dates"),
        (cycle(1, 2), "numbr", "(have: number, integer, category, boolean, date, ignore)"),
    ],
)
def test_impossible_types_are_refused(values: Any, kind: str, says: str) -> None:
    assert says in refused(values, kind)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (["oops", *range(59)], "numbers but for 1 of 60 values: 'oops' in row 0; repair them"),
        (["2020-01-31"] * 59 + ["soon"], "x holds dates but for 1 of 60 values: 'soon' in row 59"),
        (
            [*cycle("2020-01-31")[1:], "2020-02-31"],
            "cannot be a date: it is '2020-02-31' in row 59",
        ),
        (cycle(1.0, np.inf), "x is infinite in 30 of 60 rows, first in row 1"),
        (cycle("1", "inf"), "x is infinite in 30 of 60 rows"),
        (["31/01/2020"] * 59 + ["soon"], "x holds dates but for 1 of 60 values: 'soon' in row 59"),
        (["31/01/2020"] * 59 + ["31/02/2020"], "but for 1 of 60 values: '31/02/2020' in row 59"),
        (["$1,000"] * 59 + ["soon"], "x holds numbers but for 1 of 60 values: 'soon' in row 59"),
    ],
)
def test_columns_with_odd_or_infinite_values_are_refused(values: Any, says: str) -> None:
    assert says in refused(values)


def test_unusable_tables_are_refused() -> None:
    def error(frame: pd.DataFrame, **settings: Any) -> str:
        with pytest.raises(ModelError) as problem:
            infer_types(frame, **settings)
        return str(problem.value)

    good = table(colour=cycle("red", "white"))
    assert "empty" in error(pd.DataFrame())
    assert "empty" in error(good[:0])
    assert "49 rows are too few to learn from; give 50 or more" in error(good[:49])
    assert "no column is left" in error(pd.DataFrame({"n": np.arange(N)}))
    assert "did you mean 'colour'?" in error(good, types={"color": "category"})
    assert "(have: model, refuse, drop)" in error(good, missing="keep")
    assert "two columns named 'real'" in error(good.rename(columns={"colour": " real"}))
    several = pd.DataFrame(np.ones((N, 2)), columns=pd.MultiIndex.from_tuples([("a", 1), ("a", 2)]))
    assert "several levels" in error(several)


def test_missing_values_are_refused_or_dropped() -> None:
    frame = table(a=cycle(1, 2, 3, 4, 5, 6, None), b=cycle(True, *[False] * 6), c=[None] * N)
    with pytest.raises(ModelError, match="missing: a 8; first a in row 6"):
        infer_types(frame, missing="refuse")
    found = infer_types(frame, missing="drop")
    assert found.dropped == 8
    assert dict(found.data.sizes) == {"sample": 52}
    assert found.data.a.dtype == np.int64
    assert "missing values: a 8; the 8 of 60 rows that have some are dropped" in found.lines()
    with pytest.raises(ModelError, match="30 rows of 60 without missing values are too few"):
        infer_types(table(x=cycle(1, None)), missing="drop")


def test_the_summary_lists_columns_by_type() -> None:
    frame = table(
        n=cycle(1, 2, None), colour=cycle("red", "white"), ok=cycle(True, False),
        day=cycle("2020-01-31", "2020-02-01"), name=[f"w{i}" for i in range(N)],
    )  # fmt: skip
    assert infer_types(frame).lines() == [
        "numbers: real",
        "whole numbers: n",
        "categories: colour (2)",
        "true or false: ok",
        "dates: day",
        "left out: name (an identifier: 60 different words in 60 rows)",
        "missing values, which are modelled: n 20",
    ]
    wide = pd.DataFrame(RANDOM.normal(size=(N, 150)), columns=[f"x{i}" for i in range(150)])
    (line,) = infer_types(wide).lines()
    assert line.endswith("x11 and 138 more")


@pytest.mark.skipif(not SHARED.exists(), reason="the data are not part of the project")
def test_types_of_public_tables() -> None:
    wine = infer_types(pd.read_csv(SHARED / "winequality-white.csv", sep=";"))
    assert {each.kind for each in wine.columns[:-1]} <= {"number", "integer"}
    assert wine.columns[-1] == ColumnSummary("quality", "integer", 0, 7)
    adult = infer_types(pd.read_csv(SHARED / "adult.csv.gz"), {"age": "category"})
    assert [each.name for each in adult.columns if each.missing or each.kind == "ignore"] == []
    assert "?" in set(adult.data["workclass"].values)
    assert "39" in set(adult.data["age"].values)


# --- and back -------------------------------------------------------------------------------------


def both(found: TypedTable) -> tuple[pd.DataFrame, TypedTable]:
    frame = to_frame(found.data)
    return frame, infer_types(frame, {each.name: each.kind for each in found.columns})


def test_a_dataframe_is_restored() -> None:
    frame = table(
        n=cycle(1, 2, None), colour=cycle("red", None), ok=cycle(True, False, None),
        sure=cycle(True, False), day=cycle("2020-01-31", None), count=cycle(3, 4),
    )  # fmt: skip
    found = infer_types(frame)
    made, again = both(found)
    assert list(made) == list(frame)
    kinds = {name: str(kind) for name, kind in made.dtypes.items()}
    assert kinds == {
        "real": "float64", "n": "Int64", "colour": "object", "ok": "boolean", "sure": "bool",
        "day": "datetime64[ns]", "count": "int64",
    }  # fmt: skip
    assert made["colour"].tolist()[:2] == ["red", None]
    assert again.data.identical(found.data)


@given(st.lists(st.sampled_from(["a", "b", "", " a", "?", "x y"]), min_size=N, max_size=N))
def test_words_are_restored(words: list[str]) -> None:
    found = infer_types(table(x=words), {"x": "category"})
    if "x" in found.data:
        expected = [word.strip() or None for word in words]
        assert found.data.x.values.tolist() == expected == to_frame(found.data)["x"].tolist()


def labelled(**variables: Any) -> xr.Dataset:
    """Two samples with two rules."""
    each = np.array([[True, True], [True, False]])
    labels = {
        "satisfied": ("sample", each.all(1)),
        "robustness": ("sample", np.array([1.0, -1.0])),
        "rule_satisfied": (("sample", "rule"), each),
        "rule_robustness": (("sample", "rule"), 2.0 * each),
        "log_weight": ("sample", np.zeros(2)),
        "origin": ("sample", np.arange(2)),
    }
    return xr.Dataset({**variables, **labels}, {"rule": ["a >= 1", "a <= 2"]}, {"seed": 3})


def test_labels_are_the_last_columns() -> None:
    data = labelled(a=("sample", [1, 2], {"kind": "integer"}))
    frame = to_frame(data)
    labels = ["satisfied", "robustness", "log_weight", "satisfied: a >= 1", "satisfied: a <= 2"]
    assert list(frame) == ["a", *labels]
    assert frame["satisfied: a <= 2"].tolist() == [True, False]
    assert frame.attrs == {"seed": 3}
    assert list(to_frame(data.isel(rule=[0]))) == ["a", *labels[:3]]


def test_each_instance_has_a_row() -> None:
    a = (("sample", "instance"), [[1, 2, 3], [4, 5, 6]], {"kind": "integer"})
    frame = to_frame(labelled(a=a))
    assert list(frame)[:4] == ["sample", "instance", "a", "satisfied"]
    assert frame["sample"].tolist() == [0, 0, 0, 1, 1, 1]
    assert frame["instance"].tolist() == [1, 2, 3, 1, 2, 3]
    assert frame["a"].tolist() == [1, 2, 3, 4, 5, 6]
    assert frame["satisfied"].tolist() == [True] * 3 + [False] * 3


def test_data_with_the_name_of_a_label_are_kept() -> None:
    own = "satisfied: a >= 1"
    data = labelled(**{own: ("sample", [1.5, 2.5], {"kind": "number"})})
    frame = to_frame(data)
    assert frame[own].tolist() == [1.5, 2.5]
    assert frame[f"surrogate {own}"].tolist() == [True, True]
    plain = xr.Dataset({"origin": ("sample", ["US", "EU"], {"kind": "category"})})
    assert to_frame(plain)["origin"].tolist() == ["US", "EU"]
