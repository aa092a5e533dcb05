"""Linear regression of a row's values on any of them: the conditional of a Gaussian.

Values have coordinates u: the latent of a number, the weights of a category. With their mean m and
covariance C, and K the coordinates that are known,

    E[u | u_K] = m + C_K C_KK⁻¹ (u_K - m_K),    V = C - C_K C_KK⁻¹ C_Kᵀ.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from surrogate.kinds.tables.sites import Choice, Number

MAX_COORDINATES = 48  # beyond which categories are left out, those of most words first
RIDGE = 1e-3  # of the variances, added to them
MIN_VARIANCE = 1e-6


class Regression(nn.Module):
    """E[u | u_K] and the standard deviations of u given u_K, (B, size) each."""

    mean: Tensor
    covariance: Tensor

    def __init__(self, sites: Sequence[Choice | Number]) -> None:
        super().__init__()
        self.sites = list(sites)
        left = MAX_COORDINATES
        self._first: list[int | None] = [None] * len(sites)
        self.size = 0
        for j in sorted(range(len(sites)), key=lambda j: _coordinates(sites[j])):
            if _coordinates(sites[j]) <= left - self.size:
                self._first[j] = self.size
                self.size += _coordinates(sites[j])
        self._owner = [
            j
            for j in sorted(
                (j for j in range(len(sites)) if self._first[j] is not None),
                key=lambda j: self._first[j] or 0,
            )
            for _ in range(_coordinates(sites[j]))
        ]
        self.register_buffer("mean", torch.zeros(self.size))
        self.register_buffer("covariance", torch.eye(self.size))

    def place(self, j: int) -> int | None:
        """The coordinate of the j-th column; None if it has none."""
        return self._first[j]

    def coordinates(self, y: Sequence[Tensor]) -> Tensor:
        """u (B, size) of values."""
        parts = {
            first: _latent(site, value)
            for site, value, first in zip(self.sites, y, self._first, strict=True)
            if first is not None
        }
        return torch.cat([parts[first] for first in sorted(parts)], 1) if parts else y[0][:, None]

    def measure(self, y: Sequence[Tensor]) -> None:
        """Estimate m and C."""
        if not self.size:
            return
        u = self.coordinates(y)
        self.mean.copy_(u.mean(0))
        covariance = torch.cov(u.mT).reshape(self.size, self.size)
        ridge = RIDGE * covariance.diagonal().clamp_min(1e-3)
        self.covariance.copy_(covariance + torch.diag(ridge))

    def forward(self, y: Sequence[Tensor], known: Tensor) -> tuple[Tensor, Tensor]:
        """Of values (B,) each, where `known` (B, columns): u itself, and its standard deviation 0,
        where it is known."""
        if not self.size:
            empty = torch.zeros(len(known), 0)
            return empty, empty
        sets, group = torch.unique(known[:, self._owner], dim=0, return_inverse=True)
        there = sets.float()
        both = there[:, :, None] * there[:, None]
        inside = self.covariance * both + torch.diag_embed(1 - there)
        gain = torch.linalg.solve(inside, self.covariance * there[:, :, None])
        left = self.covariance.diagonal() - (gain * self.covariance * there[:, :, None]).sum(1)
        spread = left.clamp_min(MIN_VARIANCE).sqrt()
        u = self.coordinates(y)
        mask = there[group]
        off = (u - self.mean) * mask
        found = torch.empty_like(u)
        for g in range(len(sets)):
            rows = (group == g).nonzero()[:, 0]
            found[rows] = self.mean + off[rows] @ gain[g]
        return torch.where(mask > 0, u, found), spread[group] * (1 - mask)


def _coordinates(site: Choice | Number) -> int:
    whole = isinstance(site, Number) or site.numbers is not None
    return 1 if whole else site.outputs


def _latent(site: Choice | Number, y: Tensor) -> Tensor:
    if isinstance(site, Number):
        return site.latent(y)[:, None].float()
    codes = site.seen(y)
    return codes[:, -1:] if site.numbers is not None else codes[:, : site.outputs]
