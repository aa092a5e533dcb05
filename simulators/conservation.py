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
    species: Sequence[str], changes: Sequence[Mapping[str, int | Fraction]]
) -> tuple[ConservationLaw, ...]:
    """A basis of the laws that all `changes` respect, by exact elimination.

    The basis is the left null space of the stoichiometry in reduced form, so laws are as short as
    the elimination makes them: S + I + R for an epidemic, one law per conserved moiety in general.
    """
    rows: dict[str, dict[str, Fraction]] = {}  # pivot species -> its reduced sparse row
    for change in changes:
        row = {name: Fraction(by) for name, by in change.items() if by}
        for pivot, reduced in rows.items():
            if pivot in row:
                _subtract(row, reduced, row[pivot])
        if not row:
            continue
        pivot = next(name for name in species if name in row)
        row = {name: value / row[pivot] for name, value in row.items()}
        for reduced in rows.values():
            if pivot in reduced:
                _subtract(reduced, row, reduced[pivot])
        rows[pivot] = row
    return tuple(
        _coprime(
            {free: Fraction(1)} | {p: -row[free] for p, row in rows.items() if free in row}, species
        )
        for free in species
        if free not in rows
    )


def _subtract(row: dict[str, Fraction], other: Mapping[str, Fraction], factor: Fraction) -> None:
    for name, value in other.items():
        left = row.get(name, Fraction(0)) - factor * value
        if left:
            row[name] = left
        else:
            row.pop(name, None)


def _coprime(vector: Mapping[str, Fraction], species: Sequence[str]) -> ConservationLaw:
    scale = lcm(*(value.denominator for value in vector.values()))
    weights = {name: int(vector[name] * scale) for name in species if name in vector}
    divisor = gcd(*weights.values())
    if next(iter(weights.values())) < 0:
        divisor = -divisor
    return ConservationLaw({name: weight // divisor for name, weight in weights.items()})
