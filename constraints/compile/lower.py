"""Lowering: resolved formulas to negation normal form over atoms, the form that is evaluated.

An `Atom` states that a linear combination of terms lies in an interval. Lowering
- pushes negation to the atoms, where an inequality flips (never `log(1 - e^x)`);
- unfolds `abs`, `max`, `min` under an inequality into connectives and quantifiers: `max(I) <= 40`
  is `forall t: I(t) <= 40`, so that every step has a gradient; `argmax(I) <= 8` compares the
  maximum up to step 8 with that after it;
- merges `x >= a` and `x <= b` into one interval, splits `forall` over conjunctions, drops
  repetitions and folds constants (`simplify`).
"""

from __future__ import annotations

import math
from dataclasses import replace

from constraints.ast import formulas as f
from constraints.ast.aggregates import aggregates
from constraints.ast.families import Observation
from constraints.ast.lowered import (
    Atom,
    BoundUntil,
    CategoryWeight,
    ClassProbability,
    HasClass,
    Pixel,
    Pixels,
)
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term, add
from constraints.ast.words import NOW
from constraints.compile.simplify import all_of, any_of, quantified
from constraints.errors import FormulaError
from constraints.layout.image_terms import is_image
from constraints.layout.pixels import mask
from constraints.layout.signals import Layout

_FLIP = {"<=": ">", "<": ">=", ">=": "<", ">": "<=", "=": "!=", "!=": "="}
_DEFAULT_TOLERANCE = 1e-3  # of a real-valued equality, as a share of the data's span
_RELATIVE_TOLERANCE = 1e-6  # the same as a share of the value, if no span is known


def lower(formula: f.Formula, layout: Layout) -> f.Formula:
    """The equivalent formula of And, Or, Quantifier, BoundUntil and weights over atoms."""
    return _Lowering(layout).formula(formula, True, None, 0)


def lower_observation(node: Observation, layout: Layout) -> Observation:
    """A resolved observation, ready to be evaluated."""
    return _Lowering(layout).observation(node)


def _computed(term: Term) -> Term:
    """A constant sum as a number."""
    constant, parts = affine(term)
    return term if parts else Const(constant)


