"""Pictures of columns: every value is in a bar, whatever the column holds."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surrogate.kinds.tables.align import Column, Rows, shared_columns
from surrogate.kinds.tables.plot import (
    MAX_INTEGER_BARS,
    MAX_WORD_BARS,
    MISSING_LABEL,
    Bars,
    bars,
    small_multiples,
)
from tests.surrogate.rows import wines

Number = st.floats(allow_nan=True, allow_infinity=False)  # the tiniest and the largest included


def made(*sides: list[object], weights: list[float] | None = None) -> Bars:
    tables = [Rows(pd.DataFrame({"a": side}), "them", least=1) for side in sides]
    ones = [each.weights for each in tables]
    return bars(shared_columns(*tables)[0][0], ones if weights is None else [np.array(weights)])


@settings(max_examples=60)
@given(st.lists(Number, min_size=1, max_size=30), st.lists(Number, min_size=1, max_size=30))
def test_every_number_is_in_a_bar(x: list[object], y: list[object]) -> None:
    found = made(x, y)
    for shares in found.shares:
        assert shares.sum() == pytest.approx(1)
        assert (shares >= 0).all()
    assert all(np.isfinite(place) for place in found.labels)
    assert not {"inf", "-inf", "nan"} & set(found.labels.values())


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=60))
def test_every_word_is_in_a_bar(words: list[object]) -> None:
    found = made(words)
    assert found.shares[0].sum() == pytest.approx(1)


def test_whole_numbers_have_a_bar_each() -> None:
    found = made([3, 3, 5, 4], [4, 4, 4, 9])
    np.testing.assert_allclose(found.shares[0], [0.5, 0.25, 0.25, 0, 0, 0, 0])
    np.testing.assert_allclose(found.shares[1], [0, 0.75, 0, 0, 0, 0, 0.25])
    assert found.labels == {1: "4", 3: "6", 5: "8"}
    assert len(made([0, MAX_INTEGER_BARS + 1]).shares[0]) < MAX_INTEGER_BARS


def test_missing_values_have_a_bar_of_their_own() -> None:
    found = made([1.0, None, 2.5, None])
    assert found.shares[0][-1] == 0.5
    assert found.labels[len(found.shares[0]) - 1] == MISSING_LABEL
    assert found.shares[0][-2] == 0  # a gap between
    assert made([None, None]).shares[0][-1] == 1
    assert made(["a", None, None, None]).shares[0][-1] == 0.75


def test_the_rarer_words_share_a_bar() -> None:
    words: list[object] = ["often"] * 50 + [f"word {k}" for k in range(1000)]
    found = made(words)
    assert len(found.shares[0]) == MAX_WORD_BARS + 1
    assert found.labels[0] == "often"
    assert found.labels[MAX_WORD_BARS] == f"{1001 - MAX_WORD_BARS:,} others"
    assert len(made(list("abcdefghi")).shares[0]) == 9  # others of one word would be silly


def test_outliers_are_in_the_last_bar() -> None:
    random = np.random.default_rng(0)
    values = np.append(random.normal(size=995), [1e6] * 5)
    found = made(values.tolist()).shares[0]
    assert found[-1] >= 0.005
    assert (found > 0).sum() > 10  # one far value does not make a wall of the others


@pytest.mark.parametrize("unit", ["D", "s"])
def test_ticks_of_dates_are_dates(unit: str) -> None:
    days = pd.Timestamp("2020-02-28") + pd.to_timedelta(np.arange(90), unit=unit)  # type: ignore[call-overload]
    found = made(list(days))
    assert all(text.startswith("2020-0") for text in found.labels.values())


@pytest.mark.parametrize(
    ("value", "told"), [(3.5, "3.5"), (7, "7"), (5e-324, "4.94e-324"), (1e300, "1e+300"), (0, "0")]
)
def test_a_constant_is_one_bar_with_its_value(value: float, told: str) -> None:
    found = made([value] * 5)
    assert found.shares[0].tolist() == [1]
    assert list(found.labels.values()) == [told]


def test_bars_are_weighted() -> None:
    assert made(["a", "b"], weights=[3.0, 1.0]).shares[0].tolist() == [0.75, 0.25]


def test_a_panel_for_each_column() -> None:
    x, y = Rows(wines(50, 1), "x"), Rows(wines(60, 2).rename(columns={"sugar": "$x <b>"}), "y")
    columns = [*shared_columns(x, y)[0], Column("$x^ <b>", "number", (np.ones(50), np.ones(60)))]
    notes = {"alcohol": "D 0.1"}
    figure = small_multiples(columns, [x.weights, y.weights], notes=notes, title="50 rows")
    titles = [axis.get_title(loc="left") for axis in figure.axes]
    assert titles == ["alcohol\nD 0.1", *(each.name for each in columns[1:])]
    assert all(len(axis.patches) == 2 for axis in figure.axes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure.draw_without_rendering()
    alone = small_multiples(shared_columns(x)[0], [x.weights])
    assert all(len(axis.patches) == 1 for axis in alone.axes)
