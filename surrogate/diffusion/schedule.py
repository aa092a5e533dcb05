"""Noise schedules: how data turn into noise, x_t = α(t) x_0 + σ(t) n, n ~ N(0, I), t in [0, 1].

The SDE dx = (d log α/dt) x dt + g dw with g² = dσ²/dt - 2 (d log α/dt) σ² has the same marginals.
With b(t) = ∫β, β linear from `beta_min` to `beta_max`:

| schedule | α        | σ                                       | σ/α          |
|----------|----------|-----------------------------------------|--------------|
| `VE`     | 1        | σ_min (σ_max/σ_min)^t                   | σ            |
| `VP`     | e^(-b/2) | √(1 - e^-b)                             | √(e^b - 1)   |
| `SubVP`  | e^(-b/2) | 1 - e^-b                                | 2 sinh(b/2)  |
| `EDM`    | 1        | ((1-t) σ_min^(1/ρ) + t σ_max^(1/ρ))^ρ   | σ            |

Song et al. 2021, "Score-based generative modeling through stochastic differential equations" (VE,
VP, sub-VP); Karras et al. 2022, "Elucidating the design space of diffusion-based generative
models" (EDM).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from surrogate.errors import ModelError


class Schedule(ABC):
    """Signal and noise over time. Times have any shape, and what is made of them has the same."""

    name: ClassVar[str]

    @abstractmethod
    def __call__(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """(α, σ) at time t."""

    @abstractmethod
    def drift_and_diffusion(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """(d log α/dt, g²) at time t."""

    @abstractmethod
    def time_of(self, sigma_over_alpha: Tensor) -> Tensor:
        """The time in [0, 1] at which σ/α has this value, or comes closest to it."""

    def ratio(self, t: Tensor) -> Tensor:
        """σ/α at time t: the noise level in coordinates where data keep their scale."""
        alpha, sigma = self(t)
        return sigma / alpha

    def to_config(self) -> dict[str, Any]:
        """Name and settings, as `from_config` reads them."""
        return {"name": self.name, **vars(self)}


@dataclass(frozen=True)
class VE(Schedule):
    """Noise that grows by a constant factor while the data stay."""

    sigma_min: float = 0.01
    sigma_max: float = 50.0
    name: ClassVar[str] = "ve"

    def __post_init__(self) -> None:
        _ordered(self, "sigma_min", "sigma_max")

    def __call__(self, t: Tensor) -> tuple[Tensor, Tensor]:
        return torch.ones_like(t), self.sigma_min * torch.exp(self._rate * t)

    def drift_and_diffusion(self, t: Tensor) -> tuple[Tensor, Tensor]:
        _, sigma = self(t)
        return torch.zeros_like(t), 2 * self._rate * sigma**2

    def time_of(self, sigma_over_alpha: Tensor) -> Tensor:
        return (torch.log(sigma_over_alpha / self.sigma_min) / self._rate).clamp(0, 1)

    @property
    def _rate(self) -> float:
        """d log σ/dt."""
        return math.log(self.sigma_max / self.sigma_min)


@dataclass(frozen=True)
class _Decaying(Schedule):
    """Signal that decays at the rate β/2."""

    beta_min: float = 0.1
    beta_max: float = 20.0

    def __post_init__(self) -> None:
        _ordered(self, "beta_min", "beta_max")

    def _decay(self, t: Tensor) -> tuple[Tensor, Tensor]:
        """β and its integral b."""
        slope = self.beta_max - self.beta_min
        return self.beta_min + slope * t, (self.beta_min + slope * t / 2) * t

    def _time_at(self, b: Tensor) -> Tensor:
        """The root of b(t) = b, written so that nothing cancels near 0."""
        slope = self.beta_max - self.beta_min
        root = torch.sqrt(self.beta_min**2 + 2 * slope * b)
        return (2 * b / (self.beta_min + root)).clamp(0, 1)


@dataclass(frozen=True)
class VP(_Decaying):
    """Signal that decays as the noise grows, α² + σ² = 1."""

    name: ClassVar[str] = "vp"

    def __call__(self, t: Tensor) -> tuple[Tensor, Tensor]:
        _, b = self._decay(t)
        return torch.exp(-b / 2), torch.sqrt(-torch.expm1(-b))

    def drift_and_diffusion(self, t: Tensor) -> tuple[Tensor, Tensor]:
        beta, _ = self._decay(t)
        return -beta / 2, beta

    def time_of(self, sigma_over_alpha: Tensor) -> Tensor:
        return self._time_at(torch.log1p(sigma_over_alpha**2))


@dataclass(frozen=True)
class SubVP(_Decaying):
    """The decay of `VP` with less noise on the way, σ = 1 - α²."""

    name: ClassVar[str] = "sub-vp"

    def __call__(self, t: Tensor) -> tuple[Tensor, Tensor]:
        _, b = self._decay(t)
        return torch.exp(-b / 2), -torch.expm1(-b)

    def drift_and_diffusion(self, t: Tensor) -> tuple[Tensor, Tensor]:
        beta, b = self._decay(t)
        return -beta / 2, -beta * torch.expm1(-2 * b)

    def time_of(self, sigma_over_alpha: Tensor) -> Tensor:
        return self._time_at(2 * torch.asinh(sigma_over_alpha / 2))


@dataclass(frozen=True)
class EDM(Schedule):
    """Noise whose ρ-th root grows linearly: `karras` levels at equal times."""

    sigma_min: float = 0.002
    sigma_max: float = 80.0
    rho: float = 7.0
    name: ClassVar[str] = "edm"

    def __post_init__(self) -> None:
        _ordered(self, "sigma_min", "sigma_max")
        _positive(self, "rho")

    def __call__(self, t: Tensor) -> tuple[Tensor, Tensor]:
        low, slope = self._root
        return torch.ones_like(t), (low + slope * t) ** self.rho

    def drift_and_diffusion(self, t: Tensor) -> tuple[Tensor, Tensor]:
        low, slope = self._root
        growth = 2 * self.rho * slope * (low + slope * t) ** (2 * self.rho - 1)
        return torch.zeros_like(t), growth

    def time_of(self, sigma_over_alpha: Tensor) -> Tensor:
        low, slope = self._root
        return ((sigma_over_alpha ** (1 / self.rho) - low) / slope).clamp(0, 1)

    @property
    def _root(self) -> tuple[float, float]:
        """σ^(1/ρ) at t = 0 and its slope."""
        low = self.sigma_min ** (1 / self.rho)
        return low, self.sigma_max ** (1 / self.rho) - low


SCHEDULES: dict[str, type[Schedule]] = {kind.name: kind for kind in (VE, VP, SubVP, EDM)}


def schedule(name: str, **settings: Any) -> Schedule:
    """The schedule of that name; settings that are not given keep their defaults."""
    if not isinstance(name, str) or name not in SCHEDULES:
        remedy = f"choose one of {', '.join(SCHEDULES)}"
        raise ModelError(f"unknown noise schedule {name!r}", value=name, remedy=remedy)
    kind: Any = SCHEDULES[name]
    known = [field.name for field in fields(kind)]
    odd = [setting for setting in settings if setting not in known]
    if odd:
        raise ModelError(f"schedule {name} has no setting {odd[0]!r}", value=odd[0], allowed=known)
    made: Schedule = kind(**settings)
    return made


def from_config(config: Mapping[str, Any]) -> Schedule:
    """The schedule that `to_config` described."""
    if "name" not in config:
        raise ModelError("a noise schedule needs a name", value=config, allowed=SCHEDULES)
    return schedule(**config)


def karras(n: int, sigma_min: float, sigma_max: float, rho: float = 7.0) -> Tensor:
    """Noise levels of n steps, (n + 1,), float64: from σ_max down to σ_min, then 0."""
    if n < 1:
        raise ModelError(f"sampling takes at least 1 step, not {n}", value=n)
    _, sigmas = EDM(sigma_min, sigma_max, rho)(torch.linspace(1, 0, n, dtype=torch.float64))
    return torch.cat([sigmas, sigmas.new_zeros(1)])


def _positive(of: Schedule, *names: str) -> None:
    for name in names:
        value = getattr(of, name)
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not 0 < value < math.inf:
            raise ModelError(
                f"{name} of schedule {of.name} must be a number > 0, not {value!r}", value=value
            )


def _ordered(of: Schedule, low: str, high: str) -> None:
    _positive(of, low, high)
    if not getattr(of, low) < getattr(of, high):
        raise ModelError(
            f"{low} of schedule {of.name} must be less than {high}, "
            f"not {getattr(of, low)} and {getattr(of, high)}",
            value=(getattr(of, low), getattr(of, high)),
        )
