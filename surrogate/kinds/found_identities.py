"""Linear identities between variables that data show: Σ w_i x_i = c with small whole weights.

The covariance of the variables shows whether there is one at all; then those of 2, 3 and 4
variables are tried, exact up to rounding. Each variable must vary on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from constraints import parse
from constraints.ast.printer import number
from surrogate.kinds.found_rule import FoundRule, Quantity, Values, shown, spoken

MIN_VARYING_SAMPLES = 15  # in which a member takes other values than its most frequent one
MIN_VARYING = 50  # values of a member of an identity that are not its most frequent one
MAX_MEMBERS = 14  # variables among which identities are searched
NULL = 1e-9  # eigenvalue of a correlation matrix below which there may be an identity
ROUNDING = 64.0  # units in the last place by which a sum of real numbers may differ


@dataclass(frozen=True)
class Identity:
    """Σ weight·x = total; `slack`: by which a sum of real numbers may differ, as a share."""

    weights: Mapping[str, int]
    total: float
    slack: float

    def broken(self, values: Values) -> np.ndarray:
        parts = [weight * values[name] for name, weight in self.weights.items()]
        size = sum(np.abs(part) for part in parts) + abs(self.total)
        wrong: np.ndarray = np.abs(sum(parts) - self.total) > self.slack * size
        return wrong

    @property
    def dependent(self) -> tuple[str, ...]:
        """The member that is the sum of the others, if there is one: the last of equals."""
        weights = self.weights
        positive = [name for name, weight in weights.items() if weight > 0]
        negative = [name for name, weight in weights.items() if weight < 0]
        few, many = sorted((negative, positive), key=len)
        if len(weights) == 2 and few:
            return tuple([name for name, weight in weights.items() if abs(weight) == 1][-1:])
        return tuple(few) if len(few) == 1 and abs(weights[few[0]]) == 1 and many else ()

    def orders(self, evidence: Values) -> set[tuple[str, str]]:
        """x_i <= the sum, where all terms are >= 0."""
        if not self.dependent or self.total:
            return set()
        (total,) = self.dependent
        others = [name for name in self.weights if name != total]
        if len(others) > 1 and all(np.nanmin(evidence[name]) >= 0 for name in others):
            return {(name, total) for name in others}
        return set()


def identities(quantities: Sequence[Quantity], evidence: Values, min_values: int) -> list[Identity]:
    """Identities between few variables, each with a member that no other one has."""
    pool = [each for each in quantities if _free(evidence[each.name])]
    found: list[Identity] = []
    while len(members := _involved(pool, evidence, min_values)) > 1:
        each = _search(members, evidence, min_values)
        if each is None:
            break
        found.append(each)
        gone = each.dependent or (list(each.weights)[-1],)
        pool = [one for one in pool if one.name not in gone]
    return found


def _free(values: np.ndarray) -> bool:
    """Whether a variable takes many values, in many samples, besides its most frequent one."""
    known = np.isfinite(values)
    found, counts = np.unique(values[known], return_counts=True)
    other = known & (values != found[counts.argmax()])
    return int(other.sum()) >= MIN_VARYING and int(other.any(1).sum()) >= MIN_VARYING_SAMPLES


def _points(quantities: Sequence[Quantity], evidence: Values) -> np.ndarray:
    """Values (m, V) at which none is missing."""
    table = np.stack([evidence[each.name].ravel() for each in quantities], 1)
    complete: np.ndarray = table[np.isfinite(table).all(1)]
    return complete


def _involved(pool: Sequence[Quantity], evidence: Values, min_values: int) -> list[Quantity]:
    """The variables that an identity may be about: those with a direction of no variance."""
    if len(pool) < 2:
        return []
    points = _points(pool, evidence)
    if len(points) < min_values:
        return []
    scaled = points - points.mean(0)
    deviation = scaled.std(0)
    if not (np.isfinite(deviation) & (deviation > 0)).all():
        return []
    scaled /= deviation
    values, vectors = np.linalg.eigh(scaled.T @ scaled / len(scaled))
    null = vectors[:, values < NULL]
    used = (np.abs(null) > 1e-4).any(1)
    return [each for each, one in zip(pool, used, strict=True) if one][:MAX_MEMBERS]


def _search(members: Sequence[Quantity], evidence: Values, min_values: int) -> Identity | None:
    """The identity of fewest variables."""
    for size in (2, 3, 4):
        sizes = (1,) if size == 4 else (1, 2)
        signed = [sign * each for each in sizes for sign in (1, -1)]
        choices = [each for each in product(sizes, *[signed] * (size - 1)) if math.gcd(*each) == 1]
        for some in combinations(members, size):
            points = _points(some, evidence)
            if len(points) < min_values:
                continue
            few = points[:: max(1, len(points) // 200)]
            slack = 0.0 if all(each.integer for each in some) else max(e.precision for e in some)
            for chosen in choices:
                if _exact(few, chosen, slack * ROUNDING):
                    total = _exact(points, chosen, slack * ROUNDING)
                    if total:
                        weights = {e.name: w for e, w in zip(some, chosen, strict=True)}
                        return Identity(weights, total[0], slack * ROUNDING)
    return None


def _exact(points: np.ndarray, weights: Sequence[int], slack: float) -> tuple[float] | None:
    """(the total,) if Σ weight·x is the same at all points."""
    parts = points * np.array(weights, float)
    sums, size = parts.sum(1), np.abs(parts).sum(1)
    total = float(np.median(sums))
    if abs(total - round(total)) <= slack * float(size.max()):
        total = float(round(total))
    return (total,) if bool((np.abs(sums - total) <= slack * (size + abs(total))).all()) else None


def verified(
    identities: Sequence[Identity], batches: Callable[[], Iterable[Values]]
) -> list[Identity]:
    left = list(identities)
    for values in batches() if left else ():
        left = [each for each in left if not each.broken(values).any()]
    return left


def rule_of(identity: Identity, series: bool) -> FoundRule:
    def text(at: str, spelled: Callable[[str], str] = shown) -> str:
        weights, total = dict(identity.weights), identity.total
        if identity.dependent and not total:
            (own,) = identity.dependent
            sign = -weights.pop(own)
            others = {name: sign * weight for name, weight in weights.items()}
            return f"{spelled(own)}{at} = {_sum(others, at, spelled)}"
        return f"{_sum(weights, at, spelled)} = {number(total)}"

    formula = parse(f"forall t: {text('(t)')}" if series else text(""))
    return FoundRule(text("", spoken), formula, identity.broken)


def _sum(weights: Mapping[str, int], at: str, spelled: Callable[[str], str]) -> str:
    """x + 2 * y - z."""
    found = ""
    for name, weight in sorted(weights.items(), key=lambda item: item[1] < 0):
        part = f"{spelled(name)}{at}"
        part = part if abs(weight) == 1 else f"{abs(weight)} * {part}"
        sign = "-" if weight < 0 else "+"
        found = f"{found} {sign} {part}" if found else (f"-{part}" if weight < 0 else part)
    return found
