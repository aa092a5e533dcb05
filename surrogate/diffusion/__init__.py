"""Score models: noise schedules, denoisers, losses, training. Submodules load when first used."""

from typing import TYPE_CHECKING

from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.diffusion import covariance as covariance
    from surrogate.diffusion import losses as losses

__getattr__ = submodules(__name__)
