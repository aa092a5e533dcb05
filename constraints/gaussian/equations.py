"""Linear equations among the parts of a conjunction: a·y = b for flat samples y (B, D).

A `forall` over equations is one equation for each step or pixel. A sampler conditions a Gaussian on
the equations exactly and treats the rest of the formula otherwise, so the two are split. An
equation is an interval: [b - 1/2, b + 1/2] for a whole number, which is rounded afterwards, and the
tolerance of its verdict, [b - e, b + e], for a real one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.lowered import Atom, Pixels
from constraints.ast.walk import names
from constraints.compile.linearity import linear
from constraints.compile.program import Program
from constraints.errors import ImpossibleError
from constraints.evaluate.frames import Frame, over_pixels
from constraints.evaluate.semantics import HARD_EQUALITY_HALF_WIDTH
from constraints.gaussian.linear import affine
from constraints.layout.signals import Layout

MAX_EQUATION_WIDTH = 0.1  # of the data's span: an interval up to it counts as an equation
MAX_EQUATION_STEPS = 200  # steps up to which `forall` is one equation for each
MAX_EQUATION_PIXELS = 4_096  # the same for pixels
OPEN_END_GAP = 1e-9  # relative, between an open end and the values next to it
ROW_TOLERANCE = 1e-9  # up to which a coefficient is zero and two rows are equal


@dataclass(frozen=True)
class Equations:
    """low <= rows·y <= high: rows (k, D), low and high (k,), float64. `tolerance` (k,): by which
    both ends are moved outwards because a verdict without a stated tolerance allows it."""

    rows: Tensor
    low: Tensor
    high: Tensor
    tolerance: Tensor

    def __len__(self) -> int:
        return len(self.rows)


def split(program: Program) -> tuple[Equations, Program | None]:
    """The equations among the parts of a formula, and the program of the rest, to which
    observations belong (None: no rest)."""
    whole = program.lowered
    parts = whole.parts if isinstance(whole, f.And) else (whole,)
    framed = {i: _framed(part, program) for i, part in enumerate(parts)}
    equations = [found for found in framed.values() if found is not None]
    others = [part for i, part in enumerate(parts) if framed[i] is None]
    rest = None
    if others or program.observations:
        rest = program.restated(others[0] if len(others) == 1 else f.And(tuple(others)))
    return _as_numbers(program, equations), rest


def bounds(program: Program) -> Equations:
    """The linear inequalities among the parts of a conjunction; ends may be infinite."""
    whole = program.lowered
    parts = whole.parts if isinstance(whole, f.And) else (whole,)
    found = [
        (part, Frame())
        for part in parts
        if isinstance(part, Atom)
        and part.k is None
        and all(linear(term, program.layout) for term in part.terms)
    ]
    return _as_numbers(program, found)


def conditions(program: Program) -> Equations:
    """All linear comparisons among the parts of a conjunction, those at every step of a `forall`
    included: what a sampler that draws value by value can meet one by one."""
    return _as_numbers(program, list(_comparisons(program.lowered, Frame(), program)))


def all_conditions(program: Program) -> bool:
    """Whether `conditions` are all of the formula."""
    return _only_comparisons(program.lowered, False, program)


def _only_comparisons(part: f.Formula, framed: bool, program: Program) -> bool:
    match part:
        case f.And(parts):
            return all(_only_comparisons(each, framed, program) for each in parts)
        case f.Quantifier() if not isinstance(part.region, Pixels) and not framed:
            return _laid_out(part, program) is not None and _only_comparisons(
                part.body, True, program
            )
        case Atom():
            return part.k is None and all(linear(term, program.layout) for term in part.terms)
    return False


def _comparisons(part: f.Formula, frame: Frame, program: Program) -> Iterator[tuple[Atom, Frame]]:
    match part:
        case f.And(parts):
            for each in parts:
                yield from _comparisons(each, frame, program)
        case f.Quantifier() if not isinstance(part.region, Pixels) and not frame.sizes:
            inner = _laid_out(part, program)
            if inner is not None:
                yield from _comparisons(part.body, inner, program)
        case Atom() if part.k is None:
            if all(linear(term, program.layout) for term in part.terms):
                yield part, frame


def _framed(part: f.Formula, program: Program) -> tuple[Atom, Frame] | None:
    """An equation and the frame of steps or pixels at which it holds; None for other parts."""
    frame: Frame | None = Frame()
    if isinstance(part, f.Quantifier):
        pixels, frame, part = isinstance(part.region, Pixels), _laid_out(part, program), part.body
        if isinstance(part, Atom) and not part.equality and not pixels:  # `chains` follow a band
            return None
    if frame is not None and isinstance(part, Atom) and _is_equation(part, program.layout):
        return part, frame
    return None


def _laid_out(part: f.Quantifier, program: Program) -> Frame | None:
    """The frame of the steps or pixels of a `forall`; None for other parts, or too many steps."""
    if part.kind != "forall":
        return None
    if isinstance(part.region, Pixels):
        frame = over_pixels(Frame(), part.variable, part.region, program.layout)
        return frame if frame.sizes[0] <= MAX_EQUATION_PIXELS else None
    steps = program.steps_of(part)
    if steps is None or not 0 < len(steps) <= MAX_EQUATION_STEPS:
        return None
    return Frame().alone(part.variable, steps.start, len(steps))


def _is_equation(atom: Atom, layout: Layout) -> bool:
    if atom.k is not None:  # a soft atom
        return False
    spans = [layout.find(name) for name in names(atom)]
    widest = max((signal.span or 0.0 for signal in spans if signal is not None), default=0.0)
    narrow = atom.equality or atom.high - atom.low <= MAX_EQUATION_WIDTH * widest
    return narrow and all(linear(term, layout) for term in atom.terms)


def _as_numbers(program: Program, equations: list[tuple[Atom, Frame]]) -> Equations:
    layout = program.layout
    like = torch.zeros(1, layout.size, dtype=torch.float64)
    rows, low, high, tolerance = [like[:0]], [like[:0, 0]], [like[:0, 0]], [like[:0, 0]]
    for atom, frame in equations:
        found, constants = affine(atom, frame, layout, program.end, like)
        width = HARD_EQUALITY_HALF_WIDTH if atom.equality else 0.0
        half = 0.5 if atom.integer else max(atom.slack, width)
        first, last = _closed(atom)
        rows.append(found)
        low.append(first - constants - half)
        high.append(last - constants + half)
        tolerance.append(torch.full_like(low[-1], 0.0 if atom.integer else atom.slack))
        nothing = found.abs().amax(1) <= ROW_TOLERANCE
        if bool((nothing & ((low[-1] > 0) | (high[-1] < 0))).any()):
            raise ImpossibleError(
                f"no data can satisfy {atom.readable()}: at some place it depends on no signal",
                value=atom.readable(),
                remedy="leave out the places that an operator such as masked sets to 0",
            )
    return _distinct(Equations(*(torch.cat(each) for each in (rows, low, high, tolerance))))


def _closed(atom: Atom) -> tuple[float, float]:
    """The ends of an atom; open ones of whole numbers and of single values moved inwards.

    A sum that is rounded may be on either side of an open end: its verdict decides.
    """
    low, high = atom.low, atom.high
    if atom.integer and (atom.open_low or atom.open_high):
        first, last = atom.whole_bounds()
        return first if atom.open_low else low, last if atom.open_high else high
    if len(atom.terms) == 1:
        low += OPEN_END_GAP * (1 + abs(low)) if atom.open_low else 0.0
        high -= OPEN_END_GAP * (1 + abs(high)) if atom.open_high else 0.0
    return low, high


def _distinct(found: Equations) -> Equations:
    """Without zero rows, and without rows that are multiples of another with the same interval."""
    size = found.rows.norm(dim=1)
    # a random projection of the normalised rows: equal, up to rounding, for equal rows only
    weights = torch.randn(found.rows.shape[1], generator=torch.Generator().manual_seed(0))
    marks = found.rows @ weights.to(found.rows) / size
    scale = torch.where(marks < 0, -size, size)
    ends = torch.stack([found.low, found.high], 1) / scale[:, None]
    ends = ends.sort(1).values  # a negative multiple turns them round
    levels, nothing = marks.abs().tolist(), (size <= ROW_TOLERANCE).tolist()
    kept: list[int] = []
    for i in marks.abs().argsort(stable=True).tolist():
        if nothing[i]:
            continue
        if kept and levels[i] - levels[kept[-1]] <= ROW_TOLERANCE:
            gap = found.rows[i] / scale[i] - found.rows[kept[-1]] / scale[kept[-1]]
            if max(gap.abs().max(), (ends[i] - ends[kept[-1]]).abs().max()) <= ROW_TOLERANCE:
                continue
        kept.append(i)
    kept.sort()
    return Equations(*(each[kept] for each in (found.rows, found.low, found.high, found.tolerance)))
