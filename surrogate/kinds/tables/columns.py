"""Columns of a table, each a few channels of the tensor.

A column of numbers is one channel, a standard normal by `quantiles`; where values may be missing,
a second channel says whether one is there, by the same means, and that of a missing value is
noise. A column of words has a channel for each category, the centred one-hot weights over a common
scale: a denoised estimate of them is the vector of class probabilities. Many words share fewer
channels: each has a code, a random direction, and its weight is how far the channels point that
way. A column that never varies has no channel, and neither has one that follows from the words of
another.
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
from surrogate.kinds.label_names import ABSENT
from surrogate.kinds.signals import days_of
from surrogate.kinds.tables.quantiles import Quantiles

NUMBERS = ("number", "integer", "date")
WORDS = ("category", "boolean")
MOST_WORDS = 2_000  # categories of one column
HOT = 64  # categories that have a channel each; codes of more have so many


class Column(ABC):
    """One column: `attrs` are those of its variable."""

    name: str
    kind: str
    attrs: Mapping[str, Any]

    @property
    @abstractmethod
    def size(self) -> int:
        """Its channels."""

    @abstractmethod
    def signal(self) -> Signal:
        """What formulas see of it."""

    @abstractmethod
    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Values (n,) as channels (n, size); `uniform` (n, size) on [0, 1) tells ties apart."""

    @abstractmethod
    def decode(self, x: Tensor) -> Tensor:
        """Channels (B, size) in data units, (B,) or (B, categories)."""

    @abstractmethod
    def latent(self, x: Tensor) -> Tensor:
        """The same in coordinates that are affine in x."""

    @abstractmethod
    def finish(self, x: np.ndarray) -> np.ndarray:
        """Channels (n, size) as values (n,) like those of the data."""

    @abstractmethod
    def signals_of(self, x: np.ndarray) -> np.ndarray:
        """The same as formulas see them: numbers, or the number of the category."""

    @abstractmethod
    def within(self, x: Tensor) -> Tensor:
        """Channels (B, size) in the range of the data."""

    @abstractmethod
    def to_config(self) -> dict[str, Any]: ...

    def _about(self) -> dict[str, Any]:
        return {"name": self.name, "kind": self.kind, "attrs": dict(self.attrs)}


# --- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Numbers(Column):
    """`known`: the shares of missing (0) and present (1) values; None if none is missing."""

    name: str
    kind: str
    quantiles: Quantiles
    known: Quantiles | None = None
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(cls, name: str, kind: str, values: np.ndarray, attrs: Mapping[str, Any]) -> Numbers:
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
        parts = []
        if self.varies:
            filled = np.where(there, numbers, self.quantiles.start[0])
            z = self.quantiles.forward(filled, uniform[:, 0])
            noise = Quantiles(np.array([0.0, 1.0]), np.zeros(1), np.zeros(1))
            parts.append(np.where(there, z, noise.forward(0 * filled, uniform[:, 0])))
        if self.known is not None:
            parts.append(self.known.forward(there.astype(np.float64), uniform[:, -1]))
        return np.stack(parts, 1) if parts else np.zeros((len(values), 0))

    def decode(self, x: Tensor) -> Tensor:
        return self.quantiles.inverse(self.latent(x))

    def latent(self, x: Tensor) -> Tensor:
        return x[:, 0] if self.varies else x.new_zeros(len(x))

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        found = self.quantiles.finish(x[:, 0] if self.varies else np.zeros(len(x)))
        if self.known is not None:
            found = np.where(self.known.finish(x[:, -1]) > 0.5, found, np.nan)
        return days_of(as_dates(found)) if self.kind == "date" else found  # to the second

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


def as_numbers(name: str, kind: str, values: np.ndarray) -> np.ndarray:
    """Values (n,) as float64, NaN where they are missing; dates as days since 1970."""
    if kind == "date":
        try:
            return days_of(values.astype("datetime64[ns]"))
        except (TypeError, ValueError):
            raise ModelError(f"{name} holds {values.dtype} where dates were") from None
    try:
        found = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{name} holds {values.dtype} where numbers were") from None
    if np.isinf(found).any():
        raise ModelError(f"{name} is infinite in row {int(np.isinf(found).argmax())}")
    return found


def as_dates(days: np.ndarray) -> np.ndarray:
    """Days since 1970 (n,), NaN where missing, as datetime64."""
    there = np.isfinite(days)
    exact = np.round(np.where(there, days, 0.0) * 86_400).astype(np.int64)
    found = exact.astype("datetime64[s]").astype("datetime64[ns]")
    return np.where(there, found, np.datetime64("NaT", "ns"))


