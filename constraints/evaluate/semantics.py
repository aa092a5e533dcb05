"""Semantics of formulas: values of atoms, and folds for connectives and quantifiers.

| semantics         | atom a >= b      | and, forall | or, exists             | value          |
|-------------------|------------------|-------------|------------------------|----------------|
| `LogProbabilistic`| logsigmoid k(a-b)| sum         | log(1 - Π(1 - e^x))    | log-probability|
| `LogLTN`          | logsigmoid k(a-b)| sum, mean   | log mean e^(αx) / α    | <= 0           |
| `Robustness`      | a - b            | min         | max                    | signed margin  |
| `Boolean`         | a >= b           | all         | any                    | verdict        |

`Robustness` is the spatial robustness of signal temporal logic (Donzé and Maler 2010); `LogLTN`
follows logic tensor networks in log space (Badreddine et al. 2023).

The statement that an image is of class k has the value log p_k, its robustness is the margin
log p_k - max log p_j, and its verdict is whether k is the likeliest class. An equality is
`a >= b and a <= b`, or a Gaussian -λ(a-b)² if `gaussian` is given. There is no negation: lowering
pushes it to the atoms. The verdict is never derived from a soft value. Observations add their
log-densities to log-probabilities, and nothing to margins and verdicts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from constraints.ast.lowered import Atom, HasClass
from constraints.errors import FormulaError, unknown
from constraints.evaluate.classes import Judged
from constraints.evaluate.folds import All, Any, Fold, LogMeanExp, LogOr, Max, Mean, Min, Sum
from constraints.evaluate.log_probability import NEVER

HARD_EQUALITY_HALF_WIDTH = 1e-6  # of a hard equality of real numbers without tolerance


class Semantics(Protocol):
    """Values of atoms, and how they combine: as connectives and over steps.

    `margins`: an atom's value grows with its distance from the bound and folds by min and max.
    """

    margins: bool

    @property
    def both(self) -> Fold: ...
    @property
    def either(self) -> Fold: ...
    @property
    def forall(self) -> Fold: ...
    @property
    def exists(self) -> Fold: ...

    def atom(self, y: Tensor, atom: Atom) -> Tensor:
        """The value of `atom` where its sum is `y`."""
        ...

    def label(self, judged: Judged, node: HasClass) -> Tensor:
        """The value of the statement that an image is of a class (or is not)."""
        ...

    def constant(self, truth: bool) -> float | bool:
        """The value of true or false."""
        ...

    def weighted(self, value: Tensor, weight: float) -> Tensor: ...

    def observed(self, value: Tensor, log_density: Tensor) -> Tensor:
        """The value (B,) of a formula together with observations of log-densities (B, k)."""
        ...

    def truth(self, value: Tensor) -> Tensor:
        """In [0, 1]: what one step adds to a count."""
        ...


def _check_positive(name: str, value: float, infinite: bool = False) -> None:
    if not (value > 0 and (infinite or math.isfinite(value))):
        legal = "positive" if infinite else "positive and finite"
        raise FormulaError(f"{name} must be {legal}, not {value}", value=value)


class _Logarithmic:
    """Values of atoms in the semantics whose values are log-probabilities."""

    k: float
    steps: str
    half_unit: bool
    gaussian: float | None
    margins = False

    def check(self, hardest: bool = False) -> None:
        """`hardest`: whether k may be infinite."""
        _check_positive("k", self.k, infinite=hardest)
        if self.gaussian is not None:
            _check_positive("gaussian", self.gaussian)
        if self.steps not in ("sum", "mean"):
            raise unknown("fold over steps", str(self.steps), ("sum", "mean"))

    @property
    def forall(self) -> Fold:
        return Sum() if self.steps == "sum" else Mean()

    def hardness(self, atom: Atom | HasClass) -> float:
        return self.k if atom.k is None else atom.k

    def bounds(self, atom: Atom) -> tuple[float, float]:
        """The interval, half a unit wider for whole numbers if `half_unit`.

        A hard atom equals the verdict, with the same slack.
        """
        if self.half_unit and atom.integer:
            low, high = atom.whole_bounds()
            return low - 0.5, high + 0.5
        room = atom.slack if math.isinf(self.hardness(atom)) else 0.0
        return atom.low - room, atom.high + room

    def atom(self, y: Tensor, atom: Atom) -> Tensor:
        low, high = self.bounds(atom)
        if self.gaussian is not None and atom.equality:
            return -self.gaussian * (y - atom.low) ** 2
        k = self.hardness(atom)
        if math.isinf(k):
            inside = (y >= low) & (y <= high)
            return torch.where(inside, 0.0, -torch.inf).to(y.dtype)
        if math.isinf(low):
            return _soft(high - y, k)
        if math.isinf(high):
            return _soft(y - low, k)
        return _soft(y - low, k) + _soft(high - y, k)

    def label(self, judged: Judged, node: HasClass) -> Tensor:
        if math.isinf(self.hardness(node)):
            met = judged.likeliest == node.positive
            return torch.where(met, 0.0, -torch.inf).to(judged.own.dtype)
        return judged.own if node.positive else judged.others

    def constant(self, truth: bool) -> float:
        return 0.0 if truth else NEVER

    def weighted(self, value: Tensor, weight: float) -> Tensor:
        return weight * value

    def observed(self, value: Tensor, log_density: Tensor) -> Tensor:
        return value + log_density.sum(1)

    def truth(self, value: Tensor) -> Tensor:
        return value.exp()


def _soft(margin: Tensor, k: float) -> Tensor:
    return logsigmoid(margin if k == 1.0 else k * margin)


@dataclass(frozen=True)
class LogProbabilistic(_Logarithmic):
    """Log-probabilistic logic: product conjunction, probabilistic disjunction, in logarithms.

    `k`: hardness of atoms that do not state their own. `steps`: whether `forall` adds up its steps
    ("sum") or averages them ("mean"). `half_unit`: integer atoms are half a unit wider, so that
    the hard limit k → ∞ is the verdict on rounded values. `gaussian`: λ of the equality -λ(a-b)².
    """

    k: float = 10.0
    steps: str = "sum"
    half_unit: bool = False
    gaussian: float | None = None

    both = Sum()
    either = LogOr()
    exists = LogOr()

    def __post_init__(self) -> None:
        self.check(hardest=True)


@dataclass(frozen=True)
class LogLTN(_Logarithmic):
    """LogLTN: sums for `and`, means for `forall`, LogMeanExp with `alpha` for `or` and `exists`."""

    k: float = 10.0
    alpha: float = 1.0
    steps: str = "mean"
    half_unit: bool = False
    gaussian: float | None = None

    both = Sum()

    def __post_init__(self) -> None:
        self.check()
        _check_positive("alpha", self.alpha)

    @property
    def either(self) -> Fold:
        return LogMeanExp(self.alpha)

    @property
    def exists(self) -> Fold:
        return LogMeanExp(self.alpha)


@dataclass(frozen=True)
class Robustness:
    """Quantitative semantics: the signed margin, positive where the formula holds."""

    margins = True  # the least margin of y <= c is that of the greatest y

    both = forall = Min()
    either = exists = Max()

    def atom(self, y: Tensor, atom: Atom) -> Tensor:
        low, high = atom.low - atom.slack, atom.high + atom.slack
        if atom.equality:
            margin = atom.slack - (y - atom.low).abs()
        elif math.isinf(low):
            margin = high - y
        elif math.isinf(high):
            margin = y - low
        else:
            margin = torch.minimum(y - low, high - y)
        if math.isnan(y.detach().sum().item()):  # undefined: not met
            margin = torch.where(torch.isnan(y), -torch.inf, margin)
        return margin

    def label(self, judged: Judged, node: HasClass) -> Tensor:
        margin = judged.own - judged.rival
        return margin if node.positive else -margin

    def constant(self, truth: bool) -> float:
        return math.inf if truth else -math.inf

    def weighted(self, value: Tensor, weight: float) -> Tensor:
        return value

    def observed(self, value: Tensor, log_density: Tensor) -> Tensor:
        return value  # an observation has neither a verdict nor a margin

    def truth(self, value: Tensor) -> Tensor:
        raise TypeError("a count has no margins: evaluate its body with Boolean()")


@dataclass(frozen=True)
class Boolean:
    """The hard verdict. An atom that is NaN, such as log(-1) <= 1, is not met, nor is its negation,
    so that `x(2) <= 0 or log(x(2)) <= 1` is well defined."""

    margins = False

    both = forall = All()
    either = exists = Any()

    def atom(self, y: Tensor, atom: Atom) -> Tensor:
        low, high = atom.low - atom.slack, atom.high + atom.slack
        above = y > low if atom.open_low else y >= low
        below = y < high if atom.open_high else y <= high
        if math.isinf(low):
            return below
        return above if math.isinf(high) else above & below

    def label(self, judged: Judged, node: HasClass) -> Tensor:
        return judged.likeliest == node.positive

    def constant(self, truth: bool) -> bool:
        return truth

    def weighted(self, value: Tensor, weight: float) -> Tensor:
        return value

    def observed(self, value: Tensor, log_density: Tensor) -> Tensor:
        return value  # an observation has neither a verdict nor a margin

    def truth(self, value: Tensor) -> Tensor:
        return value.to(torch.get_default_dtype())
