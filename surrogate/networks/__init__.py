"""Networks F(x, c_noise) of a noisy sample and its noise level, with values of the sample's shape.

`diffusion.denoise` makes denoisers of them. Submodules load when first used.
"""

from typing import TYPE_CHECKING

from surrogate.lazy import submodules

if TYPE_CHECKING:
    from surrogate.networks import residual_mlp as residual_mlp
    from surrogate.networks import temporal_mlp as temporal_mlp
    from surrogate.networks import unet as unet

__getattr__ = submodules(__name__)
