"""A second implementation of lowering, for comparison: negation pushed to the comparisons, and max,
min, abs, argmax under an inequality replaced by the quantifiers and connectives they abbreviate.

`reference_evaluator` evaluates the result. Formulas are lowered as they are written, without a
layout.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from constraints.ast import formulas as f
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.words import END, NOW


@dataclass
class Atom:
    """low <= sum of coefficient * term <= high."""

    parts: list[tuple[float, Term]]
    low: float = -math.inf
    high: float = math.inf
    open: bool = False
    slack: float = 0.0
    k: float | None = None


@dataclass
class Join:
    """All, or some, of its parts, flat."""

    every: bool
    parts: list[Any]

    def __post_init__(self) -> None:
        flat: list[Any] = []
        for part in self.parts:
            same = isinstance(part, Join) and part.every == self.every
            flat.extend(part.parts if same else [part])
        self.parts = flat


@dataclass
class Quantified:
    every: bool
    variable: str
    first: Step | None
    last: Step | None
    body: Any
    times: bool = True


@dataclass
class Chain:
    """Until, release, since, trigger."""

    every: bool
    left: Any
    right: Any
    first: int
    last: int | None
    past: bool


@dataclass
class Weighted:
    body: Any
    weight: float


def inside(y: float, atom: Atom) -> bool:
    """The verdict on an atom whose sum is y."""
    low, high = atom.low - atom.slack, atom.high + atom.slack
    return low < y < high if atom.open else low <= y <= high


class ReferenceLowering:
    """Negation at the comparisons, max and its kind as quantifiers, k at the atoms."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.fresh = 0

    def formula(self, node: f.Formula, positive: bool, k: float | None) -> Any:
        def go(part: f.Formula, same: bool = True) -> Any:
            return self.formula(part, positive == same, k)

        match node:
            case f.Not(body):
                return go(body, False)
            case f.And(parts) | f.Or(parts):
                return Join(isinstance(node, f.And) == positive, [go(part) for part in parts])
            case f.Implies(left, right):
                return Join(not positive, [go(left, False), go(right)])
            case f.Iff(left, right) | f.Xor(left, right):
                same = isinstance(node, f.Iff) == positive
                pairs = [(True, same), (False, not same)]
                return Join(
                    False,
                    [
                        Join(True, [self.formula(left, a, k), self.formula(right, b, k)])
                        for a, b in pairs
                    ],
                )
            case f.Annotated(body, own, weight):
                inner = self.formula(body, positive, k if own is None else own)
                return inner if weight is None else Weighted(inner, weight)
            case f.Quantifier(kind, name, first, last, body):
                times = name == NOW or _is_time(body, name)
                every = (kind == "forall") == positive
                return self.quantified(every, name, first, last, go(body), times)
            case f.Until(kind, left, right, first, last, past):
                every = (kind == "forall") == positive
                return Chain(every, go(left), go(right), first, last, past)
            case f.Compare(terms, relations, tolerance):
                links = [
                    self.link(a, relation, b, tolerance, positive, k)
                    for a, relation, b in zip(terms, relations, terms[1:], strict=False)
                ]
                return links[0] if len(links) == 1 else Join(positive, links)
        raise TypeError(node)

    def quantified(
        self, every: bool, name: str, first: Any, last: Any, body: Any, times: bool = True
    ) -> Any:
        if every and isinstance(body, Join) and body.every:
            parts = [self.quantified(every, name, first, last, p, times) for p in body.parts]
            return Join(True, parts)
        return Quantified(every, name, first, last, body, times)

    def link(
        self, a: Term, relation: str, b: Term, tolerance: float | None, positive: bool, k: Any
    ) -> Any:
        flipped = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "=": "!=", "!=": "="}
        relation = relation if positive else flipped[relation]
        left, right = self.linear(a), self.linear(b)
        value = right[0] - left[0]
        parts = left[1] + [(-c, t) for c, t in right[1]]
        strict = relation in ("<", ">")
        if relation in ("<=", "<"):
            return self.unfold(Atom(parts, high=value, open=strict, k=k))
        if relation in (">=", ">"):
            return self.unfold(Atom(parts, low=value, open=strict, k=k))
        given = tolerance or 0.0
        counts = all(isinstance(t, Aggregate) and t.kind in ("argmax", "argmin") for _, t in parts)
        slack = 0.0 if tolerance is not None or counts else 1e-6 * abs(value)
        if relation == "=":
            return self.unfold(Atom(parts, value - given, value + given, slack=slack, k=k))
        far = given + slack
        below, above = Atom(parts, high=value - far, k=k), Atom(parts, low=value + far, k=k)
        return Join(False, [self.unfold(replace(side, open=True)) for side in (below, above)])

    def unfold(self, atom: Atom) -> Any:
        folds = [i for i, (_, t) in enumerate(atom.parts) if _folds(t)]
        if len(folds) != 1:
            return atom
        if atom.low > -math.inf and atom.high < math.inf:
            halves = replace(atom, low=-math.inf), replace(atom, high=math.inf)
            return Join(True, [self.unfold(half) for half in halves])
        c, term = atom.parts[folds[0]]
        rest = [part for i, part in enumerate(atom.parts) if i != folds[0]]

        def put(inner: Term) -> Any:
            constant, parts = self.linear(inner)
            moved = [(c * d, t) for d, t in parts]
            low, high = atom.low - c * constant, atom.high - c * constant
            return self.unfold(replace(atom, parts=rest + moved, low=low, high=high))

        least = (c > 0) == (atom.high < math.inf)  # the term has an upper bound
        match term:
            case Apply("abs", (body,)):
                return Join(least, [put(body), put(Apply("neg", (body,)))])
            case Apply("max" | "min" as kind, arguments):
                return Join(least == (kind == "max"), [put(each) for each in arguments])
            case Aggregate("argmax" | "argmin"):
                return atom if rest else self.peak(atom, c, term)
            case Aggregate(kind, body, first, last):
                self.fresh += 1
                name = f"_{self.fresh}"
                every = least == (kind == "max")
                return self.quantified(every, name, first, last, put(read_at(body, Step(name))))
        raise TypeError(term)

    def peak(self, atom: Atom, c: float, term: Aggregate) -> Any:
        """A bound on argmax: the greater of two maxima says on which side of it the peak lies."""
        first, last = (self.fixed(term.first, 0), self.fixed(term.last, self.steps - 1))
        if first is None or last is None:
            return atom
        allowed = [m for m in range(first, last + 1) if inside(c * m, replace(atom, slack=0.0))]
        if not allowed or len(allowed) == last - first + 1:
            return Join(bool(allowed), [])
        early = allowed[0] == first
        cut = allowed[-1] if early else allowed[0] - 1
        kind = "max" if term.kind == "argmax" else "min"
        before = Aggregate(kind, term.body, Step(None, first), Step(None, cut))
        after = Aggregate(kind, term.body, Step(None, cut + 1), Step(None, last))
        sign = 1.0 if early == (kind == "max") else -1.0
        return Atom([(sign, before), (-sign, after)], low=0.0, open=not early, k=atom.k)

    def fixed(self, bound: Step | None, default: int) -> int | None:
        if bound is None or bound.base is None:
            return default if bound is None else bound.offset
        return self.steps - 1 + bound.offset if bound.base == END else None

    def linear(self, term: Term) -> tuple[float, list[tuple[float, Term]]]:
        """A constant, and coefficients of terms that are not sums."""
        match term:
            case Const(value):
                return value, []
            case At(Apply(function) as series, step) if function not in ("delta", "cumsum"):
                return self.linear(read_at(series, step))
            case Apply("+", arguments):
                found = [self.linear(each) for each in arguments]
                return sum(c for c, _ in found), [part for _, parts in found for part in parts]
            case Apply("neg", (body,)):
                return self.linear(Apply("*", (Const(-1), body)))
            case Apply("*", (left, right)):
                for factor, other in ((left, right), (right, left)):
                    if isinstance(factor, Const):
                        constant, parts = self.linear(other)
                        c = factor.value
                        return c * constant, [(c * d, t) for d, t in parts]
            case Apply("/", (left, Const(value))):
                return self.linear(Apply("*", (Const(1 / value), left)))
        return 0.0, [(1.0, term)]


