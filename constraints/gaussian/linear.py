"""Linear sums as rows: y = a·x + b for flat samples x (B, D).

The sum is evaluated at zero, which gives b, and at the unit vectors, in batches, which give a.
`compile.linearity` decides which terms are linear.
"""

from __future__ import annotations

import torch
from torch import Tensor

from constraints.ast.lowered import Atom
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.frames import Frame
from constraints.evaluate.semantics import Boolean
from constraints.layout.signals import Layout

UNIT_VECTOR_BATCH = 512  # unit vectors evaluated at once


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
    for start in range(0, size, UNIT_VECTOR_BATCH):
        count = min(UNIT_VECTOR_BATCH, size - start)
        points = torch.zeros(count, size, dtype=like.dtype, device=like.device)
        points[:, start : start + count].fill_diagonal_(1)
        rows[:, start : start + count] = (at(points) - constants).T
    return rows, constants[0]


def affine_rows(
    atom: Atom, frame: Frame, layout: Layout, end: str | None
) -> list[tuple[dict[int, float], float]]:
    """The same as {position: coefficient} and a constant for each place, in double precision."""
    found, constants = affine(atom, frame, layout, end, torch.zeros(1, dtype=torch.float64))
    positions = (row.nonzero()[:, 0].tolist() for row in found)
    return [
        (dict(zip(cells, row[cells].tolist(), strict=True)), offset)
        for cells, row, offset in zip(positions, found, constants.tolist(), strict=True)
    ]
