"""Denoisers: the expected clean point D(x, σ) = E[x_0 | x], where x = x_0 + σ n, n ~ N(0, I).

The score of the noisy data is the same knowledge, ∇ log p_σ(x) = (D(x, σ) - x)/σ² (Tweedie's
formula), and the two convert here only. Denoisers live in coordinates in which data keep their
scale; x_t = α x_0 + σ n is x_t/α at the noise level σ/α. A batch has any rank, (B, *shape).

Ways to make a denoiser of a network (B, *shape), (B,) -> (B, *shape): `Preconditioned` (Karras
et al. 2022, "Elucidating the design space of diffusion-based generative models", table 1),
`Whitened`, the same with the covariance of the data in place of their deviation, and
`ScoreDenoiser` (Song & Ermon 2020, "Improved techniques for training score-based generative
models", with the capped scaling for tables and series of Scassola et al. 2023, "Conditioning
score-based generative models by neuro-symbolic constraints").
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.schedule import Schedule
from surrogate.errors import ModelError

SMOOTH_DEVIATION = 0.03  # in the units of standardised data
MIN_DEVIATION = 1e-5  # in the units of standardised data, of which single precision knows 1e-7


class Denoiser(ABC):
    """E[x_0 | x]: learned, exact or guided; every sampler takes any of them."""

    @abstractmethod
    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        """D(x, σ), like x (B, *shape), at noise levels σ (B,) or ()."""

    def score(self, x: Tensor, sigma: Tensor, alpha: Tensor | None = None) -> Tensor:
        """∇ log p(x) of x = α x_0 + σ n, like x; α and σ are (B,) or (), α is 1 if not given."""
        if alpha is None:
            return (self(x, sigma) - x) / expand(sigma, x) ** 2
        scale = expand(alpha, x)
        return (scale * self(x / scale, sigma / alpha) - x) / expand(sigma, x) ** 2


def expand(sigma: Tensor, x: Tensor) -> Tensor:
    """Noise levels (B,) or () as (B, 1, ..., 1) of the type of x (B, *shape), to multiply it."""
    if sigma.ndim and sigma.shape != x.shape[:1]:
        raise ModelError(
            f"noise levels of shape {tuple(sigma.shape)} for a batch of shape {tuple(x.shape)}",
            remedy="give one level, or one for each of the batch",
        )
    return sigma.to(x).expand(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1))


class Bounded(Denoiser):
    """A denoiser with estimates kept in a convex set that holds the data, as E[x_0 | x] is.

    `within` maps a batch into the set; points of the set stay as they are.
    """

    def __init__(self, denoiser: Denoiser, within: Callable[[Tensor], Tensor]) -> None:
        self.denoiser, self.within = denoiser, within

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        return self.within(self.denoiser(x, sigma))


class Preconditioned(nn.Module, Denoiser):
    """D = c_skip x + c_out F(c_in x, c_noise): F sees and predicts unit variance at every level.

    `sigma_data` is the standard deviation of the data; c_noise (B,) or (1,) is log(σ)/4.
    """

    def __init__(self, network: nn.Module, sigma_data: float = 1.0) -> None:
        super().__init__()
        if not 0 < sigma_data < math.inf:
            raise ModelError(f"sigma_data must be a number > 0, not {sigma_data}", value=sigma_data)
        self.network = network
        self.sigma_data = sigma_data

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        level = expand(sigma, x)
        total = level**2 + self.sigma_data**2
        # at σ = 0 the network has no weight, and log σ must stay finite; one level for all is
        # embedded once
        known = sigma.to(x).reshape(-1).clamp_min(torch.finfo(x.dtype).tiny)
        c_noise = torch.log(known) / 4
        predicted: Tensor = self.network(x / total.sqrt(), c_noise)
        return self.sigma_data**2 / total * x + level * self.sigma_data / total.sqrt() * predicted


def smooth(covariance: Covariance) -> bool:
    """Whether standardised data hardly vary in half of all directions, the eigenvectors of C.

    Otherwise `Whitened` gains little, and loses: errors in directions that hold noise count as much
    as those that show how the data are distributed.
    """
    rank, size = covariance.vectors.shape[1], covariance.size
    small = covariance.values < SMOOTH_DEVIATION**2
    still = int(small[:rank].sum()) + (size - rank) * int(small[-1])
    return 2 * still >= size


class Whitened(Preconditioned):
    """The same for data of covariance C in place of sigma_data² I: with C_σ = σ² C (C + σ²I)⁻¹,

    D = C (C + σ²I)⁻¹ x + C_σ^(1/2) F((C + σ²I)^(-1/2) x, c_noise), roots symmetric.

    The first term is the denoiser of Gaussian data N(0, C), the second has the deviation that is
    left: in a direction in which the data hardly vary estimates hardly vary, whatever F does, so
    that smooth curves stay smooth. For C = sigma_data² I it is `Preconditioned`.
    """

    def __init__(self, network: nn.Module, covariance: Covariance) -> None:
        super().__init__(network)
        self.covariance = covariance

    @property
    def covariance(self) -> Covariance:
        """C, its eigenvalues at least MIN_DEVIATION²."""
        return self._covariance

    @covariance.setter
    def covariance(self, own: Covariance) -> None:
        values = own.values.clamp_min(MIN_DEVIATION**2)
        self._covariance = Covariance.restore(values, own.vectors)

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        own, flat = self._covariance, x.flatten(1)
        noise = sigma.to(x).reshape(-1, 1).double().square()
        variances = own.values.to(x.device)
        total = variances + noise
        c_noise = torch.log(noise[:, 0].clamp_min(torch.finfo(x.dtype).tiny)).to(x) / 8
        predicted = self.network(own.apply(total.rsqrt(), flat).reshape(x.shape), c_noise)
        shrunk = own.apply(variances / total, flat)
        moved = own.apply((noise * variances / total).sqrt(), predicted.flatten(1))
        return (shrunk + moved).reshape(x.shape)

    def standardised(self, error: Tensor, sigma: Tensor) -> Tensor:
        """Errors of D (B, *shape) in units of F: C_σ^(-1/2) times each."""
        own, noise = self._covariance, sigma.to(error).reshape(-1, 1).double().square()
        variances = own.values.to(error.device)
        return own.apply(((variances + noise) / (variances * noise)).sqrt(), error)


class ScoreDenoiser(nn.Module, Denoiser):
    """A network that predicts the score in the coordinates of a schedule, x_t = α x_0 + σ_t n:

    s(x_t, t) = min(1/σ_t, cap) F(x_t/√(α² + σ_t²), t) - [prior] x_t/(α² + σ_t²).

    The last term is the score of standardised data if they were white noise; the cap keeps the
    score from exploding as t -> 0.
    """

    def __init__(
        self, network: nn.Module, schedule: Schedule, cap: float = 1.0, prior: bool = True
    ) -> None:
        super().__init__()
        if not cap > 0:
            raise ModelError(f"cap must be a number > 0 (inf for none), not {cap}", value=cap)
        self.network = network
        self.schedule = schedule
        self.cap = cap
        self.prior = prior

    def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
        level = expand(sigma, x)
        t = self.schedule.time_of(level)
        alpha, _ = self.schedule(t)
        x_t, sigma_t = alpha * x, alpha * level
        variance = alpha**2 + sigma_t**2
        score: Tensor = self.network(x_t / variance.sqrt(), t.flatten())
        score = score * (1 / sigma_t).clamp_max(self.cap)
        if self.prior:
            score = score - x_t / variance
        return (x_t + sigma_t**2 * score) / alpha
