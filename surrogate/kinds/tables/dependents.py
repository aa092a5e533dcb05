"""Columns that follow from the words of another: a grade's number from its name.

A network can only learn such a thing nearly, and a table that says "Masters" and 11 is no table a
person would take for data. So it is found out, and kept exactly.
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
from surrogate.kinds.tables.columns import Column, Numbers, Words, as_numbers, as_words

MIN_ROWS_PER_WORD = 20  # of a leader, on average: with fewer, any column seems to follow
GLANCE = 2_000  # rows that rule out most pairs
LARGEST = sys.float_info.max


@dataclass(frozen=True, eq=False)
class Following(Column):
    """A column that is a function of another one's words; x are the channels of that one.

    `own` is what it would be alone, `values` (K,) its number, or that of its category, for each of
    the leader's words.
    """

    own: Numbers | Words
    leader: Words
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
        if isinstance(self.own, Words):
            return own
        low, high = min(self.values), max(self.values)  # of all words, learned from or not
        return replace(own, low=low, high=high, span=high - low)

    def follower(self) -> DependentColumn:
        """As formulas are told of it."""
        return DependentColumn(self.leader.name, self.leader.categories, self.values)

    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        return np.zeros((len(values), 0))

    def decode(self, x: Tensor) -> Tensor:
        weights, values = self.leader.latent(x), torch.tensor(self.values, dtype=torch.float64)
        if isinstance(self.own, Numbers):
            return weights @ values.to(x)
        hot = torch.nn.functional.one_hot(values.long(), len(self.own.categories))
        return weights @ hot.to(x)

    def latent(self, x: Tensor) -> Tensor:
        return self.decode(x)

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        found: np.ndarray = np.array(self.values)[self.leader.signals_of(x)]
        return found if isinstance(self.own, Numbers) else found.astype(np.int64)

    def finish(self, x: np.ndarray) -> np.ndarray:
        return self.own.restored(self.signals_of(x))

    def within(self, x: Tensor) -> Tensor:
        return x

    def to_config(self) -> dict[str, Any]:
        made = {"leader": self.leader.name, "values": list(self.values)}
        return self.own.to_config() | {"follows": made}


def following(data: xr.Dataset, columns: Sequence[Numbers | Words]) -> tuple[Column, ...]:
    """The columns, those that follow from another one made so."""
    codes = {column.name: _codes(column, data) for column in columns}
    rows = data.sizes["sample"]
    leaders: list[Words] = []
    led: dict[str, Following] = {}
    most = rows // MIN_ROWS_PER_WORD
    words = [c for c in columns if isinstance(c, Words) and 2 <= len(c.categories) <= most]
    # most words first: a city leads to a country and a continent; of equals the first leads
    for leader in sorted(words, key=lambda c: len(c.categories), reverse=True):
        if leader.name not in led:
            leaders.append(leader)
            for column in columns:
                able = column.name not in (*led, leader.name) and column not in leaders
                if able and _leads(codes[leader.name], codes[column.name]):
                    led[column.name] = _made(column, leader, data)
    return tuple(led.get(column.name, column) for column in columns)


def restored(columns: Sequence[Numbers | Words], follows: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns with those that follow, as `Following.to_config` wrote it."""
    known = {c.name: c for c in columns if isinstance(c, Words) and c.name not in follows}
    made: list[Column] = []
    for column in columns:
        about = follows.get(column.name)
        if about is None:
            made.append(column)
            continue
        leader = known.get(str(about.get("leader"))) if isinstance(about, Mapping) else None
        values = about.get("values") if isinstance(about, Mapping) else None
        if leader is None or not _fits(column, leader, values):
            raise ModelError(f"in the codec, what {column.name!r} follows from is not there")
        assert isinstance(values, list)
        made.append(Following(column, leader, tuple(float(value) for value in values)))
    return tuple(made)


def _fits(column: Numbers | Words, leader: Words, values: Any) -> bool:
    if not isinstance(values, list) or len(values) != len(leader.categories):
        return False
    if not all(type(value) in (int, float) and abs(value) < LARGEST for value in values):
        return False
    return isinstance(column, Numbers) or all(
        value in range(len(column.categories)) for value in values
    )


def _codes(column: Numbers | Words, data: xr.Dataset) -> np.ndarray | None:
    """The number of each row's value, (n,); None where there is nothing that could follow."""
    values = np.asarray(data[column.name].values)
    if isinstance(column, Words):
        return pd.Index(column.categories).get_indexer(pd.Index(as_words(values)))
    if column.known is not None or not column.varies or not column.quantiles.stepped:
        return None
    return pd.factorize(as_numbers(column.name, column.kind, values))[0]


def _leads(leader: np.ndarray | None, column: np.ndarray | None) -> bool:
    """Whether rows with the same word have the same value."""
    if leader is None or column is None or column.max() == 0 or column.max() > leader.max():
        return False
    return all(_single(leader[:n], column[:n]) for n in (GLANCE, len(leader)))


def _single(leader: np.ndarray, column: np.ndarray) -> bool:
    pairs = np.unique(leader.astype(np.int64) * (int(column.max()) + 1) + column)
    return len(pairs) == len(np.unique(leader))


def _made(column: Numbers | Words, leader: Words, data: xr.Dataset) -> Following:
    words = as_words(np.asarray(data[leader.name].values))
    values = np.asarray(data[column.name].values)
    if isinstance(column, Words):
        found = pd.Index(column.categories).get_indexer(pd.Index(as_words(values)))
    else:
        found = as_numbers(column.name, column.kind, values)
    first = pd.Series(found).groupby(pd.Series(words)).first()
    return Following(column, leader, tuple(float(first[word]) for word in leader.categories))
