"""What a formula sees: named tensors and the grid they live on.

A `Layout` describes the signals without their values: series (B, T), columns (B,), categories
(B, K) as one-hot weights or (B,) as codes, images (B, C, H, W). With several instances every
tensor has an extra axis after the batch: (B, instances, ...). The flat form (B, D) that samplers
use is the signals one after the other, instance by instance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from constraints.errors import DataError, FormulaError, unknown
from constraints.terms import BUILT_IN

KINDS = ("series", "column", "category", "image")


@dataclass(frozen=True)
class Signal:
    """One named signal. `shape` is that of a single sample: (T,), (), (K,) or (C, H, W).

    `integer`: its values are counts, so an equality is exact and `< 5` is `<= 4`. `low` and
    `high` are what it is known to stay within.
    """

    name: str
    kind: str
    shape: tuple[int, ...] = ()
    integer: bool = False
    low: float = -math.inf
    high: float = math.inf
    categories: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise unknown("kind of signal", self.kind, KINDS)
        if not self.low <= self.high:
            raise FormulaError(f"{self.name}: the bounds [{self.low}, {self.high}] are empty")

    @property
    def size(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Function:
    """A torch callable that formulas may use by name.

    Its arguments are tensors that broadcast to (B, ...), one value each; with `whole` a signal
    written bare is handed over entire: (B, T) or (B, C, H, W). `returns` "number": one value for
    each place; "series" or "image": something to be read at a step or a pixel.
    """

    call: Callable[..., Tensor]
    arity: int
    whole: bool = False
    returns: str = "number"


@dataclass(frozen=True)
class Layout:
    """Signals, their grid, and what else a formula may name."""

    signals: tuple[Signal, ...]
    times: tuple[float, ...] = ()
    parameters: Mapping[str, float] = field(default_factory=dict)
    functions: Mapping[str, Function] = field(default_factory=dict)
    regions: Mapping[str, Tensor] = field(default_factory=dict)
    instances: int = 1

    def __post_init__(self) -> None:
        names = [signal.name for signal in self.signals]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise FormulaError(f"signals need names of their own; given twice: {sorted(twice)}")
        for signal in self.signals:
            if signal.kind == "series" and signal.shape != (len(self.times),):
                raise FormulaError(
                    f"the series {signal.name} has shape {signal.shape} on a grid of "
                    f"{len(self.times)} times"
                )
        if any(b <= a for a, b in zip(self.times, self.times[1:], strict=False)):
            raise FormulaError("the times of a grid must increase")
        reserved = set(self.functions) & set(BUILT_IN)
        if reserved:
            raise FormulaError(f"{sorted(reserved)} are functions of the language; rename yours")
        for name in ("parameters", "functions", "regions"):
            object.__setattr__(self, name, MappingProxyType(dict(getattr(self, name))))

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
        grid = tuple(float(t) for t in (range(times) if isinstance(times, int) else times))
        shape = (len(grid),)
        made = tuple(Signal(word, "series", shape, integer, low, high) for word in words)
        return cls(made, grid, **more)

    @classmethod
    def columns(cls, names: str | Sequence[str], **more: Any) -> Layout:
        """Real-valued columns of a table."""
        words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
        return cls(tuple(Signal(word, "column") for word in words), **more)

    @classmethod
    def image(cls, shape: tuple[int, int, int], name: str = "image", **more: Any) -> Layout:
        """An image of shape (C, H, W)."""
        return cls((Signal(name, "image", tuple(shape)),), **more)

    def with_function(
        self,
        name: str,
        call: Callable[..., Tensor],
        arity: int,
        *,
        whole: bool = False,
        returns: str = "number",
    ) -> Layout:
        """This layout with one more function that formulas may use."""
        added = {**self.functions, name: Function(call, arity, whole, returns)}
        return replace(self, functions=added)

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
        parts = flat.reshape(len(flat), self.instances, -1)
        found, start = {}, 0
        for signal in self.signals:
            part = parts[:, :, start : start + signal.size]
            start += signal.size
            part = part.reshape(*part.shape[:2], *signal.shape)
            found[signal.name] = part if self.instances > 1 else part[:, 0]
        return found

    def flatten(self, tensors: Mapping[str, Tensor]) -> Tensor:
        """The signals as flat samples (B, D); the inverse of `split`."""
        ready = self.check(tensors)
        batch = len(next(iter(ready.values())))
        parts = [ready[signal.name].reshape(batch, self.instances, -1) for signal in self.signals]
        return torch.cat(parts, 2).reshape(batch, -1)

    def step_at(self, time: float) -> int:
        """The step whose model time is `time`; off the grid, the error shows its neighbours."""
        if not self.times:
            raise FormulaError(f"@{time:g}: these signals have no time grid")
        near = min(range(self.steps), key=lambda i: abs(self.times[i] - time))
        spacing = (self.times[-1] - self.times[0]) / max(self.steps - 1, 1) or 1.0
        if abs(self.times[near] - time) <= 1e-6 * spacing:
            return near
        shown = self.times[max(0, near - 1) : near + 2]
        first = max(0, near - 1)
        around = ", ".join(f"{t:.6g} (step {first + i})" for i, t in enumerate(shown))
        raise FormulaError(f"the time {time:g} is not on the grid; nearby are {around}")

    def check(
        self, tensors: Mapping[str, Any], needed: set[str] | None = None
    ) -> dict[str, Tensor]:
        """The signals as floating tensors of one batch: right names and shapes, no NaN."""
        ready: dict[str, Tensor] = {}
        batch: int | None = None
        for signal in self.signals:
            if needed is not None and signal.name not in needed:
                continue
            if signal.name not in tensors:
                raise DataError(f"the data have no signal {signal.name!r} (have: {list(tensors)})")
            value = self._floating(signal, torch.as_tensor(tensors[signal.name]))
            lead = (self.instances,) if self.instances > 1 else ()
            if value.shape[1:] != lead + signal.shape or value.ndim == 0:
                wanted = ", ".join(str(size) for size in ("B", *lead, *signal.shape))
                raise DataError(
                    f"{signal.name} has shape {tuple(value.shape)} where ({wanted}) is expected"
                )
            if batch is not None and len(value) != batch:
                raise DataError(f"{signal.name} has {len(value)} samples, others have {batch}")
            batch = len(value)
            if not math.isfinite(value.detach().sum().item()):
                _report(signal.name, value.detach())
            ready[signal.name] = value
        return ready

    def _floating(self, signal: Signal, value: Tensor) -> Tensor:
        codes = 1 + (self.instances > 1)
        if signal.kind == "category" and value.ndim == codes:
            index = value.long()
            if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < signal.size:
                raise DataError(f"{signal.name} holds codes outside 0..{signal.size - 1}")
            return torch.nn.functional.one_hot(index, signal.size).to(torch.get_default_dtype())
        if value.is_complex():
            raise DataError(f"{signal.name} is complex")
        if value.is_floating_point():
            return value
        small = value.dtype in (torch.bool, torch.int8, torch.uint8, torch.int16)
        return value.to(torch.float32 if small else torch.float64)  # both exact


def _report(name: str, value: Tensor) -> None:
    """Raise if the tensor holds NaN or infinities (a sum may overflow without)."""
    bad = ~torch.isfinite(value)
    if not bad.any():
        return
    kind = "NaN" if torch.isnan(value).any() else "infinite values"
    samples = bad.reshape(len(value), -1).any(1)
    first = bad.nonzero()[0].tolist()
    raise DataError(
        f"{name} holds {kind} in {int(samples.sum())} of {len(value)} samples, first at "
        f"sample {first[0]}"
        + (f", step {first[1]}" if len(first) == 2 else "")
        + "; drop or repair them"
    )
