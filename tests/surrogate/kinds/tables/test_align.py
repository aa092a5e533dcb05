"""Tables side by side: what their columns hold, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from constraints import parse
from surrogate.errors import ModelError
from surrogate.kinds.labels import label
from surrogate.kinds.tables.align import Column, Rows, shared_columns
from tests.surrogate.rows import wines


def both(x: pd.DataFrame | xr.Dataset, y: pd.DataFrame | xr.Dataset) -> list[Column]:
    return shared_columns(Rows(x, "the samples"), Rows(y, "the reference"))[0]


def one(x: list[object], y: list[object]) -> Column:
    return both(pd.DataFrame({"a": x}), pd.DataFrame({"a": y}))[0]


def test_types_of_shared_columns_are_inferred() -> None:
    found = {each.name: each for each in both(wines(seed=1), wines(seed=2))}
    assert [each.kind for each in found.values()] == [
        *("number", "number", "number", "word", "word", "number", "word")
    ]
    assert found["quality"].integral
    assert not found["alcohol"].integral
    assert found["colour"].words == ("red", "white")
    assert found["old"].words == ("False", "True")
    assert found["density"].has_missing
    assert not found["alcohol"].has_missing
    y = wines(seed=2)
    np.testing.assert_array_equal(found["density"].right, y.density)
    np.testing.assert_array_equal(found["colour"].right, y.colour == "white")


def test_words_have_the_same_codes_in_both_tables() -> None:
    found = one(["b", None, " c ", ""], ["a", "c", np.nan])
    assert found.words == ("a", "b", "c")
    np.testing.assert_array_equal(found.left, [1, np.nan, 2, np.nan])
    np.testing.assert_array_equal(found.right, [0, 2, np.nan])
    np.testing.assert_array_equal(found.word_counts(), [1, 1, 2])


@pytest.mark.parametrize("text", [(False, False), (True, False), (False, True), (True, True)])
def test_dates_in_text_become_seconds(text: tuple[bool, bool]) -> None:
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-03-05", None]))
    sides = [pd.DataFrame({"day": days.dt.strftime("%Y-%m-%d") if each else days}) for each in text]
    (found,) = both(*sides)
    assert found.kind == "date"
    np.testing.assert_allclose(found.left, [1577836800, 1583366400, np.nan])
    np.testing.assert_allclose(found.right, found.left)


def test_text_that_is_partly_dates_stays_text() -> None:
    assert one(["2020-01-01", "2020-01-02"], ["2020-01-01", "soon"]).kind == "word"


def test_numbers_spelled_as_text_in_one_table_are_parsed() -> None:
    np.testing.assert_array_equal(
        one(["5", "?", "NA", "7.5"], [5, 7]).left, [5, np.nan, np.nan, 7.5]
    )
    np.testing.assert_array_equal(one([True, False, None], [1, 0]).left, [1, 0, np.nan])
    assert one([None, None], ["a", "b"]).kind == "word"
    assert one([np.nan, np.nan], [1, 2]).kind == "number"
    assert np.isnan(one([np.nan, np.nan], [None, None]).left).all()


def test_labels_weights_and_row_numbers_are_not_columns() -> None:
    x = label(wines(40), [parse("alcohol >= 10"), parse("quality >= 6")])
    x.insert(0, "sample", np.repeat(np.arange(20), 2))
    x.insert(1, "instance", np.tile([1, 2], 20))
    x.insert(0, "Unnamed: 0", np.arange(40))
    x["log_weight"] = np.where(np.arange(40) < 10, -np.inf, 0.0)
    found = Rows(x, "the samples")
    assert list(found.frame.columns) == list(wines(2).columns)
    assert found.count == 40
    assert len(found.weights) == len(found.frame) == 30
    assert found.satisfied == pytest.approx(x.satisfied[10:].mean())
    words = wines(5).assign(sample=list("abcde"))
    assert "sample" in Rows(words, "the samples").frame.columns


def test_datasets_with_and_without_instances_are_read_as_tables() -> None:
    frame = wines(30)
    data = xr.Dataset({name: ("sample", frame[name].to_numpy()) for name in frame})
    data = label(data.drop_vars("density"), [parse("alcohol >= 10")])
    for mine, theirs in zip(both(data, frame), both(frame, frame), strict=False):
        if mine.name == theirs.name:
            np.testing.assert_array_equal(mine.left, theirs.left)
    pairs = xr.Dataset({"x": (("sample", "instance"), [[1, 2], [3, 4], [5, 6]])})
    np.testing.assert_array_equal(Rows(pairs, "them").frame["x"], [1, 2, 3, 4, 5, 6])


def test_columns_missing_in_one_table_are_listed() -> None:
    x, y = Rows(wines(5).assign(new=1), "a"), Rows(wines(5).drop(columns="sugar"), "b")
    columns, lone = shared_columns(x, y)
    assert [each.name for each in columns] == [n for n in wines(2) if n != "sugar"]
    assert set(lone) == {"sugar", "new"}


@pytest.mark.parametrize("scale", [1e300, 1.7e308, 5e-324, 1e-310])
def test_numbers_whose_squares_overflow_are_rescaled(scale: float) -> None:
    found = one([-scale, 0.0, scale], [scale, scale, 0.0]).rescaled()
    assert 0.1 < np.abs(found.left).max() <= 1
    assert np.isfinite(found.left**2).all()
    np.testing.assert_array_equal(np.sign(found.left), [-1, 0, 1])
    assert one([1, 2], [3, 4]).exponent == 0


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        ({"a": [1, 2]}, {"b": [1, 2]}, "no column is in common (the samples: a; the reference: b)"),
        ({"a": [1, 2]}, {"a": ["low", "high"]}, "a holds numbers in the samples, words in the ref"),
        ({"a": [1, np.inf]}, {"a": [1, 2]}, "the samples: a is infinite in 1 of 2 rows"),
        ({"a": [1]}, {"a": [1, 2]}, "the samples: at least 2 are needed, not 1"),
        ({"log_weight": [1, 2]}, {"a": [1, 2]}, "the samples: there are no columns"),
        ({"a": [1, 2], "log_weight": [0, np.nan]}, {"a": [1, 2]}, "log_weight must be a number"),
        ({"a": [1, 2], "log_weight": ["x", "y"]}, {"a": [1, 2]}, "log_weight must be a number"),
        ({"a": [1j, 2j]}, {"a": [1, 2]}, "complex numbers"),
        ({"a": [[1], [2]]}, {"a": [1, 2]}, "a holds a list in row 0"),
        (
            {"a": pd.to_datetime(["2020-01-01", "2020-01-02"])},
            {"a": [1, 2]},
            "a holds dates in the samples, numbers in the reference",
        ),
    ],
)
def test_tables_that_cannot_be_aligned_are_refused(
    x: dict[str, object], y: dict[str, object], says: str
) -> None:
    with pytest.raises(ModelError) as told:
        both(pd.DataFrame(x), pd.DataFrame(y))
    assert says in str(told.value)
    assert "types=" not in str(told.value)  # which is no word of a comparison


def test_duplicate_column_names_are_refused() -> None:
    twice = pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"])
    with pytest.raises(ModelError, match="two columns are named 'a'"):
        Rows(twice, "the samples")
