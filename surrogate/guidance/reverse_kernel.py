"""The reverse-diffusion kernel as named distributions: the target p, the proposal q, log p - log q.

From σ_t to σ_s (`sampling.reverse_step`), with r = σ_s²/σ_t², D the denoised point, and D'', C' the
mean and the covariance of the clean point given the scenario (`posterior`):

target    p(x_s | x_t) = N(m, P),     m   = D + r (x_t - D),       P  = σ_s² (1-r) I + (1-r)² C_σ
proposal  q(x_s | x_t) = N(m'', P'),  m'' = D'' + r (x_t - D''),   P' = σ_s² (1-r) I + (1-r)² C'

These are p(x_s | x_t) and its twisted proposal in the Twisted Diffusion Sampler (Wu et al. 2023,
arXiv:2306.17775, equations 7 and 11), with a covariance. With C' = C_σ - K S Kᵀ, S = L Lᵀ, the
proposal's covariance is P' = P - W Wᵀ, W = (1-r) K L with a column for each equation, and by the
Woodbury identity, with e = x_s - m'', B = WᵀP⁻¹ and F Fᵀ = I - B W,

log p - log q = -½ (m''-m)ᵀP⁻¹(2e + m''-m) + ½ |F⁻¹ B e|² + log det F.

Neither P nor P' is ever formed: P acts through the eigenvectors of the data covariance.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.guidance.posterior import Posterior
from surrogate.sampling.reverse_step import ReverseStep
from surrogate.sampling.steps import white


@dataclass(frozen=True)
class Draw:
    """A draw from a proposal."""

    x_s: Tensor
    """(B, D)."""
    noise: Tensor
    """e = x_s - m'', (B, D)."""


@dataclass(frozen=True)
class Transition:
    """A Gaussian distribution of x_s given x_t: the target or the proposal of a kernel."""

    kernel: ReverseKernel
    x_t: Tensor
    """(B, D)."""
    clean: Tensor
    """Mean of the clean point, (B, D): D of the target, D'' of the proposal."""

    @property
    def mean(self) -> Tensor:
        """m or m'', (B, D)."""
        return self.kernel.step.mean(self.x_t, self.clean)


class Proposal(Transition):
    """q(x_s | x_t)."""

    def sample(self, generator: Generator) -> Draw:
        """x_s for each x_t."""
        noise = self.kernel.noise(self.x_t, generator)
        return Draw(self.mean + noise, noise)

    def log_ratio(self, target: Transition, draw: Draw) -> Tensor:
        """The importance weight log p(x_s | x_t) - log q(x_s | x_t) of draws, (B,)."""
        shift = (1 - self.kernel.step.r) * (self.clean - target.clean)  # m'' - m
        return self.kernel.log_ratio(shift, draw.noise)


class ReverseKernel(ABC):
    """The step from σ_t to σ_s."""

    step: ReverseStep

    def target(self, x_t: Tensor, denoised: Tensor) -> Transition:
        """p(x_s | x_t), of points and their denoised estimates D, (B, D) each."""
        return Transition(self, x_t, denoised)

    def proposal(self, x_t: Tensor, guided: Tensor) -> Proposal:
        """q(x_s | x_t), of points and their guided estimates D'', (B, D) each."""
        return Proposal(self, x_t, guided)

    @abstractmethod
    def noise(self, x_t: Tensor, generator: Generator) -> Tensor:
        """A draw from N(0, P') for each point, (B, D)."""

    @abstractmethod
    def log_ratio(self, shift: Tensor, noise: Tensor) -> Tensor:
        """log p - log q, (B,), from m'' - m and x_s - m'', (B, D) each."""


class PosteriorKernel(ReverseKernel):
    """The kernel whose clean point has the covariance C_σ, or C' given equations."""

    def __init__(self, posterior: Posterior, sigma_t: Tensor, sigma_s: Tensor) -> None:
        self.posterior = posterior
        self.step = ReverseStep.of_floats(sigma_t, sigma_s)

    def noise(self, x_t: Tensor, generator: Generator) -> Tensor:
        posterior, rest = self.posterior, 1 - self.step.r
        # Matheron's rule: a draw of N(0, C_σ), conditioned on the equations, has the covariance C'
        clean = posterior.covariance.apply(posterior.eigenvalues.sqrt(), white(x_t, generator))
        equations = posterior.equations
        width = ((equations.high - equations.low) / 12**0.5).expand(len(x_t), -1)
        jitter = width * white(width, generator)
        clean = clean - (clean @ equations.rows.mT + jitter) @ posterior.gain.mT
        fresh = self.step.sigma_s * rest**0.5 * white(x_t, generator)
        found: Tensor = rest * clean + fresh
        return found

    def log_ratio(self, shift: Tensor, noise: Tensor) -> Tensor:
        posterior, covariance = self.posterior, self.posterior.covariance
        values = self.step.variances(posterior.eigenvalues)  # of P
        found = -0.5 * (covariance.apply(1 / values, shift) * (2 * noise + shift)).sum(1)
        if len(posterior.equations):
            w = (1 - self.step.r) * posterior.gain @ posterior.factor  # W, (D, k)
            b = covariance.apply(1 / values, w.mT)  # Wᵀ P⁻¹, (k, D)
            f = torch.linalg.cholesky(torch.eye(len(posterior.equations)).to(w) - b @ w)
            whitened = torch.linalg.solve_triangular(f, b @ noise.mT, upper=False)  # F⁻¹ B e
            found = found + 0.5 * whitened.square().sum(0) + f.diagonal().log().sum()
        return found


class IsotropicKernel(ReverseKernel):
    """The kernel of a clean point that is taken as certain: P = P' = σ_s² (1-r) I."""

    def __init__(self, sigma_t: Tensor, sigma_s: Tensor) -> None:
        self.step = ReverseStep.of_floats(sigma_t, sigma_s)
        self.deviation: float = self.step.sigma_s * (1 - self.step.r) ** 0.5

    def noise(self, x_t: Tensor, generator: Generator) -> Tensor:
        return self.deviation * white(x_t, generator)

    def log_ratio(self, shift: Tensor, noise: Tensor) -> Tensor:
        if self.deviation == 0:
            return noise.new_zeros(len(noise))
        return -(shift * (2 * noise + shift)).sum(1) / (2 * self.deviation**2)