# --- words ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Words(Column):
    """`shares` (K,) of the categories, which are in alphabetical order."""

    name: str
    kind: str
    categories: tuple[str, ...]
    shares: tuple[float, ...]
    attrs: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def fit(cls, name: str, kind: str, values: np.ndarray, attrs: Mapping[str, Any]) -> Words:
        words = as_words(values)
        categories, counts = np.unique(words, return_counts=True)
        if len(categories) > MOST_WORDS:
            raise ModelError(
                f"{name} has {len(categories):,} different words, such as "
                f"{', '.join(categories[:3])}",
                value=len(categories),
                remedy=f"at most {MOST_WORDS:,} can be learned: leave it out or group them",
            )
        shares = tuple((counts / len(words)).tolist())
        return cls(name, kind, tuple(categories.tolist()), shares, attrs)

    @property
    def size(self) -> int:
        return min(len(self.categories), HOT) if len(self.categories) > 1 else 0

    @property
    def hot(self) -> bool:
        """Whether each category has its own channel."""
        return self.size == len(self.categories)

    @cached_property
    def codes(self) -> np.ndarray:
        """The code of each category (K, size), of length one; the same for as many categories."""
        if self.hot:
            return np.eye(self.size)
        made = np.random.default_rng(len(self.categories)).normal(size=(len(self.shares), HOT))
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
        """Such that all channels together have a variance of two, as two categories do."""
        return math.sqrt((1 - float(self.centre @ self.centre)) / 2)

    @cached_property
    def _tensors(self) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self.codes.T.copy()), torch.from_numpy(self.centre)

    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        words = as_words(values)
        places, found = pd.factorize(words)
        codes = pd.Index(self.categories).get_indexer(pd.Index(found))[places]
        if (codes < 0).any():
            row = int((codes < 0).argmax())
            raise ModelError(
                f"{self.name} is {words[row]!r} in row {row}, a word that the model does not know",
                value=words[row],
                allowed=self.categories,
            )
        if not self.size:
            return np.zeros((len(values), 0))
        made: np.ndarray = (self.codes[codes] - self.centre) / self.scale
        return made

    def latent(self, x: Tensor) -> Tensor:
        if not self.size:
            return x.new_ones(len(x), 1)
        codes, centre = (each.to(x) for each in self._tensors)
        mixed = centre + self.scale * x
        return mixed if self.hot else mixed @ codes

    def decode(self, x: Tensor) -> Tensor:
        return self.latent(x)

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        codes: np.ndarray = self.latent(torch.from_numpy(x)).argmax(1).numpy()
        return codes

    def finish(self, x: np.ndarray) -> np.ndarray:
        return self.restored(self.signals_of(x))

    def restored(self, codes: np.ndarray) -> np.ndarray:
        """The words (n,) of these numbers."""
        words = np.array(self.categories, dtype=object)[codes]
        if self.kind == "boolean":
            return from_booleans(words)
        return without(words, words)

    def within(self, x: Tensor) -> Tensor:
        if not self.size or not self.hot:  # what lies between many codes is not worth its search
            return x
        weights = self.latent(x).clamp(0, 1)
        weights = weights / weights.sum(1, keepdim=True).clamp_min(1e-6)
        return (weights - self._tensors[1].to(x)) / self.scale

    def to_config(self) -> dict[str, Any]:
        made = {"categories": list(self.categories), "shares": list(self.shares)}
        return self._about() | made


def as_words(values: np.ndarray) -> np.ndarray:
    """Values (n,) as text, the missing ones as ABSENT."""
    if values.dtype.kind == "b":
        return np.where(values, "True", "False").astype(object)
    codes, found = pd.factorize(np.asarray(values, dtype=object))
    words = np.array([*(str(each) for each in found), ABSENT], dtype=object)  # code -1 is the last
    return np.asarray(words[codes])


def from_booleans(words: np.ndarray) -> np.ndarray:
    """The words "True", "False" and ABSENT as booleans; as objects where some are missing."""
    return without(words == "True", words)


def without(values: np.ndarray, words: np.ndarray) -> np.ndarray:
    """Values (n,), None where the word is ABSENT."""
    absent = words == ABSENT
    if not absent.any():
        return values
    found = values.astype(object)
    found[absent] = None
    return found


# --- any ------------------------------------------------------------------------------------------


def fitted(name: str, kind: str, values: np.ndarray, attrs: Mapping[str, Any]) -> Numbers | Words:
    """The column of these values."""
    made = Numbers if kind in NUMBERS else Words
    return made.fit(name, kind, values, attrs)


def from_config(config: Mapping[str, Any]) -> Numbers | Words:
    """What `to_config` wrote of a column by itself; ModelError says what is wrong."""
    if not isinstance(config, Mapping) or not isinstance(config.get("name"), str):
        raise ModelError("in the codec, a column has no name")
    name, kind, attrs = config["name"], config.get("kind"), config.get("attrs")
    if not isinstance(attrs, Mapping):
        raise ModelError(f"in the codec, {name!r} has no attributes")
    if kind in NUMBERS:
        quantiles = Quantiles.from_config(config.get("quantiles") or {}, name)
        known = config.get("known")
        shares = None if known is None else Quantiles.from_config(known, name)
        return Numbers(name, str(kind), quantiles, shares, dict(attrs))
    if kind in WORDS:
        return _words(name, str(kind), config, dict(attrs))
    raise ModelError(f"in the codec, {name!r} is of the unknown kind {kind!r}")


def _words(name: str, kind: str, config: Mapping[str, Any], attrs: Mapping[str, Any]) -> Words:
    categories, shares = config.get("categories"), config.get("shares")
    sound = isinstance(categories, list) and isinstance(shares, list) and len(categories) > 0
    if not sound or len(categories or ()) != len(shares or ()):
        raise ModelError(f"in the codec, {name!r} has no categories")
    assert isinstance(categories, Sequence)
    assert isinstance(shares, Sequence)
    fine = all(isinstance(each, (int, float)) and 0 < each <= 1 for each in shares)
    distinct = len({str(word) for word in categories}) == len(categories)
    if not fine or not distinct or abs(sum(shares) - 1) > 1e-6:
        raise ModelError(f"in the codec, the categories of {name!r} have no shares that make one")
    return Words(name, kind, tuple(map(str, categories)), tuple(map(float, shares)), attrs)
