"""The support of x_j(t) under laws, given x(t-1) and the variables drawn before it: an interval.

The rows of a table have no t: for them every law is one of the first step.

A law is a row Σ now·x(t) + Σ before·x(t-1) + constant >= 0 (`LinearLaw`). Values are drawn one
after another, so each needs the interval in which those after it still find a place:
Fourier–Motzkin elimination combines every lower bound of a later variable with every upper one,
which leaves rows about earlier variables alone. Variables that follow from a conservation law are
replaced by those they follow from. A law that binds where another one holds at t (`given`) bounds
one variable, drawn after those of the condition; it leaves earlier ones as they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import torch
from torch import Tensor

from constraints.physics.linear_laws import LinearLaw

MAX_ROWS = 400  # after elimination; what would be more is left to the model
SLACK = 1e-9  # relative, by which bounds of whole numbers may be off


class Relation(Protocol):
    """dependent = total - Σ weight·x. `total`: a number, or the name of another variable."""

    @property
    def dependent(self) -> str: ...
    @property
    def weights(self) -> Mapping[str, float]: ...
    @property
    def total(self) -> float | str: ...


@dataclass(frozen=True)
class _Row:
    """A law with exact weights; `when`: series that must be 0 at t-1 for it to bind; `given`: a row
    about values at t that must hold."""

    now: tuple[tuple[str, Fraction], ...]
    before: tuple[tuple[str, Fraction], ...]
    constant: Fraction
    when: frozenset[str]
    given: _Row | None = None

    @property
    def weights(self) -> dict[str, Fraction]:
        return dict(self.now)


def _row(
    now: Mapping[str, Fraction],
    before: Mapping[str, Fraction],
    constant: Fraction,
    when: frozenset[str],
) -> _Row:
    def kept(weights: Mapping[str, Fraction]) -> tuple[tuple[str, Fraction], ...]:
        return tuple(sorted((name, w) for name, w in weights.items() if w))

    return _Row(kept(now), kept(before), constant, when)


def _plus(
    a: Mapping[str, Fraction], b: Mapping[str, Fraction], factor: Fraction
) -> dict[str, Fraction]:
    found = dict(a)
    for name, weight in b.items():
        found[name] = found.get(name, Fraction(0)) + factor * weight
    return found


def eliminated(rows: Sequence[_Row], order: Sequence[str]) -> dict[str, tuple[_Row, ...]]:
    """For each variable in the order of drawing, the rows that bound it by earlier ones."""
    found: dict[str, tuple[_Row, ...]] = {}
    left = list(dict.fromkeys(rows))
    for name in reversed(order):
        own = [row for row in left if name in row.weights]
        found[name] = tuple(own)
        others = [row for row in left if name not in row.weights]
        lower = [row for row in own if row.weights[name] > 0 and row.given is None]
        upper = [row for row in own if row.weights[name] < 0 and row.given is None]
        for low in lower:
            for high in upper:
                if len(others) >= MAX_ROWS:
                    break
                a, b = low.weights[name], -high.weights[name]
                row = _row(
                    _plus({k: b * w for k, w in low.now}, high.weights, a),
                    _plus({k: b * w for k, w in low.before}, dict(high.before), a),
                    b * low.constant + a * high.constant,
                    low.when | high.when,
                )
                if row.now:
                    others.append(row)
        left = list(dict.fromkeys(others))
    return found


@dataclass(frozen=True, eq=False)
class _Bounds:
    """The rows that bound one variable on one side, as matrices: value = -(rest)/weight."""

    now: tuple[str, ...]
    before: tuple[str, ...]
    rows: Tensor  # (n, now + before + 1): of the bound itself
    conditions: tuple[tuple[frozenset[str], _Row | None], ...]

    def value(
        self, now: Mapping[str, Tensor], before: Mapping[str, Tensor], none: float
    ) -> Tensor | None:
        """Each row's bound, (..., n), `none` where it does not bind; None without rows."""
        found: Tensor | None = None
        for row, (when, given) in zip(self.rows, self.conditions, strict=True):
            names = [(now[k], w) for k, w in zip(self.now, row, strict=False) if w]
            shifted = row[len(self.now) :]
            names += [(before[k], w) for k, w in zip(self.before, shifted, strict=False) if w]
            bound = sum((w * y for y, w in names), start=row[-1])
            for series in when:
                bound = torch.where(before[series] == 0, bound, none)
            if given is not None:
                left = sum((float(w) * now[k] for k, w in given.now), start=float(given.constant))
                bound = torch.where(torch.as_tensor(left >= 0), bound, none)
            if found is None:
                found = torch.as_tensor(bound)
            else:
                both = torch.maximum if none < 0 else torch.minimum
                found = both(found, torch.as_tensor(bound))
        return found


