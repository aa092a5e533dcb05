"""Terms whose values are whole images, as their syntax and the layout show."""

from __future__ import annotations

from constraints.ast.nodes import Node
from constraints.ast.terms import Apply, At, Name, Term
from constraints.ast.walk import descend
from constraints.ast.words import ARITHMETIC
from constraints.layout.signals import Layout


def is_image(body: Term, layout: Layout) -> bool:
    """Whether the value of a term is an image, so that an aggregate of it runs over pixels."""
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
    """Whether an image is read at the variable, which then ranges over pixels."""
    return any(
        isinstance(node, At) and node.step.base == variable and is_image(node.series, layout)
        for node in descend(body)
    )
