"""Functional dependencies: columns that are a function of a categorical one (city -> country).

A network learns such a relation only approximately and would sample rows that contradict the data
("Masters" with 11 years of education). So dependencies are detected and decoded exactly. In the
words of databases, the column that decides is the *determinant*.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import Signal
from constraints.compile.dependents import DependentColumn
from surrogate.errors import ModelError
from surrogate.kinds.tables.column_values import as_numbers, to_text
from surrogate.kinds.tables.columns import CategoricalColumn, Column, NumericColumn

MIN_ROWS_PER_WORD = 20  # of a determinant, on average: with fewer, chance makes dependencies
PRESCREENED_ROWS = 2_000  # rows that rule out most pairs
LARGEST = sys.float_info.max


@dataclass(frozen=True, eq=False)
class DerivedColumn(Column):
    """A column that is a function of the determinant, whose channels it is decoded from.

    `own`: the column as it would be without the dependency. `values` (K,): its number, or the index
    of its category, for each category of the determinant.
    """

    own: NumericColumn | CategoricalColumn
    determinant: CategoricalColumn
    values: tuple[float, ...]

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.own.name

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.own.kind

    @property
    def attrs(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self.own.attrs

    @property
    def size(self) -> int:
        return 0

    def signal(self) -> Signal:
        own = self.own.signal()
        if isinstance(self.own, CategoricalColumn):
            return own
        low, high = min(self.values), max(self.values)  # of all categories, held-out rows included
        return replace(own, low=low, high=high, span=high - low)

    def follower(self) -> DependentColumn:
        """The dependency as constraints see it."""
        return DependentColumn(self.determinant.name, self.determinant.categories, self.values)

    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        return np.zeros((len(values), 0))

    def decode(self, x: Tensor) -> Tensor:
        weights, values = self.determinant.latent(x), torch.tensor(self.values, dtype=torch.float64)
        if isinstance(self.own, NumericColumn):
            return weights @ values.to(x)
        hot = torch.nn.functional.one_hot(values.long(), len(self.own.categories))
        return weights @ hot.to(x)

    def latent(self, x: Tensor) -> Tensor:
        return self.decode(x)

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.array(self.values)[self.determinant.signals_of(x)]
        return found if isinstance(self.own, NumericColumn) else found.astype(np.int64)

    def finish(self, x: np.ndarray) -> np.ndarray:
        return self.own.restored(self.signals_of(x))

    def within(self, x: Tensor) -> Tensor:
        return x

    def to_config(self) -> dict[str, Any]:
        made = {"leader": self.determinant.name, "values": list(self.values)}
        return self.own.to_config() | {"follows": made}


def find_dependents(
    data: xr.Dataset, columns: Sequence[NumericColumn | CategoricalColumn]
) -> tuple[Column, ...]:
    """The columns, with each one that depends on another as a DerivedColumn."""
    codes = {column.name: _codes(column, data) for column in columns}
    rows = data.sizes["sample"]
    determinants: list[CategoricalColumn] = []
    derived: dict[str, DerivedColumn] = {}
    most = rows // MIN_ROWS_PER_WORD
    words = [
        c for c in columns if isinstance(c, CategoricalColumn) and 2 <= len(c.categories) <= most
    ]
    # most categories first: a city determines country and continent; of equals, the first
    for determinant in sorted(words, key=lambda c: len(c.categories), reverse=True):
        if determinant.name not in derived:
            determinants.append(determinant)
            for column in columns:
                able = (
                    column.name not in (*derived, determinant.name) and column not in determinants
                )
                if able and _determines(codes[determinant.name], codes[column.name]):
                    derived[column.name] = _derived(column, determinant, data)
    return tuple(derived.get(column.name, column) for column in columns)


def restored(
    columns: Sequence[NumericColumn | CategoricalColumn], follows: Mapping[str, Any]
) -> tuple[Column, ...]:
    """The columns with the dependencies that `DerivedColumn.to_config` described."""
    known = {
        c.name: c for c in columns if isinstance(c, CategoricalColumn) and c.name not in follows
    }
    made: list[Column] = []
    for column in columns:
        about = follows.get(column.name)
        if about is None:
            made.append(column)
            continue
        determinant = known.get(str(about.get("leader"))) if isinstance(about, Mapping) else None
        values = about.get("values") if isinstance(about, Mapping) else None
        if determinant is None or not _fits(column, determinant, values):
            raise ModelError(f"in the codec, the column that {column.name!r} depends on is missing")
        assert isinstance(values, list)
        made.append(DerivedColumn(column, determinant, tuple(float(value) for value in values)))
    return tuple(made)


def _fits(
    column: NumericColumn | CategoricalColumn, determinant: CategoricalColumn, values: Any
) -> bool:
    if not isinstance(values, list) or len(values) != len(determinant.categories):
        return False
    if not all(type(value) in (int, float) and abs(value) < LARGEST for value in values):
        return False
    return isinstance(column, NumericColumn) or all(
        value in range(len(column.categories)) for value in values
    )


def _codes(column: NumericColumn | CategoricalColumn, data: xr.Dataset) -> np.ndarray | None:
    """The index of each row's value, (n,); None for a column that cannot be a dependent."""
    values = np.asarray(data[column.name].values)
    if isinstance(column, CategoricalColumn):
        return pd.Index(column.categories).get_indexer(pd.Index(to_text(values)))
    if column.known is not None or not column.varies or not column.quantiles.stepped:
        return None
    return pd.factorize(as_numbers(column.name, column.kind, values))[0]


def _determines(determinant: np.ndarray | None, column: np.ndarray | None) -> bool:
    """Whether rows with the same category of the determinant have the same value."""
    if (
        determinant is None
        or column is None
        or column.max() == 0
        or column.max() > determinant.max()
    ):
        return False
    return all(
        _is_function(determinant[:n], column[:n]) for n in (PRESCREENED_ROWS, len(determinant))
    )


def _is_function(determinant: np.ndarray, column: np.ndarray) -> bool:
    pairs = np.unique(determinant.astype(np.int64) * (int(column.max()) + 1) + column)
    return len(pairs) == len(np.unique(determinant))


def _derived(
    column: NumericColumn | CategoricalColumn, determinant: CategoricalColumn, data: xr.Dataset
) -> DerivedColumn:
    words = to_text(np.asarray(data[determinant.name].values))
    values = np.asarray(data[column.name].values)
    if isinstance(column, CategoricalColumn):
        found = pd.Index(column.categories).get_indexer(pd.Index(to_text(values)))
    else:
        found = as_numbers(column.name, column.kind, values)
    first = pd.Series(found).groupby(pd.Series(words)).first()
    return DerivedColumn(
        column, determinant, tuple(float(first[word]) for word in determinant.categories)
    )
