"""Laws as linear rows over the values at a step and at the step before it.

A law Σ_i a_i x_i(t) + Σ_i b_i x_i(t-1) + c >= 0 at every step t is a half-space that truncates
x_i(t) to an interval, given x(t-1) and the other values at t: what a sampler needs that draws one
value after the other. `linear_laws` translates a formula into such rows where it is a conjunction
of linear comparisons at every step: `forall t: S(t) + I(t) <= 100`, `forall t in [1, end]:
S(t) <= S(t - 1)`, with a condition that is 0, `I(t - 1) = 0 implies S(t) = S(t - 1)`, and with one
that whole numbers meet at the same step, `I(t) > 150 implies beta(t) = 0.1`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from constraints.ast import formulas as f
from constraints.ast.build import always
from constraints.ast.lowered import Atom
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Count, Name, Step, Term
from constraints.ast.words import NOW
from constraints.compile.lower import lower
from constraints.compile.resolve import resolve
from constraints.errors import FormulaError
from constraints.layout.signals import Layout


@dataclass(frozen=True)
class LinearLaw:
    """Σ now_i x_i(t) + Σ before_i x_i(t-1) + constant >= 0 at every step t.

    Statics (one value for each trajectory) may stand in `now`. A law with `before` or `when_zero`
    holds for t >= 1. `when_zero`: a series; the law binds only where that series is 0 at t-1
    (None: always). `given`: a law about values at t; this one binds only where that one holds.
    """

    now: Mapping[str, float]
    before: Mapping[str, float] = field(default_factory=dict)
    constant: float = 0.0
    when_zero: str | None = None
    given: LinearLaw | None = None

    @property
    def conditional(self) -> bool:
        """Whether the law binds in some states only."""
        return self.when_zero is not None or self.given is not None

    def opposite(self) -> LinearLaw:
        """The law with its sign turned, which together with it is an equality."""
        now, before = (
            {name: -weight for name, weight in side.items()} for side in (self.now, self.before)
        )
        return LinearLaw(now, before, -self.constant or 0.0, self.when_zero, self.given)


def linear_laws(formula: f.Formula, layout: Layout) -> tuple[LinearLaw, ...] | None:
    """The rows of a rule that is a conjunction of linear comparisons at every step; None for any
    other rule.

    The comparisons are over the values at t and t-1 (or t and t+1: shifted). An equality is two
    rows. `A(t - 1) = 0 implies <such a comparison>` gives rows with `when_zero`, and a comparison
    of whole numbers at t that implies others at t gives rows with `given`. A rule without
    quantifier about series (`Low <= Close`) is meant at every step: see `every_step`. Strict
    inequalities are those of the next whole number where all values are, else treated as <=.
    """
    if layout.instances != 1:
        return None
    try:
        resolved = resolve(every_step(formula, layout), layout)
    except FormulaError:
        return None
    found = _Rows(layout).rows(resolved, None)
    return None if found is None else tuple(found)


def equalities(laws: Iterable[LinearLaw]) -> list[LinearLaw]:
    """Of pairs of rows that make an equality, the first."""
    rows = list(laws)
    return [law for i, law in enumerate(rows) if law.opposite() in rows[i + 1 :]]


def every_step(formula: f.Formula, layout: Layout) -> f.Formula:
    """The rule at every step, if it reads series without saying when: `Low <= Close`."""
    series = {signal.name for signal in layout.signals if signal.kind == "series"}
    if not series or not _reads_now(formula, series):
        return formula
    return always(formula)


def _reads_now(node: Node, series: set[str]) -> bool:
    """Whether a series stands where no step, quantifier or aggregate tells when it is read."""
    match node:
        case Name(name):
            return name in series
        case At() | Aggregate() | Count() | f.Until() | f.Quantifier():
            return False
    return any(_reads_now(child, series) for child in node.children())


@dataclass(frozen=True)
class _Window:
    """Steps first..last that a bound variable takes; `condition`: (series, offset) that is 0."""

    variable: str
    first: int
    last: int
    condition: tuple[str, int] | None = None


class _Rows:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.last = layout.steps - 1

    def rows(self, node: f.Formula, window: _Window | None) -> list[LinearLaw] | None:
        """The rows of a resolved formula."""
        match node:
            case f.Annotated(body):
                return self.rows(body, window)
            case f.And(parts):
                return _joined([self.rows(part, window) for part in parts])
            case f.Quantifier("forall", body=body) if window is None:
                inner = _window(node)
                return None if inner is None else self.rows(body, inner)
            case f.Implies(left, right) if window is not None and window.condition is None:
                condition = self.zero(left, window)
                if condition is None:
                    return self.premised(left, right, window)
                return self.rows(right, replace(window, condition=condition))
            case f.Compare():
                return self.lowered(lower(node, self.layout), window)
        return None

    def zero(self, node: f.Formula, window: _Window) -> tuple[str, int] | None:
        """The series, and its offset from t, that a condition says to be 0."""
        if not isinstance(node, f.Compare) or node.tolerance:
            return None
        atom = lower(node, self.layout)
        if not isinstance(atom, Atom) or len(atom.terms) != 1:
            return None
        match atom.terms[0]:
            case At(Name(name), Step(base, offset, None)) if base == window.variable:
                signal = self.layout.find(name)
                above = signal is not None and signal.low >= 0 and atom.low == -math.inf
                closed = not (atom.open_low or atom.open_high)
                if closed and atom.high == 0 and (atom.low == 0 or above):
                    return name, offset
        return None

    def premised(
        self, left: f.Formula, right: f.Formula, window: _Window
    ) -> list[LinearLaw] | None:
        """The rows of a comparison that binds where one of whole numbers holds at the same step."""
        atom = lower(left, self.layout) if isinstance(left, f.Compare) else None
        if not isinstance(atom, Atom) or not atom.integer:
            return None
        premise, found = self.atom(atom, window), self.rows(right, window)
        if premise is None or found is None or len(premise) != 1:
            return None
        if any(row.before or row.conditional for row in (*premise, *found)):
            return None
        return [replace(row, given=premise[0]) for row in found]

    def lowered(self, node: f.Formula, window: _Window | None) -> list[LinearLaw] | None:
        """The rows of a lowered comparison: an atom, or what `max` or `abs` unfold to."""
        match node:
            case f.And(parts):
                return _joined([self.lowered(part, window) for part in parts])
            case f.Quantifier("forall", body=body) if window is None:
                inner = _window(node)
                return None if inner is None else self.lowered(body, inner)
            case Atom():
                return self.atom(node, window)
        return None

    def atom(self, atom: Atom, window: _Window | None) -> list[LinearLaw] | None:
        parts = self.read(atom, window)
        if parts is None:
            return None
        statics, start, steps = parts
        low, high = _bounds(atom)
        if window is None:
            return None if start or steps else _two_sided(statics, {}, low, high, None)
        if start:  # w·x(t) = w·x(0) at every t is w·x(t) = w·x(t-1)
            (offset, now), *others = steps.items() or [(0, {})]
            same = not statics and not others and now == {k: -v for k, v in start.items()}
            if not same or low != high or low != 0 or window.condition is not None:
                return None
            if (window.first + offset, window.last + offset) not in (
                (0, self.last),
                (1, self.last),
            ):
                return None
            return _two_sided(now, start, low, high, None)
        if not steps:
            return None if window.condition else _two_sided(statics, {}, low, high, None)
        at = max(steps)  # the offset of what is `now`
        first, last = window.first + at, window.last + at
        if min(steps) < at - 1 or last < self.last:
            return None
        condition = None
        if window.condition is not None:
            condition, offset = window.condition
            if offset != at - 1:
                return None
        before = steps.get(at - 1, {})
        if first > (1 if before or condition else 0):
            return None
        return _two_sided({**steps[at], **statics}, before, low, high, condition)

    def read(
        self, atom: Atom, window: _Window | None
    ) -> tuple[dict[str, float], dict[str, float], dict[int, dict[str, float]]] | None:
        """Coefficients of statics, of readings at step 0, and by their offset from t."""
        statics: dict[str, float] = {}
        start: dict[str, float] = {}
        steps: dict[int, dict[str, float]] = {}
        changes = [_is_change(term) for term in atom.terms]
        if any(changes) and not self.changes_only(atom, window, all(changes)):
            return None
        for coefficient, term in zip(atom.coefficients, atom.terms, strict=True):
            match term:
                case Name(name) if (signal := self.layout.find(name)) and signal.kind == "column":
                    _add(statics, name, coefficient)
                case At(Name(name), Step(None, 0, None)):
                    _add(start, name, coefficient)
                case At(Name(name), Step(str(base), offset, None)) if (
                    window is not None and base == window.variable
                ):
                    _add(steps.setdefault(offset, {}), name, coefficient)
                case At(Apply("delta", (series,)), Step(_, offset)):
                    changed = _series_of(series)
                    if changed is None:
                        return None
                    _add(steps.setdefault(offset, {}), changed, coefficient)
                    _add(steps.setdefault(offset - 1, {}), changed, -coefficient)
                case _:
                    return None
        return statics, start, {at: row for at, row in steps.items() if row}

    def changes_only(self, atom: Atom, window: _Window | None, alone: bool) -> bool:
        """Whether a law about changes is one from step 1 on: at step 0 every change is 0."""
        if window is None:
            return False
        if window.first >= 1:
            return True
        low, high = _bounds(atom)
        strict = (atom.open_low and low == 0) or (atom.open_high and high == 0)
        return alone and low <= 0 <= high and not strict and window.condition is None


def _window(node: f.Quantifier) -> _Window | None:
    match node.first, node.last:
        case Step(None, first, None), Step(None, last, None) if node.region is None:
            return _Window(node.variable, first, last)
    return None


def _bounds(atom: Atom) -> tuple[float, float]:
    """The closed interval of an atom; a strict one between real numbers is taken as closed."""
    return atom.whole_bounds() if atom.integer else (atom.low, atom.high)


def _is_change(term: Term) -> bool:
    return isinstance(term, At) and isinstance(term.series, Apply)


def _series_of(term: Term) -> str | None:
    """The series that a resolved delta is of."""
    match term:
        case Name(name):
            return name
        case At(Name(name), Step(base, 0, None)) if base == NOW:
            return name
    return None


def _add(row: dict[str, float], name: str, weight: float) -> None:
    total = row.get(name, 0.0) + weight
    row[name] = total
    if not total:
        del row[name]


def _joined(parts: Sequence[list[LinearLaw] | None]) -> list[LinearLaw] | None:
    found: list[LinearLaw] = []
    for part in parts:
        if part is None:
            return None
        found += part
    return found


def _two_sided(
    now: Mapping[str, float],
    before: Mapping[str, float],
    low: float,
    high: float,
    condition: str | None,
) -> list[LinearLaw]:
    """low <= Σ now x(t) + Σ before x(t-1) <= high."""
    law = LinearLaw(dict(now), dict(before), -low or 0.0, condition)
    found = [law] if low > -math.inf else []
    if high < math.inf:
        found.append(replace(law, constant=-high or 0.0).opposite())
    return found
