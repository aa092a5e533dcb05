"""A scenario: a formula in data units, conditioning a prior that lives in normalised coordinates.

Points are flat, x (B, D), and y = g(x) (B, L) are the signals they stand for, in the coordinates in
which the posterior of a signal is Gaussian: those that the codec calls latent, into which the
formula is translated (`constraints.gaussian.latent`). g is affine unless a variable of time is
learned as its logarithm; then it is linearised about a point. Verdicts are given on finished
values: counts rounded, words chosen. A formula about several instances has points of several
samples, one after the other.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

import torch
from torch import Tensor

from constraints import (
    Classifier,
    Formula,
    LogProbabilistic,
    Program,
    compiled,
    instances_of,
)
from constraints.ast.formulas import FALSE, TRUE
from constraints.ast.lowered import Atom, HasClass
from constraints.ast.walk import descend
from constraints.compile.dependents import without_dependents
from constraints.compile.linearity import linear
from constraints.errors import ImpossibleError
from constraints.gaussian.equations import Equations, bounds, split
from constraints.gaussian.latent import to_latents
from surrogate.guidance.prior import Prior

MAX_DENSE = 250_000  # numbers in G up to which it is a dense matrix
SEARCH_LIMIT = 50.0  # deviations from the mean within which an equation is solved
HARD = LogProbabilistic(k=math.inf, half_unit=True)
GENTLE = LogProbabilistic(k=1.0)  # for rules of the network, where they only guide


class Scenario:
    """A formula that samples shall satisfy, and rules that every sample obeys besides, hard."""

    def __init__(
        self,
        prior: Prior,
        formula: Formula,
        rules: Mapping[str, Formula] | None = None,
        *,
        end: str | None = None,
        hardness: float | None = None,
        max_dense: int = MAX_DENSE,
    ) -> None:
        """`hardness` None: the formula is hard; else a >= b counts as logsigmoid(hardness (a - b)).

        `max_dense`: numbers in the Jacobian G of the signals up to which it is a dense matrix.
        """
        self.prior, self.max_dense = prior, max_dense
        self.instances = instances_of(formula)
        self.single = prior.codec.layout()
        self.layout = replace(self.single, instances=self.instances)
        self.covariance = prior.covariance.repeated(self.instances)
        self.formula = formula
        self.program = compiled(formula, self.layout, end)
        self.rules = {name: compiled(rule, self.single) for name, rule in (rules or {}).items()}
        self.hard = hardness is None
        self.semantics = HARD if hardness is None else LogProbabilistic(hardness)
        self.size = self.instances * math.prod(prior.shape)
        latent = without_dependents(self.program, prior.codec.followers(), soft=not self.hard)
        latent = to_latents(latent, prior.codec.warps(), soft=not self.hard)
        if latent.lowered == FALSE and self.hard:
            raise ImpossibleError(
                f"nothing that this model knows of satisfies {formula}: no value in the data that "
                "it was made from does",
                value=str(formula),
                remedy="state an interval",
            )
        self.seen = latent.layout
        nothing = torch.zeros(0, self.seen.size, dtype=torch.float64)
        self._equations = Equations(nothing, nothing[:, 0], nothing[:, 0])
        self.rest: Program | None = latent  # the formula without its equations
        if self.hard:
            self._equations, self.rest = split(latent)
        if self.rest is not None and self.rest.lowered == TRUE:
            self.rest = None
        self.affine = prior.codec.affine
        self.low, self.high = self._limits()
        self.limited = self.low.isfinite() | self.high.isfinite()
        zero = torch.zeros(self.size, dtype=torch.float64)
        self._map: tuple[Tensor, Tensor] | None = self._jacobian(zero) if self.affine else None

    @cached_property
    def rest_without_class_gradients(self) -> Program | None:
        """`rest` with classifiers whose gradient is 0: an image that is nearly finished is easier
        to mistake for another class than to change."""
        if self.rest is None or not self.rest.layout.classifiers:
            return self.rest
        constant = {
            name: replace(own, call=_without_gradient(own))
            for name, own in self.rest.layout.classifiers.items()
        }
        made = copy.copy(self.rest)
        made.layout = replace(self.rest.layout, classifiers=constant)
        return made

    # --- coordinates ------------------------------------------------------------------------------

    def shaped(self, x: Tensor) -> Tensor:
        """Flat points as the model has them: (B · instances, *shape)."""
        return x.reshape(-1, *self.prior.shape)

    def joined(self, x: Tensor) -> Tensor:
        """Samples as the model has them as flat points (B, D)."""
        return x.reshape(-1, self.size)

    def within(self, x: Tensor) -> Tensor:
        """Flat points brought to where the data lie."""
        return self.joined(self.prior.codec.within(self.shaped(x)))

    def denoised(self, x: Tensor, sigma: Tensor) -> Tensor:
        """The clean points (B, D) that flat ones at a noise level are estimates of."""
        points = self.shaped(x).to(self.prior.device, torch.float32)
        return self.joined(self.prior.bounded(points, sigma.float()).double().cpu())

    def grouped(self, signals: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Signals of single samples as those of points: (B, instances, ...) if there are some."""
        if self.instances == 1:
            return dict(signals)
        return {k: y.reshape(-1, self.instances, *y.shape[1:]) for k, y in signals.items()}

    def flat(self, x: Tensor) -> Tensor:
        """g(x): points (B, D) to signals (B, L)."""
        if self._map is not None and self._map[0].numel() <= self.max_dense:
            matrix, offset = self._map
            return x @ matrix.mT + offset
        return self._signals(x)

    def _signals(self, x: Tensor) -> Tensor:
        found: Tensor = self.seen.flatten(self.grouped(self.prior.codec.latent(self.shaped(x))))
        return found

    def jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        """G (L, D) and c (L,) with g(x) ≈ G x + c about a point (D,)."""
        return self._map or self._jacobian(about)

    def _jacobian(self, about: Tensor) -> tuple[Tensor, Tensor]:
        size = self.seen.size
        with torch.enable_grad():  # row i is the gradient of signal i at a copy of its own
            copies = about.expand(size, -1).clone().requires_grad_()
            signals: Tensor = self._signals(copies).diagonal()
            (matrix,) = torch.autograd.grad(signals.sum(), copies)
        return matrix, signals.detach() - matrix @ about

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
    def equation_count(self) -> int:
        """How many equations the formula has."""
        return len(self.equations_about(torch.zeros(self.size, dtype=torch.float64)))

    @property
    def linear(self) -> bool:
        """Whether all that the formula compares is linear in the signals."""
        if self.rest is None:
            return True
        every = descend(self.rest.lowered)
        atoms = [node for node in every if isinstance(node, Atom)]
        classed = any(isinstance(node, HasClass) for node in every)
        return not classed and all(linear(t, self.seen) for atom in atoms for t in atom.terms)

    def bounds(self) -> Equations:
        """The linear inequalities of the formula in normalised coordinates, if these are affine."""
        if self._map is None or self.rest is None or not self.hard:
            nothing = torch.zeros(0, self.size, dtype=torch.float64)
            return Equations(nothing, nothing[:, 0], nothing[:, 0])
        own = bounds(self.rest)
        matrix, offset = self._map
        known = own.rows @ offset
        return Equations(own.rows @ matrix, own.low - known, own.high - known)

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
        low, high = -SEARCH_LIMIT, SEARCH_LIMIT
        point = torch.zeros(1, self.size, dtype=torch.float64)
        for _ in range(60):
            middle = point[0, coordinate] = (low + high) / 2
            if float(self.flat(point)[0, signal]) < value:
                low = float(middle)
            else:
                high = float(middle)
        return (low + high) / 2

    def _limits(self) -> tuple[Tensor, Tensor]:
        """The ranges that signals are known to have, (L,) each; counts with their half unit."""
        sides = []
        for name, sign in (("low", -0.5), ("high", 0.5)):
            parts = [
                torch.full((signal.size,), getattr(signal, name) + sign * signal.integer)
                for signal in self.seen.signals
            ]
            sides.append(torch.cat(parts).double().repeat(self.instances))
        return sides[0], sides[1]

    # --- verdicts ---------------------------------------------------------------------------------

    def finished(self, x: Tensor) -> dict[str, Tensor]:
        """The signals of finished samples."""
        return self.grouped(self.prior.codec.signals_of(self.shaped(x)))

    def satisfied(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Whether finished samples meet the formula, and all of the rules: (B,) each."""
        values = self.prior.codec.signals_of(self.shaped(x))
        met = self.program.verdict(self.grouped(values))
        kept = torch.ones_like(met)
        for rule in self.rules.values():
            kept = kept & rule.verdict(values).reshape(-1, self.instances).all(1)
        return met, kept

    def log_value(self, x: Tensor) -> Tensor:
        """log of what a sample counts for: 0 or -∞ of a hard formula, its value of a soft one."""
        met, kept = self.satisfied(x)
        value = torch.zeros(len(x), dtype=torch.float64)
        if self.hard:
            kept = kept & met
        elif any(signal.categories for signal in self.layout.signals):
            decoded = self.grouped(self.prior.codec.decode(self.shaped(x)))
            value = self.program(decoded, self.semantics)
        else:  # of the counts that are emitted, not of what is rounded to them
            value = self.program(self.finished(x), self.semantics).double()
        return torch.where(kept, value, -torch.inf)


def _without_gradient(own: Classifier) -> Callable[[Tensor], Tensor]:
    """The classifier's function, constant for autograd."""
    call = own.call
    return lambda x: call(x.detach())
