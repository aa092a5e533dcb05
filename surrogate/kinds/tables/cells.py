"""Cells of one column as they are stored: numbers, booleans, dates or words.

Words are dictionary-encoded, so that the type of a column is inferred from its distinct words only,
however many rows there are.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from constraints.errors import Action, Remedy
from surrogate.errors import ModelError
from surrogate.kinds.label_names import ABSENT

SCALARS = (str, bytes, int, float, np.generic, Decimal)


class UnsupportedColumn(ModelError):
    """A column of a type that cannot be learned; `why` in a few words."""

    def __init__(self, name: str, why: str, remedy: Remedy) -> None:
        super().__init__(f"{name} {why}", remedy=remedy)
        self.why = why


class DatesOutOfRange(UnsupportedColumn):
    """A column most of whose dates are outside the range of datetime64[ns]."""


@dataclass(frozen=True)
class Numbers:
    values: np.ndarray  # (N,) int64, or float64 with NaN


@dataclass(frozen=True)
class Booleans:
    codes: np.ndarray  # (N,) 0, 1, and -1 where missing


@dataclass(frozen=True)
class Dates:
    values: np.ndarray  # (N,) datetime64[ns] with NaT
    note: str = ""


@dataclass(frozen=True)
class Words:
    codes: np.ndarray  # (N,) into words; -1 where missing
    words: Sequence[str]  # K distinct ones

    def row(self, code: int) -> int:
        """The first row with this word."""
        return int((self.codes == code).argmax())

    def first(self, chosen: np.ndarray) -> tuple[int, str]:
        """The first row with a word among the chosen (K,), and that word."""
        row = int(np.append(chosen, False)[self.codes].argmax())
        return row, self.words[int(self.codes[row])]

    def counts(self) -> np.ndarray:
        """Rows with each word, (K,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.words))

    def share(self, chosen: np.ndarray) -> float:
        """The share of non-missing rows whose word is among the chosen (K,)."""
        counts = self.counts()
        return float(counts[chosen].sum() / max(1, counts.sum()))

    def matching(self, pattern: re.Pattern[str]) -> np.ndarray:
        return np.array([pattern.fullmatch(word) is not None for word in self.words], bool)

    def spread(self, values: np.ndarray, absent: Any) -> np.ndarray:
        """Values (K,) by word as values (N,) by row; `absent` where the word is missing."""
        found: np.ndarray = np.append(values, np.array([absent], values.dtype))[self.codes]
        return found


Raw = Numbers | Booleans | Dates | Words


Part = str | Action  # of a remedy


def with_type(name: str, kind: str) -> Action:
    """The setting that gives a column a type."""
    pair = shlex.quote(f"{name}={kind}")
    return Action(f'types={{"{name}": "{kind}"}}', f"--type {pair}")


def as_category(name: str) -> tuple[Part, ...]:
    """A remedy: learn a column as a category."""
    return ("take all as categories (", with_type(name, "category"), ")")


def leave_out(name: str) -> tuple[Part, ...]:
    """A remedy: ignore a column."""
    return ("leave the column out (", with_type(name, "ignore"), ")")


def raw_values(column: pd.Series[Any]) -> Raw:
    """The cells of a column of any pandas type."""
    name, kind, types = str(column.name), column.dtype, pd.api.types
    if isinstance(kind, pd.CategoricalDtype):
        return to_words(column.cat.codes.to_numpy(), list(kind.categories))
    if types.is_bool_dtype(kind):
        return Booleans(column.astype("boolean").astype("Int8").fillna(-1).to_numpy(np.int8))
    if types.is_complex_dtype(kind) or types.is_timedelta64_dtype(kind):
        what = "durations" if types.is_timedelta64_dtype(kind) else "complex numbers"
        raise UnsupportedColumn(
            name, f"holds {what}", ("make them plain numbers, or ", *leave_out(name))
        )
    if types.is_numeric_dtype(kind):
        return to_numbers(column)
    if types.is_datetime64_any_dtype(kind):
        return _dates(column)
    if kind == np.dtype(object):
        return _objects(column)
    if types.is_string_dtype(kind):
        return to_words(*pd.factorize(column))
    raise UnsupportedColumn(
        name,
        f"holds values of the type {kind}",
        (
            "a column is numbers, words, booleans or dates: convert it, or ",
            *leave_out(name),
        ),
    )


