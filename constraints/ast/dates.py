"""Calendar dates as text: ISO 8601, in one spelling for each moment, so that texts are compared.

A day is `1948-03-01`, a moment of it `1948-03-01 12:30` or `1948-03-01 12:30:15`; midnight is the
day itself. The order of such texts is that of the moments. A time zone is converted to UTC.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

from constraints.errors import FormulaError


def is_day(text: str) -> bool:
    """Whether a text is an ISO 8601 date without a time."""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def moment(value: Any) -> datetime:
    """The moment of a text, a date, a datetime, or what prints as one (numpy's datetime64)."""
    text = value.isoformat() if isinstance(value, date) else str(value)
    try:
        found = datetime.fromisoformat(text)
        if not is_day(text[:10]):
            raise ValueError
    except ValueError:
        raise FormulaError(
            f'"{text}" is not a date',
            value=text,
            remedy='write one such as "2021-03-01" or "2021-03-01 12:30"',
        ) from None
    return found if found.tzinfo is None else found.astimezone(UTC).replace(tzinfo=None)


def date_text(found: datetime) -> str:
    """The one spelling of a moment."""
    if found.time() == datetime.min.time():
        return found.date().isoformat()
    exact = "microseconds" if found.microsecond else "seconds" if found.second else "minutes"
    return found.isoformat(" ", exact)


def canonical_date(value: Any) -> str:
    """A date in its one spelling; FormulaError for what is no date."""
    return date_text(moment(value))


def is_date(value: object) -> bool:
    """Whether a value is a date or the text of one."""
    try:
        moment(value)
    except FormulaError:
        return False
    return True
