"""Compiled formulas: resolved and lowered for one layout, evaluated on batches of samples.

A formula is split into what it states of samples, which has verdicts and margins, and observations,
which have log-densities (`ast.families`): the value of the whole under a semantics of
log-probabilities is the sum of both, verdict and margin are those of the statement.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from copy import copy
from typing import Any

import torch
from torch import Tensor

from constraints.ast.families import Observation, factored, has_verdict
from constraints.ast.formulas import Formula, Quantifier
from constraints.ast.lowered import Atom
from constraints.ast.terms import Const
from constraints.ast.walk import descend, names
from constraints.ast.words import NOW
from constraints.compile.lower import lower, lower_observation
from constraints.compile.resolve import resolve
from constraints.errors import DataError, FormulaError, ImpossibleError
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.frames import Frame, Index
from constraints.evaluate.semantics import Boolean, LogProbabilistic, Robustness, Semantics
from constraints.language.parser import parse
from constraints.layout.signals import Layout

DEFAULT_SEMANTICS = LogProbabilistic()


class Program:
    """A formula for one layout. Call it on signals, or on flat samples (B, D).

    statement: the formula without its observations, TRUE if it holds nothing else. lowered: the
    same, lowered. observations: with resolved terms.
    """

    def __init__(
        self, formula: Formula, layout: Layout, end: str | None = None, *, trace: bool = False
    ) -> None:
        self.formula = formula
        self.statement, stated = factored(formula)
        self.layout = layout
        self.end = end
        self.trace_only = trace
        self._traces: dict[str, Formula] = {}
        self.cache: dict[object, Tensor] = {}  # rows of linear atoms, kept between evaluations
        if trace:
            self.lowered = self.traced(end or "clip")
        else:
            self.lowered = lower(resolve(self.statement, layout, end), layout)
        self.observations = tuple(_observation(each, layout) for each in stated)
        self.needed = self.used(self.lowered)

    def __repr__(self) -> str:
        return f"<Program {self.formula}>"

    def __call__(
        self, data: Mapping[str, Any] | Tensor, semantics: Semantics = DEFAULT_SEMANTICS
    ) -> Tensor:
        """The value for each sample: (B,)."""
        self.check_not_trace()
        check_semantics(semantics)
        batch, tensors = self.read(data)
        value = Evaluator(self.layout, tensors, semantics, self.end).formula(self.lowered, Frame())
        if self.observations:
            value = semantics.observed(value, self._log_density(batch, tensors))
        return self.check_not_nan(value if len(value) == batch else value.expand(batch))

    def log_density(self, data: Mapping[str, Any] | Tensor) -> Tensor:
        """log p(y | x) of each of the k observations for each sample: (B, k), float64.

        -inf where the observed number is impossible, or a value that it depends on is missing.
        """
        return self._log_density(*self.read(data))

    def parameters(self, data: Mapping[str, Any] | Tensor) -> list[Tensor]:
        """The parameters of each observation's distribution: (B, J), float64."""
        batch, tensors = self.read(data)
        found = Evaluator(self.layout, tensors, Boolean())
        every = [found.parameters(node) for node in self.observations]
        return [torch.stack([x.expand(batch) for x in each], 1) for each in every]

    def _log_density(self, batch: int, tensors: Mapping[str, Tensor]) -> Tensor:
        found = Evaluator(self.layout, tensors, Boolean())
        each = [found.log_density(node).expand(batch) for node in self.observations]
        return torch.stack(each, 1) if each else found.like.new_zeros(batch, 0).double()

    @property
    def has_verdict(self) -> bool:
        """Whether the formula states anything besides observations."""
        return has_verdict(self.formula)

    def verdict(self, data: Mapping[str, Any] | Tensor) -> Tensor:
        """Whether each sample satisfies the formula: (B,) of bool."""
        return self(data, Boolean())

    def robustness(self, data: Mapping[str, Any] | Tensor) -> Tensor:
        """The margin by which each sample satisfies the formula, negative if it does not: (B,)."""
        return self(data, Robustness())

    def trace(
        self,
        data: Mapping[str, Any] | Tensor,
        semantics: Semantics = DEFAULT_SEMANTICS,
        end: str = "clip",
    ) -> Tensor:
        """The value at every step taken as `now`: (B, T)."""
        check_semantics(semantics)
        lowered = self.traced(end)
        batch, tensors = self.read(data, self.used(lowered))
        steps = self.layout.steps
        frame = Frame((steps,), {NOW: Index(0, (0,))})
        value = Evaluator(self.layout, tensors, semantics, end).formula(lowered, frame)
        return self.check_not_nan(value.expand(batch, steps))

    def traced(self, end: str) -> Formula:
        """The lowered formula at a step called `now`."""
        if end not in self._traces:
            found = resolve(self.statement, self.layout, end, trace=True)
            self._traces[end] = lower(found, self.layout)
        return self._traces[end]

    def check_not_trace(self) -> None:
        """Reject a program that was compiled for `trace` only."""
        if self.trace_only:
            raise FormulaError(
                f"{self.formula} was compiled for traces", remedy="call program.trace(...)"
            )

    def tolerances(self) -> dict[str, float]:
        """The equalities of real data without a tolerance of their own, and the default used."""
        atoms = (node for node in descend(self.lowered) if isinstance(node, Atom))
        return {atom.readable(): atom.slack for atom in atoms if atom.slack}

    def restated(
        self,
        lowered: Formula,
        layout: Layout | None = None,
        observations: tuple[Observation, ...] | None = None,
    ) -> Program:
        """The program of another lowered formula, for this layout and these observations or
        others."""
        made = copy(self)
        made.lowered, made.layout = lowered, layout or self.layout
        made.observations = self.observations if observations is None else observations
        made.needed = made.used(lowered)
        made.cache, made._traces = {}, {}
        return made

    def steps_of(self, quantifier: Quantifier) -> range | None:
        """The steps of a quantifier, where these are fixed; None of pixels and moving windows."""
        first, last = quantifier.first, quantifier.last
        if quantifier.region is not None or self.end is not None or first is None or last is None:
            return None
        if first.base or last.base:
            return None
        return range(first.offset, min(last.offset, self.layout.steps - 1) + 1)

    def used(self, lowered: Formula) -> set[str]:
        """The signals that a lowered formula and the observations read; if none, the first, for the
        batch size."""
        read = names(lowered).union(*(names(each) for each in self.observations))
        return (read & set(self.layout.names)) or {self.layout.names[0]}

    def read(
        self, data: Mapping[str, Any] | Tensor, needed: set[str] | None = None
    ) -> tuple[int, dict[str, Tensor]]:
        """The batch size and the signals the formula needs, checked."""
        if not isinstance(data, Mapping) and hasattr(data, "__array__"):
            data = torch.as_tensor(data)
        signals = self.layout.split(data) if isinstance(data, Tensor) else data
        tensors = self.layout.check(signals, needed or self.needed)
        return len(next(iter(tensors.values()))), tensors

    def check_not_nan(self, value: Tensor) -> Tensor:
        """The value; DataError if it is NaN for any sample."""
        if value.dtype == torch.bool or not math.isnan(value.detach().sum().item()):
            return value
        wrong = torch.isnan(value).reshape(len(value), -1).any(1)
        if not bool(wrong.any()):  # inf - inf in the sum
            return value
        raise DataError(
            f"{self.formula} is not a number for {int(wrong.sum())} of {len(value)} samples: it "
            "divides 0 by 0, or takes the log or root of a negative number",
            value=int(wrong.sum()),
            remedy="exclude such samples, as in x(0) = 0 or y(0) / x(0) <= 3",
        )


