"""Contradictions that interval reasoning can prove, before anything is sampled.

Linear atoms of a formula, under `and` and `forall`, bound sums of readings. Bounds are passed from
sum to reading and back (feasibility-based bound tightening) until nothing changes, whole numbers
being rounded inwards; a disjunction counts once all but one of its branches have been refuted. A
reading left with no value proves that no data can satisfy the formula. The proof is sound, not
complete: nothing found does not mean that the formula can be met.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor

from constraints import formula as f
from constraints.dates import written
from constraints.errors import ImpossibleError
from constraints.evaluate import Evaluator
from constraints.frames import Frame, Index
from constraints.lower import lower
from constraints.lowered import NUMBERS, Atom
from constraints.resolve import resolve
from constraints.rows import linear
from constraints.semantics import Boolean, whole_bounds
from constraints.signals import Layout

MOST_READINGS = 4_000  # of a flat sample; beyond it only the obvious is looked for
MOST_SUMS = 20_000
MOST_BRANCHES = 2_000  # of all disjunctions together
MOST_STEPS = 100  # of a quantifier around a disjunction, which are looked at one by one
ROUNDS = 50
_CLOSE = 1e-9

Sources = frozenset[int]


@dataclass(frozen=True)
class Contradiction:
    """Parts of a formula that cannot hold together, and where they meet."""

    parts: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        named = "\n".join(f"  {part}" for part in self.parts)
        alone = "this" if len(self.parts) == 1 else "these together"
        return f"no data can satisfy {alone}:\n{named}\n{self.reason}"


def find(
    formula: f.Formula,
    layout: Layout,
    given: Iterable[f.Formula] = (),
    end: str | None = None,
) -> Contradiction | None:
    """A contradiction of the formula, with what is `given` (rules the data keep), or None."""
    parts = [*_conjuncts(formula), *(part for rule in given for part in _conjuncts(rule))]
    prover = _Prover(layout, parts, end)
    conflict = prover.conflict(range(len(parts)))
    if conflict is None:
        return None
    needed = [i for i in conflict.sources if i < len(parts)]
    for candidate in list(needed):  # drop what the proof does not need
        shorter = [i for i in needed if i != candidate]
        found = prover.conflict(shorter)
        if found is not None:
            needed, conflict = shorter, found
    limits = sorted(i for i in conflict.sources if i >= len(parts))
    named = [str(parts[i]) for i in sorted(needed)] + [prover.limit(i) for i in limits]
    return Contradiction(tuple(dict.fromkeys(named)), conflict.reason)


def refuse_impossible(
    formula: f.Formula,
    layout: Layout,
    given: Iterable[f.Formula] = (),
    end: str | None = None,
) -> None:
    """Raise ImpossibleError if a contradiction is found."""
    found = find(formula, layout, given, end)
    if found is not None:
        raise ImpossibleError(str(found))


def _conjuncts(formula: f.Formula) -> tuple[f.Formula, ...]:
    return formula.parts if isinstance(formula, f.And) and formula.parts else (formula,)


@dataclass(frozen=True)
class _Sum:
    """low <= Σ coefficient·reading <= high; `strict`: whether the ends are excluded."""

    cells: tuple[int, ...]
    coefficients: tuple[float, ...]
    low: float
    high: float
    strict: tuple[bool, bool]
    sources: Sources


@dataclass(frozen=True)
class _Choice:
    """At least one of the branches holds."""

    branches: tuple[tuple[_Sum | _Choice, ...], ...]
    sources: Sources


class _Conflict(Exception):
    def __init__(self, sources: Sources, reason: str) -> None:
        super().__init__(reason)
        self.sources = sources
        self.reason = reason


@dataclass
class _Bounds:
    """What each reading is known to lie between, and from which parts that follows."""

    low: list[float]
    high: list[float]
    low_from: list[Sources]
    high_from: list[Sources]
    whole: list[bool]
    names: list[str] = field(repr=False)
    dates: list[bool] = field(repr=False)

    def copy(self) -> _Bounds:
        lists = (self.low, self.high, self.low_from, self.high_from)
        low, high, low_from, high_from = (list(values) for values in lists)
        rest = (self.whole, self.names, self.dates)
        return _Bounds(low, high, low_from, high_from, *rest)  # type: ignore[arg-type]

    def raise_low(self, cell: int, value: float, sources: Sources) -> bool:
        if self.whole[cell] and math.isfinite(value):
            value = math.ceil(value - _CLOSE)
        if value <= self.low[cell] + _CLOSE * max(1.0, abs(value)):
            return False
        self.low[cell], self.low_from[cell] = value, sources
        return self.meet(cell)

    def drop_high(self, cell: int, value: float, sources: Sources) -> bool:
        if self.whole[cell] and math.isfinite(value):
            value = math.floor(value + _CLOSE)
        if value >= self.high[cell] - _CLOSE * max(1.0, abs(value)):
            return False
        self.high[cell], self.high_from[cell] = value, sources
        return self.meet(cell)

    def meet(self, cell: int) -> bool:
        low, high = self.low[cell], self.high[cell]
        if low > high + _CLOSE * max(1.0, abs(low)):
            raise _Conflict(
                self.low_from[cell] | self.high_from[cell],
                f"{self.names[cell]} would have to be at least {_shown(low, self.dates[cell])} "
                f"and at most {_shown(high, self.dates[cell])}",
            )
        return True

    def tighten(self, row: _Sum) -> bool:
        """Pass the sum's bounds on to its readings; whether anything changed."""
        least = [c * (self.low if c > 0 else self.high)[i] for i, c in _terms(row)]
        most = [c * (self.high if c > 0 else self.low)[i] for i, c in _terms(row)]
        from_least = [(self.low_from if c > 0 else self.high_from)[i] for i, c in _terms(row)]
        from_most = [(self.high_from if c > 0 else self.low_from)[i] for i, c in _terms(row)]
        self.check(row, sum(least), row.sources.union(*from_least), above=True)
        self.check(row, sum(most), row.sources.union(*from_most), above=False)
        changed = False
        for j, (cell, c) in enumerate(_terms(row)):
            rest_least = math.fsum(least[:j] + least[j + 1 :])
            rest_most = math.fsum(most[:j] + most[j + 1 :])
            above = row.sources.union(*from_least[:j], *from_least[j + 1 :])
            below = row.sources.union(*from_most[:j], *from_most[j + 1 :])
            if math.isfinite(row.high) and math.isfinite(rest_least):
                bound = (row.high - rest_least) / c
                move = self.drop_high if c > 0 else self.raise_low
                changed |= move(cell, bound, above)
            if math.isfinite(row.low) and math.isfinite(rest_most):
                bound = (row.low - rest_most) / c
                move = self.raise_low if c > 0 else self.drop_high
                changed |= move(cell, bound, below)
        return changed

    def check(self, row: _Sum, reach: float, sources: Sources, above: bool) -> None:
        """Whether the sum, at least (at most) `reach`, can stay within its bounds."""
        bound, strict = (row.high, row.strict[1]) if above else (row.low, row.strict[0])
        if not math.isfinite(reach) or not math.isfinite(bound):
            return
        excess = reach - bound if above else bound - reach
        close = _CLOSE * max(1.0, abs(reach))
        if excess > close or (strict and excess > -close):
            shown = " + ".join(
                self.names[i] if c == 1 else f"{c:g}*{self.names[i]}" for i, c in _terms(row)
            )
            shown = shown.replace("+ -1*", "- ").replace("+ -", "- ") or "it"
            here, there = ("least", "less") if above else ("most", "more")
            dated = row.coefficients == (1.0,) and self.dates[row.cells[0]]
            least, most = _shown(reach, dated), _shown(bound, dated)
            wanted = f"{there} than {most}" if strict else f"{most} or {there}"
            raise _Conflict(sources, f"{shown} is at {here} {least}, and must be {wanted}")


