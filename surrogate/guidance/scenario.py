"""A scenario: a formula in data units, asked of a model that lives in normalised coordinates.

Points are flat, x (B, D), and y = g(x) (B, L) are the signals they stand for. g is affine unless a
variable is learned as its logarithm; then it is linearised about a point. Verdicts are given on
finished values: counts rounded, words chosen.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from constraints import Formula, LogProbabilistic, Program, compile
from constraints.belief import Spread, Written
from constraints.equations import Equations, split
from surrogate.model import Surrogate

if TYPE_CHECKING:
    from surrogate.guidance.beliefs import Belief

SMALL = 250_000  # numbers in G, up to which it is multiplied by as it is
FARTHEST = 50.0  # deviations from the mean at which no value is looked for
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
        jacobian_of: str = "gaussian",
    ) -> None:
        """`jacobian_of`: "gaussian" or "network", see `Belief.tilt`."""
        self.jacobian_of = jacobian_of
        self.model, self.layout = model, model.codec.layout()
        self.formula = formula
        self.program = compile(formula, self.layout, end)
        self.rules = {name: compile(rule, self.layout) for name, rule in (rules or {}).items()}
        self.hard = hardness is None
        self.semantics = HARD if hardness is None else LogProbabilistic(hardness)
        self.gentle = LogProbabilistic(k=1.0)  # for rules, where they only guide
        self.size = math.prod(model.shape)
        nothing = torch.zeros(0, self.layout.size, dtype=torch.float64)
        self._equations = Equations(nothing, nothing[:, 0], nothing[:, 0])
        self.rest: Program | None = self.program
        if self.hard:
            self._equations, self.rest = split(self.program)
        self.affine = all(v.transform.kind == "identity" for v in model.codec.variables)
        self.low, self.high = self._limits()
        self.limited = self.low.isfinite() | self.high.isfinite()
        self._beliefs: dict[float, Belief] = {}
        zero = torch.zeros(self.size, dtype=torch.float64)
        self._map: tuple[Tensor, Tensor] | None = self._jacobian(zero) if self.affine else None

    # --- coordinates ------------------------------------------------------------------------------

    def shaped(self, x: Tensor) -> Tensor:
        """Flat points as the model has them: (B, C, T)."""
        return x.reshape(-1, *self.model.shape)

    def flat(self, x: Tensor) -> Tensor:
        """g(x): points (B, D) to signals (B, L)."""
        if self._map is not None and self._map[0].numel() <= SMALL:
            matrix, offset = self._map
            return x @ matrix.mT + offset
        found: Tensor = self.layout.flatten(self.model.codec.decode(self.shaped(x)))
        return found

    def jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        """G (L, D) and c (L,) with g(x) ≈ G x + c about a point (D,)."""
        return self._map or self._jacobian(about)

    def _jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        size = self.layout.size
        with torch.enable_grad():  # row i is the gradient of signal i at a copy of its own
            copies = about.expand(size, -1).clone().requires_grad_()
            decoded = self.model.codec.decode(self.shaped(copies))
            signals: Tensor = self.layout.flatten(decoded).diagonal()
            (matrix,) = torch.autograd.grad(signals.sum(), copies)
        return matrix, signals.detach() - matrix @ about

    def belief(self, sigma: Tensor, estimates: Tensor) -> Belief:
        """What is known of clean points at a level, about their estimates (B, D)."""
        from surrogate.guidance.beliefs import Belief  # which is about scenarios

        if not self.affine:
            return Belief(self, sigma, estimates.mean(0))
        level = float(sigma)
        if level not in self._beliefs:  # the same for all batches
            self._beliefs[level] = Belief(self, sigma, estimates.mean(0))
        return self._beliefs[level]

    def equations_about(self, about: Tensor) -> Equations:
        """The equations of the formula in normalised coordinates: rows (k, D)."""
        own = self._equations
        matrix, offset = self.jacobian(about)
        rows, known = own.rows @ matrix, own.rows @ offset
        low, high = own.low - known, own.high - known
        for i, (coordinate, ends) in self._single.items():
            rows[i] = 0.0
            rows[i, coordinate], low[i], high[i] = 1.0, *ends
        free = rows.abs().sum(1) > 1e-12  # a conserved total holds by itself
        return Equations(rows[free], low[free], high[free])

    @cached_property
    def _single(self) -> dict[int, tuple[int, tuple[float, float]]]:
        """Equations for one signal that is an increasing function of one coordinate: the number of
        the equation -> (coordinate, its interval), which is exact where linearising is not.
        """
        if self.affine:
            return {}
        own, found = self._equations, {}
        matrix, _ = self.jacobian(torch.zeros(self.size, dtype=torch.float64))
        for i, row in enumerate(own.rows):
            signals = row.nonzero()[:, 0]
            coordinates = matrix[signals[0]].nonzero()[:, 0] if len(signals) == 1 else signals
            if len(signals) == 1 and len(coordinates) == 1:
                weight, j, d = float(row[signals[0]]), int(signals[0]), int(coordinates[0])
                ends = sorted((float(own.low[i]) / weight, float(own.high[i]) / weight))
                found[i] = d, (self._solved(j, d, ends[0]), self._solved(j, d, ends[1]))
        return found

    def _solved(self, signal: int, coordinate: int, value: float) -> float:
        """Where a signal, increasing in one coordinate, has a value; by bisection."""
        low, high = -FARTHEST, FARTHEST
        point = torch.zeros(1, self.size, dtype=torch.float64)
        for _ in range(60):
            middle = point[0, coordinate] = (low + high) / 2
            if float(self.flat(point)[0, signal]) < value:
                low = float(middle)
            else:
                high = float(middle)
        return (low + high) / 2

    def spread(self, belief: Belief, about: Tensor) -> Spread:
        """The covariance of the signals, given the equations: (L, L)."""
        matrix, _ = self.jacobian(about)
        if matrix.numel() > SMALL:
            return Signals(belief, matrix)
        spread = belief.narrowed(matrix) @ matrix.mT
        return Written((spread + spread.mT) / 2)

    def _limits(self) -> tuple[Tensor, Tensor]:
        """The ranges that signals are known to have, (L,) each; counts with their half unit."""
        sides = []
        for name, sign in (("low", -0.5), ("high", 0.5)):
            parts = [
                torch.full((signal.size,), getattr(signal, name) + sign * signal.integer)
                for signal in self.layout.signals
            ]
            sides.append(torch.cat(parts).double())
        return sides[0], sides[1]

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
        elif any(signal.categories for signal in self.layout.signals):
            value = self.program(self.flat(x), self.semantics)
        else:  # of the counts that are emitted, not of what is rounded to them
            value = self.program(self.finished(x), self.semantics).double()
        return torch.where(kept, value, -torch.inf)


class Signals:
    """The covariance G C' Gᵀ of many signals, never written out; each depends on few coordinates,
    so G is sparse.
    """

    def __init__(self, belief: Belief, matrix: Tensor) -> None:
        self.belief, self.known = belief, dict[Any, Any]()
        self.matrix, self.turned = matrix.to_sparse(), matrix.mT.to_sparse()

    def through(self, rows: Tensor) -> Tensor:
        """rows (..., L) times it, like them."""
        flat = rows.reshape(-1, rows.shape[-1]).double()
        narrowed = self.belief.narrowed(torch.sparse.mm(self.turned, flat.mT).mT)
        found: Tensor = torch.sparse.mm(self.matrix, narrowed.mT).mT
        return found.reshape(rows.shape).to(rows)
