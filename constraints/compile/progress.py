"""Formulas that a flag each remembers: progression of what reads one state at a time.

A conjunction or disjunction of parts

    exists t in [a, b]: φ(x(t)),   forall t in [a, b]: φ(x(t)),   φ(x(s))

needs no past to be monitored: for each part, whether its window has decided it (Bacchus & Kabanza,
Planning for temporally extended goals, 1998). Levels of B samples are then found from their present
and forecast alone, at a cost that does not grow with the number of steps behind them, and where the
present is the forecast, not with those ahead either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.terms import Step
from constraints.compile.prefixes import check_monitored, stacked
from constraints.compile.program import Program
from constraints.compile.stepwise import reads
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.frames import Frame, Index
from constraints.evaluate.prefix import Levels, Prefix
from constraints.evaluate.semantics import Boolean

Data = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """`body` at some step (exists) or every step of first..last of a variable."""

    kind: str
    variable: str
    first: int
    last: int
    body: f.Formula


class Progress:
    """A program whose parts each read one state at a time; `parts`, in the order of their flags."""

    def __init__(self, program: Program, parts: list[Part]) -> None:
        self.program, self.parts = program, parts

    @classmethod
    def of(cls, program: Program) -> Progress | None:
        """The progress of a program; None if a part of it relates several steps."""
        check_monitored(program)
        parts: list[Part] = []
        if program.end is not None or not _collect(program.lowered, program.layout.steps, parts):
            return None
        return cls(program, parts)

    def begin(self, batch: int) -> Tensor:
        """Flags (B, m): whether a part is decided by what was seen, before any step."""
        return torch.zeros(batch, len(self.parts), dtype=torch.bool)

    def remember(self, flags: Tensor, data: Data, step: int) -> Tensor:
        """The flags after the states (B,) of a step."""
        flags, steps = flags.clone(), self.program.layout.steps
        tensors = {name: self._spread(name, torch.as_tensor(data[name]).double())
                   for name in self.program.needed}  # fmt: skip
        judge = Evaluator(self.program.layout, tensors, Boolean())
        for at, part in enumerate(self.parts):
            if part.first <= step <= min(part.last, steps - 1):
                met = judge.formula(part.body, Frame((), {part.variable: Index(step)}))
                flags[:, at] |= met if part.kind == "exists" else ~met
        return flags

    def levels(self, flags: Tensor, data: Data, known: int, least: Data | None = None) -> Tensor:
        """The level (B,), as `prefixes.levels` gives it. data: columns (B,), and of series either
        the forecast (B, T), of which the past is not read, or the present state (B,), which then is
        the forecast; `least` adds to it what part of the way to the next step has shown."""
        present = all(torch.as_tensor(data[name]).ndim == 1 for name in self.program.needed)
        found = self._present if present else self._ahead
        parts = found(flags, data, known, dict(least or {}))
        for at, part in enumerate(self.parts):
            decided = torch.inf if part.kind == "exists" else -torch.inf
            level = parts[at] if part.last > known else torch.tensor(-decided).double()
            parts[at] = torch.where(flags[:, at], decided, level)
        return self._joined(self.program.lowered, iter(parts)).expand(len(flags))

    # --- parts ------------------------------------------------------------------------------------

    def _present(self, flags: Tensor, data: Data, known: int, least: Data) -> list[Tensor]:
        """Levels of the parts over the steps to come, all of which see the present state."""
        layout, found = self.program.layout, []
        views = []
        for soon in (True, False) if least else (False,):
            tensors = {}
            for name in self.program.needed:
                value = torch.as_tensor(data[name]).double()
                bound = torch.as_tensor(least[name]).double() if soon and name in least else None
                tensors[name] = self._open(name, value, bound)
            views.append(Prefix(layout, tensors, Levels()))
        for part in self.parts:
            fold = torch.maximum if part.kind == "exists" else torch.minimum
            levels = []
            for view, step in zip(views, (known + 1, known + 2) if least else (None,), strict=True):
                at = max(part.first, step or known + 1)
                if at > part.last or (step == known + 1 and at != step):
                    continue
                levels.append(view.formula(part.body, Frame((), {part.variable: Index(at)})))
            found.append(reduce(fold, levels) if levels else torch.zeros(1).double())
        return found

    def _ahead(self, flags: Tensor, data: Data, known: int, least: Data) -> list[Tensor]:
        """Levels of the parts over the steps to come of a forecast (B, T)."""
        tensors = {}
        for name in self.program.needed:
            value = torch.as_tensor(data[name])
            tensors[name] = stacked(self.program, name, value, known)
            if name in least:
                own = tensors[name][: len(value), known + 1]
                torch.maximum(own, torch.as_tensor(least[name]).double(), out=own)
        view, found = Prefix(self.program.layout, tensors, Levels()), []
        for part in self.parts:
            first = max(part.first, known + 1)
            if first > part.last:
                found.append(torch.zeros(1).double())
                continue
            window = (Step(None, first), Step(None, part.last))
            rest = f.Quantifier(part.kind, part.variable, *window, part.body)
            found.append(view.formula(rest, Frame()))
        return found

    def _open(self, name: str, value: Tensor, bound: Tensor | None) -> Tensor:
        """A signal at steps to come: lower ends, upper ends, forecasts."""
        signal = self.program.layout.find(name)
        assert signal is not None
        if signal.kind != "series":
            return value.repeat(3)
        low = torch.full_like(value, signal.low)
        if bound is not None:
            low, value = torch.maximum(low, bound), torch.maximum(value, bound)
        return self._spread(name, torch.cat([low, torch.full_like(value, signal.high), value]))

    def _spread(self, name: str, value: Tensor) -> Tensor:
        signal = self.program.layout.find(name)
        series = signal is not None and signal.kind == "series"
        return value[:, None].expand(-1, self.program.layout.steps) if series else value

    def _joined(self, node: f.Formula, parts: Any) -> Tensor:
        match node:
            case f.And(inner) | f.Or(inner) if inner:
                fold = torch.minimum if isinstance(node, f.And) else torch.maximum
                return reduce(fold, [self._joined(each, parts) for each in inner])
            case f.And(()) | f.Or(()):
                return torch.tensor([torch.inf if isinstance(node, f.And) else -torch.inf]).double()
            case f.Annotated(body):
                return self._joined(body, parts)
        value: Tensor = next(parts)
        return value


def _collect(node: f.Formula, steps: int, parts: list[Part]) -> bool:
    """Add the parts of a formula in order; whether each reads one state at a time."""
    match node:
        case f.And(inner) | f.Or(inner):
            return all(_collect(each, steps, parts) for each in inner)
        case f.Annotated(body):
            return _collect(body, steps, parts)
        case f.Quantifier(kind, variable, Step(None, first), Step(None, last), body, None):
            found = reads(body)
            if found is None or not found <= {(variable, 0)}:
                return False
            parts.append(Part(kind, variable, first, min(last, steps - 1), body))
            return True
    found = reads(node)
    if found is None or len(found) > 1 or any(base is not None for base, _ in found):
        return False
    at = next(iter(found))[1] if found else 0
    parts.append(Part("exists", "", at, at, node))
    return True
