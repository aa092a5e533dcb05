"""A proposal of a trajectory's statics, such as its parameters: kernels about given points.

With latents z = (z_1, ..., z_J) of the points c_1, ..., c_K, of covariance C,

    q(z) = ε p(z) + (1 - ε) (1/K) Σ_k N(z; c_k, h² C),

p the decoder's own distribution: weights p/q are at most 1/ε (importance sampling with a defensive
mixture, Hesterberg 1995; kernels as in West 1993, "Approximating posterior distributions by
mixtures"). A decoder draws one number after another; given those before, each component has its
posterior weight, and its normal density is conditioned on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.kinds.decoder import Proposal, Proposing, Uniforms

KERNELS = 128
OWN_SHARE = 0.1  # ε
WIDENING = 1.2  # of kernels, beyond the width that suits a normal distribution
WALK = 2.38  # deviations over √J, of a random walk in J dimensions (Roberts, Gelman and Gilks 1997)
WALK_SCALES = 1.0, 0.5, 0.25  # of which one is chosen for each step
MIN_VARIANCE = 1e-12  # relative to the largest


@dataclass(frozen=True)
class KernelProposal(Proposal):
    """`names`: of the J numbers in their order; `centres`: (K, J); `factor`: of h² C, (J, J)."""

    names: tuple[str, ...]
    centres: Tensor
    factor: Tensor

    @classmethod
    def of(cls, latents: Mapping[str, Tensor]) -> KernelProposal:
        """About latents (M,) of each number, all alike."""
        z = torch.stack([each.double() for each in latents.values()], 1)
        count = min(KERNELS, len(z))
        centres = z[torch.linspace(0, len(z) - 1, count).long()]
        return cls(tuple(latents), centres, kernel_factor(z, count))

    def started(self, count: int) -> KernelProposing:
        return KernelProposing(self, count)


class KernelProposing(Proposing):
    """See the module; component 0 is the decoder's own distribution."""

    def __init__(self, proposal: KernelProposal, count: int) -> None:
        self.proposal, self.chosen = proposal, torch.zeros(0, dtype=torch.long)
        kernels = len(proposal.centres)
        shares = torch.full((kernels + 1,), (1 - OWN_SHARE) / kernels, dtype=torch.float64)
        shares[0] = OWN_SHARE
        # log of the weight of each component times the density of the numbers so far, (N, 1 + K)
        self.log_joint = shares.log().expand(count, -1)
        # numbers so far in units of the kernels, (N, K, j)
        self.standard = proposal.centres.new_zeros(count, kernels, 0)

    def _conditional(self, name: str) -> tuple[Tensor, Tensor]:
        """Means (N, K) and the deviation of the kernels, given the numbers before."""
        j = self.proposal.names.index(name)
        row = self.proposal.factor[j]
        return self.proposal.centres[:, j] + self.standard @ row[:j], row[j]

    def offered(self, name: str, own: Tensor, uniform: Uniforms) -> Tensor:
        numbers = uniform(2)
        if not len(self.chosen):
            share = torch.softmax(self.log_joint, 1).cumsum(1)
            self.chosen = (share < numbers[0][:, None]).sum(1).clamp_max(share.shape[1] - 1)
        mean, sd = self._conditional(name)
        at = mean.gather(1, (self.chosen - 1).clamp_min(0)[:, None])[:, 0]
        normal = torch.special.ndtri(numbers[1].clamp(1e-12, 1 - 1e-12))
        return torch.where(self.chosen == 0, own, at + sd * normal)

    def log_ratio(self, name: str, z: Tensor, log_p: Tensor) -> Tensor:
        mean, sd = self._conditional(name)
        standard = (z[:, None] - mean) / sd
        log_kernel = -0.5 * (standard.square() + math.log(2 * math.pi)) - sd.log()
        before = self.log_joint.logsumexp(1)
        self.log_joint = self.log_joint + torch.cat([log_p[:, None], log_kernel], 1)
        self.standard = torch.cat([self.standard, standard[..., None]], 2)
        return log_p - (self.log_joint.logsumexp(1) - before)

    def given(self, name: str, z: Tensor) -> None:
        mean, sd = self._conditional(name)
        self.standard = torch.cat([self.standard, ((z[:, None] - mean) / sd)[..., None]], 2)


def kernel_factor(z: Tensor, count: int = KERNELS) -> Tensor:
    """The Cholesky factor (J, J) of h² C, the covariance of `count` kernels that have the
    distribution of points (M, J) of covariance C."""
    j = z.shape[1]
    width: float = WIDENING * (4 / (j + 2) / count) ** (1 / (j + 4))  # Silverman 1986
    return width * _factor(z)


def perturbed(z: Tensor, generator: Generator) -> Tensor:
    """Points (M, J) moved by draws from such a kernel."""
    steps = torch.randn(z.shape, generator=generator, dtype=z.dtype)
    return z + steps @ kernel_factor(z).mT


def random_walk(z: Tensor, generator: Generator) -> Tensor:
    """Points (M, J) after a step of a random walk on the scale of their covariance."""
    chosen = torch.randint(len(WALK_SCALES), (len(z), 1), generator=generator)
    scale = WALK / math.sqrt(z.shape[1]) * torch.tensor(WALK_SCALES, dtype=z.dtype)[chosen]
    steps = torch.randn(z.shape, generator=generator, dtype=z.dtype)
    return z + scale * (steps @ _factor(z).mT)


def _factor(z: Tensor) -> Tensor:
    """The Cholesky factor (J, J) of the covariance of points (M, J)."""
    j = z.shape[1]
    spread = torch.cov(z.mT).reshape(j, j)
    floor = MIN_VARIANCE * spread.diagonal().max().clamp_min(MIN_VARIANCE)
    found: Tensor = torch.linalg.cholesky(spread + floor * torch.eye(j, dtype=z.dtype))
    return found
