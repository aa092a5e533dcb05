"""Linear sums as rows: y = a·x + b for flat samples x (B, D).

Which terms are linear is seen from their syntax; the rows are read off from what a sum does to
zero and to the unit vectors, a few at a time, so that pixels by the thousand stay affordable.
"""

from __future__ import annotations

import torch
from torch import Tensor

from constraints.ast.formulas import names
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from constraints.compile.lowered import Atom, Chance, Pixel, Warped
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.frames import Frame
from constraints.evaluate.semantics import Boolean
from constraints.layout.signals import Layout

TOGETHER = 512  # unit vectors


def affine(
    atom: Atom, frame: Frame, layout: Layout, end: str | None, like: Tensor
) -> tuple[Tensor, Tensor]:
    """Rows (A, D) and constants (A,) of an atom's sum at the A places that it depends on."""
    size = layout.size

    def at(points: Tensor) -> Tensor:
        found = Evaluator(layout, layout.split(points), Boolean(), end).total(atom, frame)
        return found.reshape(len(found), -1).expand(len(points), -1)

    constants = at(torch.zeros(1, size, dtype=like.dtype, device=like.device))
    rows = torch.empty(constants.shape[1], size, dtype=like.dtype, device=like.device)
    for start in range(0, size, TOGETHER):
        count = min(TOGETHER, size - start)
        points = torch.zeros(count, size, dtype=like.dtype, device=like.device)
        points[:, start : start + count].fill_diagonal_(1)
        rows[:, start : start + count] = (at(points) - constants).T
    return rows, constants[0]


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
        case Aggregate("mean" | "sum" | "integral", body):
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
        case Aggregate() | Count() | Warped() | Chance():
            return False
    return isinstance(term, Term)  # the weight of a category


def _constant(term: Node, layout: Layout) -> bool:
    """Whether it is the same for all samples."""
    return not names(term) & set(layout.names)
