"""Functions of signals and classifiers of images, which formulas call by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from constraints.errors import FormulaError, unknown

if TYPE_CHECKING:
    from torch import Tensor

RESULT_KINDS = ("number", "series", "image")


@dataclass(frozen=True)
class Function:
    """A torch callable that formulas may use by name.

    Its arguments are tensors that broadcast to (B, ...), one value each. With `whole`, bare signals
    are passed entire, as (B, T) or (B, C, H, W), and the name of a region as its mask (H, W).
    `returns`: "number", one value for each place; "series" or "image", to be read at a step or a
    pixel. `linear`: it is linear in all its signals jointly, so that equations about it can be
    solved. `optional`: the number of arguments that may follow the first `arity`.
    """

    call: Callable[..., Tensor]
    arity: int
    whole: bool = False
    returns: str = "number"
    linear: bool = False
    optional: int = 0

    def __post_init__(self) -> None:
        if not callable(self.call) or self.arity < 1 or self.optional < 0:
            raise FormulaError(
                f"{self.call!r} with arity {self.arity} and {self.optional} optional arguments is "
                "not a function",
                value=self.call,
                remedy="give a callable that takes one argument or more",
            )
        if self.returns not in RESULT_KINDS:
            raise unknown("kind of result", self.returns, RESULT_KINDS)

    def check(self, name: str, given: int) -> None:
        """Reject a number of arguments that the function does not take."""
        most = self.arity + self.optional
        if not self.arity <= given <= most:
            count = f"{self.arity} to {most}" if self.optional else f"{self.arity}"
            arguments = ", ".join(f"x{i + 1}" for i in range(most))
            raise FormulaError(
                f"{name} takes {count} argument(s), not {given}",
                value=given,
                remedy=f"write {name}({arguments})",
            )


@dataclass(frozen=True)
class Classifier:
    """`call`: images (B, C, H, W) to log-probabilities (B, K) of the K `classes`, its labels.

    An image is of a class if that class is the likeliest and its probability is at least `sure`;
    an image without such a class is of none.
    """

    call: Callable[[Tensor], Tensor]
    classes: tuple[str, ...]
    sure: float = 0.0

    def __post_init__(self) -> None:
        labels = tuple(str(label) for label in self.classes)
        object.__setattr__(self, "classes", labels)
        if not callable(self.call) or len(set(labels)) != len(labels) or len(labels) < 2:
            raise FormulaError(
                f"{self.call!r} with the classes {', '.join(labels) or 'none'} is not a classifier",
                value=labels,
                remedy="give a callable on images and two or more labels that differ",
            )
        if not 0 <= self.sure < 1:
            raise FormulaError(
                f"the least probability of a class, sure, is {self.sure}",
                value=self.sure,
                remedy="give a number in [0, 1)",
            )

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of the classes in formulas: the labels if all are whole numbers, else
        0, 1, ..."""
        if all(label.isascii() and label.lstrip("-").isdigit() for label in self.classes):
            return tuple(int(label) for label in self.classes)
        return tuple(range(len(self.classes)))
