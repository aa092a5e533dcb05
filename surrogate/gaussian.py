"""Gaussian data, for which denoising is exact: the reference for everything learned.

Data N(m, C) under noise σ are N(m, C + σ²I), and given x the clean point is N(D(x, σ), C_σ) with

D = m + C (C + σ²I)⁻¹ (x - m),   C_σ = (C⁻¹ + σ⁻²I)⁻¹ = σ² C (C + σ²I)⁻¹.

All of these are functions of C, that is, of its eigenvalues λ, so C may be singular. A mixture of
Gaussians denoises as the mean of its components' D, weighted by their posterior probabilities.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from surrogate.denoise import Denoiser
from surrogate.errors import ModelError


class Covariance:
    """A covariance C (D, D) = U diag(λ) Uᵀ; functions of it are functions of λ (D,)."""

    def __init__(self, matrix: Tensor) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise ModelError(f"a covariance has shape (D, D), not {tuple(matrix.shape)}")
        exact = matrix.detach().double()
        scale = float(exact.diagonal().abs().max())
        slack = 1e-5 * scale  # what single precision may leave of symmetry and sign
        if not bool(torch.isfinite(exact).all()) or float((exact - exact.mT).abs().max()) > slack:
            raise ModelError("a covariance must be finite and symmetric")
        values: Tensor
        vectors: Tensor
        values, vectors = torch.linalg.eigh((exact + exact.mT) / 2)
        if float(values[0]) < -slack * len(values):
            raise ModelError(f"a covariance has no negative eigenvalues; got {float(values[0]):g}")
        self.values, self.vectors = values.clamp_min(0), vectors

    def gain(self, sigma: Tensor) -> Tensor:
        """Eigenvalues of C (C + σ²I)⁻¹, the Jacobian of D; (D,), or (B, D) for levels (B,)."""
        values = self.values.to(sigma.device)
        noise = torch.square(sigma.double()).unsqueeze(-1)
        return values / (values + noise).clamp_min(torch.finfo(torch.float64).tiny)

    def posterior(self, sigma: Tensor) -> Tensor:
        """Eigenvalues of C_σ; (D,), or (B, D) for levels (B,)."""
        return torch.square(sigma.double()).unsqueeze(-1) * self.gain(sigma)

    def apply(self, values: Tensor, x: Tensor) -> Tensor:
        """U diag(values) Uᵀ x for each x of (B, *shape), flattened; values (D,) or (B, D)."""
        vectors = self.vectors.to(x)
        return (((self.flat(x) @ vectors) * values.to(x)) @ vectors.mT).reshape(x.shape)

    def matrix(self, values: Tensor) -> Tensor:
        """U diag(values) Uᵀ, (D, D)."""
        return (self.vectors * values) @ self.vectors.mT

    def flat(self, x: Tensor) -> Tensor:
        """A batch (B, *shape) as (B, D)."""
        if x.shape[1:].numel() != len(self.values):
            raise ModelError(
                f"a covariance of {len(self.values)} coordinates cannot act on a batch of shape "
                f"{tuple(x.shape)}"
            )
        return x.flatten(1)


class GaussianDenoiser(Denoiser):
    """Exact for data N(mean, covariance); mean (D,), covariance (D, D), batches (B, *shape)."""

    def __init__(self, mean: Tensor, covariance: Tensor) -> None:
        self.mean = mean
        self.covariance = Covariance(covariance)
        if mean.shape != self.covariance.values.shape:
            raise ModelError(
                f"a mean of shape {tuple(mean.shape)} does not fit a covariance of shape "
                f"{tuple(covariance.shape)}"
            )

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        mean = self.mean.to(x)
        centred = self.covariance.flat(x) - mean
        return (mean + self.covariance.apply(self.covariance.gain(sigma), centred)).reshape(x.shape)

    def posterior(self, sigma: Tensor | float) -> Tensor:
        """C_σ (D, D): the covariance of the clean point at one noise level."""
        level = torch.as_tensor(sigma, dtype=torch.float64)
        return self.covariance.matrix(self.covariance.posterior(level)).to(self.mean)

    def sample(self, n: int, generator: Generator, sigma: float = 0.0) -> Tensor:
        """Draws of the data under noise σ, (n, D)."""
        noise = self.mean.new_empty(n, len(self.mean)).normal_(generator=generator)
        spread = torch.sqrt(self.covariance.values + sigma**2)
        return self.mean + self.covariance.apply(spread, noise)

    def log_prob(self, x: Tensor, sigma: Tensor | float = 0.0) -> Tensor:
        """Log-density of the data under noise σ at x (B, *shape), (B,)."""
        level = torch.as_tensor(sigma, dtype=torch.float64, device=x.device)
        variances = self.covariance.values.to(x.device) + torch.square(level).unsqueeze(-1)
        if not bool((variances > 0).all()):
            raise ModelError("a singular covariance has no density; ask for it under noise σ > 0")
        centred = self.covariance.flat(x) - self.mean.to(x)
        along = torch.square(centred @ self.covariance.vectors.to(x)) / variances.to(x)
        normaliser = torch.log(2 * math.pi * variances).sum(-1).to(x)
        return -(along.sum(-1) + normaliser) / 2


class MixtureDenoiser(Denoiser):
    """Exact for Σ_k w_k N(m_k, C_k); weights (K,), means (K, D), covariances (K, D, D)."""

    def __init__(self, weights: Tensor, means: Tensor, covariances: Tensor) -> None:
        if not len(weights) == len(means) == len(covariances):
            raise ModelError(
                f"a mixture needs as many weights, means and covariances, not {len(weights)}, "
                f"{len(means)} and {len(covariances)}"
            )
        if not (bool((weights > 0).all()) and 0 < float(weights.sum()) < math.inf):
            raise ModelError(f"the weights of a mixture must be positive, not {weights.tolist()}")
        self.weights = weights / weights.sum()
        self.components = [
            GaussianDenoiser(mean, covariance)
            for mean, covariance in zip(means, covariances, strict=True)
        ]

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        shares = torch.softmax(self._joint(x, sigma), 0)
        means = torch.stack([each(x, sigma) for each in self.components])
        return torch.einsum("kb,kb...->b...", shares, means)

    def sample(self, n: int, generator: Generator, sigma: float = 0.0) -> Tensor:
        """Draws of the data under noise σ, (n, D)."""
        chosen = torch.multinomial(self.weights, n, replacement=True, generator=generator)
        draws = self.components[0].mean.new_empty(n, len(self.components[0].mean))
        for k, component in enumerate(self.components):
            mine = chosen == k
            draws[mine] = component.sample(int(mine.sum()), generator, sigma)
        return draws

    def log_prob(self, x: Tensor, sigma: Tensor | float = 0.0) -> Tensor:
        """Log-density of the data under noise σ at x (B, *shape), (B,)."""
        return torch.logsumexp(self._joint(x, sigma), 0)

    def _joint(self, x: Tensor, sigma: Tensor | float) -> Tensor:
        """log w_k + log p_k(x) under noise σ, (K, B)."""
        each = torch.stack([component.log_prob(x, sigma) for component in self.components])
        return torch.log(self.weights).to(x)[:, None] + each
