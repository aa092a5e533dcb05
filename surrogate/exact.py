"""A surrogate with a known score, such as that of a Gaussian: nothing is learned.

It is part of the package because benchmarks and tests judge samplers by it: with an exact denoiser,
what differs from the target distribution is an error of the sampler alone.
"""

from __future__ import annotations

import torch

from surrogate.diffusion.denoise import Denoiser
from surrogate.model import Surrogate


class Exact(Surrogate):
    """A surrogate with an analytic denoiser (`diffusion.gaussian`) in place of a network."""

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def bounded(self) -> Denoiser:
        return self.denoiser
