"""Linearity of terms in the signals, as their syntax shows."""

from __future__ import annotations

from constraints.ast.aggregates import aggregates
from constraints.ast.lowered import ClassProbability, LatentColumn, Pixel
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.ast.walk import names
from constraints.layout.signals import Layout


def linear(term: Node, layout: Layout) -> bool:
    """Whether a term is linear in the signals (a constant may be added)."""
    if _constant(term, layout):
        return True
    match term:
        case Const() | Step() | Name():
            return True
        case At(Apply("delta" | "cumsum", (body,))):
            return linear(body, layout)
        case At(series) | Pixel(series):
            return linear(series, layout)
        case Aggregate(kind, body) if aggregates()[kind].linear:
            return linear(body, layout)
        case Apply("+" | "neg", arguments):
            return all(linear(argument, layout) for argument in arguments)
        case Apply("*", (left, right)):
            sides = (left, right), (right, left)
            return any(linear(a, layout) and _constant(b, layout) for a, b in sides)
        case Apply("/", (left, right)):
            return linear(left, layout) and _constant(right, layout)
        case Apply(name, arguments):
            function = layout.function(name)
            known = function is not None and function.linear
            return known and all(linear(argument, layout) for argument in arguments)
        case Aggregate() | Count() | LatentColumn() | ClassProbability():
            return False
    return isinstance(term, Term)  # the weight of a category


def _constant(term: Node, layout: Layout) -> bool:
    """Whether a term is the same for all samples."""
    return not names(term) & set(layout.names)
