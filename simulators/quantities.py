"""Numbers that may differ between trajectories: fixed, ranges, distributions, arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from simulators.errors import Action, InputError

MAX_COUNT = 2**53  # beyond, a float64 does not hold every whole number


class Quantity(Protocol):
    """Turns one uniform number per trajectory into one value per trajectory."""

    @property
    def varies(self) -> bool: ...

    def draw(self, u: np.ndarray, first: int, whole: bool) -> np.ndarray:
        """Values for trajectories first, first + 1, ...: shape of `u`; integers when `whole`."""
        ...

    def describe(self) -> Any:
        """JSON-ready description."""
        ...


@dataclass(frozen=True)
class Fixed:
    value: float
    varies = False

    def draw(self, u: np.ndarray, first: int, whole: bool) -> np.ndarray:
        return np.full(u.shape, self.value)

    def describe(self) -> Any:
        return self.value


@dataclass(frozen=True)
class Range:
    """Uniform on [low, high], or on the integers low..high."""

    low: float
    high: float
    varies = True

    def draw(self, u: np.ndarray, first: int, whole: bool) -> np.ndarray:
        if whole:
            if self.low != int(self.low) or self.high != int(self.high):
                raise InputError(
                    f"a range of counts has whole bounds, not {self.low:g}..{self.high:g}",
                    value=(self.low, self.high),
                )
            return self.low + np.floor(u * (self.high - self.low + 1))
        return self.low + u * (self.high - self.low)

    def describe(self) -> Any:
        return {"range": [self.low, self.high]}


@dataclass(frozen=True)
class Distribution:
    """A frozen scipy.stats distribution, drawn through its quantile function."""

    law: Any
    varies = True

    def draw(self, u: np.ndarray, first: int, whole: bool) -> np.ndarray:
        return np.asarray(self.law.ppf(u), dtype=np.float64)

    def describe(self) -> Any:
        shown = [f"{value:g}" for value in self.law.args]
        shown += [f"{key}={value:g}" for key, value in self.law.kwds.items()]
        return {"distribution": f"{self.law.dist.name}({', '.join(shown)})"}


@dataclass(frozen=True)
class Given:
    """One value per trajectory."""

    values: np.ndarray
    varies = True

    def draw(self, u: np.ndarray, first: int, whole: bool) -> np.ndarray:
        return self.values[first : first + u.size]

    def describe(self) -> Any:
        return "given per trajectory"


def quantity(name: str, value: Any, samples: int) -> Quantity:
    """A number, a (low, high) pair, a frozen scipy distribution or an array of `samples` values."""
    if hasattr(value, "ppf"):
        return Distribution(value)
    if isinstance(value, tuple) and len(value) == 2:
        low, high = (_finite(name, bound) for bound in value)
        if low > high:
            raise InputError(
                f"range of {name!r} is empty: {low:g}..{high:g}",
                value=value,
                remedy=Action(
                    f"write the lower bound first: ({high:g}, {low:g})",
                    f"write the lower bound first: {name}={high:g}..{low:g}",
                ),
            )
        return Range(low, high)
    array = (
        np.asarray(value)
        if isinstance(value, Sequence | np.ndarray) or _is_labelled(value)
        else None
    )
    if array is not None and array.ndim > 0 and not isinstance(value, str):
        if array.shape != (samples,):
            raise InputError(
                f"{name!r} has {array.shape} values for {samples} trajectories",
                value=array.shape,
                remedy="give one number, or one per trajectory",
            )
        try:
            return Given(np.asarray(array, dtype=np.float64))
        except (TypeError, ValueError):
            raise InputError(f"values of {name!r} are not numbers", value=value) from None
    return Fixed(_finite(name, value))


def _is_labelled(value: Any) -> bool:
    return hasattr(value, "dims") or hasattr(value, "iloc")  # xarray or pandas


def _finite(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise InputError(
            f"{name!r} must be a finite number, a (low, high) pair or a distribution, "
            f"not {value!r}",
            value=value,
        )
    return number
