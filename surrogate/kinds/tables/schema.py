"""The schema of a table: column types, and the rows as a dataset over (sample,) and back.

Row i of a table is a sample x_i with parts of several types: numbers, integers, categories,
booleans, dates; some may be missing. `infer_types` infers the types, leaves out columns that no
model of rows can learn (identifiers, row numbers, text), and reports both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Setting
from surrogate.errors import ModelError, unknown_name
from surrogate.io.tables import date_format
from surrogate.kinds.kind import listed
from surrogate.kinds.label_names import LABELS, LOG_LIKELIHOOD, RULE_PREFIX, label_columns
from surrogate.kinds.tables import column_types as kinds
from surrogate.kinds.tables.cells import UnsupportedColumn, leave_out, with_type
from surrogate.kinds.tables.column_types import COLUMN_TYPES as COLUMN_TYPES
from surrogate.kinds.tables.column_types import MAX_CATEGORIES, TypedColumn

MISSING_CHOICES = ("model", "refuse", "drop")
MIN_TRAINING_ROWS = 50
IDENTIFIER_SHARE = 0.9  # of distinct words among the rows of an identifier
MIN_IDENTIFIERS = 20  # distinct words of an identifier
MIN_TEXT_LENGTH = 40  # mean number of characters
TEXT_SAMPLE_ROWS = 5_000  # that decide whether words are text
RESERVED_NAMES = ("sample", "instance", "rule", *LABELS)  # names of dimensions and labels
_IDENTIFIER_NAME = re.compile(
    r"(?i:(^|[\W_])(uu|u|gu)?id)$|[a-z]I[dD]$"
)  # id, user_id, PassengerId
UNNAMED = "Unnamed: "  # what pandas calls a column without a name
NO_TYPES: Mapping[str, str] = MappingProxyType({})
HEADINGS = {
    "number": "numbers",
    "integer": "whole numbers",
    "category": "categories",
    "boolean": "true or false",
    "date": "dates",
}


@dataclass(frozen=True)
class ColumnSummary:
    """The type of one column; `note` says why, where that is not obvious."""

    name: str
    kind: str
    missing: int
    distinct: int
    note: str = ""

    def __str__(self) -> str:
        return f"{self.name} ({self.distinct:,})" if self.kind == "category" else self.name


@dataclass(frozen=True)
class TypedTable:
    """A table as a dataset: variables over (sample,), with their column type in attrs["kind"].

    number: float64, NaN where missing; integer: int64, or float64 with NaN; category: objects, str
    or None; boolean: bool, or objects True, False, None; date: datetime64[ns] with NaT, and in
    attrs the `format`: "date" or "datetime".
    """

    data: xr.Dataset
    columns: tuple[ColumnSummary, ...]
    dropped: int = 0  # rows, for missing values

    def lines(self) -> list[str]:
        """A summary for people: columns by type, what is left out, missing values."""
        made = []
        for kind, heading in HEADINGS.items():
            names = [str(each) for each in self.columns if each.kind == kind]
            made += [f"{heading}: {listed(names)}"] if names else []
        out = [f"{each.name} ({each.note})" for each in self.columns if each.kind == "ignore"]
        made += [f"left out: {listed(out)}"] if out else []
        learned = [each for each in self.columns if each.kind != "ignore"]
        made += [f"{each.name}: {each.note}" for each in learned if each.note]
        gaps = [f"{each.name} {each.missing:,}" for each in learned if each.missing]
        if self.dropped:
            many = f"{self.dropped:,} of {self.dropped + self.data.sizes['sample']:,} rows"
            made.append(f"missing values: {listed(gaps)}; the {many} that have some are dropped")
        elif gaps:
            made.append(f"missing values, which are modelled: {listed(gaps)}")
        return made


def infer_types(
    frame: pd.DataFrame, types: Mapping[str, str] = NO_TYPES, missing: str = "model"
) -> TypedTable:
    """The rows of a table with inferred types; `types` {column: type of COLUMN_TYPES} overrules.

    `missing`: "model" missing values as such, "refuse" them, or "drop" their rows.
    """
    table, types, renamed = _checked(frame, types, missing)
    verdicts = label_columns(frame.rename(columns=lambda name: str(name).strip()))
    labels = [f"{name}_" if name in RESERVED_NAMES else name for name in verdicts]
    labels = [name for name in labels if name not in types]
    numbers = ("sample_", "instance_") if {"sample_", "instance_"} <= {*renamed} else ()
    found: dict[str, TypedColumn] = {}
    told: list[ColumnSummary] = []
    for name in table.columns:
        kind = types.get(name)
        note = "as asked" if kind == "ignore" else "a verdict of surrogate" * (name in labels)
        if kind is None and name in numbers:
            note = "it tells which rows belong together"
        if not note:
            try:
                read = kinds.read_column(table[name], kind)
                note = _left_out(name, read, kind is not None)
            except UnsupportedColumn as problem:
                if kind is not None:
                    raise
                note = problem.why
        if note:
            gaps = int(table[name].isna().sum())
            told.append(ColumnSummary(renamed.get(name) or name, "ignore", gaps, 0, note))
            continue
        found[name] = read
        said = read.note
        if name in renamed:
            named = f"called {renamed[name]!r} in the table, a name that cannot be used here"
            said = f"{named}; {said}" if said else named
        told.append(ColumnSummary(name, read.kind, int(read.missing.sum()), read.distinct, said))
    if not found:
        why = listed([f"{each.name} ({each.note})" for each in told])
        raise ModelError(
            f"no column is left to learn from (left out: {why})",
            remedy=("overrule it (", with_type(told[0].name, "category"), ")"),
        )
    keep = _kept(found, missing)
    data = xr.Dataset({name: _variable(read, keep) for name, read in found.items()})
    about = {"standard_name": "realization", "long_name": "row", "units": "1"}
    data = data.assign_coords(sample=("sample", np.arange(keep.sum()), about))
    return TypedTable(data, tuple(told), int((~keep).sum()))


def _checked(
    frame: pd.DataFrame, types: Mapping[str, str], missing: str
) -> tuple[pd.DataFrame, Mapping[str, str], Mapping[str, str]]:
    """The table with usable names, `types` by these names, and {new name: old name}."""
    if not isinstance(frame, pd.DataFrame) or frame.empty:
        raise ModelError("the table is empty", remedy="give one with a header and rows")
    if missing not in MISSING_CHOICES:
        raise ModelError(f"missing is not {missing!r}", value=missing, allowed=MISSING_CHOICES)
    if frame.columns.nlevels > 1:
        raise ModelError(
            "the columns have names of several levels", remedy="give each a single one"
        )
    table = frame.rename(columns=lambda name: str(name).strip()).reset_index(drop=True)
    if not table.columns.is_unique:
        twice = table.columns[table.columns.duplicated()][0]
        raise ModelError(f"the table has two columns named {twice!r}", remedy="rename one of them")
    for name, kind in types.items():
        if name not in table.columns:
            raise unknown_name("column", name, table.columns)
        if kind not in COLUMN_TYPES:
            raise ModelError(
                f"the type of {name} is not {kind!r}", value=kind, allowed=COLUMN_TYPES
            )
    _enough(len(table))
    names = _usable_names(list(table.columns))
    old = {new: name for name, new in names.items() if new != name}
    return table.rename(columns=names), {names[n]: kind for n, kind in types.items()}, old


def _usable_names(names: Sequence[str]) -> dict[str, str]:
    """{name in the table: name that datasets and formulas can spell}."""
    made: dict[str, str] = {}
    for at, name in enumerate(names):
        plain = "".join(each if each.isprintable() else " " for each in name.replace('"', "'"))
        new = " ".join(plain.split()) if plain != name else name
        new = new or f"{UNNAMED}{at}"
        while new in RESERVED_NAMES or (new != name and (new in names or new in made.values())):
            new += "_"
        made[name] = new
    return made


def _enough(rows: int, left: str = "") -> None:
    if rows < MIN_TRAINING_ROWS:
        raise ModelError(
            f"{rows} rows{left} are too few to learn from",
            value=rows,
            remedy=f"give {MIN_TRAINING_ROWS} or more",
        )


def _left_out(name: str, read: TypedColumn, forced: bool) -> str:
    """Why a column is left out; empty if it is learned."""
    rows = int((~read.missing).sum())
    if not rows:
        return "all values are missing"
    if read.kind == "category" and read.distinct > MAX_CATEGORIES and forced:
        raise ModelError(
            f"{name} has {read.distinct:,} different words, and a category has at most "
            f"{MAX_CATEGORIES:,}",
            value=read.distinct,
            remedy=("group them, or ", *leave_out(name)),
        )
    if forced:
        return ""
    if read.kind == "category" and read.distinct > rows / 2 and _is_text(read):
        return f"text: {read.distinct:,} different ones in {rows:,} rows"
    if read.kind == "category" and read.distinct >= max(MIN_IDENTIFIERS, IDENTIFIER_SHARE * rows):
        return f"an identifier: {read.distinct:,} different words in {rows:,} rows"
    if read.kind == "category" and read.distinct > MAX_CATEGORIES:
        return f"{read.distinct:,} different words, and {MAX_CATEGORIES:,} can be learned"
    if read.note == kinds.ROUNDED_NOTE and read.distinct >= IDENTIFIER_SHARE * rows:
        return f"an identifier: {read.distinct:,} different numbers of 16 digits or more"
    if read.kind == "integer" and not read.missing.any():
        counted = np.array_equal(read.values - read.values[0], np.arange(rows))
        index = name.lower() == "index" or name.startswith(f"{UNNAMED}0")
        if (counted and read.values[0] in (0, 1)) or (index and read.distinct == rows):
            return f"a row number: {', '.join(map(str, read.values[:3]))}, ..."
        if read.distinct == rows and _IDENTIFIER_NAME.search(name):
            return f"an identifier: {rows:,} different numbers in {rows:,} rows"
    return "it has no name in the header" if name.startswith(UNNAMED) else ""


def _is_text(read: TypedColumn) -> bool:
    """Whether words are free text: long, with blanks."""
    known = [str(word) for word in read.values[~read.missing][:TEXT_SAMPLE_ROWS]]
    long = sum(map(len, known)) > MIN_TEXT_LENGTH * len(known)
    return long and sum(word.count(" ") for word in known) >= 3 * len(known)


def _kept(found: Mapping[str, TypedColumn], missing: str) -> np.ndarray:
    """The rows to learn from, (N,)."""
    some = {name: read.missing for name, read in found.items() if read.missing.any()}
    if missing == "refuse" and some:
        counts = listed([f"{name} {int(gaps.sum()):,}" for name, gaps in some.items()])
        name, gaps = next(iter(some.items()))
        raise ModelError(
            f"some values are missing: {counts}; first {name} in row {int(gaps.argmax())}",
            remedy=(
                "repair them, drop their rows (",
                Setting("missing", "drop"),
                "), or learn where they are missing (",
                Setting("missing", "model"),
                ")",
            ),
        )
    rows = len(next(iter(found.values())).missing)
    keep = np.ones(rows, bool)
    if missing == "drop":
        for gaps in some.values():
            keep &= ~gaps
        _enough(int(keep.sum()), f" of {rows:,} without missing values")
    return keep


def _variable(read: TypedColumn, keep: np.ndarray) -> xr.Variable:
    values = read.values if keep.all() else read.values[keep]
    about = {"kind": read.kind}
    if read.kind == "date":
        about["format"] = date_format(values)
    if read.missing.any() and not keep.all():  # none is missing any more
        plain = {"integer": np.int64, "boolean": bool}
        values = values.astype(plain.get(read.kind, values.dtype))
    return xr.Variable("sample", values, about, fastpath=True)  # else None becomes NaN


# --- back to a DataFrame --------------------------------------------------------------------------


def to_frame(data: xr.Dataset) -> pd.DataFrame:
    """A DataFrame of samples over (sample,) or (sample, instance), with labels as the last columns.

    Each instance has a row, and the first columns are then `sample` and `instance`.
    """
    several = data.sizes.get("instance", 0) if "instance" in data.dims else 0
    own = [str(name) for name in data.data_vars if _is_data(data[name])]
    made: dict[str, Any] = {}
    if several:
        samples = data.sizes["sample"]
        made["sample"] = np.repeat(np.arange(samples), several)
        made["instance"] = np.tile(np.arange(1, several + 1), samples)
    for name in own:
        made[name] = _column(data[name])
    for name, values in _verdicts(data).items():
        label = f"surrogate {name}" if name in made else name
        made[label] = np.repeat(values, several) if several else values
    frame = pd.DataFrame(made)
    frame.attrs = dict(data.attrs)
    return frame


def _is_data(array: xr.DataArray) -> bool:
    known = "kind" in array.attrs or str(array.name) not in LABELS
    return known and set(array.dims) in ({"sample"}, {"sample", "instance"})


def _column(array: xr.DataArray) -> Any:
    """Values (N,) in a pandas type."""
    turned = array.transpose("sample", ...)
    values, kind = np.asarray(turned.values).reshape(-1), array.attrs.get("kind")
    if kind == "integer" and values.dtype.kind == "f":
        gaps = np.isnan(values)
        whole = np.where(gaps, 0, np.rint(values)).astype(np.int64)
        return pd.arrays.IntegerArray(whole, gaps) if gaps.any() else whole
    if values.dtype == object and kind == "boolean":
        return pd.array(values, dtype="boolean")
    if values.dtype.kind in "OU":
        words = values.astype(object)
        words[pd.isna(words)] = None
        return pd.Series(words, dtype="object")  # else None becomes NaN
    return values


def _verdicts(data: xr.Dataset) -> dict[str, np.ndarray]:
    """The labels of the samples {column: values (N,)}."""
    names = ("satisfied", "robustness", "log_weight", LOG_LIKELIHOOD)
    plain = [n for n in names if n in data and "kind" not in data[n].attrs]
    made = {name: np.asarray(data[name].values) for name in plain}
    if "rule_satisfied" in data and data.sizes["rule"] > 1:
        each = data["rule_satisfied"].transpose("sample", "rule").values.astype(bool)
        made |= {f"{RULE_PREFIX}{rule}": each[:, r] for r, rule in enumerate(data["rule"].values)}
    return made


def with_parsed_text(frame: pd.DataFrame) -> pd.DataFrame:
    """A table read from text, with columns of dates and numbers parsed."""
    found = {str(name): kinds.parsed_text(frame[name]) for name in frame.columns}
    return frame.assign(**{name: plain for name, plain in found.items() if plain is not None})


def regrouped_instances(frame: pd.DataFrame) -> xr.Dataset | None:
    """The dataset over (sample, instance) that `to_frame` wrote row by row; None for other tables.

    Labels are left out.
    """
    if list(frame.columns[:2]) != ["sample", "instance"] or len(frame.columns) < 3:
        return None
    several = int(frame["instance"].nunique())
    samples, rest = divmod(len(frame), several)
    numbered = np.tile(np.arange(1, several + 1), samples)
    if rest or several < 2 or not np.array_equal(frame["instance"].to_numpy(), numbered):
        return None
    if not np.array_equal(frame["sample"].to_numpy(), np.repeat(np.arange(samples), several)):
        return None
    labels = label_columns(frame)
    made = {}
    for name in frame.columns[2:]:
        if name not in labels:
            values = frame[name].to_numpy().reshape(samples, several)
            made[name] = xr.Variable(("sample", "instance"), values, fastpath=True)
    return xr.Dataset(made, attrs=dict(frame.attrs)) if made else None
