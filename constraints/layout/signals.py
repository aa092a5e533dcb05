"""What a formula sees: named tensors and the grid they live on.

A `Layout` describes the signals without their values: series (B, T), columns (B,), categories
(B, K) as one-hot weights or (B,) as codes, images (B, C, H, W). With several instances every
tensor has an extra axis after the batch: (B, instances, ...). The flat form (B, D) that samplers
use is the signals one after the other, instance by instance.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from numbers import Integral
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from constraints.ast.terms import Name
from constraints.ast.words import PIXEL, is_variable
from constraints.errors import Action, DataError, FormulaError, unknown
from constraints.layout.functions import Classifier, Function
from constraints.layout.image_operators import OPERATORS, REGIONS, standard_regions
from constraints.layout.tensors import checked
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

RANKS = {"series": 1, "column": 0, "category": 1, "image": 3}  # kinds, and axes of a sample
MAPPINGS = ("parameters", "functions", "regions", "pictures", "classifiers")


@dataclass(frozen=True)
class Signal:
    """One named signal. `shape` is that of a single sample: (T,), (), (K,) or (C, H, W).

    `integer`: its values are counts, so an equality is exact and `< 5` is `<= 4`. `low` and
    `high` are what it is known to stay within; `span` is how far values in the data lie apart,
    which the tolerance of a real-valued equality is a share of. `optional`: a value may be missing
    (NaN), and then meets nothing that is said of it. `dates`: the numbers are days since 1970.
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
        Name(self.name)  # it must be one that a formula can write
        if self.kind not in RANKS:
            raise unknown("kind of signal", self.kind, RANKS)
        if len(self.shape) != RANKS[self.kind] or any(size < 1 for size in self.shape):
            raise FormulaError(f"{self.name}: {self.shape} is not the shape of a {self.kind}")
        if (self.optional or self.dates) and self.kind != "column":
            raise FormulaError(
                f"{self.name}: only a column may lack values or hold dates, not a {self.kind}; a "
                "missing word is a category of its own"
            )
        if not self.low <= self.high:
            raise FormulaError(f"{self.name}: the bounds [{self.low}, {self.high}] are empty")
        if self.kind == "category" and self.shape != (len(set(self.categories)),):
            raise FormulaError(
                f"{self.name}: shape {self.shape} for the categories {', '.join(self.categories)}"
            )

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, eq=False)
class Layout:
    """Signals, their grid, and what else a formula may name.

    `regions`: masks (H, W) of images, besides those that every image has (`images`). `pictures`:
    constant images (C, H, W). `classifiers`: what says which class an image is of.
    """

    signals: tuple[Signal, ...]
    times: tuple[float, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    regions: Mapping[str, Tensor] = field(default_factory=dict)
    instances: int = 1
    pictures: Mapping[str, Tensor] = field(default_factory=dict)
    classifiers: Mapping[str, Classifier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = self.names
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice or not names:
            raise FormulaError(
                f"signals need names of their own; given twice: {', '.join(twice)}"
                if twice
                else "a layout needs at least one signal"
            )
        for at, (a, b) in enumerate(zip((-math.inf, *self.times), self.times, strict=False)):
            if not (math.isfinite(b) and a < b):
                raise FormulaError(f"the times of a grid are finite and increase: {b} at step {at}")
        for signal in self.signals:
            if signal.kind == "series" and signal.shape != (self.steps,):
                raise FormulaError(
                    f"the series {signal.name} has shape {signal.shape} on a grid of "
                    f"{self.steps} times"
                )
        if not (isinstance(self.instances, int) and self.instances >= 1):
            raise FormulaError(f"there is at least one instance, not {self.instances}")
        for name in MAPPINGS:
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))
        self._check_names()
        self._check_images()

    def __reduce__(self) -> tuple[Any, ...]:  # a proxy has no copy of its own
        *first, pictures, classifiers = (dict(getattr(self, name)) for name in MAPPINGS)
        return type(self), (
            self.signals,
            self.times,
            *first,
            self.instances,
            pictures,
            classifiers,
        )

    def _check_names(self) -> None:
        for name in {*self.parameters, *self.functions} & set(self.names):
            raise FormulaError(f"{name} is a signal; give the parameter or function another name")
        for name in (*self.functions, *self.classifiers):
            if name == PIXEL or not is_variable(name):
                raise FormulaError(f"{name!r} cannot name a function: the language has it already")
        for name, value in self.parameters.items():
            if not isinstance(value, (int, float)) or not math.isfinite(value):
                raise FormulaError(f"the parameter {name} is a finite number, not {value!r}")
        for name in (*self.pictures, *self.classifiers):
            Name(name)
            others = [getattr(self, kind) for kind in MAPPINGS]
            taken = sum(name in other for other in (*others, OPERATORS, self.names))
            if taken > 1:
                raise FormulaError(
                    f"{name} names something else already; give the picture or classifier a name "
                    "of its own"
                )

    def _check_images(self) -> None:
        pictures = {name: _picture(name, value) for name, value in self.pictures.items()}
        object.__setattr__(self, "pictures", MappingProxyType(pictures))
        images = [signal.shape for signal in self.signals if signal.kind == "image"]
        sizes = {tuple(shape[-2:]) for shape in (*images, *(x.shape for x in pictures.values()))}
        for name, mask in self.regions.items():
            if tuple(mask.shape) not in sizes or not bool(mask.any()):
                raise FormulaError(
                    f"the region {name} of shape {tuple(mask.shape)} is not a mask with pixels of "
                    f"an image (H, W) of {sorted(sizes)}"
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
        """Series of the same kind on one grid: a number of steps, or the times themselves."""
        words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
        steps = range(int(times)) if isinstance(times, Integral) else times
        if not isinstance(steps, Iterable) or isinstance(steps, str) or len(steps) == 0:
            raise FormulaError(f"{times!r} is neither a number of steps >= 1 nor a list of times")
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

    def with_function(
        self,
        name: str,
        call: Callable[..., Tensor],
        arity: int,
        *,
        whole: bool = False,
        returns: str = "number",
        linear: bool = False,
    ) -> Layout:
        """This layout with one more function that formulas may use."""
        added = {**self.functions, name: Function(call, arity, whole, returns, linear)}
        return replace(self, functions=added)

    def with_region(self, name: str, mask: Tensor) -> Layout:
        """This layout with one more region: a mask (H, W)."""
        return replace(self, regions={**self.regions, name: mask})

    def with_picture(self, name: str, picture: Tensor) -> Layout:
        """This layout with one more constant image (C, H, W) that formulas may read."""
        return replace(self, pictures={**self.pictures, name: picture})

    def with_classifier(
        self, name: str, call: Callable[[Tensor], Tensor], classes: Sequence[str]
    ) -> Layout:
        """This layout with one more classifier: images (B, C, H, W) to log-probabilities (B, K)."""
        added = {**self.classifiers, name: Classifier(call, tuple(classes))}
        return replace(self, classifiers=added)

    def function(self, name: str) -> Function | None:
        """A function by name: one of its own, or an operator on images if it has images."""
        if name in self.functions or not self.images:
            return self.functions.get(name)
        return None if name in self.names else OPERATORS.get(name)

    @property
    def callables(self) -> list[str]:
        """What a formula may call besides the language's own functions."""
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
                f"the region {name} has {has} pixels, the image {size[0]}x{size[1]}; give a mask "
                "of that size another name, or say it of another image"
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
            raise DataError(f"flat samples have shape (B, {self.size}), not {tuple(flat.shape)}")
        lead = (len(flat), self.instances) if self.instances > 1 else (len(flat),)
        parts = flat.reshape(*lead, self.size // self.instances)
        # all at once: as slices each would have a gradient of the whole size
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

    def step_at(self, time: float) -> int:
        """The step whose model time is `time`; off the grid, the error shows its neighbours."""
        if not self.times:
            raise FormulaError(f"@{time:g}: these signals have no time grid")
        after = min(bisect_left(self.times, time), self.steps - 1)
        near = min((max(after - 1, 0), after), key=lambda i: abs(self.times[i] - time))
        close = slice(max(near - 1, 0), near + 2)
        gaps = [b - a for a, b in pairwise(self.times[close])] or [1.0]
        if abs(self.times[near] - time) <= 1e-6 * min(gaps):
            return near
        around = ", ".join(f"{self.times[i]:.6g} (step {i})" for i in range(self.steps)[close])
        raise FormulaError(f"the time {time:g} is not on the grid; nearby are {around}")

    def check(
        self, tensors: Mapping[str, Any], needed: set[str] | None = None
    ) -> dict[str, Tensor]:
        """The signals as floating tensors of one batch: right names and shapes, no NaN but
        in optional columns."""
        return checked(self, tensors, needed)


_regions_of = cache(standard_regions)  # which every evaluation asks for


def _picture(name: str, given: Any) -> Tensor:
    """Real numbers (C, H, W)."""
    value = torch.as_tensor(given)
    value = value if value.is_floating_point() else value.to(torch.get_default_dtype())
    if value.ndim != 3 or not value.numel() or not bool(torch.isfinite(value).all()):
        raise FormulaError(
            f"the picture {name} is finite numbers of shape (C, H, W); this one has shape "
            f"{tuple(value.shape)}"
        )
    return value
