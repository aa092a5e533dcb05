"""Formats of dates and numbers in text: 31/01/2020, Jan 5, 2020, $1,234.50, 12%.

A column has one format, which is inferred from all of its words at once; nothing is guessed word by
word. Words are rewritten in normal form (ISO dates, plain decimals), which pandas then parses. The
order of day and month is not left to pandas, which takes it from the first value alone (and fails
on 01/02/2020, 31/01/2020).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MIN_SPELLED_SHARE = 0.5  # of the words that fit a format, for the others to count as typing errors
WORDS_TRIED = 100  # of a column, before all are matched
FIRST_YEAR_OF_1900S = (
    30  # years of two digits from here on are in the 1900s, as spreadsheets have it
)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MONTH_NAMES = ("january", "february", "march", "april", "may", "june", "july", "august",
               "september", "october", "november", "december", "sept")  # fmt: skip

_TIME = (
    r"(?:(?:T|,? +)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?P<part>\.\d+)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?)?"
)
_MONTH_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_DATE_SHAPES = tuple(
    re.compile(shape + _TIME)
    for shape in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4})",
        r"(?P<a>\d{1,2})(?P<mark>[-/])(?P<b>\d{1,2})(?P=mark)(?P<year>\d\d)",
        r"(?P<a>\d\d)(?P<mark>\.)(?P<b>\d\d)(?P=mark)(?P<year>\d\d)",  # and not version 1.2.10
        rf"(?P<day>\d{{1,2}})(?P<mark>[- ]){_MONTH_NAME}(?P=mark)(?P<year>\d{{4}}|\d\d)",
        rf"(?P<mark>){_MONTH_NAME} +(?P<day>\d{{1,2}})(?:,| |, )(?P<year>\d{{4}})",
    )
)
_COMPACT_DATE = re.compile(r"(\d{4})(\d\d)(\d\d)")

_NUMBER_WITH_UNIT = (
    r"(?P<minus>[-+]?) ?(?P<before>[$€£¥₹]?) ?(?P<minus2>[-+]?)"
    r"(?P<digits>{digits})(?:[ \u00a0]?(?P<behind>[$€£¥₹%]))?"
)
_DECIMAL_POINT = re.compile(
    _NUMBER_WITH_UNIT.format(digits=r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+")
)
_DECIMAL_COMMA = re.compile(
    _NUMBER_WITH_UNIT.format(digits=r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?")
)


@dataclass(frozen=True)
class Normalised:
    """Words (K,) in normal form, None for those that do not fit, and a note of what was assumed."""

    plain: list[str | None]
    note: str = ""

    @property
    def whole(self) -> bool:
        return all(word is not None for word in self.plain)


def _any_matches(words: Sequence[str], shape: re.Pattern[str]) -> bool:
    """Whether one of the first words matches: a cheap test before all of them are tried."""
    return any(map(shape.fullmatch, words[:WORDS_TRIED]))


# --- dates ----------------------------------------------------------------------------------------


def dates(words: Sequence[str]) -> Normalised | None:
    """Words (K,) as ISO dates, if most of them have one format."""
    least = MIN_SPELLED_SHARE * len(words)
    for shape in _DATE_SHAPES:
        if not _any_matches(words, shape):
            continue
        found = [shape.fullmatch(word) for word in words]
        marks = {match["mark"] for match in found if match}
        if sum(match is not None for match in found) < least or len(marks) != 1:
            continue
        if "a" not in shape.groupindex:
            return Normalised([_iso(m, "month", "day") for m in found], _century_note(shape, found))
        order, note = _order([m for m in found if m], marks.pop())
        if not order:
            return None
        said = "; ".join(part for part in (note, _century_note(shape, found)) if part)
        return Normalised([_iso(m, *order) for m in found], said)
    return None


def compact(words: Sequence[str]) -> Normalised:
    """20200131 as ISO dates; only where dates are requested, since it may be a number."""
    found = [_COMPACT_DATE.fullmatch(word) for word in words]
    return Normalised([f"{m[1]}-{m[2]}-{m[3]}" if m else None for m in found])


def _order(found: Sequence[re.Match[str]], mark: str) -> tuple[tuple[str, ...], str]:
    """Which groups are (month, day), and a note; empty where rows contradict each other."""
    first = max(int(match["a"]) for match in found) > 12
    second = max(int(match["b"]) for match in found) > 12
    if first and second:
        return (), ""
    if first or second:
        return (("b", "a"), "") if first else (("a", "b"), "")
    example = found[0][0]
    if mark == "/":
        return ("a", "b"), f"taken with the month first, {example} as {_iso(found[0], 'a', 'b')}"
    return ("b", "a"), f"taken with the day first, {example} as {_iso(found[0], 'b', 'a')}"


def _century_note(shape: re.Pattern[str], found: Sequence[re.Match[str] | None]) -> str:
    short = any(match is not None and len(match["year"]) == 2 for match in found)
    return (
        f"years of two digits lie from 19{FIRST_YEAR_OF_1900S} to 20{FIRST_YEAR_OF_1900S - 1}"
        if short
        else ""
    )


def _iso(match: re.Match[str] | None, month: str, day: str) -> str | None:
    """A date in ISO format; the day need not exist."""
    if match is None:
        return None
    parts = match.groupdict()
    number = _month(parts["name"]) if "name" in parts else int(parts[month])
    if number is None:
        return None
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 1900 if year >= FIRST_YEAR_OF_1900S else 2000
    made = f"{year:04}-{number:02}-{int(parts[day]):02}"
    if parts["hour"] is None:
        return made
    hour = int(parts["hour"])
    if parts["half"]:
        hour = hour % 12 + 12 * (parts["half"].lower() == "p")
    seconds = f"{parts['second'] or '00'}{parts['part'] or ''}"
    return f"{made}T{hour:02}:{parts['minute']}:{seconds}"


def _month(name: str) -> int | None:
    known = name.lower()
    return MONTHS.index(known[:3]) + 1 if known in (*MONTHS, *MONTH_NAMES) else None


# --- numbers --------------------------------------------------------------------------------------


def numbers(words: Sequence[str]) -> Normalised | None:
    """Words (K,) as plain decimals, if most have one format and at most one unit."""
    points = _numbers(words, _DECIMAL_POINT, ",", ".")
    if points is not None and points.whole:
        return points
    commas = _numbers(words, _DECIMAL_COMMA, ".", ",")
    return commas if points is None or (commas is not None and commas.whole) else points


def _numbers(
    words: Sequence[str], shape: re.Pattern[str], thousands: str, point: str
) -> Normalised | None:
    if not _any_matches(words, shape):
        return None
    found = [shape.fullmatch(word) for word in words]
    known = [match for match in found if match]
    if len(known) < MIN_SPELLED_SHARE * len(words):
        return None
    units = {unit for match in known for unit in (match["before"], match["behind"]) if unit}
    grouped = any(thousands in match["digits"] for match in known)
    parted = point == "," and any(point in match["digits"] for match in known)
    if len(units) > 1 or not (units or grouped or parted):
        return None
    plain = [_plain(match, thousands, point) for match in found]
    return Normalised(plain, ", ".join(_notes(units, grouped, parted)))


def _plain(match: re.Match[str] | None, thousands: str, point: str) -> str | None:
    if match is None:
        return None
    minus = "-" if "-" in match["minus"] + match["minus2"] else ""
    return minus + match["digits"].replace(thousands, "").replace(point, ".")


def _notes(units: set[str], grouped: bool, parted: bool) -> Iterator[str]:
    if units:
        yield f"numbers in {next(iter(units))}"
    if parted:
        yield "commas are decimal points"
    elif grouped:
        yield "commas part thousands"
