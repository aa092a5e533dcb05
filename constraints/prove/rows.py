"""Linear atoms as rows over the numbers of one flat sample, from their syntax alone.

A row is {position: coefficient} and a constant. Series, columns, weights of categories, sums,
differences, running totals, means and integrals are expanded here in plain Python, so that a
contradiction is found without torch. Terms that read images or call functions are not expanded;
`gaussian.linear` evaluates them instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from constraints.ast.lowered import Atom, CategoryWeight
from constraints.ast.terms import Aggregate, Apply, At, Const, Name, Step, Term
from constraints.ast.walk import descend, free
from constraints.ast.words import NOW
from constraints.evaluate.frames import Frame
from constraints.layout.signals import Layout

Row = tuple[dict[int, float], float]  # coefficients by position, and a constant
Steps = Mapping[str, int]  # the step of each variable


class NotExpandedError(Exception):
    """A term that this module does not expand."""


def rows(atom: Atom, frame: Frame, layout: Layout) -> list[Row] | None:
    """A row for each place of the frame on which the atom depends; None if it is not expanded."""
    if layout.images or any(isinstance(node, Apply) and _calls(node) for node in descend(atom)):
        return None
    starts = _starts(layout)
    used = free(atom)
    moving = sorted({axis for name in used for axis in frame.variables[name].axes})
    found: list[Row] = []
    try:
        for place in product(*(range(frame.sizes[axis]) for axis in moving)):
            at = dict(zip(moving, place, strict=True))
            steps = {
                name: frame.variables[name].offset
                + sum(at[axis] for axis in frame.variables[name].axes)
                for name in used
            }
            parts = (
                _scaled(_row(term, steps, layout, starts), c)
                for c, term in zip(atom.coefficients, atom.terms, strict=True)
            )
            found.append(_total(parts))
    except NotExpandedError:
        return None
    return found


def _calls(node: Apply) -> bool:
    return node.function not in ("+", "neg", "*", "/", "delta", "cumsum")


def _starts(layout: Layout) -> dict[tuple[str, int], int]:
    """Where each signal of each instance begins in a flat sample."""
    found, place = {}, 0
    for instance in range(1, layout.instances + 1):
        for signal in layout.signals:
            found[signal.name, instance] = place
            place += signal.size
    return found


def _row(node: Term, at: Steps, layout: Layout, starts: Mapping[tuple[str, int], int]) -> Row:
    def go(term: Term, where: Steps = at) -> Row:
        return _row(term, where, layout, starts)

    def step(when: Step) -> int:
        return when.offset + (0 if when.base is None else at[when.base])

    match node:
        case Const(value):
            return {}, value
        case Step():
            return {}, float(step(node))
        case Name(name, instance):
            return {starts[name, instance or 1]: 1.0}, 0.0
        case CategoryWeight(signal, index):
            return {starts[signal.name, signal.instance or 1] + index: 1.0}, 0.0
        case At(series, when):
            place = min(max(step(when), 0), layout.steps - 1)  # as evaluation does
            return _read(series, place, layout, starts)
        case Apply("+", arguments):
            return _total(go(each) for each in arguments)
        case Apply("neg", (body,)):
            return _scaled(go(body), -1.0)
        case Apply("*", (left, right)):
            one, other = go(left), go(right)
            if one[0] and other[0]:
                raise NotExpandedError
            return _scaled(one, other[1]) if one[0] else _scaled(other, one[1])
        case Apply("/", (left, right)):
            coefficients, divisor = go(right)
            if coefficients or not divisor:
                raise NotExpandedError
            return _scaled(go(left), 1 / divisor)
        case Aggregate("mean" | "sum" | "integral" as kind, body, Step() as first, Step() as last):
            steps = range(max(step(first), 0), min(step(last), layout.steps - 1) + 1)
            values = [go(body, {**at, NOW: t}) for t in steps]
            if not values:
                raise NotExpandedError
            if kind == "integral":
                weighted = zip(values, _trapezoidal_weights(steps, layout), strict=True)
                return _total(_scaled(value, weight) for value, weight in weighted)
            return _scaled(_total(values), 1 / len(values) if kind == "mean" else 1.0)
    raise NotExpandedError


def _trapezoidal_weights(steps: range, layout: Layout) -> Iterator[float]:
    """Weights of the trapezoidal rule over the steps of a window."""
    times = [layout.times[t] for t in steps]
    for i, time in enumerate(times):
        before = time - times[i - 1] if i else 0.0
        after = times[i + 1] - time if i + 1 < len(times) else 0.0
        yield (before + after) / 2


def _read(series: Term, place: int, layout: Layout, starts: Mapping[tuple[str, int], int]) -> Row:
    match series:
        case Name("time") if layout.find("time") is None:
            return {}, layout.times[place]
        case Name(name, instance):
            return {starts[name, instance or 1] + place: 1.0}, 0.0
        case Apply("delta" | "cumsum" as kind, (body,)):
            at = [_row(body, {NOW: t}, layout, starts) for t in range(place + 1)]
            if kind == "cumsum":
                return _total(at)
            return _total([at[-1], _scaled(at[-2], -1.0)]) if place else ({}, 0.0)
    raise NotExpandedError


def _scaled(row: Row, factor: float) -> Row:
    return {i: factor * c for i, c in row[0].items()}, factor * row[1]


def _total(parts: Iterator[Row] | list[Row]) -> Row:
    coefficients: dict[int, float] = {}
    constant = 0.0
    for row in parts:
        for i, c in row[0].items():
            coefficients[i] = coefficients.get(i, 0.0) + c
        constant += row[1]
    return {i: c for i, c in sorted(coefficients.items()) if c}, constant
