"""Aggregates: functions of all values of a term in a window of steps or a region of pixels.

An aggregate is one entry of this table. The parser reads its signature, the resolver whether it
runs over pixels, lowering and the prover its algebra (linear, an extreme, whole-numbered), the
evaluator its fold, the printer its name. The fold of an entry is either the name of a scheme that
`evaluate` has for sliding windows, or a function of the values of one window along the last axis,
written with tensor methods: reading formulas needs no torch.

    register(Aggregation("range", "greatest minus least value", fold=spread))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from constraints.errors import FormulaError

if TYPE_CHECKING:
    from torch import Tensor

# values (..., n) and which of them lie inside the window (None: all), parameters -> (...)
WindowFunction = Callable[..., "Tensor"]
Scheme = Literal["max", "min", "mean", "sum", "integral", "argmax", "argmin", "count"]


@dataclass(frozen=True)
class Parameter:
    """A number that follows the body, as 0.9 in quantile(I, 0.9); it lies within low..high."""

    name: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Aggregation:
    """One aggregate function.

    fold: the name of a scheme, or f(values, inside, *parameters), see `WindowFunction`.
    linear: it is linear in its body. extreme: it is the greatest ("max") or least ("min") of its
    values, so that a bound on it is a quantified formula. integer: whether it is a whole number: if
    its values are ("kept"), always ("always"), or not in general ("no"). averages: it lies between
    the least and the greatest of the values. monotone: it never falls when a value grows. pixels:
    it may run over the pixels of an image.
    """

    name: str
    meaning: str
    fold: Scheme | WindowFunction
    parameters: tuple[Parameter, ...] = ()
    linear: bool = False
    extreme: Literal["max", "min"] | None = None
    integer: Literal["kept", "always", "no"] = "no"
    averages: bool = False
    monotone: bool = False
    pixels: bool = True

    @property
    def of_formula(self) -> bool:
        """Whether its body is a formula, not a term."""
        return self.fold == "count"

    @property
    def signature(self) -> str:
        """How it is written with a window: `quantile(I, level, 0, 5)`."""
        inside = ["I > 10" if self.of_formula else "I", *(each.name for each in self.parameters)]
        return f"{self.name}({', '.join(inside)}, 0, 5)"

    def check(self, values: tuple[float, ...]) -> tuple[float, ...]:
        """The parameters, if they are as many as it has and within their bounds."""
        if len(values) != len(self.parameters):
            raise FormulaError(
                f"{self.name} takes {len(self.parameters)} number(s) after its term, not "
                f"{len(values)}",
                value=values,
                remedy=f"write {self.signature}",
            )
        for parameter, value in zip(self.parameters, values, strict=True):
            if not parameter.low <= value <= parameter.high:
                raise FormulaError(
                    f"the {parameter.name} of {self.name} is {value:g}",
                    value=value,
                    remedy=f"give a number in [{parameter.low:g}, {parameter.high:g}]",
                )
        return tuple(float(value) for value in values)


_TABLE: dict[str, Aggregation] = {}


def register(entry: Aggregation) -> Aggregation:
    """Add an aggregate to the language."""
    if not entry.name.isidentifier():
        raise FormulaError(
            f"{entry.name!r} cannot name an aggregate", value=entry.name, remedy="use a word"
        )
    if entry.name in _TABLE:
        raise FormulaError(
            f"the language has an aggregate {entry.name} already",
            value=entry.name,
            remedy="register it under another name",
        )
    _TABLE[entry.name] = entry
    return entry


def unregister(name: str) -> None:
    """Remove an aggregate, for tests that add one."""
    del _TABLE[name]


def aggregates() -> Mapping[str, Aggregation]:
    """All aggregates by name."""
    return MappingProxyType(_TABLE)


def quantile(values: Any, inside: Any, level: float) -> Any:
    """The `level` quantile along the last axis, linear between order statistics: numpy's default.

    values (..., n), inside (..., n) of bool or None; the result (...).
    """
    if inside is None:
        position = values.new_tensor(level * (values.shape[-1] - 1))
        position = position.expand(values.shape[:-1])[..., None]
    else:
        values = values.masked_fill(~inside, math.inf)  # which sorts behind all that are inside
        count = inside.expand(values.shape).sum(-1, keepdim=True)
        position = (level * (count - 1)).to(values.dtype).clamp(min=0)
    ordered = values.sort(-1).values
    below = position.floor()
    low = ordered.gather(-1, below.long())
    high = ordered.gather(-1, position.ceil().long())
    return (low + (high - low) * (position - below))[..., 0]


def median(values: Any, inside: Any) -> Any:
    """The middle value along the last axis, or the mean of the two in the middle."""
    return quantile(values, inside, 0.5)


for _entry in (
    Aggregation("max", "greatest value", "max", extreme="max", integer="kept", averages=True),
    Aggregation("min", "least value", "min", extreme="min", integer="kept", averages=True),
    Aggregation("mean", "mean value", "mean", linear=True, averages=True),
    Aggregation("sum", "sum of the values", "sum", linear=True, integer="kept"),
    Aggregation(
        "integral", "trapezoidal integral over model time", "integral", linear=True, pixels=False
    ),
    Aggregation(
        "argmax", "first step with the greatest value", "argmax", integer="always", pixels=False
    ),
    Aggregation(
        "argmin", "first step with the least value", "argmin", integer="always", pixels=False
    ),
    Aggregation("median", "median of the values", median, averages=True, monotone=True),
    Aggregation(
        "quantile",
        "quantile of the values, linear between order statistics",
        quantile,
        parameters=(Parameter("level", 0.0, 1.0),),
        averages=True,
        monotone=True,
    ),
    Aggregation(
        "count", "number of steps at which a formula holds", "count", integer="always", pixels=False
    ),
):
    register(_entry)
