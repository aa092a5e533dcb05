"""Alignment of two or three tables: the columns that they share, as arrays of numbers.

A column (n,) holds numbers, dates (seconds since 1970) or words (indices into a vocabulary that all
tables share); NaN marks a missing value. Labels of an earlier verdict and row numbers (`sample`,
`instance`) are not columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from surrogate.errors import ModelError
from surrogate.evaluation.weights import LOG_WEIGHT, Array, relative_weights
from surrogate.kinds.kind import listed
from surrogate.kinds.label_names import LABELS, LOG_LIKELIHOOD, label_columns
from surrogate.kinds.signals import Data, samples_of
from surrogate.kinds.tables import spellings
from surrogate.kinds.tables.cells import Booleans, Dates, Numbers, Words, raw_values
from surrogate.kinds.tables.column_types import ISO_DATE, MISSING_MARKERS

MAX_EXPONENT = 300  # of two: squares of larger numbers overflow, of smaller ones underflow
BOOLEAN_WORDS = ("False", "True")


@dataclass(frozen=True)
class Column:
    """One column: `sides` holds its values (n,) in each table, `words` the vocabulary of codes."""

    name: str
    kind: str  # number, date or word
    sides: tuple[Array, ...]
    words: tuple[str, ...] = ()

    @property
    def left(self) -> Array:
        return self.sides[0]

    @property
    def right(self) -> Array:
        """The values of the reference, or of the only table."""
        return self.sides[min(1, len(self.sides) - 1)]

    @cached_property
    def integral(self) -> bool:
        """Whether all numbers of the reference are integers."""
        known = self.right[~np.isnan(self.right)]
        return self.kind == "number" and known.size > 0 and bool((known == np.rint(known)).all())

    @cached_property
    def has_missing(self) -> bool:
        return any(bool(np.isnan(side).any()) for side in self.sides)

    @cached_property
    def exponent(self) -> int:
        """The binary exponent of numbers too large (1e300) or too small (5e-324) to be squared."""
        if self.kind == "word":
            return 0
        known = [side[~np.isnan(side)] for side in self.sides]
        largest = max(float(np.abs(side).max(initial=0.0)) for side in known)
        power = int(np.frexp(largest)[1])
        return power if abs(power) > MAX_EXPONENT else 0

    def rescaled(self) -> Column:
        """The same column in a unit in which squares neither overflow nor underflow."""
        if not self.exponent:
            return self
        return replace(self, sides=tuple(np.ldexp(side, -self.exponent) for side in self.sides))

    def word_counts(self) -> np.ndarray:
        """Rows of all tables with each word, (K,)."""
        both = np.concatenate(self.sides)
        return np.bincount(both[~np.isnan(both)].astype(np.int64), minlength=len(self.words))

    def take(self, rows: Sequence[np.ndarray]) -> Column:
        """The column at some rows of each table."""
        chosen = zip(self.sides, rows, strict=True)
        return replace(self, sides=tuple(side[some] for side, some in chosen))


# --- one table ------------------------------------------------------------------------------------


class Rows:
    """The columns of a table, and the weights (n,) of its rows; rows of weight 0 are dropped."""

    def __init__(self, data: Data, who: str, least: int = 2) -> None:
        self.who = who
        self.count = samples_of(data)
        whole = frame_of(data, who)
        weights = relative_weights(_log_weights(whole), who)
        self.kept = weights > 0
        if self.kept.sum() < least:
            count = int(self.kept.sum())
            raise ModelError(f"{who}: at least {least} are needed, not {count}", value=count)
        self.weights: Array = weights[self.kept]
        rows = whole if self.kept.all() else whole[self.kept]
        self.satisfied: float | None = None
        if "satisfied" in labels_of(data):
            verdicts = rows["satisfied"].to_numpy(np.float64)
            self.satisfied = float(np.average(verdicts, weights=self.weights))
        self.frame = rows[columns_of(data, rows)]
        if not len(self.frame.columns):
            raise ModelError(
                f"{who}: there are no columns of numbers or words",
                remedy="labels, weights and row numbers do not count: give a table of data",
            )


def _log_weights(frame: pd.DataFrame) -> xr.Dataset:
    """The log-weights of rows over (sample,), if the table has them."""
    given = [LOG_WEIGHT] if LOG_WEIGHT in frame.columns else []
    rows = {"sample": np.arange(len(frame))}
    return xr.Dataset({name: ("sample", frame[name].to_numpy()) for name in given}, rows)


def frame_of(data: Data, who: str) -> pd.DataFrame:
    """A dataset over (sample,) or (sample, instance) as a DataFrame, loaded into memory."""
    if isinstance(data, xr.Dataset):
        over = [name for name in ("sample", "instance") if name in data.dims]
        own = [k for k, v in data.data_vars.items() if v.dims and set(v.dims) <= set(over)]
        try:
            plain = data[own].reset_coords(drop=True).compute()
        except MemoryError:
            raise
        except Exception as problem:
            raise ModelError(f"cannot read {who}: {problem}") from None
        full = {str(k): v.broadcast_like(plain).transpose(*over) for k, v in plain.items()}
        return pd.DataFrame({name: v.values.ravel() for name, v in full.items()})
    frame = data.rename(columns=str)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ModelError(
            f"{who}: two columns are named {twice!r}", value=twice, remedy="rename one of them"
        )
    return frame


def labels_of(data: Data) -> list[str]:
    """Names of labels of an earlier verdict; a column that merely has such a name is data."""
    if isinstance(data, pd.DataFrame):
        return label_columns(data)
    return [n for n in LABELS if n in data.data_vars and "kind" not in data[n].attrs]


def columns_of(data: Data, frame: pd.DataFrame) -> list[str]:
    """Names that are neither labels nor row numbers."""
    left = {*labels_of(data), LOG_WEIGHT, LOG_LIKELIHOOD}
    if "sample" in frame.columns and pd.api.types.is_integer_dtype(frame["sample"]):
        left |= {"sample", "instance"}
    return [name for name in frame.columns if name not in left and name[:8] != "Unnamed:"]


# --- shared columns -------------------------------------------------------------------------------


def shared_columns(*tables: Rows) -> tuple[list[Column], tuple[str, ...]]:
    """The columns that all tables have, in the order of the second, and those that some lack."""
    order = list(dict.fromkeys(n for t in (*tables[1:], tables[0]) for n in t.frame.columns))
    common = [name for name in order if all(name in t.frame.columns for t in tables)]
    if not common:
        have = "; ".join(f"{t.who}: {listed(list(t.frame.columns))}" for t in tables)
        raise ModelError(
            f"no column is in common ({have})", remedy="give tables that have the same columns"
        )
    found = [_column(name, tables) for name in common]
    return found, tuple(name for name in order if name not in common)


def _column(name: str, tables: Sequence[Rows]) -> Column:
    """The column in all tables, of one type: text of one table may spell the numbers of another."""
    read = [_read(each, name) for each in tables]
    kinds = {kind for kind, _ in read} - {"missing"}
    if kinds <= {"word"} and kinds:
        return _as_dates(name, read) or _as_words(name, read)
    if len(kinds) > 1 and "word" not in kinds:
        raise _mixed_types(name, tables, read)
    kind = next(iter(kinds - {"word"}), "number")
    convert = _dates if kind == "date" else _numbers
    words = ("word", "missing")
    made = [convert(values) if own in words else values for own, values in read]
    known = [each for each in made if each is not None]
    if len(known) < len(made):
        raise _mixed_types(name, tables, read)
    return Column(name, kind, tuple(known))


def _read(table: Rows, name: str) -> tuple[str, Any]:
    """The type of a column and its values: numbers (n,), or words (n,) with None if missing."""
    try:
        raw = raw_values(table.frame[name])
    except ModelError as problem:
        # the remedy of training, another column type, does not apply to a comparison
        raise ModelError(f"{table.who}: {problem.problem}", remedy="repair or drop it") from None
    match raw:
        case Numbers(values):
            kind, found = "number", values.astype(np.float64)
        case Dates(values):
            seconds = (values - np.datetime64(0, "s")) / np.timedelta64(1, "s")
            kind, found = "date", seconds.astype(np.float64)
        case Booleans(codes):
            words = np.array([*BOOLEAN_WORDS, None], dtype=object)[codes]
            return ("word" if (codes >= 0).any() else "missing"), words
        case Words(codes, kinds):
            words = np.array([*kinds, None], dtype=object)[codes]
            return ("word" if (codes >= 0).any() else "missing"), words
    if np.isnan(found).all():
        return "missing", np.full(len(found), None, dtype=object)
    return kind, found


def _mixed_types(name: str, tables: Sequence[Rows], read: Sequence[tuple[str, Any]]) -> ModelError:
    held = [f"{k}s in {t.who}" for t, (k, _) in zip(tables, read, strict=True) if k != "missing"]
    return ModelError(
        f"{name} holds {', '.join(held)}", value=name, remedy="repair it, or drop it from one table"
    )


def _as_dates(name: str, read: Sequence[tuple[str, Any]]) -> Column | None:
    """Words of all tables as dates, if all are."""
    made = [_dates(values) for _, values in read]
    known = [each for each in made if each is not None]
    return Column(name, "date", tuple(known)) if len(known) == len(made) else None


def _dates(words: Any) -> Array | None:
    """Words as dates (n,) in seconds since 1970; None if some are not dates."""
    codes, kinds = _distinct(words)
    if not all(ISO_DATE.fullmatch(word) for word in kinds):
        spelled = spellings.dates(kinds)
        if spelled is None or not spelled.whole:
            return None
        kinds = [word for word in spelled.plain if word is not None]
    plain = pd.Series(kinds, dtype=object)
    stamps = pd.to_datetime(plain, errors="coerce", format="ISO8601", utc=True)
    if stamps.isna().any():
        return None
    seconds = (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)
    return np.asarray(np.append(seconds.to_numpy(np.float64), np.nan)[codes])


def _numbers(words: Any) -> Array | None:
    """Words as numbers (n,), True and False as 1 and 0; None if some are not numbers."""
    codes, kinds = _distinct(words)
    plain = [float(BOOLEAN_WORDS.index(word)) if word in BOOLEAN_WORDS else word for word in kinds]
    read = pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce").to_numpy(np.float64)
    spelled = spellings.numbers(kinds) if np.isnan(read).any() else None
    if spelled is not None and spelled.whole:
        read = np.array([float(word) for word in spelled.plain if word is not None])
    return np.asarray(np.append(read, np.nan)[codes]) if np.isfinite(read).all() else None


def _distinct(words: Any) -> tuple[np.ndarray, list[str]]:
    """Codes (n,) into the distinct words; markers such as "?" and "NA" are missing."""
    plain = np.array(
        [None if w is None or w.lower() in MISSING_MARKERS else w for w in words], object
    )
    codes, kinds = pd.factorize(plain)
    return codes, [str(kind) for kind in kinds]


def _as_words(name: str, read: Sequence[tuple[str, Any]]) -> Column:
    """Codes into the vocabulary of all tables, in alphabetical order."""
    codes, kinds = pd.factorize(np.concatenate([words for _, words in read]), sort=True)
    places = np.where(codes < 0, np.nan, codes)
    ends = np.cumsum([len(words) for _, words in read])[:-1]
    return Column(name, "word", tuple(np.split(places, ends)), tuple(map(str, kinds)))
