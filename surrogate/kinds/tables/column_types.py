"""Type inference for the columns of a table, and their values as arrays of that type."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from surrogate.errors import ModelError
from surrogate.io.delimited import MISSING_CELLS
from surrogate.io.tables import iso
from surrogate.kinds.tables import spellings
from surrogate.kinds.tables.cells import (
    Booleans,
    Dates,
    DatesOutOfRange,
    Numbers,
    Part,
    Raw,
    Words,
    as_category,
    leave_out,
    raw_values,
    representable_dates,
    to_numbers,
    with_type,
)

COLUMN_TYPES = ("number", "integer", "category", "boolean", "date", "ignore")
MAX_CATEGORIES = 2_000  # different words of one column that can be learned
MISSING_MARKERS = frozenset((*MISSING_CELLS, "#n/a", "."))
MOSTLY_ONE_TYPE = 0.95  # share of the values that decides on the type of a column
MAX_EXACT_INTEGER = 2**53  # whole numbers up to here are exact in float64
ROUNDED_NOTE = "numbers beyond 2^53, rounded to 15 digits"
TRUE_WORDS = frozenset(("true", "yes", "t", "y", "1"))
FALSE_WORDS = frozenset(("false", "no", "f", "n", "0"))
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d.*)?")
_ZONE = re.compile(r".*\d(Z|[+-]\d\d(:?\d\d)?)")
_OTHER_DATE = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{4}|\d{4}[./-]\d{1,2}[./-]\d{1,2}")
_LEADING_ZERO = re.compile(r"0\d+")  # 00501: a code, not a number
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class TypedColumn:
    """Values (N,) of one column type, as codecs expect them, and where they are missing (N,)."""

    kind: str
    values: np.ndarray
    missing: np.ndarray
    distinct: int
    note: str = ""


def read_column(column: pd.Series[Any], kind: str | None = None) -> TypedColumn:
    """The column as the type `kind`, which is inferred if it is not given."""
    name, raw = str(column.name), raw_values(column)
    if kind is None and isinstance(column.dtype, pd.CategoricalDtype):
        kind = "category"
    if kind is not None:
        return _READERS[kind](name, raw)
    if isinstance(raw, Words):
        return _inferred(name, raw)
    if isinstance(raw, Booleans):
        return _boolean(name, raw)
    if isinstance(raw, Dates):
        return _date(name, raw)
    if not _is_whole(raw.values):
        return _number(name, raw)
    if raw.values.dtype.kind == "i" and int(np.abs(raw.values).max()) > MAX_EXACT_INTEGER:
        return replace(_number(name, raw), note=ROUNDED_NOTE)
    return _integer(name, raw)


# --- inference from words -------------------------------------------------------------------------


def _parsed(words: Words) -> np.ndarray:
    """The words as numbers (K,), NaN where they are not."""
    plain = pd.Series(list(words.words), dtype=object)
    return pd.to_numeric(plain, errors="coerce").to_numpy(np.float64)


def _missing_markers(words: Words) -> np.ndarray:
    """Which words (K,) mark a missing value among numbers or dates."""
    return np.array([word.lower() in MISSING_MARKERS for word in words.words], bool)


def _inferred(name: str, words: Words) -> TypedColumn:
    """Numbers or dates if all words are; ModelError if only nearly all are; else categories."""
    marks, dates = _missing_markers(words), words.matching(ISO_DATE)
    zeros = bool(words.matching(_LEADING_ZERO).any())
    numeric = ~np.isnan(_parsed(words)) & (not zeros)
    if numeric.any() and (numeric | marks).all():
        return _numeric(name, words)
    if dates.any() and (dates | marks).all():
        return _dated(name, words)
    spelled = None if zeros else _normalised(words, spellings.numbers)
    if spelled is not None and spelled.whole:
        return _noted(_numeric(name, spelled.words), spelled.note)
    numeric |= False if spelled is None else spelled.fits
    spelled = _normalised(words, spellings.dates)
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


def _noted(read: TypedColumn, first: str) -> TypedColumn:
    """The column with `first` in front of its note."""
    return replace(read, note="; ".join(part for part in (first, read.note) if part))


def _numeric(name: str, words: Words) -> TypedColumn:
    made = _number(name, words)
    return _integer(name, words) if _is_whole(made.values) else made


def _dated(name: str, words: Words) -> TypedColumn:
    try:
        return _date(name, words)
    except DatesOutOfRange:
        note = "dates before 1678 or after 2261, taken as words"
        return replace(_category(name, words), note=note)


@dataclass(frozen=True)
class _Normalised:
    """Words in normal form; `fits` (K,): which of them could be converted."""

    words: Words
    fits: np.ndarray
    note: str
    whole: bool


def _normalised(
    words: Words, rule: Callable[[Sequence[str]], spellings.Normalised | None]
) -> _Normalised | None:
    """The words in the normal form of `rule`, if it applies; missing markers stay."""
    marks = _missing_markers(words)
    known = np.flatnonzero(~marks).tolist()
    found = rule([words.words[code] for code in known])
    if found is None:
        return None
    plain, fits = list(words.words), np.zeros(len(marks), bool)
    for code, word in zip(known, found.plain, strict=True):
        fits[code] = word is not None
        plain[code] = plain[code] if word is None else word
    if rule is not spellings.numbers:  # 2020-02-31 is no date
        fits[known] &= _timestamps([plain[code] for code in known]).notna().to_numpy()
    made = Words(words.codes, plain)
    return _Normalised(made, fits, found.note, bool((fits | marks).all()))


def _timestamps(plain: Sequence[str | None]) -> pd.Series[Any]:
    made = pd.Series(list(plain), dtype=object)
    return pd.to_datetime(made, errors="coerce", format="ISO8601", utc=True)


def _mixed(name: str, words: Words, odd: np.ndarray, what: str) -> ModelError:
    """Error for a column that is nearly all of one type; `odd` (K,) are the other words."""
    counts = words.counts()
    rows = sorted((words.row(int(code)), int(code)) for code in np.flatnonzero(odd)[:100])[:3]
    first = ", ".join(f"{words.words[code]!r} in row {row}" for row, code in rows)
    return ModelError(
        f"{name} holds {what} but for {int(counts[odd].sum()):,} of {int(counts.sum()):,} values: "
        f"{first}",
        remedy=("repair them, leave them empty, or ", *as_category(name)),
    )


def parsed_text(column: pd.Series[Any]) -> np.ndarray | None:
    """A column of text as dates or numbers (N,), if all of its words are."""
    if not pd.api.types.is_string_dtype(column.dtype):
        return None
    raw = raw_values(column)
    if not isinstance(raw, Words):
        return None
    try:
        made = _inferred(str(column.name), raw)
    except ModelError:  # nearly all of one type, or impossible dates: stays text
        return None
    return None if made.kind == "category" else made.values


# --- conversion to a type -------------------------------------------------------------------------


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


def _number(name: str, raw: Raw) -> TypedColumn:
    note = ""
    if isinstance(raw, Dates):
        raise ModelError(
            f"{name} cannot be a number: it holds dates",
            remedy=("learn it as such (", with_type(name, "date"), ")"),
        )
    if isinstance(raw, Booleans):
        raw = Numbers(np.where(raw.codes < 0, np.nan, raw.codes.astype(np.float64)))
    spelled = ""
    if isinstance(raw, Words):
        raw, spelled = _normalised_if_needed(raw, np.isnan(_parsed(raw)), spellings.numbers)
        numbers, marks = _parsed(raw), _missing_markers(raw)
        odd = np.isnan(numbers) & ~marks
        if odd.any():
            row, word = raw.first(odd)
            raise _impossible(name, "a number", word, row, *as_category(name))
        if marks.any():
            said = " or ".join(repr(word) for word in np.array(raw.words)[marks].tolist())
            note = f"{said} is taken as missing, {int(raw.counts()[marks].sum()):,} times"
        raw = to_numbers(pd.Series(raw.spread(numbers, np.nan), name=name))
    values = raw.values.astype(np.float64)
    return _noted(TypedColumn("number", values, np.isnan(values), _distinct(values), note), spelled)


def _normalised_if_needed(
    words: Words, odd: np.ndarray, rule: Callable[[Sequence[str]], spellings.Normalised | None]
) -> tuple[Words, str]:
    """The words by `rule` and its note, where some words are `odd` (K,) and all fit the rule."""
    if not (odd & ~_missing_markers(words)).any():
        return words, ""
    spelled = _normalised(words, rule)
    return (words, "") if spelled is None or not spelled.whole else (spelled.words, spelled.note)


def _integer(name: str, raw: Raw) -> TypedColumn:
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
    return TypedColumn("integer", values, made.missing, made.distinct, made.note)


def _category(name: str, raw: Raw) -> TypedColumn:
    words = raw if isinstance(raw, Words) else _in_words(raw)
    values = words.spread(np.array([*words.words, None], dtype=object)[:-1], None)
    return TypedColumn("category", values, words.codes < 0, int((words.counts() > 0).sum()))


def _in_words(raw: Numbers | Booleans | Dates) -> Words:
    """Numbers, booleans and dates as text."""
    if isinstance(raw, Booleans):
        return Words(raw.codes, ["False", "True"])
    codes, kinds = pd.factorize(raw.values, sort=True)
    if isinstance(raw, Dates):
        return Words(codes, iso(kinds))
    whole = _is_whole(raw.values)
    return Words(codes, [str(int(each)) if whole else repr(float(each)) for each in kinds])


def _boolean(name: str, raw: Raw) -> TypedColumn:
    if isinstance(raw, Booleans):
        codes = raw.codes.astype(np.int64)
    else:
        words = raw if isinstance(raw, Words) else _in_words(raw)
        lower = [word.lower() for word in words.words]
        odd = np.array(
            [word not in TRUE_WORDS | FALSE_WORDS | MISSING_MARKERS for word in lower], bool
        )
        if odd.any():
            row, word = words.first(odd)
            remedy = ("write true, yes or 1, false, no or 0, or ", *as_category(name))
            raise _impossible(name, "true or false", word, row, *remedy)
        truth = [1 if word in TRUE_WORDS else 0 if word in FALSE_WORDS else -1 for word in lower]
        codes = words.spread(np.array(truth, np.int64), -1)
    missing = codes < 0
    values = np.array([False, True, None], dtype=object)[codes] if missing.any() else codes > 0
    return TypedColumn("boolean", values, missing, len(np.unique(codes[~missing])))


def _date(name: str, raw: Raw) -> TypedColumn:
    if isinstance(raw, Numbers) and _is_whole(raw.values):
        days = _normalised(_in_words(raw), spellings.compact)
        raw = days.words if days is not None and days.whole else raw
    if isinstance(raw, Words):
        raw = _dates_in(name, raw)
    if not isinstance(raw, Dates):
        what = "numbers" if isinstance(raw, Numbers) else "booleans"
        raise ModelError(
            f"{name} cannot be a date: it holds {what}", remedy="write dates as 2020-01-31"
        )
    return TypedColumn("date", raw.values, np.isnat(raw.values), _distinct(raw.values), raw.note)


def _dates_in(name: str, words: Words) -> Dates:
    words, spelled = _normalised_if_needed(words, ~words.matching(ISO_DATE), spellings.dates)
    words, _ = _normalised_if_needed(words, ~words.matching(ISO_DATE), spellings.compact)
    marks = _missing_markers(words)
    made = _timestamps([None if mark else w for w, mark in zip(words.words, marks, strict=True)])
    odd = made.isna().to_numpy() & ~marks
    if odd.any():
        row, word = words.first(odd)
        remedy = ("write dates as 2020-01-31, or ", *as_category(name))
        raise _impossible(name, "a date", word, row, *remedy)
    zoned = any(_ZONE.fullmatch(word[10:]) for word in words.words)
    codes = np.where(np.append(marks, True)[words.codes], -1, words.codes)
    rows = made.reindex(codes).reset_index(drop=True)
    return representable_dates(name, rows, codes >= 0, "times in UTC" if zoned else spelled)


def _distinct(values: np.ndarray) -> int:
    return int(pd.Series(values).nunique())


_READERS: dict[str, Callable[[str, Raw], TypedColumn]] = {
    "number": _number,
    "integer": _integer,
    "category": _category,
    "boolean": _boolean,
    "date": _date,
}
