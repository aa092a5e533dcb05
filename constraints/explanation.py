"""Explanations of verdicts: which parts of a formula hold, how often and by which margin.

For a part φ without free variables and samples x_1..x_N a row holds the share of samples with
x ⊨ φ, the minimum and the median of the margin ρ(φ, x), and the decisive step: for `forall t: ψ(t)`
the worst one, at which the fewest samples satisfy ψ(t); for `exists t: ψ(t)` the best one, at which
the most do; for a formula about a single step that step. Ties are broken by the mean margin of
ψ(t), then by the earlier step. An observation has no verdict; its row holds the mean, the least and
the greatest of log p(y | x), and the log of the mean likelihood, log Σ p(y | x) / N.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.families import factored, has_verdict
from constraints.ast.lowered import BoundUntil
from constraints.ast.nodes import Node
from constraints.ast.terms import Aggregate, At, Count
from constraints.ast.walk import free
from constraints.compile.program import Program, compiled
from constraints.errors import DataError, FormulaError
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.frames import Frame
from constraints.evaluate.semantics import Boolean, Robustness
from constraints.layout.signals import Layout

BATCH_VALUES = 2_000_000  # numbers of a batch, if no chunk size is given
BATCH_PLACES = 50_000_000  # elements of a tensor over nested windows, for a batch
OBSERVATION_COLUMNS = ("observation", "log-density mean", "min", "max", "log mean likelihood")
EXPLANATION_COLUMNS = ("rule", "satisfied", "margin min", "median", "decisive step")
MAX_RULE_WIDTH = 72  # characters of a rule in a plain table
_FINITE_MARGIN = 1e30  # replaces an infinite margin in a mean


@dataclass(frozen=True)
class Row:
    """The result for one part; `step_kind` is "worst", "best", "at", or None without a step."""

    text: str
    depth: int
    satisfied: float
    margin_min: float
    margin_median: float
    step: int | None = None
    step_kind: str | None = None
    step_time: float | None = None
    step_share: float | None = None
    step_date: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON, which has no infinity: an infinite margin is None."""
        pairs = asdict(self).items()
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in pairs}

    def cells(self) -> tuple[str, str, str, str, str]:
        """Cells of a table, in the order of EXPLANATION_COLUMNS."""
        decisive = ""
        informative = {"worst": self.step_share != 1, "best": self.step_share != 0, "at": True}
        if self.step_share is not None and informative[self.step_kind or "at"]:
            when = self.step_date or f"time {self.step_time:.4g}"
            decisive = f"{self.step_kind} {self.step} ({when})"
            decisive += "" if self.step_kind == "at" else f": {percent(self.step_share)}"
        margins = f"{self.margin_min:.4g}", f"{self.margin_median:.4g}"
        return "  " * self.depth + self.text, percent(self.satisfied), *margins, decisive


@dataclass(frozen=True)
class ObservationRow:
    """The log-density of an observation, over the samples."""

    text: str
    mean: float
    min: float
    max: float
    log_mean_likelihood: float

    def to_dict(self) -> dict[str, Any]:
        """Values for JSON, which has no infinity: an infinite log-density is None."""
        pairs = asdict(self).items()
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in pairs}

    def cells(self) -> tuple[str, str, str, str, str]:
        """Cells of a table, in the order of OBSERVATION_COLUMNS."""
        mean, least, most, total = (
            f"{each:.5g}" for each in (self.mean, self.min, self.max, self.log_mean_likelihood)
        )
        return self.text, mean, least, most, total