def _objects(column: pd.Series[Any]) -> Raw:
    """The cells of an object column: all of one type, or words and numbers mixed."""
    try:
        known = column[column.notna()]
        found = set(map(type, known))
    except (TypeError, ValueError):  # cells that are tables themselves
        found = {object}

    def only(*types: type) -> bool:
        return bool(found) and all(issubclass(each, types) for each in found)

    if only(bool, np.bool_):
        return Booleans(column.map({True: 1, False: 0}).fillna(-1).to_numpy(np.int8))
    if only(int, float, np.number, Decimal) and not only(np.complexfloating):
        try:
            whole = only(int, np.integer)
            return to_numbers(column.astype("Int64") if whole else column.astype(float))
        except (OverflowError, TypeError):  # whole numbers beyond 2^63
            return to_numbers(column.astype(float))
    if only(date, np.datetime64):
        return _dates(column)
    odd = [each for each in found if not issubclass(each, SCALARS)]
    if odd:
        row = int(column.map(lambda value: isinstance(value, odd[0])).to_numpy().argmax())
        raise UnsupportedColumn(
            str(column.name),
            f"holds a {odd[0].__name__} in row {row}",
            (
                "a cell is one number, word, boolean or date: give its parts columns of their "
                "own, or ",
                *leave_out(str(column.name)),
            ),
        )
    return to_words(*pd.factorize(column))


def to_numbers(column: pd.Series[Any]) -> Numbers:
    """Finite numbers; integers exactly."""
    whole = pd.api.types.is_integer_dtype(column) and not column.isna().any()
    if whole and int(column.max()) < 2**63:
        return Numbers(column.to_numpy(np.int64))
    values = column.to_numpy(np.float64, na_value=np.nan)
    infinite = np.isinf(values)
    if infinite.any():
        raise ModelError(
            f"{column.name} is infinite in {int(infinite.sum()):,} of {len(values):,} rows, first "
            f"in row {int(infinite.argmax())}",
            remedy="repair them, or leave them empty",
        )
    return Numbers(values)


def _dates(column: pd.Series[Any]) -> Dates:
    made = pd.to_datetime(column, errors="coerce", utc=True)
    zoned = isinstance(column.dtype, pd.DatetimeTZDtype)
    note = "times in UTC" if zoned else ""
    return representable_dates(str(column.name), made, column.notna().to_numpy(), note)


def representable_dates(name: str, read: Any, known: np.ndarray, note: str) -> Dates:
    """Dates (N,) as datetime64[ns]; the few `known` (N,) ones out of its range become missing."""
    made = pd.Series(read).dt.tz_localize(None)
    inside = (made >= pd.Timestamp("1678-01-01")) & (made < pd.Timestamp("2262-01-01"))
    beyond = known & ~inside.to_numpy()
    if beyond.any():
        row = int(beyond.argmax())
        first = str(made.iloc[row])[:10]
        if beyond.sum() > known.sum() / 2:
            remedy = ("dates lie between 1678 and 2261: ", *as_category(name))
            raise DatesOutOfRange(name, f"is {first} in row {row}", remedy)
        made = made.mask(beyond)
        said = f"{first} and the like are taken as missing, {int(beyond.sum()):,} times"
        note = f"{note}; {said}" if note else said
    return Dates(made.to_numpy("datetime64[ns]"), note)


def to_words(codes: np.ndarray, kinds: Any) -> Words:
    """Words stripped of blanks; empty words and ABSENT are missing."""
    plain = [k.decode("utf-8", "replace") if isinstance(k, bytes) else str(k) for k in kinds]
    plain = ["" if word.strip() == ABSENT else word for word in plain]
    found, words = pd.factorize(np.array(["", *(word.strip() for word in plain)], dtype=object))
    place = np.append(found[1:] - 1, -1)  # of "" and of what was missing before: -1
    return Words(place[np.asarray(codes)], list(words[1:]))
