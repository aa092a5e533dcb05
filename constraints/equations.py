"""Linear equations among the parts of a conjunction: a·y = b for flat samples y (B, D).

A sampler can condition a Gaussian on them exactly, and needs the rest of the formula apart. A whole
number equals b on [b - 1/2, b + 1/2] before it is rounded, a real one within the tolerance of its
verdict, x = b +- e.
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
from constraints.signals import Layout

NARROW = 0.1  # an interval of so much of the data's span is an equation too
LEAST = 1e-6  # half the width of an equation between real numbers without tolerance


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
    equations = [part for part in parts if _is_equation(part, program.layout)]
    others = [part for part in parts if not _is_equation(part, program.layout)]
    rest = None
    if others:
        rest = copy(program)
        rest.lowered = others[0] if len(others) == 1 else f.And(tuple(others))
        rest._rows = {}
        rest.needed = rest.used(rest.lowered)
    return _as_numbers(program, equations), rest


def _is_equation(part: f.Formula, layout: Layout) -> bool:
    if not isinstance(part, Atom) or part.k is not None:  # which is soft
        return False
    spans = [layout.find(name) for name in f.names(part)]
    widest = max((signal.span or 0.0 for signal in spans if signal is not None), default=0.0)
    narrow = part.equality or part.high - part.low <= NARROW * widest
    return narrow and all(linear(term) for term in part.terms)


def _as_numbers(program: Program, atoms: list[f.Formula]) -> Equations:
    size = program.layout.size
    points = torch.cat([torch.zeros(1, size), torch.eye(size)]).double()
    found = Evaluator(program.layout, program.layout.split(points), DEFAULT, program.end)
    rows, ends = torch.zeros(len(atoms), size).double(), torch.zeros(2, len(atoms)).double()
    for i, atom in enumerate(atoms):
        assert isinstance(atom, Atom)
        values = found.total(atom, Frame()).reshape(-1).expand(size + 1)
        rows[i] = values[1:] - values[0]
        half = 0.5 if atom.integer else max(atom.slack, LEAST if atom.equality else 0.0)
        ends[0, i] = atom.low - values[0] - half
        ends[1, i] = atom.high - values[0] + half
    return Equations(rows, ends[0], ends[1])
