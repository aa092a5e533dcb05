"""The kind of values that a column of a table has, and these values as an array of that kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from surrogate.errors import ModelError
from surrogate.io.tables import iso
from surrogate.kinds.tables import spellings
from surrogate.kinds.tables.cells import (
    Beyond,
    Dates,
    Numbers,
    Part,
    Raw,
    Truths,
    Words,
    as_category,
    bounded,
    leave_out,
    numbers_of,
    raw_of,
    with_type,
)

KINDS = ("number", "integer", "category", "boolean", "date", "ignore")
MISSING_MARKERS = frozenset(("", "?", "na", "n/a", "#n/a", "nan", "null", "none", "-", "--", "."))
MOSTLY_ONE_TYPE = 0.95  # share of the values that decides on the type of a column
MAX_EXACT_INTEGER = 2**53  # whole numbers up to here are exact in float64
ROUNDED = "numbers beyond 2^53, rounded to 15 digits"
YES = frozenset(("true", "yes", "t", "y", "1"))
NO = frozenset(("false", "no", "f", "n", "0"))
_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d.*)?")
_ZONE = re.compile(r".*\d(Z|[+-]\d\d(:?\d\d)?)")
_OTHER_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}")
_ZEROS = re.compile(r"0\d+")  # 00501: a name, no number
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Read:
    """Values (N,) of a kind, as the codecs expect them, and where they are missing (N,)."""

    kind: str
    values: np.ndarray
    missing: np.ndarray
    distinct: int
    note: str = ""


def read(column: pd.Series[Any], kind: str | None = None) -> Read:
    """The column as it is understood, or as the `kind` that is asked for."""
    name, raw = str(column.name), raw_of(column)
    if kind is None and isinstance(column.dtype, pd.CategoricalDtype):
        kind = "category"
    if kind is not None:
        return _AS[kind](name, raw)
    if isinstance(raw, Words):
        return _understood(name, raw)
    if isinstance(raw, Truths):
        return _boolean(name, raw)
    if isinstance(raw, Dates):
        return _date(name, raw)
    if not _is_whole(raw.values):
        return _number(name, raw)
    if raw.values.dtype.kind == "i" and int(np.abs(raw.values).max()) > MAX_EXACT_INTEGER:
        return replace(_number(name, raw), note=ROUNDED)
    return _integer(name, raw)


# --- what words mean ------------------------------------------------------------------------------


def _parsed(words: Words) -> np.ndarray:
    """The words as numbers (K,), NaN for those that are none."""
    plain = pd.Series(list(words.words), dtype=object)
    return pd.to_numeric(plain, errors="coerce").to_numpy(np.float64)


def _markers(words: Words) -> np.ndarray:
    """Which words (K,) say that there is no value, beside numbers and dates."""
    return np.array([word.lower() in MISSING_MARKERS for word in words.words], bool)


def _understood(name: str, words: Words) -> Read:
    """Words that are all numbers or dates are these; where only most are, that is refused."""
    marks, dates = _markers(words), words.matching(_ISO)
    zeros = bool(words.matching(_ZEROS).any())
    numeric = ~np.isnan(_parsed(words)) & (not zeros)
    if numeric.any() and (numeric | marks).all():
        return _numeric(name, words)
    if dates.any() and (dates | marks).all():
        return _dated(name, words)
    spelled = None if zeros else _respelled(words, spellings.numbers)
    if spelled is not None and spelled.whole:
        return _noted(_numeric(name, spelled.words), spelled.note)
    numeric |= False if spelled is None else spelled.fits
    spelled = _respelled(words, spellings.dates)
    if spelled is not None and spelled.whole:
        return _noted(_dated(name, spelled.words), spelled.note)
    dates |= False if spelled is None else spelled.fits
    for chosen, what in ((numeric, "numbers"), (dates, "dates")):
        if chosen.any() and words.share(chosen | marks) >= MOSTLY_ONE_TYPE:
            raise _mixed(name, words, ~chosen & ~marks, what)
    made = _category(name, words)
    if words.share(words.matching(_OTHER_DATE) | marks) >= MOSTLY_ONE_TYPE:
        return replace(made, note="dates in several spellings, taken as words")
    plain = zeros and bool((words.matching(_DIGITS) | marks).all())
    return replace(made, note="words, since some begin with 0") if plain else made


def _noted(read: Read, first: str) -> Read:
    """With something to say before what is said already."""
    return replace(read, note="; ".join(part for part in (first, read.note) if part))


def _numeric(name: str, words: Words) -> Read:
    made = _number(name, words)
    return _integer(name, words) if _is_whole(made.values) else made


def _dated(name: str, words: Words) -> Read:
    try:
        return _date(name, words)
    except Beyond:
        note = "dates before 1678 or after 2261, taken as words"
        return replace(_category(name, words), note=note)


@dataclass(frozen=True)
class _Respelled:
    """Words in plain spelling; `fits` (K,): those that have one."""

    words: Words
    fits: np.ndarray
    note: str
    whole: bool


def _respelled(
    words: Words, rule: Callable[[Sequence[str]], spellings.Spelled | None]
) -> _Respelled | None:
    """The words by a rule of spelling, if there is one; markers are kept as they are."""
    marks = _markers(words)
    known = np.flatnonzero(~marks).tolist()
    found = rule([words.words[code] for code in known])
    if found is None:
        return None
    plain, fits = list(words.words), np.zeros(len(marks), bool)
    for code, word in zip(known, found.plain, strict=True):
        fits[code] = word is not None
        plain[code] = plain[code] if word is None else word
    if rule is not spellings.numbers:  # there is no 31st of February
        fits[known] &= _stamps([plain[code] for code in known]).notna().to_numpy()
    made = Words(words.codes, plain)
    return _Respelled(made, fits, found.note, bool((fits | marks).all()))


def _stamps(plain: Sequence[str | None]) -> pd.Series[Any]:
    made = pd.Series(list(plain), dtype=object)
    return pd.to_datetime(made, errors="coerce", format="ISO8601", utc=True)


def _mixed(name: str, words: Words, odd: np.ndarray, what: str) -> ModelError:
    """Most are of one type and some are not: `odd` (K,) are these."""
    counts = words.counts()
    rows = sorted((words.row(int(code)), int(code)) for code in np.flatnonzero(odd)[:100])[:3]
    first = ", ".join(f"{words.words[code]!r} in row {row}" for row, code in rows)
    return ModelError(
        f"{name} holds {what} but for {int(counts[odd].sum()):,} of {int(counts.sum()):,} values: "
        f"{first}",
        remedy=("repair them, leave them empty, or ", *as_category(name)),
    )


def plain_in(column: pd.Series[Any]) -> np.ndarray | None:
    """A column of text as dates or numbers (N,), if all that it holds are spelled as such."""
    if not pd.api.types.is_string_dtype(column.dtype):
        return None
    raw = raw_of(column)
    if not isinstance(raw, Words):
        return None
    try:
        made = _understood(str(column.name), raw)
    except ModelError:  # 2020-02-31: words like any others
        return None
    return None if made.kind == "category" else made.values


# --- as a kind ------------------------------------------------------------------------------------


def _impossible(name: str, what: str, value: object, row: int, *remedy: Part) -> ModelError:
    return ModelError(
        f"{name} cannot be {what}: it is {str(value)!r} in row {row}", value=value, remedy=remedy
    )


def _is_whole(values: np.ndarray) -> bool:
    if values.dtype.kind == "i":
        return True
    known = values[~np.isnan(values)]
    whole = (known == np.rint(known)) & (np.abs(known) <= MAX_EXACT_INTEGER)
    return bool(known.size and whole.all())


def _number(name: str, raw: Raw) -> Read:
    note = ""
    if isinstance(raw, Dates):
        raise ModelError(
            f"{name} cannot be a number: it holds dates",
            remedy=("learn it as such (", with_type(name, "date"), ")"),
        )
    if isinstance(raw, Truths):
        raw = Numbers(np.where(raw.codes < 0, np.nan, raw.codes.astype(np.float64)))
    spelled = ""
    if isinstance(raw, Words):
        raw, spelled = _in_plain(raw, np.isnan(_parsed(raw)), spellings.numbers)
        numbers, marks = _parsed(raw), _markers(raw)
        odd = np.isnan(numbers) & ~marks
        if odd.any():
            row, word = raw.first(odd)
            raise _impossible(name, "a number", word, row, *as_category(name))
        if marks.any():
            said = " or ".join(repr(word) for word in np.array(raw.words)[marks].tolist())
            note = f"{said} is taken as missing, {int(raw.counts()[marks].sum()):,} times"
        raw = numbers_of(pd.Series(raw.spread(numbers, np.nan), name=name))
    values = raw.values.astype(np.float64)
    return _noted(Read("number", values, np.isnan(values), _distinct(values), note), spelled)


def _in_plain(
    words: Words, odd: np.ndarray, rule: Callable[[Sequence[str]], spellings.Spelled | None]
) -> tuple[Words, str]:
    """The words by a rule that all of them follow, where some are `odd` (K,), and its note."""
    if not (odd & ~_markers(words)).any():
        return words, ""
    spelled = _respelled(words, rule)
    return (words, "") if spelled is None or not spelled.whole else (spelled.words, spelled.note)


def _integer(name: str, raw: Raw) -> Read:
    made = _number(name, raw)
    stored = isinstance(raw, Numbers) and raw.values.dtype.kind == "i"
    exact = raw.values if isinstance(raw, Numbers) and stored else made.values
    parted = ~made.missing & (made.values != np.rint(made.values))
    large = ~made.missing & (np.abs(made.values) > MAX_EXACT_INTEGER)
    if parted.any():
        row = int(parted.argmax())
        remedy = ("take all as they are (", with_type(name, "number"), ")")
        raise _impossible(name, "whole numbers", made.values[row], row, *remedy)
    if large.any():
        row = int(large.argmax())
        raise ModelError(
            f"{name} is {exact[row]} in row {row}, and whole numbers are exact up to 2^53",
            remedy=("convert them to another unit, or ", *leave_out(name)),
        )
    values = made.values if made.missing.any() else exact.astype(np.int64)
    return Read("integer", values, made.missing, made.distinct, made.note)


def _category(name: str, raw: Raw) -> Read:
    words = raw if isinstance(raw, Words) else _in_words(raw)
    values = words.spread(np.array([*words.words, None], dtype=object)[:-1], None)
    return Read("category", values, words.codes < 0, int((words.counts() > 0).sum()))


def _in_words(raw: Numbers | Truths | Dates) -> Words:
    """Numbers, truth values and dates as they would be written."""
    if isinstance(raw, Truths):
        return Words(raw.codes, ["False", "True"])
    codes, kinds = pd.factorize(raw.values, sort=True)
    if isinstance(raw, Dates):
        return Words(codes, iso(kinds))
    whole = _is_whole(raw.values)
    return Words(codes, [str(int(each)) if whole else repr(float(each)) for each in kinds])


def _boolean(name: str, raw: Raw) -> Read:
    if isinstance(raw, Truths):
        codes = raw.codes.astype(np.int64)
    else:
        words = raw if isinstance(raw, Words) else _in_words(raw)
        lower = [word.lower() for word in words.words]
        odd = np.array([word not in YES | NO | MISSING_MARKERS for word in lower], bool)
        if odd.any():
            row, word = words.first(odd)
            remedy = ("write true, yes or 1, false, no or 0, or ", *as_category(name))
            raise _impossible(name, "true or false", word, row, *remedy)
        truth = [1 if word in YES else 0 if word in NO else -1 for word in lower]
        codes = words.spread(np.array(truth, np.int64), -1)
    missing = codes < 0
    values = np.array([False, True, None], dtype=object)[codes] if missing.any() else codes > 0
    return Read("boolean", values, missing, len(np.unique(codes[~missing])))


def _date(name: str, raw: Raw) -> Read:
    if isinstance(raw, Numbers) and _is_whole(raw.values):
        days = _respelled(_in_words(raw), spellings.compact)
        raw = days.words if days is not None and days.whole else raw
    if isinstance(raw, Words):
        raw = _dates_in(name, raw)
    if not isinstance(raw, Dates):
        what = "numbers" if isinstance(raw, Numbers) else "truth values"
        raise ModelError(
            f"{name} cannot be a date: it holds {what}", remedy="write dates as 2020-01-31"
        )
    return Read("date", raw.values, np.isnat(raw.values), _distinct(raw.values), raw.note)


def _dates_in(name: str, words: Words) -> Dates:
    words, spelled = _in_plain(words, ~words.matching(_ISO), spellings.dates)
    words, _ = _in_plain(words, ~words.matching(_ISO), spellings.compact)
    marks = _markers(words)
    made = _stamps([None if mark else w for w, mark in zip(words.words, marks, strict=True)])
    odd = made.isna().to_numpy() & ~marks
    if odd.any():
        row, word = words.first(odd)
        remedy = ("write dates as 2020-01-31, or ", *as_category(name))
        raise _impossible(name, "a date", word, row, *remedy)
    zoned = any(_ZONE.fullmatch(word[10:]) for word in words.words)
    codes = np.where(np.append(marks, True)[words.codes], -1, words.codes)
    rows = made.reindex(codes).reset_index(drop=True)
    return bounded(name, rows, codes >= 0, "times in UTC" if zoned else spelled)


def _distinct(values: np.ndarray) -> int:
    return int(pd.Series(values).nunique())


_AS: dict[str, Callable[[str, Raw], Read]] = {
    "number": _number,
    "integer": _integer,
    "category": _category,
    "boolean": _boolean,
    "date": _date,
}
