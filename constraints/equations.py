"""Linear equations among the parts of a conjunction: a·y = b for flat samples y (B, D).

A `forall` over equations is one for each step. A sampler can condition a Gaussian on them exactly,
and needs the rest of the formula apart. A whole number equals b on [b - 1/2, b + 1/2] before it is
rounded, a real one within the tolerance of its verdict, x = b +- e.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from constraints import formula as f
from constraints.belief import linear
from constraints.evaluate import Evaluator
from constraints.frames import Frame
from constraints.lowered import Atom
from constraints.program import DEFAULT, Program
from constraints.semantics import LEAST
from constraints.signals import Layout

NARROW = 0.1  # an interval of so much of the data's span is an equation too
MOST_STEPS = 200  # at which `forall` is so many equations


@dataclass(frozen=True)
class Equations:
    """low <= rows·y <= high: rows (k, D), low and high (k,), float64."""

    rows: Tensor
    low: Tensor
    high: Tensor

    def __len__(self) -> int:
        return len(self.rows)


def split(program: Program) -> tuple[Equations, Program | None]:
    """The equations that a formula demands, and what it demands besides (None: nothing)."""
    whole = program.lowered
    parts = whole.parts if isinstance(whole, f.And) else (whole,)
    framed = {i: _framed(part, program) for i, part in enumerate(parts)}
    equations = [found for found in framed.values() if found is not None]
    others = [part for i, part in enumerate(parts) if framed[i] is None]
    rest = None
    if others:
        rest = copy(program)
        rest.lowered = others[0] if len(others) == 1 else f.And(tuple(others))
        rest._rows = {}
        rest.needed = rest.used(rest.lowered)
    return _as_numbers(program, equations), rest


def _framed(part: f.Formula, program: Program) -> tuple[Atom, Frame] | None:
    """An equation and the steps at which it is to hold; None if the part is none."""
    frame = Frame()
    if isinstance(part, f.Quantifier) and part.kind == "forall" and part.region is None:
        first, last = part.first, part.last
        if program.end is not None or first is None or last is None or first.base or last.base:
            return None
        count = min(last.offset, program.layout.steps - 1) - first.offset + 1
        if not 0 < count <= MOST_STEPS:
            return None
        frame, part = frame.alone(part.variable, first.offset, count), part.body
        if isinstance(part, Atom) and not part.equality:  # a band: `chains` follow it
            return None
    if isinstance(part, Atom) and _is_equation(part, program.layout):
        return part, frame
    return None


def _is_equation(atom: Atom, layout: Layout) -> bool:
    if atom.k is not None:  # which is soft
        return False
    spans = [layout.find(name) for name in f.names(atom)]
    widest = max((signal.span or 0.0 for signal in spans if signal is not None), default=0.0)
    narrow = atom.equality or atom.high - atom.low <= NARROW * widest
    return narrow and all(linear(term) for term in atom.terms)


def _as_numbers(program: Program, equations: list[tuple[Atom, Frame]]) -> Equations:
    size = program.layout.size
    points = torch.cat([torch.zeros(1, size), torch.eye(size)]).double()
    found = Evaluator(program.layout, program.layout.split(points), DEFAULT, program.end)
    rows, low, high = [points[:0, :size]], [points[:0, 0]], [points[:0, 0]]
    for atom, frame in equations:
        values = found.total(atom, frame).reshape(-1, *frame.sizes).expand(size + 1, *frame.sizes)
        values = values.reshape(size + 1, -1)  # one column for each step
        half = 0.5 if atom.integer else max(atom.slack, LEAST if atom.equality else 0.0)
        rows.append((values[1:] - values[0]).mT)
        low.append(atom.low - values[0] - half)
        high.append(atom.high - values[0] + half)
    return Equations(torch.cat(rows), torch.cat(low), torch.cat(high))
