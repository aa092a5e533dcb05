"""What is known of the clean point at a noise level, given equations and a formula.

At noise σ the clean point is x_0 ~ N(D, C_σ) about its denoised estimate. Equations A x_0 = b, each
known up to a variance R (that of a number that is rounded to b), condition it exactly,

S = A C_σ Aᵀ + R,  K = C_σ Aᵀ S⁻¹,  D' = D + K (b - A D),  C' = C_σ - K A C_σ,

with the probability of each interval, and a Gaussian's word on how they go together. The rest of
the formula has the log-probability ψ(D') of `Program.belief`, and tilting N(D', C') by it moves its
mean by C'∇ψ. C_σ is never formed: it acts through the eigenvectors of the data's covariance, and
equations are few.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from constraints.gaussian.chains import log_interval
from constraints.gaussian.expectation import log_expectation
from surrogate.guidance.scenario import Scenario

RELINEARISED = 2  # times that equations which are not linear are, about what they lead to
Pull = Callable[[Tensor], Tensor]
LEAST_LOG = -1e4  # log-probabilities below it are all as bad


class Belief:
    """The Gaussian belief of a scenario at one noise level; points are flat, (B, D), float64."""

    def __init__(self, scenario: Scenario, sigma: Tensor, about: Tensor) -> None:
        """`about` (D,): where formulas are linear if the codec is not."""
        self.scenario, self.sigma = scenario, float(sigma)
        self.covariance = scenario.covariance
        self.values = self.covariance.posterior(sigma)  # eigenvalues of C_σ
        self.equations = scenario.equations_about(about)
        self._solve()
        for _ in range(0 if scenario.affine else RELINEARISED):
            about = self.condition(about[None])[0][0]
            self.equations = scenario.equations_about(about)
            self._solve()
        self.spread = scenario.spread(self, about) if scenario.rest is not None else None

    def _solve(self) -> None:
        """The gain K of the equations."""
        rows = self.equations.rows
        self.loaded = self.covariance.apply(self.values, rows)  # A C_σ, (k, D)
        self.joint = self.loaded @ rows.mT  # of A x_0, (k, k)
        middle = (self.equations.high - self.equations.low) ** 2 / 12
        self.factor = torch.linalg.cholesky(self.joint + torch.diag(middle))
        self.gain = torch.cholesky_solve(self.loaded, self.factor).mT  # K, (D, k)

    def condition(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """D' (B, D), and the log-probability of the equations (B,)."""
        low, high = self.equations.low, self.equations.high
        at = mean @ self.equations.rows.mT
        missing = (low + high) / 2 - at
        # how the equations go together, as a Gaussian has it: the joint density over single ones
        white = torch.linalg.solve_triangular(self.factor, missing.mT, upper=False)
        single = self.factor.square().sum(1).sqrt()
        together = single.log().sum() - self.factor.diagonal().log().sum()
        together = together + 0.5 * ((missing / single).square().sum(1) - white.square().sum(0))
        # and each by itself: the probability of its interval
        deviation = self.joint.diagonal().clamp_min(1e-18).sqrt()
        alone = log_interval((low - at) / deviation, (high - at) / deviation).sum(1)
        log_probability = (together + alone).clamp_min(LEAST_LOG)
        return mean + missing @ self.gain.mT, log_probability

    def tilt(
        self, mean: Tensor, pull: Pull | None = None, strength: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """ψ of the scenario (B,), and the mean of the tilted belief (B, D).

        `pull`: v -> Jᵀv with the Jacobian J of the denoiser at these points. σ²J is the covariance
        of the clean point; without it C_σ takes its place. `strength` is what ψ counts for.
        """
        conditioned, log_probability = self.condition(mean)
        if self.scenario.rest is None:
            return log_probability, conditioned
        value, slope = self.rest(conditioned)
        if pull is None:
            moved = self.narrowed(slope)
        else:
            rows = self.equations.rows
            moved = self.sigma**2 * pull(slope - (slope @ self.gain) @ rows)
            moved = moved - (moved @ rows.mT) @ self.gain.mT
        return log_probability + value, conditioned + strength * moved

    def rest(self, mean: Tensor) -> tuple[Tensor, Tensor]:
        """The log-probability of the rest of the formula (B,) and its gradient (B, D)."""
        scenario = self.scenario
        assert scenario.rest is not None
        assert self.spread is not None
        with torch.enable_grad():
            x = mean.detach().requires_grad_()
            value = log_expectation(
                scenario.rest, scenario.flat(x), self.spread, scenario.semantics
            )
            value = value.clamp_min(LEAST_LOG)
            if not value.requires_grad:  # of what is always true
                return value.to(mean), torch.zeros_like(mean)
            (slope,) = torch.autograd.grad(value.sum(), x)
        return value.detach(), torch.nan_to_num(slope, 0.0, 0.0, 0.0)

    def log_within(self, mean: Tensor) -> Tensor:
        """log P (B,) that the signals which the equations pin are within their ranges.

        A clean point is known to be, a Gaussian about its estimate is not: at an edge it has half
        of its weight outside, and an equation there would lose it.
        """
        scenario = self.scenario
        total = mean.new_zeros(len(mean))
        if not scenario.affine:  # whose transforms lead into the ranges only
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
        """The Cholesky factor of A C_σ Aᵀ, (k, k); equations that repeat one another have a hair
        of room.
        """
        room = 1e-9 * self.joint.diagonal().clamp_min(1e-12)
        factor: Tensor = torch.linalg.cholesky(self.joint + torch.diag(room))
        return factor

    def narrowed(self, x: Tensor) -> Tensor:
        """C' x for each x (B, D)."""
        wide = self.covariance.apply(self.values, x)
        return wide - (x @ self.loaded.mT) @ self.gain.mT