@dataclass(frozen=True)
class Explanation:
    """Rows in reading order: a part comes before its own parts, which are one level deeper.

    Without anything but observations there are no rows.
    """

    samples: int
    rows: tuple[Row, ...]
    observations: tuple[ObservationRow, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        found = {"samples": self.samples, "rows": [row.to_dict() for row in self.rows]}
        if self.observations:
            found["observations"] = [row.to_dict() for row in self.observations]
        return found

    def table(self) -> str:
        """Plain-text tables, one line for each row: of verdicts, and of observations."""
        parts: list[str] = []
        if self.rows:
            parts.append(_aligned([EXPLANATION_COLUMNS, *(row.cells() for row in self.rows)]))
        if self.observations:
            lines = [OBSERVATION_COLUMNS, *(row.cells() for row in self.observations)]
            parts.append(_aligned(lines))
        return "\n\n".join(parts)

    __str__ = table


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells as columns: the first and the last aligned to the left."""
    short = [(_shortened(rule), *others) for rule, *others in lines]
    widths = [max(len(line[i]) for line in short) for i in range(len(short[0]))]
    shown = []
    for rule, *numbers, last in short:
        middle = [cell.rjust(width) for cell, width in zip(numbers, widths[1:-1], strict=True)]
        shown.append("  ".join([rule.ljust(widths[0]), *middle, last]).rstrip())
    return "\n".join(shown)


def explain(
    formula: f.Formula | Sequence[f.Formula],
    layout: Layout,
    data: Mapping[str, Any] | Tensor,
    end: str | None = None,
    chunk: int | None = None,
) -> Explanation:
    """Evaluate a formula, or several rules, on data, part by part.

    `data`: signals by name, or flat samples (B, D). `chunk`: samples evaluated at once.
    """
    found = Explainer(formula, layout, end)
    signals = layout.split(data) if isinstance(data, Tensor) else data
    used = {k: v for k, v in signals.items() if k in found.needed} or dict(signals)
    sizes = {name: len(value) for name, value in used.items()}
    if len(set(sizes.values())) > 1:
        raise DataError(
            f"the signals differ in their number of samples: {sizes}",
            value=sizes,
            remedy="give every signal of the same samples",
        )
    samples = next(iter(sizes.values()), 0)
    size = chunk_size(found.programs) if chunk is None else chunk
    if size < 1:
        raise FormulaError(f"chunk is a number of samples >= 1, not {chunk}", value=chunk)
    for start in range(0, samples, size):
        found.add({name: value[start : start + size] for name, value in used.items()})
    return found.explanation()


def chunk_size(programs: Sequence[Program]) -> int:
    """The number of samples on which the programs are evaluated at once, in bounded memory."""
    layout = programs[0].layout
    names = set[str]().union(*(program.needed for program in programs))
    size = layout.instances * sum(each.size for each in layout.signals if each.name in names)
    nesting = max(_nesting(program.lowered) for program in programs)
    places = max(1, layout.steps, *(signal.size for signal in layout.images))
    spread = math.prod([places] * nesting)
    return max(1, min(BATCH_VALUES // max(1, size), BATCH_PLACES // spread))


def _nesting(node: Node) -> int:
    """The number of nested windows: at worst each is a tensor axis of its own."""
    own = isinstance(node, (f.Quantifier, BoundUntil, Aggregate, Count))
    return own + max((_nesting(child) for child in node.children()), default=0)


class Explainer:
    """Accumulates an explanation: call `add` for each batch, then `explanation`."""

    def __init__(
        self, formula: f.Formula | Sequence[f.Formula], layout: Layout, end: str | None = None
    ) -> None:
        rules = [formula] if isinstance(formula, f.Formula) else list(formula)
        if not rules:
            raise FormulaError("there is no rule to evaluate", remedy="give at least one")
        split = [factored(rule) for rule in rules]
        stated = [own for rule, (own, _) in zip(rules, split, strict=True) if has_verdict(rule)]
        self.parts = [
            _Part(text, depth, compiled(each, layout, end)) for each, text, depth in _rules(stated)
        ]
        self.observed = [
            _Observed(compiled(each, layout)) for _, observed in split for each in observed
        ]
        self.programs = [part.program for part in self.every]
        self.needed = set[str]().union(*(program.needed for program in self.programs))
        self.samples = 0

    @property
    def every(self) -> list[_Part | _Observed]:
        """The parts that have verdicts, and the observations."""
        return [*self.parts, *self.observed]

    def add(self, data: Mapping[str, Any]) -> None:
        """Evaluate one more batch."""
        with torch.no_grad():
            for part in self.every:
                size = part.add(data)
        self.samples += size

    def explanation(self) -> Explanation:
        if not self.samples:
            raise DataError("the data have no samples", remedy="give at least one")
        return Explanation(
            self.samples,
            tuple(part.row(self.samples) for part in self.parts),
            tuple(each.row() for each in self.observed),
        )


def _rules(rules: Sequence[f.Formula]) -> Iterator[tuple[f.Formula, str, int]]:
    """The conjunction of the rules, and below it the parts of each."""
    several = len(rules) > 1
    if several:
        yield f.And(tuple(rules)), f"all {len(rules)} rules", 0
    for rule in rules:
        yield from _parts(rule, int(several))


def _parts(node: f.Formula, depth: int) -> Iterator[tuple[f.Formula, str, int]]:
    """The formula and, below it, the operands of its connectives outside quantifiers."""
    yield node, str(node), depth
    inner = node
    while isinstance(inner, (f.Not, f.Annotated)):
        inner = inner.body
    if isinstance(inner, (f.And, f.Or, f.Implies, f.Iff, f.Xor)):
        for operand in inner.children():
            assert isinstance(operand, f.Formula)
            yield from _parts(operand, depth + 1)


class _Part:
    """A part of the formula and its accumulated statistics."""

    def __init__(self, text: str, depth: int, program: Program) -> None:
        self.text, self.depth, self.program = text, depth, program
        self.moving = _moving(program)
        self.fixed = _fixed(program)
        self.satisfied = 0
        self.margins: list[Tensor] = []  # (B,) each, float32
        self.held: Tensor | float = 0.0  # samples that satisfy the body: (n,), a step each
        self.total: Tensor | float = 0.0  # sum of the body's margins: (n,)

    def add(self, data: Mapping[str, Any]) -> int:
        """Evaluate a batch; returns its size."""
        verdict, margin = self.program.verdict(data), self.program.robustness(data)
        self.satisfied += int(verdict.sum())
        self.margins.append(margin.float())
        if self.moving is not None:
            batch, tensors = self.program.read(data)
            layout, end = self.program.layout, self.program.end
            _, variable, steps, body = self.moving
            frame = Frame().alone(variable, steps.start, len(steps))
            shape = (batch, len(steps))
            holds = Evaluator(layout, tensors, Boolean(), end).formula(body, frame).expand(shape)
            size = Evaluator(layout, tensors, Robustness(), end).formula(body, frame).expand(shape)
            self.held = self.held + holds.sum(0)
            self.total = self.total + size.double().clamp(-_FINITE_MARGIN, _FINITE_MARGIN).sum(0)
        return len(verdict)

    def row(self, samples: int) -> Row:
        margins = torch.cat(self.margins)
        share = self.satisfied / samples
        least, middle = float(margins.min()), _median(margins)
        step, kind, at_step = self.decisive(share, samples)
        layout = self.program.layout
        time = None if step is None else layout.times[step]
        day = layout.dates[step] if step is not None and layout.dates else None
        return Row(self.text, self.depth, share, least, middle, step, kind, time, at_step, day)

    def decisive(self, share: float, samples: int) -> tuple[int | None, str | None, float | None]:
        """The decisive step, its kind, and the share of samples that satisfy the part there."""
        if self.moving is None:
            return (None, None, None) if self.fixed is None else (self.fixed, "at", share)
        assert isinstance(self.held, Tensor)
        assert isinstance(self.total, Tensor)
        kind, _, steps, _ = self.moving
        ranked = list(zip(self.held.tolist(), self.total.tolist(), strict=True))
        place = ranked.index(min(ranked) if kind == "forall" else max(ranked))
        held = ranked[place][0]
        return steps[place], "worst" if kind == "forall" else "best", held / samples


class _Observed:
    """An observation and its accumulated log-densities."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.log_densities: list[Tensor] = []  # (B,) each

    def add(self, data: Mapping[str, Any]) -> int:
        """Evaluate a batch; returns its size."""
        self.log_densities.append(self.program.log_density(data)[:, 0])
        return len(self.log_densities[-1])

    def row(self) -> ObservationRow:
        found = torch.cat(self.log_densities)
        total = found.logsumexp(0) - math.log(len(found))
        ends = float(found.min()), float(found.max())
        return ObservationRow(str(self.program.formula), float(found.mean()), *ends, float(total))


def _moving(program: Program) -> tuple[str, str, range, f.Formula] | None:
    """kind, variable, steps and body of a formula that is one quantifier over steps.

    Lowering splits `forall` over a conjunction; where the windows agree it is joined again.
    """
    whole = _bare(program.lowered)
    parts = whole.parts if isinstance(whole, (f.And, f.Or)) else (whole,)
    found = [part for part in map(_bare, parts) if isinstance(part, f.Quantifier)]
    if not found or len(found) != len(parts):
        return None
    head = found[0]
    joined = f.And if head.kind == "forall" else f.Or
    if len(parts) > 1 and not isinstance(whole, joined):
        return None
    if any(replace(part, body=head.body) != head for part in found) or head.region is not None:
        return None
    body = joined(tuple(part.body for part in found))
    assert head.first is not None
    assert head.last is not None
    steps = range(max(head.first.offset, 0), min(head.last.offset, program.layout.steps - 1) + 1)
    if not steps or head.variable not in free(body):
        return None
    return head.kind, head.variable, steps, body


def _bare(node: f.Formula) -> f.Formula:
    return _bare(node.body) if isinstance(node, f.Annotated) else node


def _fixed(program: Program) -> int | None:
    """The step at which all series are read, if it is one and the same."""
    steps = set(_readings(program.lowered))
    step = steps.pop() if len(steps) == 1 else None
    return step if step is not None and 0 <= step < program.layout.steps else None


def _readings(node: Node) -> Iterable[int | None]:
    """Steps at which a node reads series; None for windows and variables."""
    if isinstance(node, (f.Quantifier, BoundUntil, Aggregate, Count)):
        return [None]
    if isinstance(node, At):
        return [node.step.offset if node.step.base is None else None]
    return [step for child in node.children() for step in _readings(child)]


def _median(x: Tensor) -> float:
    """The middle value, or the mean of the two in the middle."""
    low, high = (float(x.kthvalue(k).values) for k in ((len(x) + 1) // 2, len(x) // 2 + 1))
    return low if low == high else (low + high) / 2


def percent(share: float) -> str:
    """71.3 %, with enough digits that a share between 0 and 1 is never shown as 0 % or 100 %."""
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    for digits in range(1, 5):
        shown = f"{100 * share:.{digits}f}"
        if 0 < float(shown) < 100:
            return f"{shown} %"
    return "<0.0001 %" if share < 0.5 else ">99.9999 %"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_RULE_WIDTH else text[: MAX_RULE_WIDTH - 3] + "..."
