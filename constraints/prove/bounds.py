"""Feasibility-based bound tightening: low <= Σ c·x <= high bounds each x, given the others' bounds.

The x are readings, the numbers of one flat sample. Each bound records its sources, the parts of a
formula from which it follows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from constraints.compile.dates import date_text

BOUND_TOLERANCE = 1e-9  # relative
MAX_SHOWN_READINGS = 6  # readings of a sum that a reason writes out
Sources = frozenset[int]  # numbers of the parts of a formula


@dataclass(frozen=True)
class Sum:
    """low <= Σ coefficient·reading <= high; `strict`: whether the ends are excluded.

    `slack`: by how much the ends lie outside of those that were stated, because of a tolerance."""

    cells: tuple[int, ...]
    coefficients: tuple[float, ...]
    low: float
    high: float
    strict: tuple[bool, bool]
    sources: Sources
    slack: float = 0.0


@dataclass(frozen=True)
class Choice:
    """At least one of the branches holds."""

    branches: tuple[tuple[Sum | Choice, ...], ...]
    sources: Sources


class Conflict(Exception):
    """Bounds that leave no value: the parts they follow from, and the reason as text."""

    def __init__(self, sources: Sources, reason: str) -> None:
        super().__init__(reason)
        self.sources = sources
        self.reason = reason


@dataclass
class Bounds:
    """Lower and upper bounds of each reading, and the parts from which they follow."""

    low: list[float]
    high: list[float]
    low_from: list[Sources]
    high_from: list[Sources]
    whole: list[bool]
    names: list[str] = field(repr=False)
    dates: list[bool] = field(repr=False)

    def copy(self) -> Bounds:
        lists = (self.low, self.high, self.low_from, self.high_from)
        low, high, low_from, high_from = (list(values) for values in lists)
        rest = (self.whole, self.names, self.dates)
        return Bounds(low, high, low_from, high_from, *rest)  # type: ignore[arg-type]

    def raise_low(self, cell: int, value: float, sources: Sources) -> bool:
        if self.whole[cell] and math.isfinite(value):
            value = math.ceil(value - BOUND_TOLERANCE)
        if value <= self.low[cell] + BOUND_TOLERANCE * max(1.0, abs(value)):
            return False
        self.low[cell], self.low_from[cell] = value, sources
        return self.meet(cell)

    def drop_high(self, cell: int, value: float, sources: Sources) -> bool:
        if self.whole[cell] and math.isfinite(value):
            value = math.floor(value + BOUND_TOLERANCE)
        if value >= self.high[cell] - BOUND_TOLERANCE * max(1.0, abs(value)):
            return False
        self.high[cell], self.high_from[cell] = value, sources
        return self.meet(cell)

    def meet(self, cell: int) -> bool:
        low, high = self.low[cell], self.high[cell]
        if low > high + BOUND_TOLERANCE * max(1.0, abs(low)):
            raise Conflict(
                self.low_from[cell] | self.high_from[cell],
                f"{self.names[cell]} would have to be at least {shown_as(low, self.dates[cell])} "
                f"and at most {shown_as(high, self.dates[cell])}",
            )
        return True

    def compare(self, rows: Iterable[Sum]) -> None:
        """Raise the conflict of two sums of the same readings whose intervals do not meet."""
        lowest: dict[object, tuple[float, bool, Sources]] = {}
        highest: dict[object, tuple[float, bool, Sources]] = {}
        for row in rows:
            if len(row.cells) < 2 or not all(row.coefficients):
                continue
            first = row.coefficients[0]
            key = row.cells, tuple(c / first for c in row.coefficients)
            ends = row.low / first, row.high / first
            low, high = sorted(zip(ends, row.strict, strict=True))
            if key not in lowest or low > lowest[key][:2]:
                lowest[key] = (*low, row.sources)
            if key not in highest or (high[0], not high[1]) < _end(highest[key]):
                highest[key] = (*high, row.sources)
            (low_at, *low_open), (high_at, *high_open) = lowest[key], highest[key]
            slack = BOUND_TOLERANCE * max(1.0, abs(low_at))
            apart = math.isfinite(low_at) and low_at > high_at + slack
            if apart or (low_at == high_at and (low_open[0] or high_open[0])):
                named = " and ".join(self.names[cell] for cell in row.cells[:MAX_SHOWN_READINGS])
                sources = lowest[key][2] | highest[key][2]
                raise Conflict(sources, f"no values of {named} satisfy all of them")

    def tighten(self, row: Sum) -> bool:
        """Derive bounds of the readings from those of their sum; whether any changed."""
        least = [c * (self.low if c > 0 else self.high)[i] for i, c in terms(row)]
        most = [c * (self.high if c > 0 else self.low)[i] for i, c in terms(row)]
        from_least = [(self.low_from if c > 0 else self.high_from)[i] for i, c in terms(row)]
        from_most = [(self.high_from if c > 0 else self.low_from)[i] for i, c in terms(row)]
        self.check(row, math.fsum(least), row.sources.union(*from_least), above=True)
        self.check(row, math.fsum(most), row.sources.union(*from_most), above=False)
        others = zip(*map(_sums_of_others, (least, most)), strict=True)
        sources = zip(*map(_unions_of_others, (from_least, from_most)), strict=True)
        changed = False
        for (cell, c), rest, known in zip(terms(row), others, sources, strict=True):
            if math.isfinite(row.high) and math.isfinite(rest[0]):
                move = self.drop_high if c > 0 else self.raise_low
                changed |= move(cell, (row.high - rest[0]) / c, row.sources | known[0])
            if math.isfinite(row.low) and math.isfinite(rest[1]):
                move = self.raise_low if c > 0 else self.drop_high
                changed |= move(cell, (row.low - rest[1]) / c, row.sources | known[1])
        return changed

    def check(self, row: Sum, reach: float, sources: Sources, above: bool) -> None:
        """Raise a conflict if the sum, at least (at most) `reach`, exceeds its bound."""
        bound, strict = (row.high, row.strict[1]) if above else (row.low, row.strict[0])
        if not math.isfinite(reach) or not math.isfinite(bound):
            return
        excess = reach - bound if above else bound - reach
        close = BOUND_TOLERANCE * max(1.0, abs(reach))
        if excess > close or (strict and excess > -close):
            shown = " + ".join(
                self.names[i] if c == 1 else f"{c:g}*{self.names[i]}" for i, c in terms(row)
            )
            shown = shown.replace("+ -1*", "- ").replace("+ -", "- ") or "it"
            if len(row.cells) > MAX_SHOWN_READINGS:
                shown = f"a sum of {len(row.cells)} readings"
            extreme, direction = ("least", "less") if above else ("most", "more")
            dated = row.coefficients == (1.0,) and self.dates[row.cells[0]]
            stated = bound - row.slack if above else bound + row.slack
            reached, limit = shown_as(reach, dated), shown_as(stated, dated)
            required = f"{direction} than {limit}" if strict else f"{limit} or {direction}"
            if row.slack and math.isclose(row.high - row.low, 2 * row.slack):
                required = limit
            raise Conflict(sources, f"{shown} is at {extreme} {reached}, and must be {required}")


def shown_as(value: float, dated: bool) -> str:
    """A bound as text: a date or a number."""
    return date_text(value) if dated else f"{value:g}"


def _end(side: tuple[float, bool, Sources]) -> tuple[float, bool]:
    """Of two upper ends the strict one is lower."""
    return side[0], not side[1]


def terms(row: Sum) -> Iterator[tuple[int, float]]:
    return zip(row.cells, row.coefficients, strict=True)


def _sums_of_others(values: Sequence[float]) -> list[float]:
    """For each value the sum of the others; inf if one of them is infinite."""
    finite = [value for value in values if math.isfinite(value)]
    total, infinite = math.fsum(finite), len(values) - len(finite)

    def others(value: float) -> float:
        if not infinite:
            return total - value
        return total if infinite == 1 and not math.isfinite(value) else math.inf

    return [others(value) for value in values]


def _unions_of_others(sets: Sequence[Sources]) -> list[Sources]:
    """For each set the union of the others."""
    count = Counter(chain.from_iterable(sets))
    every = frozenset(count)
    return [every - {each for each in own if count[each] == 1} for own in sets]