def _shown(value: float, dated: bool) -> str:
    return written(value) if dated else f"{value:g}"


def _terms(row: _Sum) -> Iterator[tuple[int, float]]:
    return zip(row.cells, row.coefficients, strict=True)


def _plain(node: f.Formula) -> bool:
    """Whether the formula is made of `and` and `forall` over atoms."""
    if isinstance(node, (f.Or, f.Quantifier)) and getattr(node, "kind", "exists") == "exists":
        return False
    return all(_plain(child) for child in node.children() if isinstance(child, f.Formula))


class _Prover:
    """The parts of a formula as sums and choices over the readings of one flat sample."""

    def __init__(self, layout: Layout, parts: Sequence[f.Formula], end: str | None) -> None:
        self.layout = layout
        self.end = end
        self.first_limit = len(parts)
        self.count = self.branches = 0
        self.start = self.known_bounds()
        self.parts: list[list[_Sum | _Choice]] = []
        for i, part in enumerate(parts):
            lowered = lower(resolve(part, layout, end), layout)
            self.parts.append(list(self.rows(lowered, Frame(), frozenset({i}))))

    @cached_property
    def basis(self) -> Evaluator:
        """Evaluates at zero and at every unit vector: what a linear sum does to them is its row."""
        size = self.layout.size
        points = torch.cat([torch.zeros(1, size), torch.eye(size)]).to(torch.float64)
        return Evaluator(self.layout, self.layout.split(points), Boolean(), self.end)

    def conflict(self, chosen: Iterable[int]) -> _Conflict | None:
        """What goes wrong with the chosen parts, if anything is seen to."""
        bounds = self.start.copy()
        try:
            self.settle([row for i in chosen for row in self.parts[i]] + self.one_hot(), bounds)
        except _Conflict as found:
            return found
        return None

    def settle(self, rows: list[_Sum | _Choice], bounds: _Bounds) -> None:
        """Tighten until nothing changes; raises the conflict met."""
        sums = [row for row in rows if isinstance(row, _Sum)]
        choices = [row for row in rows if isinstance(row, _Choice)]
        while True:
            for _ in range(ROUNDS):
                if not sum(bounds.tighten(row) for row in sums):
                    break
            forced = None
            for choice in choices:
                alive, refuted, reason = [], choice.sources, "it is never true"
                for branch in choice.branches:
                    try:
                        self.settle(list(branch), bounds.copy())
                        alive.append(branch)
                    except _Conflict as found:
                        refuted, reason = refuted | found.sources, found.reason
                    if len(alive) > 1:
                        break
                if not alive:
                    raise _Conflict(refuted, reason)
                if len(alive) == 1:
                    forced = choice, alive[0], refuted
                    break
            if forced is None:
                return
            choice, branch, refuted = forced
            choices = [other for other in choices if other is not choice]
            for row in branch:
                row = replace(row, sources=row.sources | refuted)
                (sums if isinstance(row, _Sum) else choices).append(row)  # type: ignore[arg-type]

    # from lowered formulas to rows

    def rows(self, node: f.Formula, frame: Frame, sources: Sources) -> Iterator[_Sum | _Choice]:
        match node:
            case f.And(parts):
                for part in parts:
                    yield from self.rows(part, frame, sources)
            case f.Or(parts) if not frame.sizes:
                yield _Choice(tuple(tuple(self.rows(p, frame, sources)) for p in parts), sources)
            case f.Annotated(body):
                yield from self.rows(body, frame, sources)
            case f.Quantifier() if node.region in (None, NUMBERS):
                yield from self.quantified(node, frame, sources)
            case Atom():
                yield from self.sums(node, frame, sources)

    def quantified(
        self, node: f.Quantifier, frame: Frame, sources: Sources
    ) -> Iterator[_Sum | _Choice]:
        assert node.first is not None
        assert node.last is not None
        low, high = frame.index(node.first), frame.index(node.last)
        if low.axes != high.axes:
            return
        if self.end == "clip" and node.region is None:
            if low.axes:
                return
            low, high = Index(max(low.offset, 0)), Index(min(high.offset, self.layout.steps - 1))
        size = high.offset - low.offset + 1
        steps = range(low.offset, high.offset + 1)
        if node.kind == "forall" and not frame.sizes and not _plain(node.body):
            for step in steps[:MOST_STEPS]:
                at = Frame((), {**frame.variables, node.variable: Index(step)})
                yield from self.rows(node.body, at, sources)
        elif node.kind == "forall" and size > 0:
            index = Index(low.offset, (*low.axes, len(frame.sizes)))
            inner = frame.extended(node.variable, index, size)
            yield from self.rows(node.body, inner, sources)
        elif node.kind == "exists" and not frame.sizes and size > 0:
            self.branches += size
            if self.branches > MOST_BRANCHES:
                return
            places = (Frame((), {**frame.variables, node.variable: Index(step)}) for step in steps)
            yield _Choice(tuple(tuple(self.rows(node.body, at, sources)) for at in places), sources)

    def sums(self, node: Atom, frame: Frame, sources: Sources) -> Iterator[_Sum]:
        """One row for each place of the frame, read off from what the sum does to a basis."""
        size = self.layout.size
        places = math.prod(frame.sizes)
        self.count += places
        if (
            size > MOST_READINGS
            or self.count > MOST_SUMS
            or not all(linear(t, self.layout) for t in node.terms)
        ):
            return
        if self.end in ("weak", "strong"):
            return  # what lies outside has no reading
        value: Tensor = self.basis.total(node, frame)
        value = value.expand(size + 1, *frame.sizes).reshape(size + 1, places)
        low, high = node.low - node.slack, node.high + node.slack
        strict = (node.open_low, node.open_high)
        if node.integer:
            (low, high), strict = whole_bounds(node), (False, False)
        if node.category is not None:  # weights of a sample are 0 or 1
            low, high = (1.0, math.inf) if node.chooses else (-math.inf, 0.0)
            strict = (False, False)
        for offset, column in zip(value[0].tolist(), (value[1:] - value[0]).T, strict=True):
            cells = column.nonzero()[:, 0].tolist()
            yield _Sum(
                tuple(cells),
                tuple(column[cells].tolist()),
                low - offset,
                high - offset,
                strict,
                sources,
            )

    # what is known of the readings

    def known_bounds(self) -> _Bounds:
        known = _Bounds([], [], [], [], [], [], [])
        for instance in range(1, self.layout.instances + 1):
            for j, signal in enumerate(self.layout.signals):
                own = f"{signal.name}[{instance}]" if self.layout.instances > 1 else signal.name
                category = signal.kind == "category"
                for place in range(signal.size):
                    label = own if signal.kind == "column" else f"{own}({place})"
                    if category:
                        label = f'({own} = "{signal.categories[place]}")'
                    known.names.append(label)
                    known.low.append(0.0 if category else signal.low)
                    known.high.append(1.0 if category else signal.high)
                    source: Sources = frozenset() if category else frozenset({self.first_limit + j})
                    known.low_from.append(source if math.isfinite(signal.low) else frozenset())
                    known.high_from.append(source if math.isfinite(signal.high) else frozenset())
                    known.whole.append(signal.integer or category)
                    known.dates.append(signal.dates)
        return known

    def one_hot(self) -> list[_Sum | _Choice]:
        """A sample has one category of each kind."""
        rows: list[_Sum | _Choice] = []
        cell = 0
        for _ in range(self.layout.instances):
            for signal in self.layout.signals:
                if signal.kind == "category" and signal.size:
                    cells = tuple(range(cell, cell + signal.size))
                    ones = (1.0,) * signal.size
                    rows.append(_Sum(cells, ones, 1.0, 1.0, (False, False), frozenset()))
                cell += signal.size
        return rows

    def limit(self, source: int) -> str:
        """A signal's known bounds, as a part of the proof."""
        signal = self.layout.signals[source - self.first_limit]
        low, high = (_shown(value, signal.dates) for value in (signal.low, signal.high))
        return f"{signal.name} stays within [{low}, {high}]"
