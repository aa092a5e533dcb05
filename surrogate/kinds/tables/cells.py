"""One column of a table as it is stored: numbers, truth values, dates or words.

Words are kept as codes into the different ones, so that what a column means is found from these
alone, however many rows there are.
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


class Unlearnable(ModelError):
    """A column of a type that rows cannot have; `why` in a few words."""

    def __init__(self, name: str, why: str, remedy: Remedy) -> None:
        super().__init__(f"{name} {why}", remedy=remedy)
        self.why = why


class Beyond(Unlearnable):
    """Dates that most of them cannot be told in nanoseconds."""


@dataclass(frozen=True)
class Numbers:
    values: np.ndarray  # (N,) int64, or float64 with NaN


@dataclass(frozen=True)
class Truths:
    codes: np.ndarray  # (N,) 0, 1, and -1 where missing


@dataclass(frozen=True)
class Dates:
    values: np.ndarray  # (N,) datetime64[ns] with NaT
    note: str = ""


@dataclass(frozen=True)
class Words:
    codes: np.ndarray  # (N,) into words; -1 where missing
    words: Sequence[str]  # K different ones

    def row(self, code: int) -> int:
        """The first row with this word."""
        return int((self.codes == code).argmax())

    def first(self, chosen: np.ndarray) -> tuple[int, str]:
        """The first row with a word among the chosen (K,), and that word."""
        row = int(np.append(chosen, False)[self.codes].argmax())
        return row, self.words[int(self.codes[row])]

    def counts(self) -> np.ndarray:
        """How often each word comes, (K,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.words))

    def share(self, chosen: np.ndarray) -> float:
        """The share of rows, of those that have one, whose word is among the chosen (K,)."""
        counts = self.counts()
        return float(counts[chosen].sum() / max(1, counts.sum()))

    def matching(self, pattern: re.Pattern[str]) -> np.ndarray:
        return np.array([pattern.fullmatch(word) is not None for word in self.words], bool)

    def spread(self, values: np.ndarray, absent: Any) -> np.ndarray:
        """Values (K,) of the words as values (N,) of the rows."""
        found: np.ndarray = np.append(values, np.array([absent], values.dtype))[self.codes]
        return found


Raw = Numbers | Truths | Dates | Words


Part = str | Action  # of a remedy


def with_type(name: str, kind: str) -> Action:
    """The setting that makes a column be of one type."""
    pair = shlex.quote(f"{name}={kind}")
    return Action(f'types={{"{name}": "{kind}"}}', f"--type {pair}")


def as_category(name: str) -> tuple[Part, ...]:
    """A remedy: learn a column as a category."""
    return ("take all as categories (", with_type(name, "category"), ")")


def leave_out(name: str) -> tuple[Part, ...]:
    """A remedy: do not learn a column."""
    return ("leave the column out (", with_type(name, "ignore"), ")")


def raw_of(column: pd.Series[Any]) -> Raw:
    """The values of a column, whatever its type."""
    name, kind, types = str(column.name), column.dtype, pd.api.types
    if isinstance(kind, pd.CategoricalDtype):
        return words_of(column.cat.codes.to_numpy(), list(kind.categories))
    if types.is_bool_dtype(kind):
        return Truths(column.astype("boolean").astype("Int8").fillna(-1).to_numpy(np.int8))
    if types.is_complex_dtype(kind) or types.is_timedelta64_dtype(kind):
        what = "durations" if types.is_timedelta64_dtype(kind) else "complex numbers"
        raise Unlearnable(name, f"holds {what}", ("make them plain numbers, or ", *leave_out(name)))
    if types.is_numeric_dtype(kind):
        return numbers_of(column)
    if types.is_datetime64_any_dtype(kind):
        return _dates(column)
    if kind == np.dtype(object):
        return _objects(column)
    if types.is_string_dtype(kind):
        return words_of(*pd.factorize(column))
    raise Unlearnable(
        name,
        f"holds values of the type {kind}",
        (
            "a column is numbers, words, truth values or dates: convert it, or ",
            *leave_out(name),
        ),
    )


def _objects(column: pd.Series[Any]) -> Raw:
    """A column of Python's own values: one type for all, or words and numbers mixed."""
    try:
        known = column[column.notna()]
        found = set(map(type, known))
    except (TypeError, ValueError):  # values that are tables themselves
        found = {object}

    def only(*types: type) -> bool:
        return bool(found) and all(issubclass(each, types) for each in found)

    if only(bool, np.bool_):
        return Truths(column.map({True: 1, False: 0}).fillna(-1).to_numpy(np.int8))
    if only(int, float, np.number, Decimal) and not only(np.complexfloating):
        try:
            whole = only(int, np.integer)
            return numbers_of(column.astype("Int64") if whole else column.astype(float))
        except (OverflowError, TypeError):  # whole numbers beyond 2^63
            return numbers_of(column.astype(float))
    if only(date, np.datetime64):
        return _dates(column)
    odd = [each for each in found if not issubclass(each, SCALARS)]
    if odd:
        row = int(column.map(lambda value: isinstance(value, odd[0])).to_numpy().argmax())
        raise Unlearnable(
            str(column.name),
            f"holds a {odd[0].__name__} in row {row}",
            (
                "a cell is one number, word, truth value or date: give its parts columns of their "
                "own, or ",
                *leave_out(str(column.name)),
            ),
        )
    return words_of(*pd.factorize(column))


def numbers_of(column: pd.Series[Any]) -> Numbers:
    """Finite numbers, whole ones exactly."""
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
    return bounded(str(column.name), made, column.notna().to_numpy(), note)


def bounded(name: str, read: Any, known: np.ndarray, note: str) -> Dates:
    """Dates (N,) in nanoseconds; of the `known` (N,), a few that lie too far away are missing."""
    made = pd.Series(read).dt.tz_localize(None)
    inside = (made >= pd.Timestamp("1678-01-01")) & (made < pd.Timestamp("2262-01-01"))
    beyond = known & ~inside.to_numpy()
    if beyond.any():
        row = int(beyond.argmax())
        first = str(made.iloc[row])[:10]
        if beyond.sum() > known.sum() / 2:
            remedy = ("dates lie between 1678 and 2261: ", *as_category(name))
            raise Beyond(name, f"is {first} in row {row}", remedy)
        made = made.mask(beyond)
        said = f"{first} and the like are taken as missing, {int(beyond.sum()):,} times"
        note = f"{note}; {said}" if note else said
    return Dates(made.to_numpy("datetime64[ns]"), note)


def words_of(codes: np.ndarray, kinds: Any) -> Words:
    """Words without blanks around them; empty ones are missing, and so is what stands for that."""
    plain = [k.decode("utf-8", "replace") if isinstance(k, bytes) else str(k) for k in kinds]
    plain = ["" if word.strip() == ABSENT else word for word in plain]
    found, words = pd.factorize(np.array(["", *(word.strip() for word in plain)], dtype=object))
    place = np.append(found[1:] - 1, -1)  # of "" and of what was missing before: -1
    return Words(place[np.asarray(codes)], list(words[1:]))
