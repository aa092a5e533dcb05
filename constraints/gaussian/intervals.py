"""Intersections and unions of hard atoms about one sum, which are intervals of it.

The conjunction of such atoms is the intersection of their intervals. Their disjunction is the
union, as disjoint intervals whose probabilities add up. Atoms about different sums stay as they
are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom

Bounds = Callable[[Atom], tuple[float, float] | None]  # of a hard atom; None of others
Parts = list[list[f.Formula]]


def intersected(parts: Iterable[f.Formula], bounds: Bounds) -> Parts:
    """Parts of a conjunction, with the intervals of one sum replaced by their intersection."""
    groups: Parts = []
    for group in _by_sum(parts, bounds):
        ends = [_ends(part, bounds) for part in group]
        low, high = max(low for low, _ in ends), min(high for _, high in ends)
        if len(group) > 1 and low < high:
            groups.append([_between(group[0], low, high)])
        else:  # empty: kept as it is, with its small probability
            groups.extend([part] for part in group)
    return groups


def united(parts: Iterable[f.Formula], bounds: Bounds) -> Parts:
    """Parts of a disjunction, in groups of mutually exclusive members."""
    groups: Parts = []
    for group in _by_sum(parts, bounds):
        if len(group) == 1:
            groups.append(group)
            continue
        joined: list[tuple[float, float]] = []
        for low, high in sorted(_ends(part, bounds) for part in group):
            if joined and low <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(high, joined[-1][1])
            else:
                joined.append((low, high))
        groups.append([_between(group[0], *ends) for ends in joined])
    return groups


def _by_sum(parts: Iterable[f.Formula], bounds: Bounds) -> Parts:
    """Parts grouped by their sum; parts that are no interval form groups of one."""
    groups: Parts = []
    places: dict[object, int] = {}
    for part in parts:
        sum_ = _sum(part, bounds)
        if sum_ is not None and sum_ in places:
            groups[places[sum_]].append(part)
            continue
        if sum_ is not None:
            places[sum_] = len(groups)
        groups.append([part])
    return groups


def _sum(part: f.Formula, bounds: Bounds) -> object:
    if not isinstance(part, Atom) or part.category is not None or bounds(part) is None:
        return None
    return part.coefficients, tuple(term.key for term in part.terms)


def _ends(part: f.Formula, bounds: Bounds) -> tuple[float, float]:
    found = bounds(part) if isinstance(part, Atom) else None
    return found or (-math.inf, math.inf)


def _between(part: f.Formula, low: float, high: float) -> f.Formula:
    if math.isinf(low) and math.isinf(high):
        return f.TRUE
    assert isinstance(part, Atom)
    plain = replace(part, low=low, high=high, open_low=False, open_high=False)
    return replace(plain, slack=0.0, integer=False)
