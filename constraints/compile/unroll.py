"""Lowered formulas written out over the grid, as remainders (`progression`).

Quantifiers and `until` become conjunctions and disjunctions over numbered steps, aggregates linear
sums or extremes. A leaf reads the state at one step. The latch "max(X)" at step k, the greatest
value of X since the step before, is no state: that it is at least c is a first passage.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.aggregates import aggregates
from constraints.ast.lowered import Atom, BoundUntil, Pixels
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.words import NOW
from constraints.compile.program import Program, compiled
from constraints.compile.progression import Remainder, Remainders, rounded
from constraints.compile.stepwise import whole_series

_LATCH = re.compile(r"max\((.+)\)")

Values = Mapping[str, np.ndarray]


class UnsupportedError(Exception):
    """A formula that is not written out."""


@dataclass(frozen=True)
class LatchPassage:
    """A term has reached a bound at some moment between two model times."""

    text: str
    first: float
    last: float
    program: Program

    def holds(self, values: Values) -> np.ndarray:
        size = np.broadcast_shapes(*(np.shape(each) for each in values.values()))
        met = self.program.verdict(constant_series(self.program, values, size)).numpy()
        return np.broadcast_to(met, size)

    def __str__(self) -> str:
        return self.text


class WrittenOut:
    """The remainder of a program's statement before the first step.

    `graph` has its nodes; `terms`: the program of each leaf and the term of each value, by key;
    `passages`: the first passages that it waits for.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.layout = program, program.layout
        self.graph = Remainders()
        self.passages: list[LatchPassage] = []
        self.terms: dict[Any, Any] = {}
        self._numbers: dict[Any, int] = {}  # of passages
        self._leaves: dict[tuple[int, Any], Remainder] = {}
        self.whole = self.formula(program.lowered, {})

    def formula(self, node: f.Formula, at: Mapping[str, int]) -> Any:
        """A lowered formula, its bound variables at given steps, as a remainder."""
        match node:
            case f.And(parts) | f.Or(parts):
                kind = "and" if isinstance(node, f.And) else "or"
                return self.graph.joined(kind, [self.formula(part, at) for part in parts])
            case f.Annotated(body):
                return self.formula(body, at)
            case f.Quantifier(kind, variable, first, last, body):
                if isinstance(node.region, Pixels) or first is None or last is None:
                    raise UnsupportedError
                steps = self._window(_number(first, at), _number(last, at), node.region is None)
                bodies = [self.formula(body, {**at, variable: step}) for step in steps]
                return self.graph.joined("and" if kind == "forall" else "or", bodies)
            case BoundUntil():
                return self._until(node, at)
            case Atom():
                return self._written_atom(node, at)
        raise UnsupportedError

    def _window(self, first: int, last: int, steps: bool = True) -> range:
        """The steps first..last, those of the grid where windows are clipped."""
        if steps and self.program.end == "clip":
            first, last = max(first, 0), min(last, self.layout.steps - 1)
        return range(first, last + 1)

    def _until(self, node: BoundUntil, at: Mapping[str, int]) -> Any:
        here, exists = _number(node.here, at), node.kind == "exists"
        reach = here if node.past else self.layout.steps - 1 - here
        far = reach if node.last is None else min(node.last, reach)
        inner, outer = ("and", "or") if exists else ("or", "and")
        found: Any = not exists
        for distance in range(far, -1, -1):
            step = {**at, node.variable: here - distance if node.past else here + distance}
            if distance < far:
                found = self.graph.joined(inner, [self.formula(node.left, step), found])
            else:
                found = not exists
            if distance >= node.first:
                found = self.graph.joined(outer, [self.formula(node.right, step), found])
        return found

    def _written_atom(self, atom: Atom, at: Mapping[str, int]) -> Any:
        grounded = replace(atom, terms=tuple(_grounded(term, at) for term in atom.terms))
        latch = _latch(grounded)
        if latch is not None:
            return self._passage(grounded, *latch)
        steps = _steps(grounded)
        if steps is not None and len(steps) == 1:
            (step,) = steps
            return self._leaf("leaf", step, grounded)
        total = [
            (c, self._sum(term)) for c, term in zip(atom.coefficients, grounded.terms, strict=True)
        ]
        constant, flat = 0.0, dict[int, tuple[float, Any]]()
        for outer, (own, parts) in total:
            constant += outer * own
            for coefficient, part in parts:
                known = flat.get(id(part), (0.0, part))[0]
                flat[id(part)] = (known + outer * coefficient, part)
        pairs = [pair for pair in flat.values() if pair[0]]
        # a mean of counts becomes a sum of whole numbers, without rounding
        unit = min((abs(c) for c, _ in pairs), default=1.0)
        whole = all(abs(c / unit - round(c / unit)) < 1e-9 for c, _ in pairs)
        scaled = [float(round(c / unit)) if whole else c for c, _ in pairs]
        unit = unit if whole else 1.0
        low, high = ((each / unit) for each in (atom.low - atom.slack, atom.high + atom.slack))
        bounds = (rounded(low), rounded(high), atom.open_low, atom.open_high)
        return self.graph.atom(bounds, scaled, [part for _, part in pairs], constant / unit)

    def _leaf(self, kind: str, step: int, own: Any) -> Remainder:
        key = (step, (kind, str(own.key)))
        if key not in self._leaves:
            program = self.program
            self.terms[key] = own if kind == "value" else program.restated(own, observations=())
            self._leaves[key] = self.graph.node(kind, key, (), frozenset([key]))
        return self._leaves[key]

    def _passage(self, atom: Atom, text: str, step: int) -> Any:
        """A bound on the latch of a term: reached, or never reached, since the step before."""
        low, high, open_low, open_high = atom.admitted()
        reached = math.isinf(high)
        if reached == math.isinf(low):
            raise UnsupportedError
        bound, strict = (low, open_low) if reached else (high, not open_high)
        relation = ">" if strict else ">="
        key = (text, relation, bound, step)
        if key not in self._numbers:
            plain = compiled(f"always[0,0]({text} {relation} {bound:.17g})", self.layout)
            times = self.layout.times
            self._numbers[key] = len(self.passages)
            window = (float(times[max(step - 1, 0)]), float(times[step]))
            self.passages.append(LatchPassage(f"{text} {relation} {bound:g}", *window, plain))
        number = self._numbers[key]
        mark = ("passage", number)
        node = self.graph.node("passage", mark, (), frozenset([mark]))
        return node if reached else self.graph.node("not", None, (node,))

    def _sum(self, term: Term) -> tuple[float, list[tuple[float, Any]]]:
        """A grounded term as a constant plus coefficients times nodes."""
        steps = _steps(term)
        if steps is not None and len(steps) <= 1:
            if isinstance(term, Const):
                return term.value, []
            step = next(iter(steps), 0)
            return 0.0, [(1.0, self._leaf("value", step, term))]
        match term:
            case Apply("+", arguments):
                return _added([(1.0, self._sum(each)) for each in arguments])
            case Apply("neg", (body,)):
                return _added([(-1.0, self._sum(body))])
            case Apply("*", (Const(factor), body)) | Apply("*", (body, Const(factor))):
                return _added([(factor, self._sum(body))])
            case Apply("/", (body, Const(divisor))) if divisor:
                return _added([(1 / divisor, self._sum(body))])
            case Apply("max" | "min" as kind, arguments):
                return 0.0, [
                    (1.0, self.graph.extreme(kind, [self._one(each) for each in arguments]))
                ]
            case At(Apply("delta", (body,)), Step(None, step)):
                if step == 0:
                    return 0.0, []
                pair = [(1.0, step), (-1.0, step - 1)]
                return _added([(c, self._sum(_grounded(body, {NOW: k}))) for c, k in pair])
            case At(Apply("cumsum", (body,)), Step(None, step)):
                every = range(step + 1)
                return _added([(1.0, self._sum(_grounded(body, {NOW: k}))) for k in every])
            case Count(body, Step(None, first), Step(None, last)):
                window = self._window(first, last)
                held = [self.graph.truth(self.formula(body, {NOW: k})) for k in window]
                known = sum(each for each in held if isinstance(each, float))
                return known, [(1.0, each) for each in held if isinstance(each, Remainder)]
            case Aggregate(kind, body, Step(None, first), Step(None, last)):
                return self._aggregate(kind, body, self._window(first, last))
        raise UnsupportedError

    def _aggregate(
        self, kind: str, body: Term, window: range
    ) -> tuple[float, list[tuple[float, Any]]]:
        if not window:
            raise UnsupportedError
        scheme = aggregates()[kind].fold
        at = [_grounded(body, {NOW: step}) for step in window]
        if scheme in ("max", "min"):
            return 0.0, [(1.0, self.graph.extreme(kind, [self._one(each) for each in at]))]
        if scheme == "integral":
            widths = np.diff([self.layout.times[step] for step in window])
            sizes = (np.append(widths, 0.0) + np.append(0.0, widths)) / 2
        elif scheme in ("sum", "mean"):
            sizes = np.full(len(at), 1.0 / (len(at) if scheme == "mean" else 1.0))
        else:
            raise UnsupportedError
        return _added([(float(c), self._sum(each)) for c, each in zip(sizes, at, strict=True)])

    def _one(self, term: Term) -> Any:
        """A term as a single node or number, for an extreme."""
        constant, parts = self._sum(term)
        if not parts:
            return constant
        if constant or len(parts) != 1 or parts[0][0] != 1.0:
            raise UnsupportedError
        return parts[0][1]


