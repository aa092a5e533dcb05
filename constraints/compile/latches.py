"""`reaches(X >= 80, 0, 100)`: a condition on the state at some moment of continuous time.

A grid does not tell what happens between its times. A simulator does, where it records the greatest
value of a term since the time before: the latch `max(X)`, a series beside X. With one,

    reaches(X >= c, a, b)  =  X(a) >= c  or  exists t in [a + 1, b]: "max(X)"(t) >= c,

an ordinary formula, with the margin of the greatest value. Conditions joined by `or` are reached
where one of them is; those joined by `and` must hold at the same moment, so the latch is that of
their least margin, max(min(X - 80, 3 - Y)).
"""

from __future__ import annotations

from collections.abc import Iterator

from constraints.ast import formulas as f
from constraints.ast.printer import number
from constraints.ast.terms import Apply, At, Const, Name, Step, Term, add
from constraints.ast.walk import descend, ends
from constraints.compile.lower import affine
from constraints.errors import Action, FormulaError
from constraints.layout.signals import Layout, Signal

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_VARIABLE = "%latch"


def latches(formula: f.Formula, layout: Layout) -> tuple[str, ...]:
    """The terms whose greatest value between grid times the formula needs, as a simulator reads
    them."""
    found = (each for node in descend(formula) if isinstance(node, f.Reaches)
             for each in _cases(node.body, layout))  # fmt: skip
    return tuple(dict.fromkeys(text for _, text, _, _ in found))


def with_latches(formula: f.Formula, layout: Layout) -> Layout:
    """The layout with the latches that the formula needs, for data that will have them."""
    missing = [name for text in latches(formula, layout) if not layout.find(name := latched(text))]
    whole = all(each.integer for each in layout.signals if each.kind == "series")
    more = [Signal(name, "series", (layout.steps,), integer=whole) for name in missing]
    return layout.extended(more) if more else layout


def latched(text: str) -> str:
    """The name of the series that holds the greatest value of a term since the time before."""
    return f"max({text})"


def spelled_out(node: f.Reaches, layout: Layout) -> f.Formula:
    """A `reaches` as an ordinary formula over states and latches."""
    first, last = ends(node)
    cases: list[f.Formula] = []
    for term, text, bound, strict in _cases(node.body, layout):
        name = latched(text)
        if layout.find(name) is None:
            raise FormulaError(
                f"{node}: these data do not say what {text} was between the times of the grid",
                value=name,
                remedy=(
                    "simulate with ",
                    Action(f"latch=[{text!r}]", f'--latch "{text}"'),
                    ", or write exists t: ..., which sees the grid's times only",
                ),
            )
        relations = (">" if strict else ">=",)
        start = f.Compare((At(term, first), Const(bound)), relations)
        later = f.Compare((At(Name(name), Step(_VARIABLE)), Const(bound)), relations)
        cases.append(start)
        if (first.base, first.time, first.offset) != (last.base, last.time, last.offset):
            after = (
                first.shifted(1)
                if first.time is None
                else Step(None, layout.step_at(first.time) + 1)
            )
            cases.append(f.Quantifier("exists", _VARIABLE, after, last, later))
    return f.disjunction(*cases)


Case = tuple[Term, str, float, bool]  # term, its text, bound, strict: reached where term >= bound


def _cases(body: f.Formula, layout: Layout) -> Iterator[Case]:
    """The alternatives of a condition."""
    match body:
        case f.Or(parts):
            for part in parts:
                yield from _cases(part, layout)
        case f.Not(f.Not(inner)):
            yield from _cases(inner, layout)
        case f.Not(f.And(parts)):
            yield from _cases(f.Or(tuple(f.Not(part) for part in parts)), layout)
        case _:
            margins = list(_margins(body, layout))
            if len(margins) == 1:
                term, constant, strict = margins[0]
                yield term, str(_text(term)), -constant, strict
                return
            if any(strict for *_, strict in margins):
                raise FormulaError(
                    f"{body}: strict comparisons of real numbers cannot be joined within reaches",
                    remedy="write <= or >=",
                )
            joined = [
                add(term, Const(constant)) if constant else term for term, constant, _ in margins
            ]
            text = _text(joined[0])
            for each in joined[1:]:
                text = f"min({text}, {_text(each)})"
            yield Apply("min", tuple(joined)), text, 0.0, False


def _margins(body: f.Formula, layout: Layout) -> Iterator[tuple[Term, float, bool]]:
    """The margins term + constant >= 0 (> 0 if strict) that a condition is the conjunction of."""
    match body:
        case f.And(parts) if parts:
            for part in parts:
                yield from _margins(part, layout)
            return
        case f.Not(f.Or(parts)):
            for part in parts:
                yield from _margins(f.Not(part), layout)
            return
        case f.Not(f.Compare((left, right), (relation,), None)) if relation in _OPPOSITE:
            yield from _margins(f.Compare((left, right), (_OPPOSITE[relation],)), layout)
            return
        case f.Compare(terms, relations, None) if all(
            each in (*_OPPOSITE, "=") for each in relations
        ):
            for left, relation, right in zip(terms[:-1], relations, terms[1:], strict=True):
                for above, below in (
                    ((left, right),) if relation[0] == ">"
                    else ((right, left),) if relation[0] == "<"
                    else ((left, right), (right, left))
                ):  # fmt: skip
                    yield _margin(above, below, relation in "<>", layout, body)
            return
    raise FormulaError(
        f"reaches({body}): this is no condition on the state at one moment",
        value=str(body),
        remedy="compare signals, as in reaches(X >= 80, 0, 100), joined by and, or, not",
    )


def _margin(
    above: Term, below: Term, strict: bool, layout: Layout, body: f.Formula
) -> tuple[Term, float, bool]:
    constant, parts = affine(add(above, Apply("neg", (below,))))
    order = {name: place for place, name in enumerate([*layout.names, *layout.parameters])}
    for _, each in parts:
        if not isinstance(each, Name) or each.instance is not None or each.name not in order:
            raise FormulaError(
                f"reaches({body}): {each} is not a signal at that moment",
                value=str(each),
                remedy="compare sums of signals and parameters by their names, as in X + 2*Y >= N",
            )
    if not any(isinstance(each, Name) and each.name in layout.names for _, each in parts):
        raise FormulaError(f"reaches({body}): nothing in it changes", value=str(body))
    parts.sort(key=lambda pair: order[str(pair[1].name)])  # type: ignore[attr-defined]
    signals = [layout.find(each.name) for _, each in parts if isinstance(each, Name)]
    whole = all(signal is not None and signal.integer for signal in signals)
    if strict and whole and all(float(c).is_integer() for c, _ in parts):
        strict, constant = False, -(-constant // 1) - 1.0
    term = add(*(c * each if c != 1 else each for c, each in parts))
    return term, constant, strict


def _text(term: Term) -> str:
    """A sum as simulators write it: 2*X - Y + 3."""
    constant, parts = affine(term)
    shown = ""
    for c, each in parts:
        size = "" if abs(c) == 1 else f"{number(abs(c))}*"
        sign = ("-" if c < 0 else "") if not shown else (" - " if c < 0 else " + ")
        shown += f"{sign}{size}{each.name if isinstance(each, Name) else each}"
    if constant:
        shown += f" {'-' if constant < 0 else '+'} {number(abs(constant))}"
    return shown
