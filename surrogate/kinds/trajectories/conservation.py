"""Conservation laws Σ w_i x_i(t) = total: which species follow from the others, and how.

Elimination brings independent laws into the form

    x_d(t) = total - Σ v_j x_j(t),

with a dependent species d of its own for each law and independent species j on the right. Where
all of them are counts, d has weight ±1 in its law, so every v_j is an integer and whole counts
restore a whole count, exactly. A law in which no count has such a weight (2 A + 3 B) eliminates
nothing: the model has to learn it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from torch import Tensor

from surrogate.errors import ModelError

Law = Mapping[str, float]
Row = dict[str, Fraction]
A = TypeVar("A", Tensor, np.ndarray)


@dataclass(frozen=True)
class Relation:
    """dependent = total - Σ weight·x. `total`: a number, or the name of a value per trajectory."""

    dependent: str
    weights: Mapping[str, float]
    total: float | str = math.nan

    def sum(self, values: Mapping[str, A]) -> A:
        """The conserved sum, (B, T)."""
        found = values[self.dependent]
        for name, weight in self.weights.items():
            found = found + weight * values[name]
        return found

    def restore(self, values: Mapping[str, A], total: A) -> A:
        """The dependent species, of the shape of `total`: (B, T)."""
        found = total
        for name, weight in self.weights.items():
            found = found - weight * values[name]
        return found

    def __str__(self) -> str:
        return written({**self.weights, self.dependent: 1})


def written(law: Law) -> str:
    """S + 2*P - E."""
    text = ""
    for name, weight in law.items():
        part = name if abs(weight) == 1 else f"{abs(weight):g}*{name}"
        sign = "-" if weight < 0 else "+"
        text += f" {sign} {part}" if text else ("-" if weight < 0 else "") + part
    return text


def checked_laws(laws: Any) -> list[dict[str, int | float]]:
    """Laws as mappings from names to weights other than 0; ModelError for anything else."""
    if not isinstance(laws, Sequence) or isinstance(laws, str):
        raise ModelError(
            f"conservation laws are a list of name: weight mappings, not {laws!r}",
            value=laws,
            remedy='write [{"S": 1, "I": 1, "R": 1}]',
        )
    for law in laws:
        proper = isinstance(law, Mapping) and law and all(isinstance(name, str) for name in law)
        if not proper or not all(_is_weight(weight) for weight in law.values()):
            raise ModelError(
                f"a conservation law maps names to weights other than 0, not {law!r}",
                value=law,
                remedy='write {"S": 1, "I": 1, "R": 1}',
            )
    return [dict(law) for law in laws]


def _is_weight(weight: Any) -> bool:
    number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
    return number and 0 < abs(weight) < 2**53  # beyond it whole numbers have no float64


def solve(
    laws: Sequence[Law],
    species: Collection[str],
    counts: Collection[str],
    keep: Collection[str] = (),
) -> tuple[Relation, ...]:
    """Relations that express dependent species, from the laws whose species are all there.

    Of those that may depend on others, the last one in the order of the laws does, one in `keep`
    only if there is no other. `counts` are the species whose values are integers.
    """
    order = list(dict.fromkeys(name for law in laws for name in law))
    rows: dict[str, Row] = {}  # by dependent species, whose own weight is 1
    for law in laws:
        if not set(law) <= set(species):
            continue
        row = {name: Fraction(weight) for name, weight in law.items()}
        for pivot, known in rows.items():
            if pivot in row:
                _subtract(row, known, row[pivot])
        chosen = _dependent(row, order, counts, keep) if row else None
        if chosen is None:  # it follows from the others, or no count in it has weight ±1
            continue
        row = {name: weight / row[chosen] for name, weight in row.items()}
        for known in rows.values():
            if chosen in known:
                _subtract(known, row, known[chosen])
        rows[chosen] = row
    return tuple(_relation(pivot, row, order) for pivot, row in rows.items())


def _dependent(
    row: Row, order: Sequence[str], counts: Collection[str], keep: Collection[str]
) -> str | None:
    members = [name for name in order if name in row]
    real = [name for name in members if name not in counts]
    scale = math.lcm(*(weight.denominator for weight in row.values()))
    shared = math.gcd(*(int(weight * scale) for weight in row.values()))
    unit = [name for name in real or members if abs(row[name] * scale) == shared]
    able = unit or real
    return max(able, key=lambda name: (name not in keep, members.index(name)), default=None)


def _subtract(row: Row, other: Row, factor: Fraction) -> None:
    for name, value in other.items():
        rest = row.get(name, Fraction(0)) - factor * value
        if rest:
            row[name] = rest
        else:
            row.pop(name, None)


def _relation(pivot: str, row: Row, order: Sequence[str]) -> Relation:
    weights = {
        name: int(row[name]) if row[name].denominator == 1 else float(row[name])
        for name in order
        if name in row and name != pivot
    }
    return Relation(pivot, weights)
