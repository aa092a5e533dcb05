"""Traversal of syntax trees: subtrees, names, free variables, windows."""

from __future__ import annotations

from collections.abc import Iterator

from constraints.ast import formulas as f
from constraints.ast.lowered import BoundUntil
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Count, Name, Step
from constraints.ast.words import END, NOW
from constraints.errors import FormulaError

START = Step(None, 0)


def descend(node: Node) -> list[Node]:
    """The node and all of its descendants, in pre-order."""
    return list(_descend(node))


def _descend(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children():
        yield from _descend(child)


def names(node: Node) -> set[str]:
    """The names a formula or term mentions."""
    return {each.name for each in descend(node) if isinstance(each, Name)}


def instances_of(*formulas: Node) -> int:
    """The greatest instance that formulas mention: 2 for `alcohol[1] > alcohol[2] + 1`, else 1."""
    every = (each for formula in formulas for each in descend(formula))
    return max((each.instance or 1 for each in every if isinstance(each, Name)), default=1)


def ends(node: f.Quantifier | f.Reaches | Aggregate | Count) -> tuple[Step, Step]:
    """The first and last step of the window; of the whole grid if none is given."""
    if node.first is None or node.last is None:
        return START, Step(END)
    first, last = node.first, node.last
    if first.base == last.base and first.time is last.time is None and last.offset < first.offset:
        raise FormulaError(
            f"the window [{first}, {last}] is empty",
            value=f"[{first}, {last}]",
            remedy=f"write [{last}, {first}]",
        )
    return first, last


def free(node: Node) -> frozenset[str]:
    """The free variables of a node; computed once and kept with it."""
    known: frozenset[str] | None = node.__dict__.get("_free")
    if known is not None:
        return known
    below = frozenset[str]().union(*(free(child) for child in node.children()))
    match node:
        case Step(base):
            found = frozenset() if base is None else frozenset({base})
        case f.Quantifier(_, variable, first, last, body):
            bounds = (free(bound) for bound in (first, last) if bound is not None)
            found = (free(body) - {variable}).union(*bounds)
        case BoundUntil():
            found = (free(node.left) | free(node.right)) - {node.variable} | free(node.here)
        case Aggregate() | Count() | f.Reaches():
            bounds = (free(bound) for bound in (node.first, node.last) if bound is not None)
            found = (free(node.body) - {NOW}).union(*bounds)
        case At(Apply("delta" | "cumsum"), step):
            found = free(step)
        case _:
            found = below
    node.__dict__["_free"] = found
    return found


def indexes(body: Node, variable: str) -> bool:
    """Whether a series is read, or a window begins or ends, at the variable: it is a step."""
    for node in descend(body):
        bounds: tuple[Step | None, ...] = ()
        if isinstance(node, At):
            bounds = (node.step,)
        elif isinstance(node, (f.Quantifier, f.Reaches, Aggregate, Count)):
            bounds = (node.first, node.last)
        if any(bound is not None and bound.base == variable for bound in bounds):
            return True
    return False
