"""Dates and numbers as people write them: 31/01/2020, Jan 5, 2020, $1,234.50, 12%.

A spelling is one rule for a whole column, so it is read off all of its words at once: where none
fits every word, there is none, and nothing is guessed word by word. pandas parses the ISO text; it
is not asked for the order of day and month, which it takes from the first value alone (it fails on
01/02/2020, 31/01/2020).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MIN_SHARE = 0.5  # of the words at least, that tell what the others should have been
WORDS_TRIED = 100  # words
CENTURY = 30  # years of two digits from here on are in the 1900s, as spreadsheets have it
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FULL = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
        "october", "november", "december", "sept")  # fmt: skip

_TIME = (
    r"(?:(?:T|,? +)(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d)(?P<part>\.\d+)?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?)?"
)
_NAME = r"(?P<name>[A-Za-z]{3,9})\.?"
_SHAPES = tuple(
    re.compile(shape + _TIME)
    for shape in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d{1,2})(?P=mark)(?P<day>\d{1,2})",
        r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4})",
        r"(?P<a>\d{1,2})(?P<mark>[-/])(?P<b>\d{1,2})(?P=mark)(?P<year>\d\d)",
        r"(?P<a>\d\d)(?P<mark>\.)(?P<b>\d\d)(?P=mark)(?P<year>\d\d)",  # and not version 1.2.10
        rf"(?P<day>\d{{1,2}})(?P<mark>[- ]){_NAME}(?P=mark)(?P<year>\d{{4}}|\d\d)",
        rf"(?P<mark>){_NAME} +(?P<day>\d{{1,2}})(?:,| |, )(?P<year>\d{{4}})",
    )
)
_COMPACT = re.compile(r"(\d{4})(\d\d)(\d\d)")

_MONEY = (
    r"(?P<minus>[-+]?) ?(?P<before>[$€£¥₹]?) ?(?P<minus2>[-+]?)"
    r"(?P<digits>{digits})(?:[ \u00a0]?(?P<behind>[$€£¥₹%]))?"
)
_POINTS = re.compile(_MONEY.format(digits=r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+"))
_COMMAS = re.compile(_MONEY.format(digits=r"(?:\d{1,3}(?:\.\d{3})+|\d+)(?:,\d+)?"))


@dataclass(frozen=True)
class Spelled:
    """Words (K,) in plain spelling, None for those that do not fit, and what was assumed."""

    plain: list[str | None]
    note: str = ""

    @property
    def whole(self) -> bool:
        return all(word is not None for word in self.plain)


def _likely(words: Sequence[str], shape: re.Pattern[str]) -> bool:
    """Whether any of the first words has the shape, which saves a look at all of them."""
    return any(map(shape.fullmatch, words[:WORDS_TRIED]))


# --- dates ----------------------------------------------------------------------------------------


def dates(words: Sequence[str]) -> Spelled | None:
    """Words (K,) as ISO dates, if most are of one shape."""
    least = MIN_SHARE * len(words)
    for shape in _SHAPES:
        if not _likely(words, shape):
            continue
        found = [shape.fullmatch(word) for word in words]
        marks = {match["mark"] for match in found if match}
        if sum(match is not None for match in found) < least or len(marks) != 1:
            continue
        if "a" not in shape.groupindex:
            return Spelled([_iso(m, "month", "day") for m in found], _century(shape, found))
        order, note = _order([m for m in found if m], marks.pop())
        if not order:
            return None
        said = "; ".join(part for part in (note, _century(shape, found)) if part)
        return Spelled([_iso(m, *order) for m in found], said)
    return None


def compact(words: Sequence[str]) -> Spelled:
    """20200131, which is a number unless somebody says that it is a date."""
    found = [_COMPACT.fullmatch(word) for word in words]
    return Spelled([f"{m[1]}-{m[2]}-{m[3]}" if m else None for m in found])


def _order(found: Sequence[re.Match[str]], mark: str) -> tuple[tuple[str, ...], str]:
    """Which of two numbers is the (month, day), and the note; none where rows disagree."""
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


def _century(shape: re.Pattern[str], found: Sequence[re.Match[str] | None]) -> str:
    short = any(match is not None and len(match["year"]) == 2 for match in found)
    return f"years of two digits lie from 19{CENTURY} to 20{CENTURY - 1}" if short else ""


def _iso(match: re.Match[str] | None, month: str, day: str) -> str | None:
    """A date in ISO spelling; whether there is such a day is for others to see."""
    if match is None:
        return None
    parts = match.groupdict()
    number = _month(parts["name"]) if "name" in parts else int(parts[month])
    if number is None:
        return None
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 1900 if year >= CENTURY else 2000
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
    return MONTHS.index(known[:3]) + 1 if known in (*MONTHS, *FULL) else None


# --- numbers --------------------------------------------------------------------------------------


def numbers(words: Sequence[str]) -> Spelled | None:
    """Words (K,) as plain numbers, if most have one spelling, and one unit at most."""
    points = _numbers(words, _POINTS, ",", ".")
    if points is not None and points.whole:
        return points
    commas = _numbers(words, _COMMAS, ".", ",")
    return commas if points is None or (commas is not None and commas.whole) else points


def _numbers(
    words: Sequence[str], shape: re.Pattern[str], thousands: str, point: str
) -> Spelled | None:
    if not _likely(words, shape):
        return None
    found = [shape.fullmatch(word) for word in words]
    known = [match for match in found if match]
    if len(known) < MIN_SHARE * len(words):
        return None
    units = {unit for match in known for unit in (match["before"], match["behind"]) if unit}
    grouped = any(thousands in match["digits"] for match in known)
    parted = point == "," and any(point in match["digits"] for match in known)
    if len(units) > 1 or not (units or grouped or parted):
        return None
    plain = [_plain(match, thousands, point) for match in found]
    return Spelled(plain, ", ".join(_said(units, grouped, parted)))


def _plain(match: re.Match[str] | None, thousands: str, point: str) -> str | None:
    if match is None:
        return None
    minus = "-" if "-" in match["minus"] + match["minus2"] else ""
    return minus + match["digits"].replace(thousands, "").replace(point, ".")


def _said(units: set[str], grouped: bool, parted: bool) -> Iterator[str]:
    if units:
        yield f"numbers in {next(iter(units))}"
    if parted:
        yield "commas are decimal points"
    elif grouped:
        yield "commas part thousands"
