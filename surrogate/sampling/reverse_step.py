"""One step of the reverse diffusion, from noise σ_t down to σ_s.

Given x_t = x_0 + σ_t n, the clean point x_0 and r = σ_s²/σ_t², the point at σ_s is

x_s | x_t, x_0 ~ N(x_0 + r (x_t - x_0), σ_s² (1 - r) I)

(Ho et al. 2020, "Denoising diffusion probabilistic models", equation 6, for noise that grows while
data keep their scale). With a Gaussian clean point, x_0 | x_t ~ N(D, V), it is

x_s | x_t ~ N(D + r (x_t - D), P),   P = σ_s² (1 - r) I + (1 - r)² V,

which is exact for Gaussian data whatever the step. At σ_s = 0 it is N(D, V) itself. An optimal V is
from Bao et al. 2022, "Analytic-DPM". Samplers and guidance take their steps from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class ReverseStep:
    """From σ_t to σ_s; both as tensors (), or both as floats."""

    sigma_s: Any
    r: Any  # σ_s²/σ_t²

    @classmethod
    def between(cls, sigma_t: Tensor, sigma_s: Tensor) -> ReverseStep:
        """The step between two levels (), in their precision and on their device."""
        return cls(sigma_s, (sigma_s / sigma_t) ** 2)

    @classmethod
    def of_floats(cls, sigma_t: Tensor, sigma_s: Tensor) -> ReverseStep:
        """The same with Python's numbers, for points of any precision."""
        return cls(float(sigma_s), float((sigma_s / sigma_t) ** 2))

    def mean(self, x_t: Tensor, clean: Tensor) -> Tensor:
        """The mean of x_s for clean points with the mean `clean`, like x_t."""
        found: Tensor = clean + self.r * (x_t - clean)
        return found

    def variances(self, clean: Tensor, over: Tensor | float = 1.0) -> Tensor:
        """Eigenvalues of P for a clean point whose covariance V has the eigenvalues `clean`/`over`.

        The quotient is taken last.
        """
        found: Tensor = self.sigma_s**2 * (1 - self.r) + (1 - self.r) ** 2 * clean / over
        return found
