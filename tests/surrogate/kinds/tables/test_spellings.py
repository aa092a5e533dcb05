"""Dates and numbers as people write them, names that cannot be used, and what is made of them."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from surrogate.errors import ModelError
from surrogate.kinds.tables import spellings
from surrogate.kinds.tables.schema import infer_types, with_parsed_text
from tests.surrogate.kinds.tables.test_schema import N, cycle, one, table

FIRST = "2012-03-04"


@pytest.mark.parametrize(
    ("words", "first", "note"),
    [
        (("2012/03/04", "2012/12/31"), FIRST, ""),
        (("2012.03.04", "2012.12.31"), FIRST, ""),
        (("2012-3-4", "2012-12-31"), FIRST, ""),
        (("04.03.2012", "31.12.2012"), FIRST, ""),
        (("4/3/2012", "31/12/2012"), FIRST, ""),
        (("3/4/2012", "12/31/2012"), FIRST, ""),
        (("3/4/2012", "5/6/2012"), FIRST, "taken with the month first, 3/4/2012 as 2012-03-04"),
        (("4.3.2012", "5.6.2012"), FIRST, "taken with the day first, 4.3.2012 as 2012-03-04"),
        (("3/4/12", "12/31/99"), FIRST, "years of two digits lie from 1930 to 2029"),
        (("4 Mar 2012", "31 Dec 2012"), FIRST, ""),
        (("04-Mar-2012", "31-Dec-2012"), FIRST, ""),
        (("Mar 4, 2012", "December 31, 2012"), FIRST, ""),
        (("Mar 4 2012", "Dec 31 2012"), FIRST, ""),
        (("2012/03/04 05:06", "2012/12/31 23:59"), "2012-03-04T05:06", ""),
        (("3/4/2012 5:06:07 PM", "12/31/2012 12:00:00 AM"), "2012-03-04T17:06:07", ""),
        (("3/4/2012", "12/31/2012", "?", None), FIRST, ""),
    ],
)
def test_formats_of_dates_are_inferred(words: tuple[str, ...], first: str, note: str) -> None:
    column, data = one(cycle(*words))
    assert (column.kind, column.note, column.missing) == ("date", note, N // 2 * (len(words) == 4))
    assert data.values[0] == np.datetime64(first, "ns")
    if len(words) == 2 and not note:
        assert str(data.values[1])[:7] == "2012-12"


@given(st.dates(date(1930, 1, 1), date(2029, 12, 31)))
def test_a_date_in_any_format_is_parsed(day: date) -> None:
    known = ("31/12/2000", "12/31/2000", "31.12.2000", "2000/12/31", "31 Dec 2000", "12/31/00")
    formats = ("%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y", "%m/%d/%y")
    for other, how in zip(known, formats, strict=True):
        spelled = spellings.dates([day.strftime(how), other])
        assert spelled is not None
        assert spelled.plain == [day.isoformat(), "2000-12-31"]


@pytest.mark.parametrize(
    "words",
    [("31/01/2020", "1.2.2020"), ("31/01/2020", "01/31/2020"), ("1.2.10", "1.2.11"), ("a", "b")],
)
def test_text_that_is_no_date_stays_text(words: tuple[str, ...]) -> None:
    column, _ = one(cycle(*words))
    assert column.kind == "category"
    assert ("several spellings" in column.note) == ("2020" in words[0])


def test_dates_out_of_range_are_missing_or_words() -> None:
    column, _ = one(cycle("2020-01-31", "2020-02-01", "9999-12-31"))
    assert (column.kind, column.missing) == ("date", 20)
    assert column.note == "9999-12-31 and the like are taken as missing, 20 times"
    assert one(cycle("1500-01-31", "1501-01-31"))[0].kind == "category"


def test_compact_dates_are_parsed_only_on_request() -> None:
    assert one(cycle(20120131, 20120201))[0].kind == "integer"
    for values in (cycle(20120131, 20120201), cycle("20120131", "20120201", None)):
        assert one(values, "date")[1].values[1] == np.datetime64("2012-02-01", "ns")
    with pytest.raises(ModelError, match="it holds numbers"):
        one(cycle(20120131, 20120231), "date")


@pytest.mark.parametrize(
    ("words", "kind", "values", "note"),
    [
        (("1,234", "5"), "integer", [1234, 5], "commas part thousands"),
        (("-1,234.50", "5"), "number", [-1234.5, 5], "commas part thousands"),
        (("$3,000", "-$20"), "integer", [3000, -20], "numbers in $, commas part thousands"),
        (("12%", "5.5 %"), "number", [12, 5.5], "numbers in %"),
        (("5 €", "1.234,50 €"), "number", [5, 1234.5], "numbers in €, commas are decimal points"),
        (("0,5", "1,25"), "number", [0.5, 1.25], "commas are decimal points"),
    ],
)
def test_formats_of_numbers_are_inferred(
    words: tuple[str, ...], kind: str, values: list[float], note: str
) -> None:
    for asked in (None, kind):
        column, data = one(cycle(*words), asked)
        assert (column.kind, column.note) == (kind, note)
        assert data.values[:2].tolist() == values
    column, data = one(cycle(*words, "n/a"))
    assert column.note == f"{note}; 'n/a' is taken as missing, 20 times"
    assert np.isnan(data.values[2])


@pytest.mark.parametrize("words", [("$5", "5 €"), ("1,2,3", "4"), ("12,34", "1,234.5"), ("%", "$")])
def test_text_that_is_no_number_stays_text(words: tuple[str, ...]) -> None:
    assert one(cycle(*words))[0].kind == "category"


def test_leading_zeros_make_categories() -> None:
    column, data = one(cycle("01234", "94110", None))
    assert (column.kind, column.note) == ("category", "words, since some begin with 0")
    assert data.values[:3].tolist() == ["01234", "94110", None]


def test_large_numbers_are_rounded() -> None:
    column, data = one(cycle(1, 2**60))
    assert (column.kind, column.note) == ("number", "numbers beyond 2^53, rounded to 15 digits")
    assert data.values[1] == 2.0**60


@pytest.mark.parametrize("name", ["id", "user_id", "PassengerId", "Customer ID", "UUID"])
def test_names_of_identifiers_are_recognised(name: str) -> None:
    values = np.random.default_rng(0).permutation(N) * 7 + 100
    assert "an identifier" in infer_types(table(**{name: values})).columns[1].note
    assert name in infer_types(table(**{name: values % 9})).data
    assert "paid" in infer_types(table(paid=values)).data


def test_unusable_names_are_replaced() -> None:
    frame = table(**{"sample": cycle(1, 2), 'a"b': cycle(1, 2), "a'b": REAL_TOO, "c\nd": REAL_TOO})
    found = infer_types(frame, {'a"b': "category"})
    assert list(found.data) == ["real", "sample_", "a'b_", "a'b", "c d"]
    assert found.data["a'b_"].attrs["kind"] == "category"
    said = "called 'sample' in the table, a name that cannot be used here"
    assert f"sample_: {said}" in found.lines()
    blank = infer_types(table(**{" ": REAL_TOO}))
    assert blank.columns[1].note == "it has no name in the header"


REAL_TOO = np.random.default_rng(1).normal(size=N)


def test_sample_and_instance_numbers_are_left_out() -> None:
    numbers = {"sample": np.arange(N) // 2, "instance": np.arange(N) % 2 + 1}
    assert list(infer_types(table(**numbers)).data) == ["real"]


def test_text_columns_are_parsed_for_formulas() -> None:
    made = with_parsed_text(table(day=cycle("3/4/2012", "12/31/2012"), price=cycle("$3,000", "$5")))
    assert made["day"].iloc[0] == pd.Timestamp(FIRST)
    assert made["price"].tolist()[:2] == [3000, 5]


def test_the_word_for_missing_values_is_missing() -> None:
    assert one(cycle("(missing)", "a"))[1].values[:2].tolist() == [None, "a"]
