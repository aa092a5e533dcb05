"""What guidance knows of a model: the prior that a scenario conditions."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import Denoiser
from surrogate.kinds.codec import Codec
from surrogate.kinds.decoder import Decoder
from surrogate.kinds.kind import Kind
from surrogate.sampling.solvers import AUTOREGRESSIVE


class Prior(Protocol):
    """A distribution p(x) of normalised samples, through its denoiser."""

    @property
    def codec(self) -> Codec:
        """Between normalised samples and data."""

    @property
    def kind(self) -> Kind:
        """What the data are."""

    @property
    def covariance(self) -> Covariance:
        """Of the normalised data, flattened."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Of a normalised sample."""

    @property
    def device(self) -> torch.device:
        """Where the denoiser computes."""

    @property
    def denoiser(self) -> Denoiser:
        """E[x_0 | x_t] as the network estimates it."""

    @property
    def bounded(self) -> Denoiser:
        """The denoiser with its estimates kept within the ranges of the variables."""

    @property
    def decoder(self) -> Decoder | None:
        """Draws data from the last noise level; None where the denoiser does it all."""

    @property
    def default_solver(self) -> str:
        """The solver of plain samples."""

    @property
    def digest(self) -> str:
        """Of the weights; empty where they were never saved."""

    def draw(self, samples: int, seed: int = 0, *, steps: int | None = None) -> Tensor:
        """Plain samples, (samples, *shape)."""


def handover(prior: Prior) -> float | None:
    """The noise level at which a decoder takes over from particles, as it does from plain samples;
    None where these do without one."""
    if prior.decoder is None:
        return None
    alone = prior.default_solver == AUTOREGRESSIVE
    return prior.decoder.handover if alone else prior.decoder.plain_handover
