"""The covariance of data, and functions of it.

C = U diag(λ) Uᵀ, and a function of C is the same function of λ: the gain C (C + σ²I)⁻¹ of a
Gaussian's denoiser, the covariance C_σ = (C⁻¹ + σ⁻²I)⁻¹ of the clean point. C may be singular. For
many coordinates it is C = U diag(λ - ρ) Uᵀ + ρI with a few columns in U (probabilistic PCA; Tipping
and Bishop, 1999): the directions that matter, and one variance ρ for all others.
"""

from __future__ import annotations

import torch
from torch import Tensor

from surrogate.errors import ModelError

RANK = 512  # eigenvectors of a covariance of low rank
MAX_FULL_RANK_SIZE = 1024  # coordinates up to which the covariance has full rank


class Covariance:
    """Eigenvalues `values` (D,) with `vectors` (D, D); of low rank (K + 1,), the last ρ, (D, K)."""

    def __init__(self, matrix: Tensor) -> None:
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not len(matrix):
            raise ModelError(
                f"a covariance has shape (D, D), not {tuple(matrix.shape)}",
                value=tuple(matrix.shape),
            )
        exact = matrix.detach().double()
        scale = float(exact.diagonal().abs().max())
        slack = 1e-5 * scale  # asymmetry and negative eigenvalues from single precision
        if not bool(torch.isfinite(exact).all()) or float((exact - exact.mT).abs().max()) > slack:
            raise ModelError("a covariance must be finite and symmetric")
        values: Tensor
        vectors: Tensor
        values, vectors = torch.linalg.eigh((exact + exact.mT) / 2)
        if float(values[0]) < -slack * len(values):
            raise ModelError(
                f"a covariance has no negative eigenvalues, such as {float(values[0]):g}",
                value=float(values[0]),
            )
        self.values, self.vectors = values.clamp_min(0), vectors

    @classmethod
    def of(cls, samples: Tensor, rank: int = RANK, whole: int = MAX_FULL_RANK_SIZE) -> Covariance:
        """That of samples (n, *shape); of low rank where they have more than `whole` numbers."""
        flat = samples.flatten(1)
        count, size = flat.shape
        if size <= whole:
            return cls(torch.cov(flat.double().T).reshape(size, size))
        centred = (flat - flat.mean(0)).float()
        rank = min(rank, count - 1, size - 1)
        with torch.random.fork_rng(devices=[]):  # its random start is the same every time
            torch.manual_seed(0)
            _, singular, vectors = torch.svd_lowrank(centred, q=rank)
        values = singular.double() ** 2 / (count - 1)
        total = float(centred.double().square().sum()) / (count - 1)
        rest = max(0.0, total - float(values.sum())) / (size - rank)
        exact = torch.linalg.qr(vectors.double()).Q  # orthonormal to double precision
        return cls.restore(torch.cat([values, values.new_tensor([rest])]), exact)

    @classmethod
    def restore(cls, values: Tensor, vectors: Tensor) -> Covariance:
        """The covariance with these eigenvalues and eigenvectors."""
        size, rank = vectors.shape if vectors.ndim == 2 else (0, 0)
        if not 0 < rank <= size or values.shape != (rank + (rank < size),):
            raise ModelError(
                f"a covariance has no values {tuple(values.shape)} with vectors "
                f"{tuple(vectors.shape)}",
                value=tuple(values.shape),
            )
        values, vectors = values.detach().double(), vectors.detach().double()
        if not bool((values >= 0).all() & values.isfinite().all() & vectors.isfinite().all()):
            raise ModelError("a covariance must be finite, without negative eigenvalues")
        made = cls.__new__(cls)
        made.values, made.vectors = values, vectors
        return made

    @classmethod
    def white(cls, size: int) -> Covariance:
        """The identity."""
        return cls.restore(torch.ones(min(2, size)), torch.eye(size, 1))

    def repeated(self, times: int) -> Covariance:
        """The covariance of `times` independent samples, concatenated."""
        if times == 1:
            return self
        own, rest = self._split(self.values)
        vectors = torch.kron(torch.eye(times).to(self.vectors), self.vectors.contiguous())
        values = (own + rest).repeat(times)
        if self.vectors.shape[1] < self.size:
            values = torch.cat([values, rest])
        return Covariance.restore(values, vectors)

    @property
    def size(self) -> int:
        """D."""
        return len(self.vectors)

    def gain(self, sigma: Tensor) -> Tensor:
        """Eigenvalues of C (C + σ²I)⁻¹, the Jacobian of D; like `values`, or (B, ...) for (B,)."""
        values = self.values.to(sigma.device)
        noise = torch.square(sigma.double()).unsqueeze(-1)
        return values / (values + noise).clamp_min(torch.finfo(torch.float64).tiny)

    def posterior(self, sigma: Tensor) -> Tensor:
        """Eigenvalues of C_σ; like `values`, or (B, ...) for levels (B,)."""
        return torch.square(sigma.double()).unsqueeze(-1) * self.gain(sigma)

    def apply(self, values: Tensor, x: Tensor) -> Tensor:
        """The matrix of `values` times each x of (B, *shape), flattened."""
        vectors, flat = self.vectors.to(x), self.flat(x)
        own, rest = self._split(values.to(x))
        return (((flat @ vectors) * own) @ vectors.mT + rest * flat).reshape(x.shape)

    def matrix(self, values: Tensor) -> Tensor:
        """The matrix of `values`, (D, D)."""
        own, rest = self._split(values)
        return (self.vectors * own) @ self.vectors.mT + rest * torch.eye(self.size).to(own)

    def _split(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Eigenvalues along the vectors in excess of ρ, and ρ."""
        rank = self.vectors.shape[1]
        if rank == self.size:
            return values, values.new_zeros(())
        rest = values[..., -1:]
        return values[..., :-1] - rest, rest

    def flat(self, x: Tensor) -> Tensor:
        """A batch (B, *shape) as (B, D)."""
        if x.shape[1:].numel() != self.size:
            raise ModelError(
                f"a covariance of {self.size} coordinates cannot act on a batch of shape "
                f"{tuple(x.shape)}"
            )
        return x.flatten(1)