# --- grounding ------------------------------------------------------------------------------------


def _number(step: Step, at: Mapping[str, int]) -> int:
    return step.offset + (at[step.base] if step.base is not None else 0)


def _grounded(node: Any, at: Mapping[str, int]) -> Any:
    """A term with the steps of bound variables as numbers; `now` in the body of an aggregate, of a
    count or of a change is that of the body."""
    if isinstance(node, tuple):
        return tuple(_grounded(item, at) for item in node)
    if isinstance(node, Step):
        return Step(None, _number(node, at)) if node.base is None or node.base in at else node
    if not isinstance(node, Node):
        return node
    if isinstance(node, Const | Name):
        return node
    inner = dict(at)
    if isinstance(node, Aggregate | Count) or (
        isinstance(node, At) and isinstance(node.series, Apply)
    ):
        inner.pop(NOW, None)
    made = {}
    for each in fields(node):
        value = getattr(node, each.name)
        own = at if each.name in ("first", "last", "step") else inner
        made[each.name] = _grounded(value, own)
    return replace(node, **made)


def _steps(node: Node) -> frozenset[int] | None:
    """The steps at which a grounded term or atom reads series; None if it holds anything else."""
    match node:
        case At(Name(name), Step(None, offset)):
            return None if _LATCH.fullmatch(name) else frozenset([offset])
        case At() | Aggregate() | Count() | f.Quantifier() | BoundUntil() | Step():
            return None
        case Apply("delta" | "cumsum"):
            return None
    found = frozenset[int]()
    for child in node.children():
        below = _steps(child)
        if below is None:
            return None
        found |= below
    return found


def _latch(atom: Atom) -> tuple[str, int] | None:
    """The term and the step of an atom about a single latch."""
    match atom.terms:
        case (At(Name(name), Step(None, step)),):
            found = _LATCH.fullmatch(name)
            return (found[1], step) if found else None
    return None


def _added(
    terms: Sequence[tuple[float, tuple[float, list[tuple[float, Any]]]]],
) -> tuple[float, list[tuple[float, Any]]]:
    constant = sum(outer * own for outer, (own, _) in terms)
    return constant, [(outer * c, part) for outer, (_, parts) in terms for c, part in parts]


def constant_series(program: Program, values: Values, size: tuple[int, ...]) -> dict[str, Tensor]:
    """States (n,) as series that do not change."""
    states = {
        name: torch.from_numpy(np.array(np.broadcast_to(values[name], size), dtype=np.float64))
        for name in program.needed
        if name in values
    }
    return whole_series(program, states)
