"""Conservation laws: integer vectors `w` with `w·x` unchanged by every reaction (`w·ν = 0`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm


@dataclass(frozen=True)
class ConservationLaw:
    """`Σ coefficient·species = constant`, coefficients coprime integers, the first one positive."""

    coefficients: Mapping[str, int]

    @property
    def is_total(self) -> bool:
        """A plain head count: every coefficient is one, over at least two species."""
        return len(self.coefficients) > 1 and set(self.coefficients.values()) == {1}

    def __str__(self) -> str:
        terms = (
            (name if abs(weight) == 1 else f"{abs(weight)}*{name}", weight)
            for name, weight in self.coefficients.items()
        )
        text = ""
        for term, weight in terms:
            sign = "-" if weight < 0 else "+" if text else ""
            text += f" {sign} {term}" if text else f"{sign}{term}"
        return text


def conservation_laws(
    species: Sequence[str], changes: Sequence[Mapping[str, int]]
) -> tuple[ConservationLaw, ...]:
    """A basis of the laws that all `changes` respect, by exact elimination.

    The basis is the left null space of the stoichiometry in reduced form, so laws are as short as
    the elimination makes them: S + I + R for an epidemic, one law per conserved moiety in general.
    """
    rows = [[Fraction(change.get(name, 0)) for name in species] for change in changes]
    pivots: list[int] = []
    for column in range(len(species)):
        at = len(pivots)
        found = next((r for r in range(at, len(rows)) if rows[r][column]), None)
        if found is None:
            continue
        rows[at], rows[found] = rows[found], rows[at]
        lead = rows[at][column]
        rows[at] = [value / lead for value in rows[at]]
        for r in range(len(rows)):
            if r != at and rows[r][column]:
                factor = rows[r][column]
                rows[r] = [a - factor * b for a, b in zip(rows[r], rows[at], strict=True)]
        pivots.append(column)
    laws = []
    for free in (column for column in range(len(species)) if column not in pivots):
        vector = [Fraction(0)] * len(species)
        vector[free] = Fraction(1)
        for row, pivot in zip(rows, pivots, strict=False):
            vector[pivot] = -row[free]
        laws.append(_coprime(species, vector))
    return tuple(laws)


def _coprime(species: Sequence[str], vector: Sequence[Fraction]) -> ConservationLaw:
    scale = lcm(*(value.denominator for value in vector))
    weights = [int(value * scale) for value in vector]
    divisor = gcd(*weights)
    if next(weight for weight in weights if weight) < 0:
        divisor = -divisor
    pairs = zip(species, weights, strict=True)
    return ConservationLaw({name: weight // divisor for name, weight in pairs if weight})
