"""The log-expectation of a formula under a Gaussian: log E e^c(x) for x ~ N(mean, C), closed form.

At noise level σ a diffusion model knows its clean sample only up to the posterior approximation
N(D(x_σ), C_σ). Guidance then needs the expectation of the formula's likelihood e^c under it, not
its value at the mean. Each atom is averaged exactly over the variance aᵀCa of its sum y = a·x
(`averages`; sums that are not linear are linearised at the mean). Connectives combine the averages
as they combine values, except that hard atoms about one sum are joined as intervals (`intervals`).
A hard atom about a category takes the mean of its weight for its probability.

Steps of a trajectory are correlated, and the sum of their log-probabilities is far below the
log-probability of all of them. A hard atom at steps that form a Markov chain is integrated along it
by assumed-density filtering (`chains`). Otherwise `forall` is the power mean -(Σ (-ℓ)^q)^(1/q),
with q = 1/√(1 - r), at most 4, where r is the root mean square correlation of the atoms' noise;
`exists` is its dual. Uncorrelated atoms are summed (q = 1), a covariance of zero gives the ordinary
value, and correlated atoms come within about 0.1 of Monte Carlo (0.4 for two-sided bounds) where
their sum is off by 1 to 5. Nested quantifiers, sums far from linear under the Gaussian, and large
groups of atoms joined by `or` may be off by 1. A weight multiplies the averaged log-probability.
Observations add the logs of their expected likelihoods (`likelihoods`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import torch
from torch import Tensor

from constraints.ast import formulas as f
from constraints.ast.families import Observation
from constraints.ast.lowered import Atom, HasClass, Pixels
from constraints.ast.walk import names
from constraints.compile.linearity import linear
from constraints.compile.program import Program
from constraints.errors import DataError, FormulaError
from constraints.evaluate.classes import Judged
from constraints.evaluate.evaluator import Evaluator
from constraints.evaluate.folds import Fold, PowerMean, PowerOr
from constraints.evaluate.frames import Frame
from constraints.evaluate.log_probability import NEVER, log1mexp
from constraints.evaluate.semantics import HARD_EQUALITY_HALF_WIDTH, LogLTN, LogProbabilistic
from constraints.gaussian.averages import average, average_gaussian
from constraints.gaussian.chains import markov, stays
from constraints.gaussian.covariances import CovarianceOperator as CovarianceOperator
from constraints.gaussian.covariances import DenseCovariance as DenseCovariance
from constraints.gaussian.intervals import Bounds, Parts, intersected, united
from constraints.gaussian.likelihoods import covariance_of, log_expected_density
from constraints.gaussian.linear import affine
from constraints.layout.signals import Layout

MAX_POWER = 4.0  # q of the power mean
MIN_CATEGORY_PROBABILITY = 1e-6  # smaller probabilities of a category are clamped to it
MAX_CORRELATED_ATOMS = 512  # atoms whose correlations are computed; more are thinned out
Known = TypeVar("Known")
Rows = dict[object, Tensor]  # gradients of linear sums, by atom and frame: (A, D)


@dataclass(frozen=True)
class GaussianPosterior:
    """The Gaussian N(mean, C) of flat samples: mean (B, D), covariance C (D, D), a matrix or an
    operator."""

    mean: Tensor
    spread: CovarianceOperator
    layout: Layout

    @classmethod
    def of(
        cls, mean: Tensor, covariance: Tensor | CovarianceOperator, layout: Layout
    ) -> GaussianPosterior:
        """The posterior with validated mean and covariance."""
        mean = _real(mean)
        if mean.ndim != 2 or mean.shape[1] != layout.size:
            raise DataError(
                f"the mean has shape (B, {layout.size}), not {tuple(mean.shape)}",
                value=tuple(mean.shape),
            )
        if not isinstance(covariance, Tensor) and hasattr(covariance, "through"):
            return cls(mean, covariance, layout)
        matrix, size = _real(covariance).to(mean), layout.size
        if matrix.shape != (size, size):
            raise DataError(
                f"the covariance has shape ({size}, {size}), not {tuple(matrix.shape)}",
                value=tuple(matrix.shape),
            )
        if not bool(torch.isfinite(matrix).all()) or bool((matrix.diagonal() < 0).any()):
            raise DataError(
                "the covariance has an infinite, NaN or negative variance",
                value=float(matrix.diagonal().min()),
                remedy="give a finite positive semi-definite matrix",
            )
        asymmetry = (matrix - matrix.T).abs().max()
        if not bool(asymmetry <= 1e-4 * matrix.abs().max()):
            raise DataError(
                "the covariance is not symmetric",
                value=float(asymmetry),
                remedy="give (C + C.T) / 2",
            )
        return cls(mean, DenseCovariance(matrix), layout)


def _real(value: Any) -> Tensor:
    found: Tensor = torch.as_tensor(value)
    return found if found.is_floating_point() else found.to(torch.float64)


def log_expectation(
    program: Program,
    mean: Tensor,
    covariance: Tensor | CovarianceOperator,
    semantics: LogProbabilistic | LogLTN | None = None,
) -> Tensor:
    """log E e^c(x) for x ~ N(mean, covariance): (B,), from mean (B, D), covariance (D, D)."""
    program.check_not_trace()
    at = GaussianPosterior.of(mean, covariance, program.layout)
    logic = LogProbabilistic() if semantics is None else semantics
    found = ExpectationEvaluator(at, logic, program.end, program.cache, program.needed)
    value = found.formula(program.lowered, Frame()).expand(len(at.mean))
    if program.observations:
        value = logic.observed(value, found.log_densities(program)).to(value)
    return program.check_not_nan(value)


def log_expected_likelihoods(
    program: Program, mean: Tensor, covariance: Tensor | CovarianceOperator
) -> Tensor:
    """log E p(y | x) of each of the k observations: (B, k), from mean (B, D), covariance (D, D)."""
    at = GaussianPosterior.of(mean, covariance, program.layout)
    logic = LogProbabilistic()
    found = ExpectationEvaluator(at, logic, program.end, program.cache, program.needed)
    return found.log_densities(program)


class ExpectationEvaluator(Evaluator):
    """Evaluates expectations under a posterior; `rows` caches the gradients of linear atoms."""

    def __init__(
        self,
        posterior: GaussianPosterior,
        semantics: LogProbabilistic | LogLTN,
        end: str | None,
        rows: Rows,
        needed: set[str],
    ) -> None:
        if not isinstance(semantics, (LogProbabilistic, LogLTN)):
            raise FormulaError(
                f"{type(semantics).__name__} has no expectation under a Gaussian",
                value=semantics,
                allowed=("LogProbabilistic", "LogLTN"),
            )
        layout = posterior.layout
        tensors = layout.check(layout.split(posterior.mean), needed)
        super().__init__(layout, tensors, semantics, end)
        self.mean = posterior.mean
        self.spread = posterior.spread
        self.logic = semantics
        self.rows = rows
        self.correlations: list[float] = []  # of the atoms inside the current quantifier
        # the atom evaluated last, its sums, their gradients, and the key of its cache entries
        self.last_atom: tuple[Atom, Tensor, Tensor, Any] | None = None

    def formula(self, node: f.Formula, frame: Frame) -> Tensor:
        match node:
            case f.And((_, _, *_)):
                parts = [self.apart(group, frame) for group in self.grouped(node, intersected)]
                return self.logic.both.join(parts)
            case f.Or((_, _, *_)):
                parts = [self.apart(group, frame) for group in self.grouped(node, united)]
                return self.logic.either.join(parts)
        return super().formula(node, frame)

    def grouped(
        self, node: f.And | f.Or, join: Callable[[tuple[f.Formula, ...], Bounds], Parts]
    ) -> Parts:
        """The parts with hard atoms about one sum joined; cached with the node."""
        kept: dict[object, Parts] = node.__dict__.setdefault("_grouped", {})
        key = self.logic.k, self.logic.half_unit, self.logic.gaussian
        if key not in kept:
            kept[key] = join(node.parts, self.hard_bounds)
        return kept[key]

    def hard_bounds(self, atom: Atom) -> tuple[float, float] | None:
        soft = math.isfinite(self.logic.hardness(atom))
        if soft or (self.logic.gaussian is not None and atom.equality):
            return None
        return self.logic.bounds(atom)

    def apart(self, parts: list[f.Formula], frame: Frame) -> Tensor:
        """The disjunction of mutually exclusive parts: their probabilities add up."""
        values = [self.formula(part, frame) for part in parts]
        if len(values) == 1:
            return values[0]
        possible = (value.clamp(min=NEVER) for value in values)  # infinity has no gradients
        return reduce(torch.logaddexp, possible).clamp(max=0)

    def judged(self, node: Atom, y: Tensor, frame: Frame) -> Tensor:
        rows = self.gradients(node, y, frame)
        linear_rows = rows.ndim == 2
        key = self.key(node, frame, y) if linear_rows else None
        variance = self.known(key, "variance", lambda: self.variance(rows))  # (A,) or (B, A)
        mean_rows = rows if linear_rows else rows.mean(0)
        found = self.known(key, "correlation", lambda: self.correlation(mean_rows, node))
        self.correlations.append(found)
        self.last_atom = node, y, mean_rows, key
        variance = variance.reshape((1, *y.shape[1:]) if linear_rows else y.shape)
        if node.category is not None and math.isinf(self.logic.hardness(node)):
            return category_log_probability(y if node.chooses else 1 - y, variance)
        return self.average(y, variance, node)

    def average(self, mean: Tensor, variance: Tensor, atom: Atom) -> Tensor:
        """log E e^c for the value c of the atom, whose sum is N(mean, variance)."""
        low, high = self.logic.bounds(atom)
        if self.logic.gaussian is not None and atom.equality:
            return average_gaussian(mean - atom.low, variance, self.logic.gaussian)
        k = self.logic.hardness(atom)
        if low == high and math.isinf(k):  # a point has probability zero
            low, high = low - HARD_EQUALITY_HALF_WIDTH, high + HARD_EQUALITY_HALF_WIDTH
        return average(mean, variance, low, high, k)

    def log_densities(self, program: Program) -> Tensor:
        """The same of all observations of a program, (B, k)."""
        return torch.stack([self.log_density(node) for node in program.observations], 1)

    def log_density(self, node: Observation) -> Tensor:
        """The log of the expected likelihood of an observation, (B,)."""
        terms, size = node.distribution.parameters, len(self.mean)
        means = [self.term(each, Frame()).expand(size) for each in terms]
        varying = [i for i, each in enumerate(terms) if names(each) & set(self.layout.names)]
        rows = [self.gradients(Atom((1.0,), (terms[i],)), means[i], Frame()) for i in varying]
        spread = covariance_of([row.reshape(-1, 1, row.shape[-1]) for row in rows], self.spread)
        return log_expected_density(node, torch.stack(means, -1), spread, varying)

    def classed(self, node: HasClass, judged: Judged) -> Tensor:
        """The value at the mean: the expectation of a classifier has no closed form."""
        return judged.own if node.positive else judged.others

    def known(self, key: Any, what: str, find: Callable[[], Known]) -> Known:
        """A property of an atom, cached for posteriors with the same covariance."""
        if key is None:
            return find()
        place = self.spread.known
        if (what, key) not in place:
            place[what, key] = find()
        found: Known = place[what, key]
        return found

    def key(self, node: Atom, frame: Frame, y: Tensor) -> Any:
        """All that the gradient and the noise of a linear atom depend on."""
        pixels = ((name, domain.key) for name, domain in frame.pixels.items())
        where = tuple(sorted(frame.variables.items())), tuple(sorted(pixels))
        return node.key, frame.sizes, where, y.dtype, self.logic.hardness(node), self.logic.gaussian

    def variance(self, rows: Tensor) -> Tensor:
        return (self.spread.through(rows) * rows).sum(-1).clamp(min=0)

    def correlation(self, rows: Tensor, node: Atom) -> float:
        """The root mean square correlation of the atoms' noise: posterior plus softness."""
        rows = thinned(rows)
        if len(rows) < 2:
            return 0.0
        joint = self.spread.through(rows) @ rows.T
        k = self.logic.hardness(node)
        softness = math.pi**2 / (3 * k * k) if math.isfinite(k) else 0.0
        if self.logic.gaussian is not None and node.equality:
            softness = 0.5 / self.logic.gaussian
        scale = (joint.diagonal().clamp(min=0) + softness).sqrt()
        if not bool((scale > 0).any()):
            return 0.0
        related = joint / (scale[:, None] * scale[None]).clamp(min=torch.finfo(rows.dtype).tiny)
        count = len(rows) * (len(rows) - 1)
        square = float((related.square().sum() - related.diagonal().square().sum()) / count)
        return math.sqrt(max(square, 0.0))

    def gradients(self, node: Atom, y: Tensor, frame: Frame) -> Tensor:
        """Gradients of the atom's sum by the flat sample: (A, D), or (B, A, D) if not linear."""
        places = math.prod(y.shape[1:])
        if all(linear(term, self.layout) for term in node.terms):
            key = self.key(node, frame, y)
            if key not in self.rows:
                self.rows[key] = affine(node, frame, self.layout, self.end, y)[0]
            return self.rows[key]
        with torch.enable_grad():
            x = self.mean.detach().requires_grad_()
            total = self.plain_evaluator(x).total(node, frame).expand(len(x), *y.shape[1:])
            columns = total.reshape(len(x), places).unbind(1)
            found = [
                torch.autograd.grad(column.sum(), x, retain_graph=True)[0] for column in columns
            ]
        return torch.stack(found, 1)

    def plain_evaluator(self, flat: Tensor) -> Evaluator:
        """An evaluator of values, not expectations, at flat samples."""
        tensors = self.layout.split(flat)
        return Evaluator(self.layout, tensors, self.semantics, self.end)

    def quantifier(self, node: f.Quantifier, frame: Frame) -> Tensor:
        outside, self.correlations = self.correlations, []
        self.last_atom = None
        value = super().quantifier(node, frame)
        self.correlations = outside + self.correlations
        steps = not isinstance(node.region, Pixels)  # pixels are no chain
        if steps and not frame.sizes and isinstance(node.body, Atom) and self.last_atom is not None:
            chained = self.chained(node.kind, *self.last_atom)
            value = value if chained is None else chained
        return value

    def chained(self, kind: str, atom: Atom, y: Tensor, rows: Tensor, key: Any) -> Tensor | None:
        """A hard atom at all steps, or at some, as a Markov chain; None if it is not one."""
        low, high = self.logic.bounds(atom)
        one_sided = math.isinf(low) or math.isinf(high)
        steps = len(rows)
        plain = isinstance(self.logic, LogProbabilistic) and self.logic.steps == "sum"
        if steps < 2 or y.ndim != 2 or y.shape[1] != steps or self.end is not None or not plain:
            return None
        if kind != "forall" and not one_sided:
            return None
        if math.isfinite(self.logic.hardness(atom)):
            return None
        chain = self.known(key, "chain", lambda: self.chain(rows))
        if chain is None:
            return None
        variance, neighbours = chain
        if kind == "forall":
            return stays(y, variance, neighbours, low, high)
        other = (high, math.inf) if math.isinf(low) else (-math.inf, low)
        return log1mexp(stays(y, variance, neighbours, *other).clamp_max(-1e-12))

    def chain(self, rows: Tensor) -> tuple[Tensor, Tensor] | None:
        """Variances (A,) and covariances of neighbours (A - 1,), if it is a Markov chain."""
        few = thinned(rows)  # a subsequence of a Markov chain is a Markov chain
        if not markov(self.spread.through(few) @ few.T):
            return None
        loaded = self.spread.through(rows)
        return (loaded * rows).sum(1).clamp_min(0), (loaded[:-1] * rows[1:]).sum(1)

    def fold(self, kind: str) -> Fold:
        return _Correlated(self, kind)

    def power(self) -> float:
        """q of the quantifier whose body has just been evaluated."""
        r = max(self.correlations, default=0.0)
        return min(MAX_POWER, 1 / math.sqrt(max(1 - r, 1e-6)))