def _folds(term: Term) -> bool:
    match term:
        case Apply("abs" | "max" | "min") | Aggregate("max" | "min" | "argmax" | "argmin"):
            return True
    return False


def read_at(term: Term, step: Step) -> Term:
    """The term with `step` for `now`."""

    def bound(end: Step | None) -> Step | None:
        return step.shifted(end.offset) if end is not None and end.base == NOW else end

    match term:
        case Name() | Apply("delta" | "cumsum"):
            return At(term, step)
        case Step():
            return bound(term) or term
        case At(series, when):
            return At(series, bound(when) or when)
        case Apply(function, arguments):
            return Apply(function, tuple(read_at(each, step) for each in arguments))
        case Aggregate() | Count():
            return replace(term, first=bound(term.first), last=bound(term.last))
    return term


def _is_time(node: Any, name: str) -> bool:
    """Whether something is read at the variable, or a window depends on it."""
    match node:
        case At(_, step):
            bounds = [step]
        case f.Quantifier() | Aggregate() | Count():
            bounds = [node.first, node.last]
        case _:
            bounds = []
    found = any(bound is not None and bound.base == name for bound in bounds)
    return found or any(_is_time(child, name) for child in node.children())


def depends(node: Any, name: str) -> bool:
    """Whether the value of a term, or of a lowered formula, changes with the variable."""
    match node:
        case None | Const():
            return False
        case Atom():
            return any(depends(term, name) for _, term in node.parts)
        case Join():
            return any(depends(part, name) for part in node.parts)
        case Weighted():
            return depends(node.body, name)
        case Quantified():
            inside = node.variable != name and depends(node.body, name)
            return inside or depends(node.first, name) or depends(node.last, name)
        case Chain():
            return name == NOW or depends(node.left, name) or depends(node.right, name)
        case Step():
            return node.base == name
        case Name():
            return name == NOW
        case At(series, step):
            return depends(step, name) or (name != NOW and depends(series, name))
        case Aggregate() | Count():
            body = (
                node.body
                if isinstance(node, Aggregate)
                else ReferenceLowering(1).formula(node.body, 1, 0)
            )
            inside = name != NOW and depends(body, name)
            return inside or depends(node.first, name) or depends(node.last, name)
        case Apply("delta" | "cumsum"):
            return name == NOW
    return any(depends(child, name) for child in node.children())
