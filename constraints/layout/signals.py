"""Layouts: the named signals of the data, their shapes, and the time grid.

A `Layout` describes the signals without their values: series (B, T), columns (B,), categories
(B, K) as one-hot weights or (B,) as codes, images (B, C, H, W). With several instances every
tensor has an extra axis after the batch: (B, instances, ...). The flat form (B, D) that samplers
use is the signals one after the other, instance by instance.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from constraints.ast.dates import canonical_date
from constraints.ast.terms import Name
from constraints.ast.words import PIXEL, is_variable
from constraints.errors import Action, DataError, FormulaError, unknown
from constraints.layout.functions import Classifier, Function
from constraints.layout.grid import check_dates, step_at_time, step_on_date
from constraints.layout.image_operators import OPERATORS, REGIONS, standard_regions
from constraints.layout.tensors import checked
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

SAMPLE_RANKS = {"series": 1, "column": 0, "category": 1, "image": 3}  # axes of a sample, by kind
_LAYOUT_MAPPINGS = ("parameters", "functions", "regions", "pictures", "classifiers")

_SHAPES = {"series": "(T,)", "column": "()", "category": "(K,)", "image": "(C, H, W)"}


@dataclass(frozen=True)
class Signal:
    """One named signal. `shape` is that of a single sample: (T,), (), (K,) or (C, H, W).

    `integer`: its values are whole numbers, so an equality is exact and `< 5` is `<= 4`. `low`,
    `high`: known bounds of its values. `span`: the range of its values in the data; the default
    tolerance of a real-valued equality is a share of it. `optional`: values may be missing (NaN); a
    missing value satisfies no statement about it. `dates`: the numbers are days since 1970-01-01.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    integer: bool = False
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[str, ...] = ()
    span: float | None = None
    optional: bool = False
    dates: bool = False

    def __post_init__(self) -> None:
        Name(self.name)  # raises if a formula cannot write it
        if self.kind not in SAMPLE_RANKS:
            raise unknown("kind of signal", self.kind, SAMPLE_RANKS)
        if len(self.shape) != SAMPLE_RANKS[self.kind] or any(size < 1 for size in self.shape):
            raise FormulaError(
                f"{self.name}: {self.shape} is not the shape of a {self.kind}",
                value=self.shape,
                remedy=f"the shape of a {self.kind} is {_SHAPES[self.kind]}",
            )
        if (self.optional or self.dates) and self.kind != "column":
            raise FormulaError(
                f"{self.name}: only a column may lack values or hold dates, not a {self.kind}",
                value=self.kind,
                remedy="make missing values a category of their own",
            )
        if not self.low <= self.high:
            raise FormulaError(
                f"{self.name}: the bounds [{self.low}, {self.high}] are empty",
                value=(self.low, self.high),
                remedy="give low <= high",
            )
        count = len(set(self.categories))
        if self.kind == "category" and self.shape != (count,):
            raise FormulaError(
                f"{self.name}: shape {self.shape} for the categories {', '.join(self.categories)}",
                value=self.shape,
                remedy=f"name every category once; their shape is ({count},)",
            )

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Layout:
    """Signals, their time grid, and what else a formula may name.

    `times`: the model times of the grid's steps. `dates`: their calendar dates, as ISO text, where
    all samples have the same. `parameters`: constants. `regions`: masks (H, W)
    of images, besides the standard ones (`image_operators`). `pictures`: constant images (C, H, W).
    `instances`: samples that a formula relates, as in `alcohol[1] > alcohol[2]`.
    """

    signals: tuple[Signal, ...]
    times: tuple[float, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    regions: Mapping[str, Tensor] = field(default_factory=dict)
    instances: int = 1
    pictures: Mapping[str, Tensor] = field(default_factory=dict)
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)
    dates: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not names:
            raise FormulaError(
                f"signals have the same name: {', '.join(twice)}"
                if twice
                else "there is no signal",
                value=names,
                remedy="give each signal its own name" if twice else "give at least one",
            )
        for at, (a, b) in enumerate(zip((-math.inf, *self.times), self.times, strict=False)):
            if not (math.isfinite(b) and a < b):
                raise FormulaError(
                    f"the times of a grid are finite and increase: {b} at step {at}", value=b
                )
        object.__setattr__(self, "dates", tuple(canonical_date(each) for each in self.dates))
        check_dates(self.dates, self.steps)
        for signal in self.signals:
            if signal.kind == "series" and signal.shape != (self.steps,):
                raise FormulaError(
                    f"the series {signal.name} has shape {signal.shape} on a grid of "
                    f"{self.steps} times",
                    value=signal.shape,
                    remedy=f"the shape of a series is ({self.steps},)",
                )
        if not (isinstance(self.instances, int) and self.instances >= 1):
            raise FormulaError(
                f"instances is a whole number >= 1, not {self.instances}", value=self.instances
            )
        for name in _LAYOUT_MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        self._check_names()
        self._check_images()

    def __reduce__(self) -> tuple[Any, ...]:  # mapping proxies cannot be copied or pickled
        *first, pictures, classifiers = (dict(getattr(self, name)) for name in _LAYOUT_MAPPINGS)
        return type(self), (
            self.signals,
            self.times,
            *first,
            self.instances,
            pictures,
            classifiers,
            self.dates,
        )

    def _check_names(self) -> None:
        for name in {*self.parameters, *self.functions} & set(self.names):
            raise FormulaError(
                f"{name} is a signal and a parameter or function",
                value=name,
                remedy="give the parameter or function another name",
            )
        for name in (*self.functions, *self.classifiers):
            if name == PIXEL or not is_variable(name):
                raise FormulaError(
                    f"{name!r} cannot name a function or classifier",
                    value=name,
                    remedy="use a word that is neither reserved nor a built-in function",
                )
        for name, value in self.parameters.items():
            if not isinstance(value, (int, float)) or not math.isfinite(value):
                raise FormulaError(
                    f"the parameter {name} is a finite number, not {value!r}", value=value
                )
        for name in (*self.pictures, *self.classifiers):
            Name(name)
            others = [getattr(self, kind) for kind in _LAYOUT_MAPPINGS]
            taken = sum(name in other for other in (*others, OPERATORS, self.names))
            if taken > 1:
                raise FormulaError(
                    f"{name} names a picture or classifier and something else",
                    value=name,
                    remedy="give the picture or classifier another name",
                )

    def _check_images(self) -> None:
        pictures = {name: _picture(name, value) for name, value in self.pictures.items()}
        object.__setattr__(self, "pictures", MappingProxyType(pictures))
        images = [signal.shape for signal in self.signals if signal.kind == "image"]
        sizes = {tuple(shape[-2:]) for shape in (*images, *(x.shape for x in pictures.values()))}
        for name, mask in self.regions.items():
            if tuple(mask.shape) not in sizes or not bool(mask.any()):
                raise FormulaError(
                    f"the region {name} of shape {tuple(mask.shape)} is not a mask with pixels",
                    value=tuple(mask.shape),
                    allowed=[str(size) for size in sorted(sizes)],
                    remedy="give a mask (H, W) of the size of an image, with pixels in it",
                )

    @classmethod
    def series(
        cls,
        names: str | Sequence[str],
        times: int | Sequence[float],
        *,
        integer: bool = False,
        low: float = -math.inf,
        high: float = math.inf,
        **more: Any,
    ) -> Layout:
        """Series of the same kind on one grid; `times`: the model times, or a number of steps."""
        words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
        steps = range(int(times)) if isinstance(times, Integral) else times
        if not isinstance(steps, Iterable) or isinstance(steps, str) or len(steps) == 0:
            raise FormulaError(
                f"{times!r} is neither a number of steps >= 1 nor a list of times", value=times
            )
        grid = tuple(float(t) for t in steps)
        shape = (len(grid),)
        made = tuple(Signal(word, "series", shape, integer, low, high) for word in words)
        return cls(made, grid, **more)

    @classmethod
    def columns(cls, names: str | Sequence[str], **more: Any) -> Layout:
        """Real-valued columns of a table."""
        words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
        return cls(tuple(Signal(word, "column") for word in words), **more)

    @classmethod
    def image(
        cls,
        shape: tuple[int, int, int],
        name: str = "image",
        *,
        low: float = 0.0,
        high: float = 1.0,
        **more: Any,
    ) -> Layout:
        """An image of shape (C, H, W), with values between `low` and `high`."""
        return cls((Signal(name, "image", tuple(shape), low=low, high=high),), **more)

    def extended(self, more: Sequence[Signal]) -> Layout:
        """The layout with more signals."""
        return replace(self, signals=(*self.signals, *more))

    def function(self, name: str) -> Function | None:
        """A function by name: one of its own, or an operator on images if it has images."""
        if name in self.functions or not self.images:
            return self.functions.get(name)
        return None if name in self.names else OPERATORS.get(name)

    @property
    def callables(self) -> list[str]:
        """The names that a formula may call besides built-in functions."""
        operators = (PIXEL, *OPERATORS) if self.images else ()
        return [*self.functions, *self.classifiers, *operators]

    def is_region(self, name: str) -> bool:
        return name in self.regions or (bool(self.images) and name in REGIONS)

    def region(self, name: str, size: tuple[int, int]) -> Tensor:
        """The mask (H, W) of a region by name, in images of that size."""
        if not self.is_region(name):
            known = {*self.regions, *(REGIONS if self.images else ())}
            given = Action(f"regions={{{name!r}: mask}}", f"--region {name}=ROWS,COLUMNS")
            remedy = ("a region is given by its name, ", given)
            raise unknown("region", name, known, remedy if self.images else ())
        own = self.regions.get(name)
        if own is not None and own.shape != size and name in REGIONS:
            standard = _regions_of(*own.shape).get(name)  # a layout may spell them out
            own = None if standard is not None and own.equal(standard) else own
        mask = _regions_of(*size).get(name) if own is None else own
        if mask is None or mask.shape != size:
            has = "no" if mask is None else f"{mask.shape[0]}x{mask.shape[1]}"
            raise FormulaError(
                f"the region {name} has {has} pixels, the image {size[0]}x{size[1]}",
                value=name,
                remedy="give a mask of that size under another name, or use another image",
            )
        return mask.to(torch.bool)

    @property
    def images(self) -> list[Signal]:
        return [signal for signal in self.signals if signal.kind == "image"]

    def find(self, name: str) -> Signal | None:
        return next((signal for signal in self.signals if signal.name == name), None)

    @property
    def steps(self) -> int:
        return len(self.times)

    @property
    def names(self) -> list[str]:
        return [signal.name for signal in self.signals]

    @property
    def size(self) -> int:
        """D: the numbers in one flat sample."""
        return self.instances * sum(signal.size for signal in self.signals)

    def split(self, flat: Tensor) -> dict[str, Tensor]:
        """A flat sample (B, D) as its signals, views where possible."""
        if flat.ndim != 2 or flat.shape[1] != self.size:
            raise DataError(
                f"flat samples have shape (B, {self.size}), not {tuple(flat.shape)}",
                value=tuple(flat.shape),
            )
        lead = (len(flat), self.instances) if self.instances > 1 else (len(flat),)
        parts = flat.reshape(*lead, self.size // self.instances)
        # one split, not slices: the gradient of a slice has the size of the whole tensor
        pieces = torch.split(parts, [signal.size for signal in self.signals], -1)
        pairs = zip(self.signals, pieces, strict=True)
        return {signal.name: piece.reshape(*lead, *signal.shape) for signal, piece in pairs}

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The signals as flat samples (B, D); the inverse of `split`."""
        ready = self.check(tensors)
        batch = len(ready[self.names[0]])
        parts = [
            ready[signal.name].reshape(batch, self.instances, signal.size)
            for signal in self.signals
        ]
        return torch.cat(parts, 2).reshape(batch, self.size)

    def step_at(self, time: float | str) -> int:
        """The step at a model time, or on a date; off the grid, the error shows its neighbours."""
        if isinstance(time, str):
            return step_on_date(self.dates, time)
        return step_at_time(self.times, time, self.dates)

    def check(
        self, tensors: Mapping[str, Any], needed: set[str] | None = None
    ) -> dict[str, Tensor]:
        """The signals as floating tensors of one batch: right names and shapes, no NaN but
        in optional columns."""
        return checked(self, tensors, needed)


_regions_of = cache(standard_regions)  # needed by every evaluation


def _picture(name: str, given: Any) -> Tensor:
    """Real numbers (C, H, W)."""
    value = torch.as_tensor(given)
    value = value if value.is_floating_point() else value.to(torch.get_default_dtype())
    if value.ndim != 3 or not value.numel() or not bool(torch.isfinite(value).all()):
        raise FormulaError(
            f"the picture {name} of shape {tuple(value.shape)} is not an image of finite numbers",
            value=tuple(value.shape),
            remedy="give finite numbers of shape (C, H, W)",
        )
    return value