def _observation(node: Observation, layout: Layout) -> Observation:
    """An observation with resolved terms; ImpossibleError if its likelihood is always 0."""
    found = resolve(node, layout)  # it reads within the grid, whatever the rule for its end
    assert isinstance(found, Observation)
    found = lower_observation(found, layout)
    own = found.distribution.parameters
    numbers = [each.value for each in own if isinstance(each, Const)]
    if len(numbers) == len(own):
        values = torch.tensor(numbers, dtype=torch.float64)
        if float(found.log_density(*values)) == -math.inf:
            raise ImpossibleError(
                f"{node} has the likelihood 0 for all data", value=str(node), remedy="relax it"
            )
    return found


def check_semantics(semantics: Semantics) -> None:
    """Reject what is not an instance of a semantics, such as its class."""
    if isinstance(semantics, type) or not hasattr(semantics, "atom"):
        raise FormulaError(
            f"{semantics!r} is not a semantics",
            value=semantics,
            remedy="give an instance such as Robustness()",
        )


def compiled(
    formula: Formula | str, layout: Layout, end: str | None = None, *, trace: bool = False
) -> Program:
    """The program of a formula for a layout: names, times and windows are checked here, once.

    `end`: the rule for atoms that read outside the grid. None raises an error; "clip": quantifiers
    range over the steps that exist; "weak" ("strong"): such atoms count as met (not met).
    `trace`: compile for `Program.trace` only; a bare `I <= 20` has values at every step, but none
    at the start.
    """
    found = parse(formula) if isinstance(formula, str) else formula
    if not isinstance(found, Formula):
        raise FormulaError(
            f"{formula!r} is neither a formula nor the text of one",
            value=formula,
            remedy='write one such as "forall t: I(t) <= 20"',
        )
    if not isinstance(layout, Layout):
        raise FormulaError(
            f"a formula is compiled against a Layout, not {layout!r}",
            value=layout,
            remedy='make one, as in Layout.series("S I R", 30)',
        )
    return Program(found, layout, end, trace=trace)
