"""Dates as numbers, days since 1970-01-01, and what comparing with them means.

A day is the interval [d, d + 1): `signup = "2021-03-01"` is any time on it, and `<=` is `<` or `=`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

from constraints.ast import formulas as f
from constraints.ast.terms import Apply, Const, Name, Term
from constraints.errors import FormulaError

_EPOCH = datetime(1970, 1, 1)
_FLIPPED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "=": "=", "!=": "!="}


def is_day(text: str) -> bool:
    """Whether a text is a date without a time."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def days(text: str) -> float:
    """The number of a date or a date and time; where a time zone is given, of its UTC."""
    try:
        found = datetime.fromisoformat(text)
        if not is_day(text[:10]):
            raise ValueError
    except ValueError:
        raise FormulaError(
            f'"{text}" is not a date; write one such as "2021-03-01" or "2021-03-01 12:30"'
        ) from None
    if found.tzinfo is not None:
        found = found.astimezone(UTC).replace(tzinfo=None)
    return (found - _EPOCH) / timedelta(days=1)


def written(number: float) -> str:
    """A number of days as the date that it is; what is beyond all dates stays a number."""
    try:
        found = _EPOCH + timedelta(days=number)
    except OverflowError:
        return f"{number:g}"
    day = found.date().isoformat()
    return day if found.time() == _EPOCH.time() else found.isoformat(" ", "minutes")


def compared(
    left: Term, relation: str, right: Term, tolerance: float | None, words: set[str]
) -> f.Formula:
    """A comparison of dates as one of numbers; `words` in quotation marks are names, not dates."""
    for side, other in ((left, right), (right, left)):
        _refuse_number(side, other)
    if _text(left, words):
        left, relation, right = right, _FLIPPED[relation], left
    first, text = _numbered(left, words), _text(right, words)
    if tolerance is not None or not is_day(text):
        return f.Compare((first, _numbered(right, words)), (relation,), tolerance)
    day = days(text)
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


def _text(term: Term, words: set[str]) -> str:
    """What stands in quotation marks and is no name; else nothing."""
    given = isinstance(term, Name) and term.quoted and term.name not in words
    return term.name if given and isinstance(term, Name) else ""


def _numbered(term: Term, words: set[str]) -> Term:
    """The term with its dates as numbers."""
    match term:
        case Name(text) if _text(term, words):
            return Const(days(text))
        case Apply(function, arguments):
            return Apply(function, tuple(_numbered(each, words) for each in arguments))
    return term


def _refuse_number(signal: Term, value: Term) -> None:
    """2021-03-01 without quotation marks is 2017, and 2021 is a day in 1975."""
    meant = None
    match value:
        case Apply("+", (Const(year), Const(month), Const(day))):
            if _is_year(year) and -12 <= month <= -1 and -31 <= day <= -1:
                meant = f"{year:04.0f}-{-month:02.0f}-{-day:02.0f}"
        case Const(year) if _is_year(year):
            meant = f"{year:04.0f}-01-01"
    if meant is not None and isinstance(signal, Name):
        raise FormulaError(
            f"{signal} holds dates: in place of {value} write a date in quotation marks, as in "
            f'"{meant}"'
        )


def _is_year(value: float) -> bool:
    return value.is_integer() and 1000 <= value <= 2999
