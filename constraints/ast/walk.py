"""Questions about syntax: what lies below a node, how a variable is used, what is an image."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from constraints.ast import formulas as f
from constraints.ast.nodes import Node
from constraints.ast.terms import ARITHMETIC, END, Aggregate, Apply, At, Count, Name, Step, Term
from constraints.compile.scope import START, below
from constraints.errors import FormulaError
from constraints.language.bridge import readings
from constraints.layout.signals import Layout


def ends(node: f.Quantifier | Aggregate | Count) -> tuple[Step, Step]:
    """The window, which is the whole grid where none is given."""
    if node.first is None or node.last is None:
        return START, Step(END)
    first, last = node.first, node.last
    if first.base == last.base and first.time is last.time is None and last.offset < first.offset:
        raise FormulaError(f"the window [{first}, {last}] is empty; write [{last}, {first}]")
    return first, last


def descend(node: Node) -> list[Node]:
    """The node and everything below it."""
    return list(below(node))


def spelled_out(formula: f.Formula, layout: Layout) -> f.Formula:
    """The formula with `S25` written as `S(25)` wherever the layout makes it that."""
    series = [signal.name for signal in layout.signals if signal.kind == "series"]
    known = {*layout.names, *layout.parameters}

    def go(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(go(item) for item in value)
        if isinstance(value, Name) and value.instance is None and value.name not in known:
            found = readings(value.name, series)
            return At(Name(found[0][0]), Step(None, found[0][1])) if len(found) == 1 else value
        if isinstance(value, Node):
            changed = {each.name: go(getattr(value, each.name)) for each in fields(value)}
            return replace(value, **changed)
        return value

    spelled: f.Formula = go(formula)
    return spelled


def of_instances(formula: f.Formula, layout: Layout) -> list[f.Formula]:
    """A formula about one sample, said of each of the layout's instances."""
    if layout.instances == 1:
        return [formula]
    known = set(layout.names)

    def go(value: Any, number: int) -> Any:
        if isinstance(value, tuple):
            return tuple(go(item, number) for item in value)
        if isinstance(value, Name) and value.name in known:
            return replace(value, instance=number)
        if isinstance(value, Node):
            changed = {each.name: go(getattr(value, each.name), number) for each in fields(value)}
            return replace(value, **changed)
        return value

    return [go(formula, number + 1) for number in range(layout.instances)]


def indexes(body: Node, variable: str) -> bool:
    """Whether the variable is a time there: something is read at it or a window depends on it."""
    for node in descend(body):
        bounds: tuple[Step | None, ...] = ()
        if isinstance(node, At):
            bounds = (node.step,)
        elif isinstance(node, (f.Quantifier, Aggregate, Count)):
            bounds = (node.first, node.last)
        if any(bound is not None and bound.base == variable for bound in bounds):
            return True
    return False


def is_image(body: Term, layout: Layout) -> bool:
    """Whether a term is made of images, so that an aggregate of it runs over pixels."""
    if isinstance(body, Name):
        signal = layout.find(body.name)
        return body.name in layout.pictures if signal is None else signal.kind == "image"
    if isinstance(body, Apply):
        function = layout.function(body.function)
        if function is not None:
            return function.returns == "image"
        several = body.function in ARITHMETIC
        return several and any(is_image(argument, layout) for argument in body.arguments)
    return False


def reads_image(body: Node, variable: str, layout: Layout) -> bool:
    return any(
        isinstance(node, At) and node.step.base == variable and is_image(node.series, layout)
        for node in descend(body)
    )
