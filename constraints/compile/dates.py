"""Comparisons of dates, which are numbers: days since 1970-01-01.

A day is the interval [d, d + 1): `signup = "2021-03-01"` holds at any time of that day, and `<=`
is `<` or `=`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from constraints.ast import formulas as f
from constraints.ast.dates import is_day, moment
from constraints.ast.terms import Apply, Const, Name, Term
from constraints.errors import FormulaError

_EPOCH = datetime(1970, 1, 1)
_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "=": "=", "!=": "!="}


def days_since_epoch(text: str) -> float:
    """Days from 1970-01-01 to a date, or a date and time; with a time zone, in UTC."""
    return (moment(text) - _EPOCH) / timedelta(days=1)


def date_text(days: float) -> str:
    """The date (and time) that is so many days after 1970-01-01; the number if there is none."""
    try:
        found = _EPOCH + timedelta(days=days)
    except OverflowError:
        return f"{days:g}"
    day = found.date().isoformat()
    return day if found.time() == _EPOCH.time() else found.isoformat(" ", "minutes")


def date_comparison(
    left: Term, relation: str, right: Term, tolerance: float | None, names: set[str]
) -> f.Formula:
    """A comparison of dates as one of days; a quoted text is a date unless it is in `names`."""
    for side, other in ((left, right), (right, left)):
        _reject_unquoted_date(side, other)
    if _date(left, names):
        left, relation, right = right, _FLIPPED[relation], left
    first, text = _dates_as_days(left, names), _date(right, names)
    if tolerance is not None or not is_day(text):
        return f.Compare((first, _dates_as_days(right, names)), (relation,), tolerance)
    day = days_since_epoch(text)
    from_day, from_next = (f.Compare((first, Const(d)), (">=",)) for d in (day, day + 1))
    match relation:
        case ">=":
            return from_day
        case ">":
            return from_next
        case "<":
            return f.Not(from_day)
        case "<=":
            return f.Not(from_next)
    on_it = f.And((from_day, f.Not(from_next)))
    return on_it if relation == "=" else f.Not(on_it)


def _date(term: Term, names: set[str]) -> str:
    """The text of a quoted date; empty for any other term."""
    if isinstance(term, Name) and term.quoted and term.name not in names:
        return term.name
    return ""


def _dates_as_days(term: Term, names: set[str]) -> Term:
    """The term with its quoted dates as days since 1970-01-01."""
    match term:
        case Name(text) if _date(term, names):
            return Const(days_since_epoch(text))
        case Apply(function, arguments):
            return Apply(function, tuple(_dates_as_days(each, names) for each in arguments))
    return term


def _reject_unquoted_date(signal: Term, value: Term) -> None:
    """Without quotation marks 2021-03-01 is the number 2017, and 2021 is a day in 1975."""
    meant = None
    match value:
        case Apply("+", (Const(year), Const(month), Const(day))):
            if _is_year(year) and -12 <= month <= -1 and -31 <= day <= -1:
                meant = f"{year:04.0f}-{-month:02.0f}-{-day:02.0f}"
        case Const(year) if _is_year(year):
            meant = f"{year:04.0f}-01-01"
    if meant is not None and isinstance(signal, Name):
        raise FormulaError(
            f"{signal} holds dates, and {value} is a number",
            value=str(value),
            remedy=f'write a date in quotation marks, as in "{meant}"',
        )


def _is_year(value: float) -> bool:
    return value.is_integer() and 1000 <= value <= 2999
