"""The posterior of the clean point at a noise level, given equations and a formula.

At noise σ the clean point is approximately x_0 ~ N(D, C_σ) about its denoised estimate D; the code
calls this approximation the `posterior`. Equations A x_0 = b, each up to a variance R (that of a
number that is rounded to b), condition it exactly,

S = A C_σ Aᵀ + R,  K = C_σ Aᵀ S⁻¹,  D' = D + K (b - A D),  C' = C_σ - K A C_σ,

with the probability of each interval, and a Gaussian approximation of their dependence. The rest of
the formula has the log-probability ψ(D') of `log_expectation`, and weighting N(D', C') by e^ψ moves
its mean by C'∇ψ, to D''. C_σ is never formed: it acts through the eigenvectors of the data
covariance, and equations are few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from constraints.gaussian.chains import log_interval
from constraints.gaussian.expectation import CovarianceOperator, DenseCovariance, log_expectation
from surrogate.guidance.scenario import Scenario

RELINEARISATIONS = 2  # of equations that are not linear, about the point they condition to
MIN_LOG_PROBABILITY = -1e4  # log-probabilities are cut off here
MAX_CACHED_EQUATION_CELLS = 1_000_000  # numbers in A, above which one noise level is kept at a time
MIN_VARIANCE = 1e-18  # of a signal in an equation
JacobianProduct = Callable[[Tensor], Tensor]  # v -> Jᵀv, (B, D) each


class Posterior:
    """N(D, C_σ) at one noise level, given a scenario; points are flat, (B, D), float64."""

    def __init__(self, scenario: Scenario, sigma: Tensor, about: Tensor) -> None:
        """`about` (D,): where formulas are linearised if the codec is not affine."""
        self.scenario, self.sigma = scenario, float(sigma)
        self.covariance = scenario.covariance
        self.values = self.covariance.posterior(sigma)  # eigenvalues of C_σ
        self.equations = scenario.equations_about(about)
        self._solve()
        for _ in range(0 if scenario.affine else RELINEARISATIONS):
            about = self.condition(about[None])[0][0]
            self.equations = scenario.equations_about(about)
            self._solve()
        self.spread = self._signal_covariance(about) if scenario.rest is not None else None

    def _solve(self) -> None:
        """The gain K of the equations."""
        rows = self.equations.rows
        self.loaded = self.covariance.apply(self.values, rows)  # A C_σ, (k, D)
        self.joint = self.loaded @ rows.mT  # covariance of A x_0, (k, k)
        rounding = (self.equations.high - self.equations.low) ** 2 / 12  # R
        self.factor = torch.linalg.cholesky(self.joint + torch.diag(rounding))  # L, S = L Lᵀ
        self.gain = torch.cholesky_solve(self.loaded, self.factor).mT  # K, (D, k)

    def _signal_covariance(self, about: Tensor) -> CovarianceOperator:
        """The covariance of the signals, given the equations: (L, L)."""
        matrix, _ = self.scenario.jacobian(about)
        if matrix.numel() > self.scenario.max_dense:
            return SignalCovariance(self, matrix)
        spread = self.conditional(matrix) @ matrix.mT
        return DenseCovariance((spread + spread.mT) / 2)

    def condition(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """D' (B, D), and the log-probability of the equations (B,)."""
        low, high = self.equations.low, self.equations.high
        at = mean @ self.equations.rows.mT
        missing = (low + high) / 2 - at
        # their dependence, as a Gaussian has it: the joint density over the product of single ones
        white = torch.linalg.solve_triangular(self.factor, missing.mT, upper=False)
        single = self.factor.square().sum(1).sqrt()
        together = single.log().sum() - self.factor.diagonal().log().sum()
        together = together + 0.5 * ((missing / single).square().sum(1) - white.square().sum(0))
        # and the probability of each interval by itself
        deviation = self.joint.diagonal().clamp_min(MIN_VARIANCE).sqrt()
        alone = log_interval((low - at) / deviation, (high - at) / deviation).sum(1)
        log_probability = (together + alone).clamp_min(MIN_LOG_PROBABILITY)
        return mean + missing @ self.gain.mT, log_probability

    def guide(
        self,
        mean: Tensor,
        jacobian: JacobianProduct | None = None,
        strength: float = 1.0,
        class_gradients: bool = True,
    ) -> tuple[Tensor, Tensor]:
        """ψ of the scenario (B,), and the mean D'' of the clean point given the scenario (B, D).

        `jacobian`: products with the Jacobian J of the denoiser at these points. σ²J is the
        covariance of the clean point; without it C_σ takes its place. `strength` multiplies ψ;
        `class_gradients` as in `rest`.
        """
        conditioned, log_probability = self.condition(mean)
        if self.scenario.rest is None:
            return log_probability, conditioned
        value, gradient = self.rest(conditioned, class_gradients)
        if jacobian is None:
            moved = self.conditional(gradient)
        else:
            rows = self.equations.rows
            moved = self.sigma**2 * jacobian(gradient - (gradient @ self.gain) @ rows)
            moved = moved - (moved @ rows.mT) @ self.gain.mT
        return log_probability + value, conditioned + strength * moved

    def rest(self, mean: Tensor, class_gradients: bool = True) -> tuple[Tensor, Tensor]:
        """The log-probability of the formula without its equations (B,), and its gradient (B, D).

        Without `class_gradients` classifiers count in the value and not in the gradient.
        """
        scenario = self.scenario
        program = scenario.rest if class_gradients else scenario.rest_without_class_gradients
        assert program is not None
        assert self.spread is not None
        with torch.enable_grad():
            x = mean.detach().requires_grad_()
            value = log_expectation(program, scenario.flat(x), self.spread, scenario.semantics)
            value = value.clamp_min(MIN_LOG_PROBABILITY)
            if not value.requires_grad:  # a formula that always holds
                return value.to(mean), torch.zeros_like(mean)
            (gradient,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), torch.nan_to_num(gradient, 0.0, 0.0, 0.0)

    def log_within(self, mean: Tensor) -> Tensor:
        """log P (B,) that the signals which the equations pin are within their ranges.

        A clean point is known to be within; a Gaussian about its estimate is not: at an edge half
        of its mass lies outside, and an equation there would lose it.
        """
        scenario = self.scenario
        total = mean.new_zeros(len(mean))
        if not scenario.affine:  # such transforms map into the ranges only
            return total
        matrix, offset = scenario.jacobian(mean[0])
        pinned = self.equations.rows.abs().amax(0) > 0
        held = scenario.limited & (matrix.abs() @ pinned.to(matrix) > 0)
        rows = matrix[held]
        deviation = (self.covariance.apply(self.values, rows) * rows).sum(1).sqrt()
        at = mean @ rows.mT + offset[held]
        low, high = scenario.low[held], scenario.high[held]
        deviation = deviation.clamp_min(1e-12)
        return log_interval((low - at) / deviation, (high - at) / deviation).sum(1)

    def exact_factor(self) -> Tensor:
        """The Cholesky factor of A C_σ Aᵀ, (k, k), with a little room for equations that repeat
        one another."""
        room = 1e-9 * self.joint.diagonal().clamp_min(1e-12)
        factor: Tensor = torch.linalg.cholesky(self.joint + torch.diag(room))
        return factor

    def conditional(self, x: Tensor) -> Tensor:
        """C' x for each x (B, D)."""
        wide = self.covariance.apply(self.values, x)
        return wide - (x @ self.loaded.mT) @ self.gain.mT


class SignalCovariance:
    """The covariance G C' Gᵀ of many signals, never formed; each depends on few coordinates, so G
    is sparse."""

    def __init__(self, posterior: Posterior, matrix: Tensor) -> None:
        self.posterior, self.known = posterior, dict[Any, Any]()
        self.matrix, self.transposed = matrix.to_sparse(), matrix.mT.to_sparse()

    def through(self, rows: Tensor) -> Tensor:
        """rows (..., L) times it, like them."""
        flat = rows.reshape(-1, rows.shape[-1]).double()
        spread = self.posterior.conditional(torch.sparse.mm(self.transposed, flat.mT).mT)
        found: Tensor = torch.sparse.mm(self.matrix, spread.mT).mT
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
