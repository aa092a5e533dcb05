"""A surrogate whose score is known, to judge samplers by: nothing is learned."""

from __future__ import annotations

import torch

from surrogate.diffusion.denoise import Denoiser
from surrogate.model import Surrogate


class Exact(Surrogate):
    """A surrogate with an analytic denoiser (`gaussian`) in place of a network."""

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def bounded(self) -> Denoiser:
        return self.denoiser
