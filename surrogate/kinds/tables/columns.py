"""Columns of a table, each encoded as a few channels of the tensor.

A numeric column is one channel, mapped to a standard normal by its quantiles. Where values may be
missing, a second channel encodes presence (0 or 1) in the same way, and the first is noise for a
missing value. A categorical column is a centred, scaled one-hot vector, so that its denoised
estimate is the vector of class probabilities. More than MAX_ONE_HOT categories share that many
channels: each category has a random unit vector as its code, and its weight is the projection of
the channels on it. A constant column has no channel, nor has one that is a function of another
(`surrogate.kinds.tables.dependents`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from constraints import Signal
from surrogate.errors import ModelError
from surrogate.kinds.signals import days_of
from surrogate.kinds.tables.column_types import MAX_CATEGORIES
from surrogate.kinds.tables.column_values import (
    as_dates,
    as_numbers,
    to_booleans,
    to_text,
    with_missing,
)
from surrogate.kinds.tables.quantiles import Quantiles

NUMERIC_TYPES = ("number", "integer", "date")
CATEGORICAL_TYPES = ("category", "boolean")
MAX_ONE_HOT = 64  # categories with a channel each; more share this many channels


class Column(ABC):
    """One column of a table; `attrs` are those of its variable."""

    name: str
    kind: str
    attrs: Mapping[str, Any]

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of its channels."""

    @abstractmethod
    def signal(self) -> Signal:
        """The column as a formula sees it."""

    @abstractmethod
    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Values (n,) as channels (n, size); `uniform` (n, size) on [0, 1) breaks ties."""

    @abstractmethod
    def decode(self, x: Tensor) -> Tensor:
        """Channels (B, size) in data units, (B,) or (B, categories)."""

    @abstractmethod
    def latent(self, x: Tensor) -> Tensor:
        """The decoded value in coordinates that are affine in x, (B,) or (B, categories)."""

    @abstractmethod
    def finish(self, x: np.ndarray) -> np.ndarray:
        """Channels (n, size) as values (n,) of the type of the data."""

    @abstractmethod
    def signals_of(self, x: np.ndarray) -> np.ndarray:
        """Channels (n, size) as formulas see them (n,): numbers, or indices of categories."""

    @abstractmethod
    def within(self, x: Tensor) -> Tensor:
        """Channels (B, size) clamped to the range of the data."""

    @abstractmethod
    def to_config(self) -> dict[str, Any]: ...

    def _about(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "attrs": dict(self.attrs)}


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NumericColumn(Column):
    """A column of numbers or dates.

    `known`: quantiles of presence (0 missing, 1 present); None if no value is missing.
    """

    name: str
    kind: str
    quantiles: Quantiles
    known: Quantiles | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, name: str, kind: str, values: np.ndarray, attrs: Mapping[str, Any]
    ) -> NumericColumn:
        numbers = as_numbers(name, kind, values)
        there = np.isfinite(numbers)
        if not there.any():
            raise ModelError(f"{name} has no values", remedy="leave it out")
        known = None if there.all() else Quantiles.fit(there.astype(np.float64))
        return cls(name, kind, Quantiles.fit(numbers[there]), known, attrs)

    @property
    def varies(self) -> bool:
        return len(self.quantiles.start) > 1 or not self.quantiles.stepped

    @property
    def size(self) -> int:
        return int(self.varies) + (self.known is not None)

    def signal(self) -> Signal:
        low, high = self.quantiles.values
        return Signal(
            self.name,
            "column",
            integer=self.kind == "integer",
            low=low,
            high=high,
            span=high - low,
            optional=self.known is not None,
            dates=self.kind == "date",
        )

    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        numbers = as_numbers(self.name, self.kind, values)
        there = np.isfinite(numbers)
        if self.known is None and not there.all():
            raise ModelError(
                f"{self.name} is missing in row {int((~there).argmax())}, and never was in the "
                "data that the model was made from",
                remedy="drop such rows, or fill in a value",
            )
        return self.encoded(numbers, uniform)

    def encoded(self, numbers: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Numbers (n,), NaN where they are missing, as channels (n, size)."""
        there = np.isfinite(numbers)
        parts = []
        if self.varies:
            filled = np.where(there, numbers, self.quantiles.start[0])
            z = self.quantiles.forward(filled, uniform[:, 0])
            noise = Quantiles(np.array([0.0, 1.0]), np.zeros(1), np.zeros(1))
            parts.append(np.where(there, z, noise.forward(0 * filled, uniform[:, 0])))
        if self.known is not None:
            parts.append(self.known.forward(there.astype(np.float64), uniform[:, -1]))
        return np.stack(parts, 1) if parts else np.zeros((len(numbers), 0))

    def decode(self, x: Tensor) -> Tensor:
        return self.quantiles.inverse(self.latent(x))

    def latent(self, x: Tensor) -> Tensor:
        return x[:, 0] if self.varies else x.new_zeros(len(x))

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        found = self.numbers(x)
        return days_of(as_dates(found)) if self.kind == "date" else found  # to the second

    def numbers(self, x: np.ndarray) -> np.ndarray:
        """Channels (n, size) as numbers (n,), NaN where they are missing."""
        found = self.quantiles.finish(x[:, 0] if self.varies else np.zeros(len(x)))
        if self.known is not None:
            found = np.where(self.known.finish(x[:, -1]) > 0.5, found, np.nan)
        return found

    def finish(self, x: np.ndarray) -> np.ndarray:
        return self.restored(self.signals_of(x))

    def restored(self, found: np.ndarray) -> np.ndarray:
        """Numbers (n,) in the type of the data."""
        if self.kind == "date":
            return as_dates(found)
        return found.astype(np.int64) if self.kind == "integer" and self.known is None else found

    def within(self, x: Tensor) -> Tensor:
        low, high = (each.to(x) for each in self._ends)
        return torch.clamp(x, low, high)

    @cached_property
    def _ends(self) -> tuple[Tensor, Tensor]:
        laws = [self.quantiles] if self.varies else []
        laws += [self.known] if self.known is not None else []
        low, high = ([getattr(law, side) for law in laws] for side in ("low", "high"))
        return torch.tensor(low), torch.tensor(high)

    def to_config(self) -> dict[str, Any]:
        known = None if self.known is None else self.known.to_config()
        return self._about() | {"quantiles": self.quantiles.to_config(), "known": known}


