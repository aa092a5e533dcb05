"""Nodes of compiled formulas: those that `resolve` and `lower` produce, and no text does.

An `Atom` is an interval for a linear combination of terms; lowered formulas are conjunctions,
disjunctions and quantifiers of atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from constraints.ast import formulas as f
from constraints.ast.terms import Name, Step, Term, add

if TYPE_CHECKING:
    from torch import Tensor


class LatentMap(Protocol):
    """An increasing map from a latent z to the value Q(z) of a column, possibly a staircase."""

    @property
    def low(self) -> float:
        """The least latent; below it Q does not change."""
        ...

    @property
    def high(self) -> float: ...
    @property
    def span(self) -> float:
        """The range of latents in the data."""
        ...

    def inverse(self, z: Tensor, /) -> Tensor:
        """Q(z), any shape, differentiable almost everywhere: a staircase may be smoothed."""
        ...

    def interval(
        self, low: float, high: float, open_low: bool, open_high: bool, /
    ) -> tuple[float, float]:
        """The latents with low <= Q(z) <= high (an open end: <), closed; reversed if none."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class CategoryWeight(Term):
    """The weight in [0, 1] of one category of a signal; `words`: the labels of all of them."""

    signal: Name
    index: int
    words: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False, repr=False)
class LatentColumn(Term):
    """The value Q(z) of a column of which the data hold the latent z."""

    signal: Name
    warp: LatentMap = field(compare=False)


@dataclass(frozen=True, eq=False, repr=False)
class Pixels(Term):
    """The pixels of images of a shape (C, H, W): those in a region, or all.

    The domain of a quantifier or an aggregate; as an argument of a function, the region's mask.
    """

    region: str | None
    shape: tuple[int, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Pixel(Term):
    """One pixel of an image of one channel, at a row and a column that are whole numbers."""

    image: Term
    row: Term
    column: Term


@dataclass(frozen=True, eq=False, repr=False)
class ClassProbability(Term):
    """The probability, by a classifier, that an image is of the class of number `label`.

    `labels`: (number, label) of every class, for printing.
    """

    classifier: str
    image: Term
    label: Term
    labels: tuple[tuple[int, str], ...] = field(default=(), compare=False)


@dataclass(frozen=True, eq=False, repr=False)
class HasClass(f.Formula):
    """The statement that a class is (or, if not `positive`, is not) the likeliest of an image."""

    chance: ClassProbability
    positive: bool = True
    k: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class BoundUntil(f.Formula):
    """A resolved `Until`: relative to `here`, with the name of the step it binds."""

    kind: str
    left: f.Formula
    right: f.Formula
    first: int
    last: int | None
    past: bool
    here: Step
    variable: str


@dataclass(frozen=True, eq=False, repr=False)
class Atom(f.Formula):
    """low <= Σ coefficient·term <= high.

    `slack`: the distance outside the interval up to which a verdict counts as met. `open_low`,
    `open_high`: the bound itself is excluded. `integer`: of integer data the sum is an integer.
    """

    coefficients: tuple[float, ...]
    terms: tuple[Term, ...]
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    slack: float = 0.0
    integer: bool = False
    k: float | None = None

    @property
    def equality(self) -> bool:
        return self.low == self.high

    @property
    def category(self) -> Name | None:
        """The signal, if the atom states that its category is among (or not among) some labels."""
        first = self.terms[0]
        if not isinstance(first, CategoryWeight) or set(self.coefficients) != {1.0} or self.slack:
            return None
        if (self.low, self.high) not in ((0.5, math.inf), (-math.inf, 0.5)):
            return None
        same = (
            isinstance(t, CategoryWeight) and t.signal.key == first.signal.key for t in self.terms
        )
        return first.signal if all(same) else None

    @property
    def chooses(self) -> bool:
        """Whether the category is among the labels of the atom, rather than not among them."""
        return self.low == 0.5

    def whole_bounds(self) -> tuple[float, float]:
        """The least and greatest whole numbers that an integer atom admits."""
        low, high = self.low - self.slack, self.high + self.slack
        first = low if math.isinf(low) else math.ceil(low)
        last = high if math.isinf(high) else math.floor(high)
        if self.open_low and math.isfinite(low):
            first = math.floor(low) + 1
        if self.open_high and math.isfinite(high):
            last = math.ceil(high) - 1
        return float(first), float(last)

    def admitted(self) -> tuple[float, float, bool, bool]:
        """The values that an atom about one column admits: low, high, and which of them are open.

        The atom has a single coefficient.
        """
        low, high = self.low - self.slack, self.high + self.slack
        open_low, open_high = self.open_low, self.open_high
        if self.integer:
            (low, high), open_low, open_high = self.whole_bounds(), False, False
        (coefficient,) = self.coefficients
        low, high = low / coefficient, high / coefficient
        if coefficient < 0:
            low, high, open_low, open_high = high, low, open_high, open_low
        if self.integer:  # 2 x >= 3 is x >= 2
            low = low if math.isinf(low) else math.ceil(low)
            high = high if math.isinf(high) else math.floor(high)
        return low, high, open_low, open_high

    def readable(self) -> str:
        """The atom as a comparison in the language."""
        if self.category is not None:
            return _category_text(self)
        pairs = zip(self.coefficients, self.terms, strict=True)
        total = str(add(*(_times(c, t) for c, t in pairs)))
        if self.equality:
            return f"{total} = {self.low:g}"
        left = "" if self.low == -math.inf else f"{self.low:g} {'<' if self.open_low else '<='} "
        right = "" if self.high == math.inf else f" {'<' if self.open_high else '<='} {self.high:g}"
        return left + total + right


def _times(coefficient: float, term: Term) -> Term:
    if coefficient == 1:
        return term
    return -term if coefficient == -1 else coefficient * term


def _category_text(atom: Atom) -> str:
    options = [term for term in atom.terms if isinstance(term, CategoryWeight)]
    words = [str(Name(option.words[option.index], quoted=True)) for option in options]
    if len(words) == 1:
        return f"{atom.category} {'=' if atom.chooses else '!='} {words[0]}"
    return f"{atom.category} {'in' if atom.chooses else 'not in'} {{{', '.join(words)}}}"
