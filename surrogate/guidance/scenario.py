"""A scenario: a formula in data units, asked of a model that lives in normalised coordinates.

Points are flat, x (B, D), and y = g(x) (B, L) are the signals they stand for. g is affine unless a
variable is learned as its logarithm; then it is linearised about a point. Verdicts are given on
finished values: counts rounded, words chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from constraints import Formula, LogProbabilistic, Program, compile
from constraints.equations import Equations, split
from surrogate.model import Surrogate

if TYPE_CHECKING:
    from surrogate.guidance.beliefs import Belief

HARD = LogProbabilistic(k=math.inf, half_unit=True)


class Scenario:
    """`formula` is what is asked; `rules` are what every sample obeys besides, hard."""

    def __init__(
        self,
        model: Surrogate,
        formula: Formula,
        rules: Mapping[str, Formula] | None = None,
        *,
        end: str | None = None,
        hardness: float | None = None,
    ) -> None:
        self.model, self.layout = model, model.codec.layout()
        self.formula = formula
        self.program = compile(formula, self.layout, end)
        self.rules = {name: compile(rule, self.layout) for name, rule in (rules or {}).items()}
        self.hard = hardness is None
        self.semantics = HARD if hardness is None else LogProbabilistic(hardness, half_unit=True)
        self.gentle = LogProbabilistic(k=1.0)  # for rules, where they only guide
        self.size = math.prod(model.shape)
        nothing = torch.zeros(0, self.layout.size, dtype=torch.float64)
        self._equations = Equations(nothing, nothing[:, 0], nothing[:, 0])
        self.rest: Program | None = self.program
        if self.hard:
            self._equations, self.rest = split(self.program)
        self.affine = all(v.transform.kind == "identity" for v in model.codec.variables)
        zero = torch.zeros(self.size, dtype=torch.float64)
        self._map: tuple[Tensor, Tensor] | None = self._jacobian(zero) if self.affine else None

    # --- coordinates ------------------------------------------------------------------------------

    def shaped(self, x: Tensor) -> Tensor:
        """Flat points as the model has them: (B, C, T)."""
        return x.reshape(-1, *self.model.shape)

    def flat(self, x: Tensor) -> Tensor:
        """g(x): points (B, D) to signals (B, L)."""
        if self._map is not None:
            matrix, offset = self._map
            return x @ matrix.mT + offset
        found: Tensor = self.layout.flatten(self.model.codec.decode(self.shaped(x)))
        return found

    def jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        """G (L, D) and c (L,) with g(x) ≈ G x + c about a point (D,)."""
        return self._map or self._jacobian(about)

    def _jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        def signals(point: Tensor) -> Tensor:
            decoded = self.model.codec.decode(self.shaped(point[None]))
            found: Tensor = self.layout.flatten(decoded)[0]
            return found

        matrix: Tensor = torch.autograd.functional.jacobian(signals, about)  # type: ignore[no-untyped-call]
        return matrix, signals(about) - matrix @ about

    def equations_about(self, about: Tensor) -> Equations:
        """The equations of the formula in normalised coordinates: rows (k, D)."""
        own = self._equations
        matrix, offset = self.jacobian(about)
        rows, known = own.rows @ matrix, own.rows @ offset
        free = rows.abs().sum(1) > 1e-12  # a conserved total holds by itself
        return Equations(rows[free], (own.low - known)[free], (own.high - known)[free])

    def spread(self, belief: Belief, about: Tensor) -> Tensor:
        """The covariance of the signals, given the equations: (L, L)."""
        matrix, _ = self.jacobian(about)
        spread = belief.narrowed(matrix) @ matrix.mT
        return (spread + spread.mT) / 2

    # --- verdicts ---------------------------------------------------------------------------------

    def finished(self, x: Tensor) -> dict[str, Tensor]:
        """The signals of finished samples."""
        made = self.model.codec.finish(self.shaped(x))
        found = {}
        for name in self.layout.names:
            values = made[name]
            signal = self.layout.find(name)
            if signal is not None and signal.categories:
                codes = np.searchsorted(np.array(signal.categories), values.astype(str))
                found[name] = torch.from_numpy(codes)
            else:
                found[name] = torch.from_numpy(np.asarray(values, np.float64))
        return found

    def satisfied(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Whether finished samples meet the formula, and all of the rules: (B,) each."""
        values = self.finished(x)
        met = self.program.verdict(values)
        kept = torch.ones_like(met)
        for rule in self.rules.values():
            kept = kept & rule.verdict(values)
        return met, kept

    def log_value(self, x: Tensor) -> Tensor:
        """log of what a sample counts for: 0 or -∞ of a hard formula, its value of a soft one."""
        met, kept = self.satisfied(x)
        value = torch.zeros(len(x), dtype=torch.float64)
        if self.hard:
            kept = kept & met
        else:
            value = self.program(self.flat(x), self.semantics)
        return torch.where(kept, value, -torch.inf)
