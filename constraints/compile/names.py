"""Expansion of names for a layout: `S25` to `S(25)`, and a formula to each instance."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any, TypeVar

from constraints.ast import formulas as f
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, At, Name, Step
from constraints.language.bridge import readings
from constraints.layout.signals import Layout

N = TypeVar("N", bound=Node)


def with_explicit_steps(formula: f.Formula, layout: Layout) -> f.Formula:
    """The formula with `S25` replaced by `S(25)`, if S is the only series that it can mean."""
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

    expanded: f.Formula = go(formula)
    return expanded


def at_step(node: N, series: Collection[str], step: int) -> N:
    """A term or formula in which series without a step are read at this one."""

    def go(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(go(item) for item in value)
        if isinstance(value, Name) and value.name in series:
            return At(value, Step(None, step))
        if isinstance(value, Node) and not isinstance(value, (At, Aggregate)):
            changed = {each.name: go(getattr(value, each.name)) for each in fields(value)}
            return replace(value, **changed)
        return value

    moved: N = go(node)
    return moved


def of_instances(formula: f.Formula, layout: Layout) -> list[f.Formula]:
    """A formula about one sample, stated for each of the layout's instances."""
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
