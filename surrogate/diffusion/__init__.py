"""Score models: noise schedules, denoisers, losses, training. Submodules load when first used.

A diffusion model learns the score ∇ log p_σ of data under Gaussian noise of every level σ (Song et
al. 2021, arXiv:2011.13456; Karras et al. 2022, arXiv:2206.00364).
"""

from typing import TYPE_CHECKING

from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.diffusion import covariance as covariance
    from surrogate.diffusion import losses as losses

__getattr__ = submodules(__name__)