class _Lowering:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def formula(self, node: f.Formula, positive: bool, k: float | None, level: int) -> f.Formula:
        def go(part: f.Formula, sign: bool = positive) -> f.Formula:
            return self.formula(part, sign, k, level)

        match node:
            case f.Not(body):
                return go(body, not positive)
            case f.And(parts) | f.Or(parts):
                join = all_of if isinstance(node, f.And) == positive else any_of
                return join(go(part) for part in parts)
            case f.Implies(left, right):
                join = any_of if positive else all_of
                return join([go(left, not positive), go(right)])
            case f.Iff(left, right) | f.Xor(left, right):
                same = isinstance(node, f.Iff) == positive
                return any_of(
                    all_of([go(left, sign), go(right, sign == same)]) for sign in (True, False)
                )
            case f.Annotated(body, own, weight):
                inner = self.formula(body, positive, own or k, level)
                return inner if weight is None else f.Annotated(inner, weight=weight)
            case f.Quantifier(kind, variable, first, last, body, region):
                inner = self.formula(body, positive, k, level + 1)
                return quantified(_dual(kind, positive), variable, first, last, inner, region)
            case HasClass(chance, sign):
                return HasClass(chance, sign == positive, k)
            case BoundUntil(kind, left, right):
                left, right = (self.formula(part, positive, k, level + 1) for part in (left, right))
                return replace(node, kind=_dual(kind, positive), left=left, right=right)
            case f.Compare((left, right), (relation,), tolerance):
                relation = relation if positive else _FLIP[relation]
                return self.compare(left, relation, right, tolerance, k, level)
        raise TypeError(f"{node!r} is not resolved")

    def observation(self, node: Observation) -> Observation:
        """Its parameters with counts lowered and constants computed."""
        own = node.distribution
        lowered = [self.counted(each, None, 0) for each in own.parameters]
        for parameter, each in zip(own.family.parameters, lowered, strict=True):
            if parameter.domain.whole and not self.integer(each):
                raise FormulaError(
                    f"the {parameter.name} of {own.family.name} is {each}, which is not a whole "
                    "number for all data",
                    value=str(each),
                    remedy="name a count, or use a distribution of another family",
                )
        return node.moved(tuple(_computed(each) for each in lowered))

    def compare(
        self,
        left: Term,
        relation: str,
        right: Term,
        tolerance: float | None,
        k: float | None,
        level: int,
    ) -> f.Formula:
        difference = add(left, Apply("neg", (right,)))
        constant, parts = affine(self.counted(difference, k, level))
        value = -constant
        atom = self.atom(parts, k)
        match relation:
            case "<=" | "<":
                return self.unfold(replace(atom, high=value, open_high=relation == "<"), level)
            case ">=" | ">":
                return self.unfold(replace(atom, low=value, open_low=relation == ">"), level)
        given = tolerance or 0.0
        slack = self.slack(atom, value) if tolerance is None else 0.0
        if relation == "=":
            within = replace(atom, low=value - given, high=value + given, slack=slack)
            return self.unfold(within, level)
        far = given + slack
        below = replace(atom, high=value - far, open_high=True)
        above = replace(atom, low=value + far, open_low=True)
        return any_of([self.unfold(below, level), self.unfold(above, level)])

    def counted(self, term: Term, k: float | None, level: int) -> Term:
        """The term with the bodies of its counts lowered."""
        match term:
            case Count(body):
                return replace(term, body=self.formula(body, True, k, level))
            case Apply(function, arguments):
                return Apply(function, tuple(self.counted(each, k, level) for each in arguments))
            case Aggregate(_, body):
                return replace(term, body=self.counted(body, k, level))
            case At(Apply() as series, step):
                return At(self.counted(series, k, level), step)
        return term

    def atom(self, parts: list[tuple[float, Term]], k: float | None) -> Atom:
        parts = sorted((part for part in parts if part[0]), key=lambda part: repr(part[1].key))
        whole = all(c.is_integer() and self.integer(t) for c, t in parts)
        return Atom(tuple(c for c, _ in parts), tuple(t for _, t in parts), integer=whole, k=k)

    def integer(self, term: Term) -> bool:
        """Whether the term is a whole number for integer data."""
        match term:
            case At(Name(name)) | Name(name):
                signal = self.layout.find(name)
                return signal is not None and signal.integer
            case At(Apply("delta" | "cumsum", (body,))):
                return self.integer(body)
            case Aggregate(kind, body):
                kept = aggregates()[kind].integer
                return kept == "always" or (kept == "kept" and self.integer(body))
            case Count() | Step():
                return True
            case Const(value):
                return value.is_integer()
            case Apply("+" | "neg" | "*" | "abs" | "max" | "min", arguments):
                return all(self.integer(argument) for argument in arguments)
            case Apply("pow", (base, Const(power))):
                return power.is_integer() and power >= 0 and self.integer(base)
        return False

    def slack(self, atom: Atom, value: float) -> float:
        """The default tolerance of an equality: 0 for whole numbers."""
        if atom.integer:
            return 0.0
        spans = [abs(c) * self.span(t) for c, t in zip(atom.coefficients, atom.terms, strict=True)]
        total = sum(spans)
        return (
            _DEFAULT_TOLERANCE * total if math.isfinite(total) else _RELATIVE_TOLERANCE * abs(value)
        )

    def span(self, term: Term) -> float:
        """The range of the term's values, if that of its signal is known; else inf."""
        match term:
            case Name(name):
                signal = self.layout.find(name)
                if signal is None:
                    return 0.0 if name in self.layout.pictures else math.inf
                return signal.high - signal.low if signal.span is None else signal.span
            case At(series) | Pixel(series):
                return self.span(series)
            case Aggregate(kind, At(series)) if aggregates()[kind].averages:
                return self.span(series)
            case Aggregate("sum", At(series), region=Pixels() as domain):
                return self.span(series) * domain.shape[0] * int(mask(domain, self.layout).sum())
            case Apply(name, arguments):  # linear image operators move or average pixels
                function = self.layout.function(name)
                known = function is not None and function.linear and function.returns == "image"
                spans = (self.span(each) for each in arguments if is_image(each, self.layout))
                return max(spans, default=math.inf) if known else math.inf
            case ClassProbability():
                return 1.0
            case CategoryWeight():
                return 0.0
        return math.inf

    # unfolding max, min and abs

    def unfold(self, atom: Atom, level: int) -> f.Formula:
        """The atom, with max, min, abs, argmax and argmin replaced by the logic they abbreviate."""
        if not atom.terms:
            inside = atom.low - atom.slack <= 0 <= atom.high + atom.slack
            at_bound = (atom.open_low and atom.low == 0) or (atom.open_high and atom.high == 0)
            return f.TRUE if inside and not at_bound else f.FALSE
        unfolded = [i for i, term in enumerate(atom.terms) if _unfolds(term)]
        if len(unfolded) != 1:
            return _canonical(atom)
        if atom.low > -math.inf and atom.high < math.inf:
            upper = replace(atom, low=-math.inf, open_low=False)
            lower_ = replace(atom, high=math.inf, open_high=False)
            return all_of([self.unfold(upper, level), self.unfold(lower_, level)])
        place = unfolded[0]
        if atom.high == math.inf:  # turn y >= low into -y <= -low
            atom = replace(
                atom,
                coefficients=tuple(-c for c in atom.coefficients),
                low=-math.inf,
                high=-atom.low,
                open_low=False,
                open_high=atom.open_low,
            )
        term, coefficient = atom.terms[place], atom.coefficients[place]
        rest = [pair for i, pair in enumerate(_pairs(atom)) if i != place]

        def put(inner: Term, deeper: int = 0) -> f.Formula:
            constant, parts = affine(inner)
            added = rest + [(coefficient * c, t) for c, t in parts]
            plain = self.atom(_merged(added), atom.k)
            high = atom.high - coefficient * constant
            done = replace(plain, high=high, open_high=atom.open_high, slack=atom.slack)
            return self.unfold(done, level + deeper)

        match term:
            case Apply("abs", (body,)):
                join = all_of if coefficient > 0 else any_of
                return join([put(body), put(-body)])
            case Apply("max" | "min" as kind, arguments):
                join = all_of if (kind == "max") == (coefficient > 0) else any_of
                return join(put(argument) for argument in arguments)
            case Aggregate("argmax" | "argmin"):
                return self.peak(term, coefficient, atom) if not rest else _canonical(atom)
            case Aggregate(kind, body, first, last, region):
                greatest = aggregates()[kind].extreme == "max"
                word = "forall" if greatest == (coefficient > 0) else "exists"
                name = f"%{level}"
                inner = put(moved(body, Step(name)), 1)
                return quantified(word, name, first, last, inner, region)
        raise AssertionError(term)

    def peak(self, term: Aggregate, coefficient: float, atom: Atom) -> f.Formula:
        """coefficient·argmax <= high, as a comparison of the extremes before and after a step."""
        first, last = term.first, term.last
        if first is None or last is None or first.base is not None or last.base is not None:
            return _canonical(atom)
        early = coefficient > 0
        bound = atom.high / coefficient
        if early:  # argmax <= cut
            cut = math.ceil(bound) - 1 if atom.open_high else math.floor(bound)
        else:  # argmax >= cut + 1
            cut = math.floor(bound) if atom.open_high else math.ceil(bound) - 1
        if cut >= last.offset:
            return f.TRUE if early else f.FALSE
        if cut < first.offset:
            return f.FALSE if early else f.TRUE
        kind = "max" if term.kind == "argmax" else "min"
        before = Aggregate(kind, term.body, first, Step(None, cut))
        after = Aggregate(kind, term.body, Step(None, cut + 1), last)
        sign = (1.0 if early else -1.0) * (1.0 if kind == "max" else -1.0)
        # argmax is the first of equal extremes: the earlier part wins ties
        found = self.atom([(sign, before), (-sign, after)], atom.k)
        return _canonical(replace(found, low=0.0, open_low=not early))


