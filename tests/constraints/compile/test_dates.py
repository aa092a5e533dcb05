"""Dates: days since 1970 in the data, text in formulas, whole days in comparisons."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from constraints import Formula, FormulaError, Layout, Signal, compiled, parse, signals
from constraints.ast.dates import is_day
from constraints.compile.dates import date_text, days_since_epoch
from constraints.prove.contradictions import find

LAYOUT = Layout(
    (
        Signal("signup", "column", dates=True, low=0, high=20_000, span=5_000),
        Signal("left", "column", dates=True, optional=True),
        Signal("price", "column"),
    )
)
signup, left, price = signals("signup left price")
DAY = days_since_epoch("2021-03-01")
# the evening before, midnight, noon, the last second, the next midnight
TIMES = DAY + torch.tensor([-0.2, 0, 0.5, 1 - 1 / 86_400, 1], dtype=torch.float64)
DATA = {"signup": TIMES, "left": TIMES + 30, "price": torch.ones(5)}


def met(formula: str | Formula) -> list[int]:
    return [int(each) for each in compiled(formula, LAYOUT).verdict(DATA)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('signup >= "2021-03-01"', [0, 1, 1, 1, 1]),
        ('signup > "2021-03-01"', [0, 0, 0, 0, 1]),
        ('signup < "2021-03-01"', [1, 0, 0, 0, 0]),
        ('signup <= "2021-03-01"', [1, 1, 1, 1, 0]),
        ('signup = "2021-03-01"', [0, 1, 1, 1, 0]),
        ('signup != "2021-03-01"', [1, 0, 0, 0, 1]),
        ('not signup = "2021-03-01"', [1, 0, 0, 0, 1]),
        ('signup in ["2021-02-01", "2021-03-01"]', [1, 1, 1, 1, 0]),
        ('signup in {"2021-02-28", "2021-03-02"}', [1, 0, 0, 0, 1]),
        ('"2021-03-01" < signup', [0, 0, 0, 0, 1]),
        ('"2021-02-28" <= signup < "2021-03-02"', [1, 1, 1, 1, 0]),
        ('signup >= "2021-03-01 12:00"', [0, 0, 1, 1, 1]),
        ('signup > "2021-03-01T12:00"', [0, 0, 0, 1, 1]),
        ('signup >= "2021-03-01T14:00+02:00"', [0, 0, 1, 1, 1]),
        ('signup = "2021-03-01" +- 0.3', [1, 1, 0, 0, 0]),
        ('signup + 1 >= "2021-03-02"', [0, 1, 1, 1, 1]),
        ('signup - "2021-03-01" <= 0.5', [1, 1, 1, 0, 0]),
        ("left - signup <= 30", [1, 1, 1, 1, 1]),
        ("left <= signup", [0, 0, 0, 0, 0]),
        ("signup >= 18687", [0, 1, 1, 1, 1]),
    ],
)
def test_comparisons_with_days_and_times(text: str, expected: list[int]) -> None:
    assert met(text) == expected
    assert met(str(parse(text))) == expected


@pytest.mark.parametrize(
    ("formula", "text"),
    [
        (signup >= "2021-03-01", 'signup >= "2021-03-01"'),
        (signup >= date(2021, 3, 1), 'signup >= "2021-03-01"'),
        (date(2021, 3, 1) >= signup, 'signup <= "2021-03-01"'),
        (signup.between(date(2021, 1, 1), "2021-03-01"), 'signup in ["2021-01-01", "2021-03-01"]'),
        (signup > datetime(2021, 3, 1, 12), 'signup > "2021-03-01 12:00"'),
    ],
)
def test_dates_are_compared_in_python(formula: Formula, text: str) -> None:
    assert compiled(formula, LAYOUT).lowered == compiled(text, LAYOUT).lowered


@given(st.dates())
def test_days_convert_to_numbers_and_back(day: date) -> None:
    assert days_since_epoch(day.isoformat()) == (day - date(1970, 1, 1)).days
    assert is_day(day.isoformat())
    assert date_text(days_since_epoch(day.isoformat())) == day.isoformat()


@given(st.datetimes(), st.integers(-12, 12))
def test_times_convert_to_numbers_and_back(time: datetime, zone: int) -> None:
    number = days_since_epoch(time.isoformat())
    assert math.isclose(number * 86_400, (time - datetime(1970, 1, 1)).total_seconds())
    if 2 < time.year < 9998:
        there = time.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=zone)))
        assert days_since_epoch(there.isoformat()) == number


@given(st.dates(date(1990, 1, 1), date(2040, 1, 1)), st.floats(-3, 3))
def test_a_time_is_before_on_or_after_a_day(day: date, shift: float) -> None:
    """And at most is before or on."""
    data = {
        "signup": torch.tensor([days_since_epoch(day.isoformat()) + shift], dtype=torch.float64)
    }
    holds = {
        relation: bool(compiled(f'signup {relation} "{day}"', LAYOUT).verdict(data))
        for relation in ("<", "<=", "=", ">=", ">", "!=")
    }
    assert holds["<"] + holds["="] + holds[">"] == 1
    assert holds["<="] == (holds["<"] or holds["="]) == (not holds[">"])
    assert holds[">="] == (holds[">"] or holds["="]) == (not holds["<"])
    assert holds["!="] == (not holds["="])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('signup >= "March"', '"March" is not a date; write one such as "2021-03-01" or "2021-03-'),
        ('signup >= "2021-02-30"', '"2021-02-30" is not a date'),
        ('signup >= "01.03.2021"', '"01.03.2021" is not a date'),
        ('signup >= "20210301"', '"20210301" is not a date'),
        ('signup - "later" >= 3', '"later" is not a date'),
        (
            "signup >= 2021",
            "signup holds dates, and 2021 is a number; write a date in quotation marks",
        ),
        (
            "signup >= 2021-03-01",
            "and 2021 - 3 - 1 is a number; write a date in quotation marks",
        ),
        ("2021-03-01 <= signup", 'as in "2021-03-01"'),
        ("signup >= lef", "'lef'; did you mean 'left'?"),
        ('price >= "2021-03-01"', 'price holds numbers, not dates such as "2021-03-01"'),
    ],
)
def test_invalid_dates_are_rejected(text: str, says: str) -> None:
    with pytest.raises(FormulaError) as raised:
        compiled(text, LAYOUT)
    assert says in str(raised.value)


def test_contradictions_show_dates() -> None:
    found = find(parse('signup >= "2021-03-01" and signup < "2020-01-01"'), LAYOUT)
    assert found is not None
    assert "2021-03-01" in found.reason
    assert "2020-01-01" in found.reason
    found = find(parse('signup >= "2031-03-01"'), LAYOUT)
    assert found is not None
    assert found.parts[1] == "signup stays within [1970-01-01, 2024-10-04]"
    assert find(parse('signup = "2021-03-01" and signup > "2021-02-28"'), LAYOUT) is None
