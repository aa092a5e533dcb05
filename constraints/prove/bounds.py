"""Bounds of readings, tightened by the sums that they are part of.

low <= Σ c·x <= high bounds every x by what the others leave of it (feasibility-based bound
tightening). Each bound remembers the parts of a formula that it follows from.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from constraints.compile.dates import written

BOUND_TOLERANCE = 1e-9
MAX_SHOWN_READINGS = 6  # readings of a sum that is spelled out
Sources = frozenset[int]


@dataclass(frozen=True)
class Sum:
    """low <= Σ coefficient·reading <= high; `strict`: whether the ends are excluded."""

    cells: tuple[int, ...]
    coefficients: tuple[float, ...]
    low: float
    high: float
    strict: tuple[bool, bool]
    sources: Sources


@dataclass(frozen=True)
class Choice:
    """At least one of the branches holds."""

    branches: tuple[tuple[Sum | Choice, ...], ...]
    sources: Sources


class Conflict(Exception):
    def __init__(self, sources: Sources, reason: str) -> None:
        super().__init__(reason)
        self.sources = sources
        self.reason = reason


@dataclass
class Bounds:
    """What each reading is known to lie between, and from which parts that follows."""

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

    def tighten(self, row: Sum) -> bool:
        """Pass the sum's bounds on to its readings; whether anything changed."""
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
        """Whether the sum, at least (at most) `reach`, can stay within its bounds."""
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
            here, there = ("least", "less") if above else ("most", "more")
            dated = row.coefficients == (1.0,) and self.dates[row.cells[0]]
            least, most = shown_as(reach, dated), shown_as(bound, dated)
            wanted = f"{there} than {most}" if strict else f"{most} or {there}"
            raise Conflict(sources, f"{shown} is at {here} {least}, and must be {wanted}")


def shown_as(value: float, dated: bool) -> str:
    return written(value) if dated else f"{value:g}"


def terms(row: Sum) -> Iterator[tuple[int, float]]:
    return zip(row.cells, row.coefficients, strict=True)


def _sums_of_others(values: Sequence[float]) -> list[float]:
    """For each value the sum of all but it, which may be infinite."""
    known = [value for value in values if math.isfinite(value)]
    total, lost = math.fsum(known), len(values) - len(known)
    return [
        total - value if not lost else total if lost == 1 and not math.isfinite(value) else math.inf
        for value in values
    ]


def _unions_of_others(sets: Sequence[Sources]) -> list[Sources]:
    """For each set what the others hold together."""
    count = Counter(chain.from_iterable(sets))
    every = frozenset(count)
    return [every - {each for each in own if count[each] == 1} for own in sets]
