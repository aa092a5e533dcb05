"""Steps by model time and by calendar date."""

from __future__ import annotations

import copy
from datetime import date, datetime, timedelta

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from constraints import (
    Formula,
    FormulaError,
    Layout,
    bridge,
    compiled,
    forall,
    parse,
    signals,
    time,
)
from constraints.ast.dates import canonical_date
from constraints.explanation import Explainer

WEEKS = ("1948-01-10", "1948-01-17", "1948-01-24", "1948-01-31")
LAYOUT = Layout.series("cases", 4, dates=WEEKS)
DATA = {"cases": torch.tensor([[1.0, 5.0, 2.0, 9.0], [4.0, 1.0, 3.0, 0.0]])}
cases = signals("cases")
t = time("t")


def met(formula: str | Formula) -> list[int]:
    return [int(each) for each in compiled(formula, LAYOUT).verdict(DATA)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('cases@"1948-01-17" >= 5', [1, 0]),
        ("cases@'1948-01-31' >= 5", [1, 0]),
        ('cases@"1948-01-17T00:00" >= 5', [1, 0]),
        ('forall t in ["1948-01-17", "1948-01-24"]: cases(t) <= 3', [0, 1]),
        ('forall t in ["1948-01-17", end]: cases(t) <= 3', [0, 1]),
        ('mean(cases, "1948-01-10", "1948-01-17") >= 3', [1, 0]),
        ('max(cases, @"1948-01-10", @"1948-01-17") >= 5', [1, 0]),
        ('count(cases >= 4, "1948-01-10", "1948-01-31") = 2', [1, 0]),
        ('argmax(cases) >= @"1948-01-24"', [1, 0]),
    ],
)
def test_a_date_is_the_step_that_has_it(text: str, expected: list[int]) -> None:
    assert met(text) == expected
    assert parse(str(parse(text))).key == parse(text).key


@pytest.mark.parametrize(
    "built",
    [
        cases["1948-01-17"] >= 5,
        cases[date(1948, 1, 17)] >= 5,
        cases.at_time("1948-01-17") >= 5,
        cases.at_time(datetime(1948, 1, 17)) >= 5,
        bridge('cases@"1948-01-17"=5..9', ["cases"]),
        forall(t, "1948-01-17", date(1948, 1, 17))(cases[t] >= 5),
    ],
)
def test_dates_in_python_and_in_bridges(built: Formula) -> None:
    assert met(built) == [1, 0]
    assert parse(str(built)).key == built.key


@given(st.datetimes(), st.booleans())
def test_every_date_prints_as_text_that_parses_back(moment: datetime, in_window: bool) -> None:
    built = cases[moment] >= 1 if not in_window else forall(t, moment, moment)(cases[t] >= 1)
    assert parse(str(built)).key == built.key
    assert datetime.fromisoformat(canonical_date(moment)) == moment


@given(st.datetimes(max_value=datetime(9990, 1, 1)), st.integers(1, 10**9))
def test_texts_of_dates_are_in_the_order_of_their_moments(moment: datetime, seconds: int) -> None:
    later = moment + timedelta(seconds=seconds)
    assert canonical_date(moment) < canonical_date(later)


@pytest.mark.parametrize(
    ("day", "words"),
    [
        ("1948-01-18", 'nearby are "1948-01-17" (step 1) and "1948-01-24" (step 2)'),
        ("1947-12-31", 'begins at 1948-01-10; the nearest is "1948-01-10" (step 0)'),
        ("1949-01-01", 'ends at 1948-01-31; the nearest is "1948-01-31" (step 3)'),
    ],
)
def test_a_date_off_the_grid_shows_the_nearest_dates(day: str, words: str) -> None:
    with pytest.raises(FormulaError, match=f'"{day}" is not on the grid') as problem:
        compiled(f'cases@"{day}" >= 1', LAYOUT)
    assert words in str(problem.value)


def test_without_dates_the_remedy_is_the_date_of_the_first_step() -> None:
    with pytest.raises(FormulaError, match="no calendar dates") as problem:
        compiled('cases@"1948-01-17" >= 1', Layout.series("cases", 4))
    assert "start='1948-01-17'" in str(problem.value)
    assert "--start 1948-01-17" in problem.value.render("command")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('cases@"tomorrow" >= 1', '"tomorrow" is not a date'),
        ('cases@"03/04/2020" >= 1', '"03/04/2020" is not a date'),
        ('cases("1948-01-17") >= 1', 'write cases@"1948-01-17"'),
        ("cases@1948-01-17 >= 1", "in quotation marks"),
        ('@"1948-01-17" + "1948-01-24" >= cases(0)', "the step of a date is written"),
    ],
)
def test_mistakes_with_dates_are_named(text: str, words: str) -> None:
    with pytest.raises(FormulaError) as problem:
        compiled(text, LAYOUT)
    assert words in str(problem.value)


def test_dates_of_a_layout_are_as_many_as_steps_and_increase() -> None:
    with pytest.raises(FormulaError, match="2 dates for 4 steps"):
        Layout.series("cases", 4, dates=WEEKS[:2])
    with pytest.raises(FormulaError, match="dates of a grid increase"):
        Layout.series("cases", 4, dates=WEEKS[::-1])
    assert copy.deepcopy(LAYOUT).dates == WEEKS


def test_an_explanation_keeps_the_date() -> None:
    explainer = Explainer([parse('cases@"1948-01-17" >= 5')], LAYOUT)
    explainer.add(DATA)
    assert 'cases@"1948-01-17" >= 5' in explainer.explanation().table()
