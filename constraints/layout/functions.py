"""What formulas may call by name: functions of signals, and classifiers of images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from constraints.errors import FormulaError, unknown

if TYPE_CHECKING:
    from torch import Tensor

RETURNS = ("number", "series", "image")


@dataclass(frozen=True)
class Function:
    """A torch callable that formulas may use by name.

    Its arguments are tensors that broadcast to (B, ...), one value each; with `whole` a signal
    written bare is handed over entire: (B, T) or (B, C, H, W), and the name of a region as its
    mask (H, W). `returns` "number": one value for each place; "series" or "image": something to be
    read at a step or a pixel. `linear`: it is, in its signals together, so that equations about it
    can be solved. `optional`: how many arguments may follow the first `arity`.
    """

    call: Callable[..., Tensor]
    arity: int
    whole: bool = False
    returns: str = "number"
    linear: bool = False
    optional: int = 0

    def __post_init__(self) -> None:
        if not callable(self.call) or self.arity < 1 or self.optional < 0:
            raise FormulaError("a function is something to call, with one argument or more")
        if self.returns not in RETURNS:
            raise unknown("kind of result", self.returns, RETURNS)

    def check(self, name: str, given: int) -> None:
        """Refuse a number of arguments that it does not take."""
        if not self.arity <= given <= self.arity + self.optional:
            wanted = f"{self.arity}" if not self.optional else f"{self.arity} to "
            wanted += f"{self.arity + self.optional}" if self.optional else ""
            raise FormulaError(f"{name} takes {wanted} argument(s), not {given}")


@dataclass(frozen=True)
class Classifier:
    """`call`: images (B, C, H, W) to log-probabilities (B, K) of the K `classes`, its labels.

    An image is of a class if that is the likeliest and has the probability `sure`: one that is less
    sure may show none of them.
    """

    call: Callable[[Tensor], Tensor]
    classes: tuple[str, ...]
    sure: float = 0.0

    def __post_init__(self) -> None:
        labels = tuple(str(label) for label in self.classes)
        object.__setattr__(self, "classes", labels)
        if not callable(self.call) or len(set(labels)) != len(labels) or len(labels) < 2:
            raise FormulaError(
                "a classifier is something to call on images, with the labels of two classes or "
                f"more that differ, not {', '.join(labels) or 'none'}"
            )
        if not 0 <= self.sure < 1:
            raise FormulaError(f"how sure a classifier is to be lies in [0, 1), not {self.sure}")

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """What a formula may call the classes: their labels if these are whole numbers, else
        0, 1, ..."""
        if all(label.isascii() and label.lstrip("-").isdigit() for label in self.classes):
            return tuple(int(label) for label in self.classes)
        return tuple(range(len(self.classes)))
