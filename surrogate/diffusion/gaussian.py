"""Gaussian data, for which denoising is exact: the reference for everything learned.

Data N(m, C) under noise σ are N(m, C + σ²I), and given x the clean point is N(D(x, σ), C_σ) with

D = m + C (C + σ²I)⁻¹ (x - m),   C_σ = (C⁻¹ + σ⁻²I)⁻¹ = σ² C (C + σ²I)⁻¹.

A mixture of Gaussians denoises as the mean of its components' D, weighted by their posterior
probabilities.
"""

from __future__ import annotations

import math

import torch
from torch import Generator, Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.errors import ModelError


class GaussianDenoiser(Denoiser):
    """Exact for data N(mean, covariance); mean (D,), covariance (D, D), batches (B, *shape)."""

    def __init__(self, mean: Tensor, covariance: Tensor) -> None:
        self.mean = mean
        self.covariance = Covariance(covariance)
        if mean.shape != self.covariance.values.shape:
            raise ModelError(
                f"a mean of shape {tuple(mean.shape)} does not fit a covariance of shape "
                f"{tuple(covariance.shape)}",
                value=tuple(mean.shape),
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
            raise ModelError(
                "a singular covariance has no density", remedy="choose a noise level σ > 0"
            )
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
                f"{len(means)} and {len(covariances)}",
                value=(len(weights), len(means), len(covariances)),
            )
        if not (bool((weights > 0).all()) and 0 < float(weights.sum()) < math.inf):
            raise ModelError(
                f"the weights of a mixture must be positive, not {weights.tolist()}",
                value=weights.tolist(),
            )
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
