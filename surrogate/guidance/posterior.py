"""The posterior of the clean point at a noise level, given equations and a formula.

At noise σ the clean point is approximately x_0 ~ N(D, C_σ) about its denoised estimate D; the code
calls this approximation the `posterior`. Equations A x_0 = b, each up to a variance R (that of a
number that is rounded to b), condition it exactly,

S = A C_σ Aᵀ + R,  K = C_σ Aᵀ S⁻¹,  D' = D + K (b - A D),  C' = C_σ - K A C_σ,

with the probability of each interval, and a Gaussian approximation of their dependence. The rest of
the formula has the log-probability ψ(D') of `log_expectation`, and weighting N(D', C') by e^ψ moves
its mean by C'∇ψ, to D''. In the terms of the Twisted Diffusion Sampler, e^ψ is the twisting
function, and D'' the clean point of the proposal. C_σ is never formed: it acts through the
eigenvectors of the data covariance, and equations are few.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Generator, Tensor

from constraints.gaussian.chains import log_interval
from constraints.gaussian.expectation import (
    CovarianceOperator,
    DenseCovariance,
    log_expectation,
    log_expected_likelihoods,
)
from surrogate.guidance import truncated
from surrogate.guidance.scenario import Scenario
from surrogate.sampling.steps import white

RELINEARISATIONS = 2  # of equations that are not linear, about the point they condition to
MIN_LOG_PROBABILITY = -1e4  # log-probabilities are cut off here
MAX_CACHED_EQUATION_CELLS = 1_000_000  # numbers in A, above which one noise level is kept at a time
MIN_SIGNAL_VARIANCE = 1e-18  # of a signal in an equation
JacobianProduct = Callable[[Tensor], Tensor]  # v -> Jᵀv, (B, D) each


@dataclass(frozen=True)
class Twisted:
    """The clean points of B noisy ones x_t, with and without the scenario."""

    denoised: Tensor
    """D(x_t), the mean of the target, (B, D)."""
    guided: Tensor
    """D'', the mean given the scenario, of the proposal, (B, D)."""
    psi: Tensor
    """ψ_t, the logarithm of the twisting function: log P(scenario) at N(D, C_σ), (B,)."""

    def __getitem__(self, rows: Tensor) -> Twisted:
        return Twisted(self.denoised[rows], self.guided[rows], self.psi[rows])


@dataclass(frozen=True)
class ExactDraw:
    """Clean points of N(mean, C_σ) that meet the equations as intervals."""

    x: Tensor
    """(B, D)."""
    mean: Tensor
    """Their mean given the values of A x_0 that were drawn, (B, D)."""
    log_weight: Tensor
    """log p - log q of the values of A x_0, by the GHK simulator (`truncated`), (B,)."""


class Posterior:
    """N(D, C_σ) at one noise level, given a scenario; points are flat, (B, D), float64.

    eigenvalues: of C_σ. equations: A (k, D) and the ends of intervals. cross_covariance: A C_σ,
    (k, D). equation_covariance: A C_σ Aᵀ, (k, k). factor: L (k, k) with S = L Lᵀ. gain: K (D, k).
    signal_covariance: of the signals given the equations; None if the formula is only equations.
    """

    def __init__(self, scenario: Scenario, sigma: Tensor, about: Tensor) -> None:
        """`about` (D,): where formulas are linearised if the codec is not affine."""
        self.scenario, self.sigma = scenario, float(sigma)
        self.covariance = scenario.covariance
        self.eigenvalues = self.covariance.posterior(sigma)
        self.equations = scenario.equations_about(about)
        self._solve()
        for _ in range(0 if scenario.affine else RELINEARISATIONS):
            about = self.condition(about[None])[0][0]
            self.equations = scenario.equations_about(about)
            self._solve()
        self.signal_covariance: CovarianceOperator | None = None
        if scenario.rest is not None:
            self.signal_covariance = self._signal_covariance(about)

    def _solve(self) -> None:
        """The gain K of the equations."""
        rows = self.equations.rows
        self.cross_covariance = self.covariance.apply(self.eigenvalues, rows)
        self.equation_covariance = self.cross_covariance @ rows.mT
        rounding = (self.equations.high - self.equations.low) ** 2 / 12  # R
        self.factor = torch.linalg.cholesky(self.equation_covariance + torch.diag(rounding))
        self.gain = torch.cholesky_solve(self.cross_covariance, self.factor).mT

    def _signal_covariance(self, about: Tensor) -> CovarianceOperator:
        """The covariance of the signals, given the equations: (L, L)."""
        matrix, _ = self.scenario.jacobian(about)
        if matrix.numel() > self.scenario.max_dense:
            return SignalCovariance(self, matrix)
        dense = self.conditional_product(matrix) @ matrix.mT
        return DenseCovariance((dense + dense.mT) / 2)

    def condition(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """D' (B, D), and the log-probability of the equations (B,)."""
        low, high = self.equations.low, self.equations.high
        at = mean @ self.equations.rows.mT
        residual = (low + high) / 2 - at
        # a Gaussian approximation of their dependence: the joint density over that of the marginals
        whitened = torch.linalg.solve_triangular(self.factor, residual.mT, upper=False)
        single = self.factor.square().sum(1).sqrt()
        dependence = single.log().sum() - self.factor.diagonal().log().sum()
        standardised = (residual / single).square().sum(1)
        dependence = dependence + 0.5 * (standardised - whitened.square().sum(0))
        # and the marginal probability of each interval
        deviation = self.equation_covariance.diagonal().clamp_min(MIN_SIGNAL_VARIANCE).sqrt()
        marginals = log_interval((low - at) / deviation, (high - at) / deviation).sum(1)
        log_probability = (dependence + marginals).clamp_min(MIN_LOG_PROBABILITY)
        return mean + residual @ self.gain.mT, log_probability

    def guide(
        self,
        mean: Tensor,
        jacobian: JacobianProduct | None = None,
        strength: float = 1.0,
        class_gradients: bool = True,
    ) -> Twisted:
        """The twisting function ψ and the mean D'' given the scenario, of denoised points (B, D).

        `jacobian`: products with the Jacobian J of the denoiser at these points. σ²J is the
        covariance of the clean point; without it C_σ takes its place. `strength` multiplies ψ;
        `class_gradients` as in `rest`.
        """
        conditioned, log_probability = self.condition(mean)
        if self.scenario.rest is None:
            return Twisted(mean, conditioned, log_probability)
        value, gradient = self.rest(conditioned, class_gradients)
        if jacobian is None:
            shift = self.conditional_product(gradient)
        else:
            rows = self.equations.rows
            shift = self.sigma**2 * jacobian(gradient - (gradient @ self.gain) @ rows)
            shift = shift - (shift @ rows.mT) @ self.gain.mT
        return Twisted(mean, conditioned + strength * shift, log_probability + value)

    def rest(self, mean: Tensor, class_gradients: bool = True) -> tuple[Tensor, Tensor]:
        """The log-probability of the formula without its equations (B,), and its gradient (B, D).

        Without `class_gradients` classifiers count in the value and not in the gradient.
        """
        scenario = self.scenario
        program = scenario.rest if class_gradients else scenario.rest_without_class_gradients
        assert program is not None
        assert self.signal_covariance is not None
        with torch.enable_grad():
            x = mean.detach().requires_grad_()
            value = log_expectation(
                program, scenario.signals(x), self.signal_covariance, scenario.semantics
            )
            value = value.clamp_min(MIN_LOG_PROBABILITY)
            if not value.requires_grad:  # a formula that always holds
                return value.to(mean), torch.zeros_like(mean)
            (gradient,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), torch.nan_to_num(gradient, 0.0, 0.0, 0.0)

    # --- exact equations, in the last step --------------------------------------------------------

    def sample(self, mean: Tensor, generator: Generator) -> ExactDraw:
        """Draws of N(mean, C_σ) given the equations as intervals, for means (B, D).

        u = A x_0 is drawn in its box by the GHK simulator, and x_0 given u by Matheron's rule.
        """
        x = mean + self.covariance.apply(self.eigenvalues.sqrt(), white(mean, generator))
        if not len(self.equations):
            return ExactDraw(x, mean, mean.new_zeros(len(mean)))
        rows = self.equations.rows
        at = mean @ rows.mT
        u, log_weight = truncated.box(at, self.exact_factor, *self._box, generator)
        gain = self.exact_gain.mT
        return ExactDraw(x + (u - x @ rows.mT) @ gain, mean + (u - at) @ gain, log_weight)

    @cached_property
    def exact_factor(self) -> Tensor:
        """The Cholesky factor of A C_σ Aᵀ, (k, k), with a small ridge for redundant equations."""
        ridge = 1e-9 * self.equation_covariance.diagonal().clamp_min(1e-12)
        factor: Tensor = torch.linalg.cholesky(self.equation_covariance + torch.diag(ridge))
        return factor

    @cached_property
    def exact_gain(self) -> Tensor:
        """C_σ Aᵀ (A C_σ Aᵀ)⁻¹, (D, k)."""
        return torch.cholesky_solve(self.cross_covariance, self.exact_factor).mT

    @cached_property
    def _box(self) -> tuple[Tensor, Tensor]:
        """The ends of the intervals of A x_0, (k,) each."""
        return truncated.shrunk(self.equations.low, self.equations.high)

    def log_range_probability(self, mean: Tensor) -> Tensor:
        """log P (B,) under N(mean, C_σ) that the signals in equations are within their ranges.

        Data are within; a Gaussian about an estimate is not: at an edge half of its mass lies
        outside, and an equation there would lose it.
        """
        scenario = self.scenario
        total = mean.new_zeros(len(mean))
        if not scenario.affine:  # such transforms map into the ranges only
            return total
        matrix, offset = scenario.jacobian(mean[0])
        pinned = self.equations.rows.abs().amax(0) > 0
        held = scenario.bounded & (matrix.abs() @ pinned.to(matrix) > 0)
        rows = matrix[held]
        deviation = (self.covariance.apply(self.eigenvalues, rows) * rows).sum(1).sqrt()
        at = mean @ rows.mT + offset[held]
        low, high = scenario.low[held], scenario.high[held]
        deviation = deviation.clamp_min(1e-12)
        return log_interval((low - at) / deviation, (high - at) / deviation).sum(1)

    def foreseen(self, mean: Tensor, psi: Tensor) -> Tensor:
        """ψ (B,) divided among the linear conditions and the observations: (B, k + m).

        Each has its log-probability under N(mean, C_σ) by itself; those of conditions are scaled to
        ψ, where the conditions are all of the formula and ψ counts their dependence.
        """
        observed = self._expected_likelihoods(mean)
        psi = psi - observed.sum(1)
        conditions = self.scenario.linear_conditions_about(mean.mean(0))
        rows = conditions.rows
        deviation = (self.covariance.apply(self.eigenvalues, rows) * rows).sum(1)
        deviation = deviation.clamp_min(MIN_SIGNAL_VARIANCE).sqrt()
        at = mean @ rows.mT
        low, high = (conditions.low - at) / deviation, (conditions.high - at) / deviation
        each = log_interval(low, high).clamp_min(MIN_LOG_PROBABILITY)
        total = each.sum(1, keepdim=True).clamp_max(-1e-9)
        return torch.cat([each * (psi[:, None] / total).clamp(0.0, 1.0), observed], 1)

    def _expected_likelihoods(self, mean: Tensor) -> Tensor:
        """The logs of the expected likelihoods of the observations, (B, m)."""
        program = self.scenario.rest
        if program is None or not program.observations:
            return mean.new_zeros(len(mean), 0)
        assert self.signal_covariance is not None
        signals = self.scenario.signals(mean)
        found = log_expected_likelihoods(program, signals, self.signal_covariance)
        return found.clamp_min(MIN_LOG_PROBABILITY)

    def conditional_product(self, x: Tensor, gain: Tensor | None = None) -> Tensor:
        """C' x for each x (B, D); `gain`: `exact_gain` for equations without a tolerance."""
        gain = self.gain if gain is None else gain
        product = self.covariance.apply(self.eigenvalues, x)
        return product - (x @ self.cross_covariance.mT) @ gain.mT