# --- words ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CategoricalColumn(Column):
    """A column of K categories in alphabetical order; `shares` (K,) are their frequencies."""

    name: str
    kind: str
    categories: tuple[str, ...]
    shares: tuple[float, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, name: str, kind: str, values: np.ndarray, attrs: Mapping[str, Any]
    ) -> CategoricalColumn:
        words = to_text(values)
        categories, counts = np.unique(words, return_counts=True)
        if len(categories) > MAX_CATEGORIES:
            raise ModelError(
                f"{name} has {len(categories):,} different words, such as "
                f"{', '.join(categories[:3])}",
                value=len(categories),
                remedy=f"at most {MAX_CATEGORIES:,} can be learned: leave it out or group them",
            )
        shares = tuple((counts / len(words)).tolist())
        return cls(name, kind, tuple(categories.tolist()), shares, attrs)

    @property
    def size(self) -> int:
        return min(len(self.categories), MAX_ONE_HOT) if len(self.categories) > 1 else 0

    @property
    def one_hot(self) -> bool:
        """Whether each category has a channel of its own."""
        return self.size == len(self.categories)

    @cached_property
    def codes(self) -> np.ndarray:
        """The code of each category (K, size), a unit vector; a function of K alone."""
        if self.one_hot:
            return np.eye(self.size)
        made = np.random.default_rng(len(self.categories)).normal(
            size=(len(self.shares), MAX_ONE_HOT)
        )
        found: np.ndarray = made / np.linalg.norm(made, axis=1, keepdims=True)
        return found

    @cached_property
    def centre(self) -> np.ndarray:
        """The mean code, (size,)."""
        found: np.ndarray = np.array(self.shares) @ self.codes
        return found

    def signal(self) -> Signal:
        return Signal(self.name, "category", (len(self.categories),), categories=self.categories)

    @cached_property
    def scale(self) -> float:
        """Chosen such that the variances of all channels add up to 2."""
        return math.sqrt((1 - float(self.centre @ self.centre)) / 2)

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self.codes.T.copy()), torch.from_numpy(self.centre)

    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        words = to_text(values)
        places, found = pd.factorize(words)
        codes = pd.Index(self.categories).get_indexer(pd.Index(found))[places]
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            raise ModelError(
                f"{self.name} is {words[row]!r} in row {row}, a word that the model does not know",
                value=words[row],
                allowed=self.categories,
            )
        return self.encoded(codes)

    def encoded(self, codes: np.ndarray) -> np.ndarray:
        """Indices of categories (n,) as channels (n, size)."""
        if not self.size:
            return np.zeros((len(codes), 0))
        made: np.ndarray = (self.codes[codes] - self.centre) / self.scale
        return made

    def latent(self, x: Tensor) -> Tensor:
        if not self.size:
            return x.new_ones(len(x), 1)
        codes, centre = (each.to(x) for each in self._tensors)
        mixed = centre + self.scale * x
        return mixed if self.one_hot else mixed @ codes

    def decode(self, x: Tensor) -> Tensor:
        return self.latent(x)

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        codes: np.ndarray = self.latent(torch.from_numpy(x)).argmax(1).numpy()
        return codes

    def finish(self, x: np.ndarray) -> np.ndarray:
        return self.restored(self.signals_of(x))

    def restored(self, codes: np.ndarray) -> np.ndarray:
        """The words (n,) of category indices (n,)."""
        words = np.array(self.categories, dtype=object)[codes]
        if self.kind == "boolean":
            return to_booleans(words)
        return with_missing(words, words)

    def within(self, x: Tensor) -> Tensor:
        if not self.size or not self.one_hot:  # no cheap projection onto random codes
            return x
        weights = self.latent(x).clamp(0, 1)
        weights = weights / weights.sum(1, keepdim=True).clamp_min(1e-6)
        return (weights - self._tensors[1].to(x)) / self.scale

    def to_config(self) -> dict[str, Any]:
        made = {"categories": list(self.categories), "shares": list(self.shares)}
        return self._about() | made