class Support:
    """Intervals of variables drawn in an order, under laws."""

    def __init__(
        self,
        order: Sequence[str],
        laws: Sequence[LinearLaw],
        relations: Sequence[Relation],
        ranges: Mapping[str, tuple[float, float]],
        whole: frozenset[str],
    ) -> None:
        """`ranges`: variable -> its ends, dependent ones included; `whole`: those that count."""
        self.order, self.whole = tuple(order), whole
        self.ranges = dict(ranges)
        rows = [_exact(law, relations) for law in laws]
        rows += [
            _exact(law, relations)
            for name, (low, high) in ranges.items()
            for law in _ends(name, low, high)
        ]
        drawn = set(order)
        able = [row for row in rows if {name for name, _ in row.now} & drawn]
        able = [row for row in able if row.given is None or _last(row, row.given, self.order)]
        first = [row for row in able if not row.before and not row.when]
        self._first = {name: _sides(name, own) for name, own in eliminated(first, order).items()}
        self._later = {name: _sides(name, own) for name, own in eliminated(able, order).items()}

    def interval(
        self,
        name: str,
        now: Mapping[str, Tensor],
        before: Mapping[str, Tensor] | None,
        like: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """The lowest and the highest value of a variable, each like `like`, float64.

        `now`: values at t of variables drawn before it, and statics; `before`: all at t-1, None at
        the first step.
        """
        low_rows, high_rows = (self._first if before is None else self._later)[name]
        low, high = self.ranges[name]
        lowest, highest = torch.full_like(like, low), torch.full_like(like, high)
        known = before or {}
        if (found := low_rows.value(now, known, -math.inf)) is not None:
            lowest = torch.maximum(lowest, found.to(like))
        if (found := high_rows.value(now, known, math.inf)) is not None:
            highest = torch.minimum(highest, found.to(like))
        if name in self.whole:
            lowest = torch.ceil(lowest - SLACK * (1 + lowest.abs().nan_to_num(0, 0, 0)))
            highest = torch.floor(highest + SLACK * (1 + highest.abs().nan_to_num(0, 0, 0)))
        return lowest, torch.maximum(lowest, highest)


def _exact(law: LinearLaw, relations: Sequence[Relation]) -> _Row:
    """A law with dependent variables at t replaced by what they follow from."""
    now = {name: Fraction(weight) for name, weight in law.now.items()}
    constant = Fraction(law.constant)
    for relation in relations:
        factor = now.pop(relation.dependent, None)
        if factor is None:
            continue
        now = _plus(now, {k: Fraction(w) for k, w in relation.weights.items()}, -factor)
        if isinstance(relation.total, str):
            now = _plus(now, {relation.total: Fraction(1)}, factor)
        else:
            constant += factor * Fraction(relation.total)
    before = {name: Fraction(weight) for name, weight in law.before.items()}
    when = frozenset() if law.when_zero is None else frozenset([law.when_zero])
    given = None if law.given is None else _exact(law.given, relations)
    return replace(_row(now, before, constant, when), given=given)


def _last(row: _Row, given: _Row, order: Sequence[str]) -> bool:
    """Whether a row bounds one variable, drawn after those of its condition."""
    own = [order.index(name) for name in row.weights if name in order]
    earlier = [order.index(name) for name in given.weights if name in order]
    return len(own) == 1 and own[0] > max(earlier, default=-1)


def _ends(name: str, low: float, high: float) -> list[LinearLaw]:
    found = []
    if math.isfinite(low):
        found.append(LinearLaw({name: 1.0}, {}, -low))
    if math.isfinite(high):
        found.append(LinearLaw({name: -1.0}, {}, high))
    return found


def _sides(name: str, rows: Sequence[_Row]) -> tuple[_Bounds, _Bounds]:
    """Lower and upper bounds of a variable as matrices."""
    made = []
    for sign in (1, -1):
        own = [row for row in rows if sign * row.weights[name] > 0]
        now = tuple(dict.fromkeys(k for row in own for k, _ in row.now if k != name))
        before = tuple(dict.fromkeys(k for row in own for k, _ in row.before))
        lines = []
        for row in own:
            weight = row.weights[name]
            past = dict(row.before)
            parts = [row.weights.get(k, Fraction(0)) for k in now]
            parts += [past.get(k, Fraction(0)) for k in before]
            lines.append([float(-part / weight) for part in (*parts, row.constant)])
        rows_ = torch.tensor(lines, dtype=torch.float64).reshape(
            len(own), len(now) + len(before) + 1
        )
        made.append(_Bounds(now, before, rows_, tuple((row.when, row.given) for row in own)))
    return made[0], made[1]
