"""A rule that data show, and the variables it is about."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from constraints import Formula
from constraints.ast.terms import Name

Values = Mapping[str, np.ndarray]  # (n, T) of series, (n, 1) of columns; NaN where one is missing


@dataclass(frozen=True)
class Quantity:
    """A variable that may take part in a rule. `precision`: relative, of its type."""

    name: str
    integer: bool
    precision: float = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class FoundRule:
    """A rule, by its name; `broken` (n, T) or (n, T - 1) says where values break it."""

    name: str
    formula: Formula
    broken: Callable[[Values], np.ndarray]


def shown(name: str) -> str:
    """A name as formulas write it, quoted where it must be."""
    return str(Name(name))


def spoken(name: str) -> str:
    """A name in the name of a rule: `count` is no word of the language there."""
    return name if name.isidentifier() else shown(name)
