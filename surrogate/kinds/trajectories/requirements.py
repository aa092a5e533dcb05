"""Requirements that can be drawn over time: the steps at which a variable is bounded, and by what.

A `Mark` says x(t) ∈ [low, high] of a variable x for steps t = first..last: at every one of them, at
some one, or as one of several alternatives. A formula is a conjunction of parts; those that are
made of such bounds have marks, the others only their text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import xarray as xr

from constraints import Formula, FormulaError, Layout, compiled
from constraints.ast import formulas as f
from constraints.ast.lowered import Atom
from constraints.ast.terms import At, Name, Step
from surrogate.kinds.signals import layout_of
from surrogate.reports.requirements import Requirement, Requirements, requirements_in


@dataclass(frozen=True)
class Mark:
    """`low` <= x(t) <= `high` for t in first..last; `kind`: every, some or either."""

    name: str
    first: int
    last: int
    low: float = -math.inf
    high: float = math.inf
    kind: str = "every"

    @property
    def value(self) -> bool:
        """Whether it is a value, or an interval of them, at a single step."""
        return self.first == self.last and math.isfinite(self.low) and math.isfinite(self.high)


@dataclass(frozen=True)
class MarkedRequirement(Requirement):
    """A conjunct of a formula; without marks where it cannot be drawn."""

    marks: tuple[Mark, ...] = ()


def requirements(data: xr.Dataset) -> Requirements | None:
    """The requirements that the data are labelled with, if there are any, with marks."""
    end = data.attrs.get("surrogate_end")
    try:
        layout = layout_of(data)
    except FormulaError:  # of another version, or by a stranger
        return requirements_in(data.attrs, lambda part: MarkedRequirement(str(part)))
    return requirements_in(
        data.attrs, lambda part: MarkedRequirement(str(part), marks=_marks(part, layout, end))
    )


def marks_of(found: Requirements | None) -> tuple[Mark, ...]:
    """The marks of all parts."""
    parts = () if found is None else found.parts
    return tuple(
        mark for part in parts if isinstance(part, MarkedRequirement) for mark in part.marks
    )


def _marks(part: Formula, layout: Layout, end: str | None) -> tuple[Mark, ...]:
    try:
        found = _walk(compiled(part, layout, end).lowered, layout)
    except FormulaError:
        return ()
    return tuple(found or ())


def _walk(node: f.Formula, layout: Layout) -> list[Mark] | None:
    """The marks of a lowered formula; None where they would not express all of it."""
    match node:
        case f.Annotated(body):
            return _walk(body, layout)
        case Atom():
            return _read(node, None, (0, 0), layout)
        case f.Quantifier(
            kind, variable, Step(None, first), Step(None, last), Atom() as body, None
        ):
            found = _read(body, variable, (first, last), layout)
            if found is None or kind == "forall" or first == last:
                return found
            return [replace(mark, kind="some") for mark in found]
        case f.And(parts):
            each = [_walk(part, layout) for part in parts]
            return None if None in each else [mark for found in each for mark in found or ()]
        case f.Or(parts):
            ways = [_walk(part, layout) for part in parts]
            marks = [mark for found in ways for mark in found or ()]
            plain = all(found and len(found) == 1 for found in ways)
            if not plain or not all(mark.value and mark.kind == "every" for mark in marks):
                return None
            return [replace(mark, kind="either") for mark in marks]
    return None


def _read(
    atom: Atom, variable: str | None, window: tuple[int, int], layout: Layout
) -> list[Mark] | None:
    """The mark of an atom about one series, at a step or over a window."""
    match atom.terms:
        case (At(Name(name), Step(base, offset, None)),) if base == variable:
            first, last = max(window[0] + offset, 0), min(window[1] + offset, layout.steps - 1)
            if first > last:
                return None
            by = atom.coefficients[0]
            low, high = atom.low / by, atom.high / by
            if atom.integer and math.isfinite(low):  # x > 4 is x >= 5
                low = math.floor(low) + 1.0 if atom.open_low else math.ceil(low)
            if atom.integer and math.isfinite(high):
                high = math.ceil(high) - 1.0 if atom.open_high else math.floor(high)
            return [Mark(name, first, last, low, high)] if low <= high else None
    return None