def _unfolds(term: Term) -> bool:
    """Whether `unfold` replaces the term."""
    match term:
        case Apply("abs" | "max" | "min") | Aggregate("argmax" | "argmin"):
            return True
        case Aggregate(kind):
            return aggregates()[kind].extreme is not None
    return False


def _pairs(atom: Atom) -> list[tuple[float, Term]]:
    return list(zip(atom.coefficients, atom.terms, strict=True))


def _canonical(atom: Atom) -> Atom:
    """The same atom with a positive first coefficient."""
    if atom.coefficients[0] > 0:
        return atom
    return replace(
        atom,
        coefficients=tuple(-c for c in atom.coefficients),
        low=-atom.high,
        high=-atom.low,
        open_low=atom.open_high,
        open_high=atom.open_low,
    )


def affine(term: Term) -> tuple[float, list[tuple[float, Term]]]:
    """The term as a constant plus coefficients times terms that are not sums."""
    match term:
        case Const(value):
            return value, []
        case Step(None, offset):
            return float(offset), []
        case Apply("+", arguments):
            found = [affine(argument) for argument in arguments]
            return sum(c for c, _ in found), _merged([pair for _, parts in found for pair in parts])
        case Apply("neg", (body,)):
            return _scaled(-1.0, body)
        case Apply("*", (left, right)):
            for factor, other in ((left, right), (right, left)):
                constant, parts = affine(factor)
                if not parts:
                    return _scaled(constant, other)
        case Apply("/", (left, right)):
            constant, parts = affine(right)
            if not parts and constant:
                return _scaled(1 / constant, left)
    return 0.0, [(1.0, term)]


def _scaled(factor: float, term: Term) -> tuple[float, list[tuple[float, Term]]]:
    constant, parts = affine(term)
    return factor * constant, [(factor * c, t) for c, t in parts]


def _merged(parts: list[tuple[float, Term]]) -> list[tuple[float, Term]]:
    total: dict[tuple[object, ...], tuple[float, Term]] = {}
    for coefficient, term in parts:
        total[term.key] = (total.get(term.key, (0.0, term))[0] + coefficient, term)
    return list(total.values())


def moved(term: Term, step: Step) -> Term:
    """A term with the `now` of the aggregate around it replaced by `step`."""

    def at(when: Step) -> Step:
        return step.shifted(when.offset) if when.base == NOW else when

    def go(node: Term) -> Term:
        match node:
            case Step():
                return at(node)
            case At(series, when):
                return At(series, at(when))  # a delta's body has a `now` of its own
            case Apply(function, arguments):
                return Apply(function, tuple(go(argument) for argument in arguments))
            case Aggregate() | Count():
                first, last = (None if e is None else at(e) for e in (node.first, node.last))
                return replace(node, first=first, last=last)
        return node

    return go(term)


def _dual(kind: str, positive: bool) -> str:
    return kind if positive else {"forall": "exists", "exists": "forall"}[kind]
