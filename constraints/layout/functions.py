"""What formulas may call by name: functions of signals, and classifiers of images."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from constraints.errors import FormulaError, unknown
from constraints.evaluate.folds import NEVER

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
class Judged:
    """What a classifier says of a batch and each class k, (B, K): log p_k, log(1 - p_k), what
    log p_k must exceed for k to be its verdict, and whether k is."""

    own: Tensor
    others: Tensor
    rival: Tensor
    likeliest: Tensor

    @classmethod
    def of(cls, scores: Tensor, sure: float = 0.0) -> Judged:
        """Of log-probabilities (B, K); what they lack to add up to one is put right. The verdict is
        the likeliest class, if it has the probability `sure`."""
        own = scores.log_softmax(-1)
        best, second = own.topk(2, -1).values.T[..., None]
        likeliest = torch.nn.functional.one_hot(own.argmax(-1), own.shape[-1]).bool()
        rest = own.masked_fill(likeliest, -torch.inf)
        # 1 - p is a sum of others where p is near one, else exact by itself
        others = torch.where(likeliest, rest.logsumexp(-1, keepdim=True), torch.log1p(-rest.exp()))
        rival = torch.where(likeliest, second, best)
        if sure > 0:
            rival, likeliest = rival.clamp(min=math.log(sure)), likeliest & (own >= math.log(sure))
        return cls(own.clamp(min=NEVER), others.clamp(min=NEVER), rival, likeliest)

    def at(self, places: Tensor) -> Judged:
        """Of the classes at these places (*sizes): (B, *sizes)."""
        parts = (self.own, self.others, self.rival, self.likeliest)
        return Judged(*(part[:, places] for part in parts))


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

    def places(self, numbers: Tensor) -> Tensor:
        """Where the classes of these numbers (any shape) stand among all."""
        known = torch.tensor(self.numbers, device=numbers.device)
        return (numbers.round()[..., None] == known).long().argmax(-1)

    def judge(self, images: Tensor) -> Judged:
        """What it says of images (B, C, H, W)."""
        found = self.call(images)
        wanted = (len(images), len(self.classes))
        if not isinstance(found, Tensor) or tuple(found.shape) != wanted:
            shape = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise FormulaError(
                f"a classifier of {wanted[1]} classes returns log-probabilities {wanted} of "
                f"{wanted[0]} images, not {shape}"
            )
        return Judged.of(found, self.sure)
