"""Errors of readings: a signal without a step, a step without a signal, times without a grid."""

from __future__ import annotations

from constraints.ast.aggregates import aggregates
from constraints.ast.dates import is_date
from constraints.ast.nodes import Node
from constraints.ast.terms import STEP_FORMS, Aggregate, Apply, Count, Name, Step, Term
from constraints.errors import FormulaError, Setting, quoted
from constraints.layout.image_terms import is_image
from constraints.layout.signals import Layout


def missing_step(node: Term, layout: Layout) -> FormulaError:
    """A series or an image stands where a number is expected."""
    if is_image(node, layout):
        return FormulaError(
            f"{node} is an image and does not say which pixels",
            value=str(node),
            remedy=f"write forall p: {node}(p) >= 0, or mean({node})",
        )
    at = 0 if isinstance(node, Name) else 5
    return FormulaError(
        f"{node} does not say when",
        value=str(node),
        remedy=f"write {node}({at}), forall t: {node}(t) ..., always({node} ...) or max({node})",
    )


def superfluous_step(node: Term, when: Step, reason: str) -> FormulaError:
    """A term with one value for a sample is read at a step."""
    return FormulaError(
        f"{node} {reason}, which cannot be read at {when}",
        value=str(when),
        remedy=f"write {node} without a step",
    )


def not_a_reading(node: Apply) -> FormulaError:
    """A signal is called with arguments that are not one step."""
    only = node.arguments[0] if len(node.arguments) == 1 else None
    if isinstance(only, Name) and is_date(only.name):
        return FormulaError(
            f"{node}: {only} is a date, not a step",
            value=only.name,
            remedy=f'write {Name(node.function)}@"{only.name}"',
        )
    if isinstance(only, Name):
        return FormulaError(
            f"{node}: {only} is not bound",
            value=only.name,
            remedy=f"write forall {only}: ... {node} ..., or give a whole number",
        )
    return FormulaError(
        f"{node}: a signal is read at one step: {STEP_FORMS}",
        remedy=f"at a model time write {node.function}@2.5",
    )


def no_time_grid(what: str | None, layout: Layout) -> FormulaError:
    """A formula about signals without a time grid has times; `what`: the term."""
    example = "age >= 40"
    if layout.images:
        example = f"forall p: {layout.images[0].name}(p) >= 0, over pixels"
    return FormulaError(
        ("" if what is None else f"{what}: ") + "these signals have no time grid",
        remedy=f"leave out always, forall t, `end` and the like, as in {example}",
    )


def constant_body(body: Node, node: Node, layout: Layout) -> FormulaError:
    """An aggregate or difference over time has a body that is the same at every step."""
    series = [signal.name for signal in layout.signals if signal.kind == "series"]
    remedy = f"name a series, such as {quoted([*series, 'time'][0])}"
    extreme = isinstance(node, Aggregate) and aggregates()[node.kind].extreme
    if isinstance(node, Aggregate) and extreme and node.first is not None:
        remedy = f"of several numbers it is written {node.kind}({body}, +{node.first}, ...)"
    return FormulaError(f"{node}: {body} does not change with time", value=str(body), remedy=remedy)


def aggregate_off_grid(node: Aggregate | Count, layout: Layout) -> FormulaError:
    """The window of an aggregate reaches outside the grid."""
    return FormulaError(
        f"{node} reaches outside the grid, where it has no value",
        value=str(node),
        remedy=(
            f"the steps are 0..{layout.steps - 1}; shorten the window, or use ",
            Setting("end", "clip"),
        ),
    )