class SignalCovariance:
    """The covariance G C' Gᵀ (L, L) of many signals, never formed; each signal depends on few
    coordinates, so G is sparse."""

    def __init__(self, posterior: Posterior, matrix: Tensor) -> None:
        self.posterior, self.known = posterior, dict[Any, Any]()
        self.matrix, self.transposed = matrix.to_sparse(), matrix.mT.to_sparse()

    def through(self, rows: Tensor) -> Tensor:
        """rows (..., L) times the covariance, like them."""
        flat = rows.reshape(-1, rows.shape[-1]).double()
        products = self.posterior.conditional_product(torch.sparse.mm(self.transposed, flat.mT).mT)
        found: Tensor = torch.sparse.mm(self.matrix, products.mT).mT
        return found.reshape(rows.shape).to(rows)


class Posteriors:
    """The posteriors of a scenario by noise level, each made once where codecs are affine."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._by_level: dict[float, Posterior] = {}

    def at(self, sigma: Tensor, estimates: Tensor) -> Posterior:
        """At the level σ; equations of codecs that are not affine are linearised about the mean of
        the estimates (B, D)."""
        scenario = self.scenario
        if not scenario.affine:
            return Posterior(scenario, sigma, estimates.mean(0))
        level = float(sigma)
        if level not in self._by_level:
            if scenario.equation_count * scenario.size > MAX_CACHED_EQUATION_CELLS:
                self._by_level.clear()
            self._by_level[level] = Posterior(scenario, sigma, estimates.mean(0))
        return self._by_level[level]