# --- columns of any type --------------------------------------------------------------------------


def fit_column(
    name: str, kind: str, values: np.ndarray, attrs: Mapping[str, Any]
) -> NumericColumn | CategoricalColumn:
    """The column codec fitted to these values."""
    made = NumericColumn if kind in NUMERIC_TYPES else CategoricalColumn
    return made.fit(name, kind, values, attrs)


def from_config(config: Mapping[str, Any]) -> NumericColumn | CategoricalColumn:
    """The column that `to_config` described; ModelError says what is wrong."""
    if not isinstance(config, Mapping) or not isinstance(config.get("name"), str):
        raise ModelError("in the codec, a column has no name")
    name, kind, attrs = config["name"], config.get("kind"), config.get("attrs")
    if not isinstance(attrs, Mapping):
        raise ModelError(f"in the codec, {name!r} has no attributes")
    if kind in NUMERIC_TYPES:
        quantiles = Quantiles.from_config(config.get("quantiles") or {}, name)
        known = config.get("known")
        shares = None if known is None else Quantiles.from_config(known, name)
        return NumericColumn(name, str(kind), quantiles, shares, dict(attrs))
    if kind in CATEGORICAL_TYPES:
        return _categorical(name, str(kind), config, dict(attrs))
    raise ModelError(f"in the codec, {name!r} is of the unknown kind {kind!r}")


def _categorical(
    name: str, kind: str, config: Mapping[str, Any], attrs: Mapping[str, Any]
) -> CategoricalColumn:
    categories, shares = config.get("categories"), config.get("shares")
    sound = isinstance(categories, list) and isinstance(shares, list) and len(categories) > 0
    if not sound or len(categories or ()) != len(shares or ()):
        raise ModelError(f"in the codec, {name!r} has no categories")
    assert isinstance(categories, Sequence)
    assert isinstance(shares, Sequence)
    fine = all(isinstance(each, (int, float)) and 0 < each <= 1 for each in shares)
    distinct = len({str(word) for word in categories}) == len(categories)
    if not fine or not distinct or abs(sum(shares) - 1) > 1e-6:
        raise ModelError(
            f"in the codec, the shares of the categories of {name!r} do not add up to 1"
        )
    return CategoricalColumn(
        name, kind, tuple(map(str, categories)), tuple(map(float, shares)), attrs
    )