class _Correlated(Fold):
    """The fold of a quantifier over correlated atoms; its power depends on the evaluated body."""

    def __init__(self, evaluator: ExpectationEvaluator, kind: str) -> None:
        self.evaluator = evaluator
        self.kind = kind
        self.plain = getattr(evaluator.semantics, kind)
        self.neutral = self.plain.neutral

    def delegate(self) -> Fold:
        q = self.evaluator.power()
        if q == 1.0 or self.plain.averages:
            fold: Fold = self.plain
            return fold
        return PowerMean(q) if self.kind == "forall" else PowerOr(q)

    def pair(self, x: Tensor, y: Tensor) -> Tensor:
        return self.delegate().pair(x, y)

    def over(self, x: Tensor, dim: int) -> Tensor:
        return self.delegate().over(x, dim)

    def slide(self, x: Tensor, width: int) -> Tensor:
        return self.delegate().slide(x, width)

    def scan(self, x: Tensor) -> Tensor:
        return self.delegate().scan(x)


def category_log_probability(p: Tensor, variance: Tensor) -> Tensor:
    """log p of a category, where p is the mean of its weight, which has a variance.

    The gradient is 1 / max(p, variance) in place of 1 / p, so that a step of covariance times
    gradient adds at most one to p.
    """
    known = p.detach()
    slope = 1 / torch.maximum(known, variance).clamp(min=MIN_CATEGORY_PROBABILITY)
    return known.clamp(MIN_CATEGORY_PROBABILITY, 1).log() + (p - known) * slope


def thinned(rows: Tensor) -> Tensor:
    """At most about MAX_CORRELATED_ATOMS of the rows, evenly spaced."""
    return rows[:: -(-len(rows) // MAX_CORRELATED_ATOMS)] if len(rows) else rows
