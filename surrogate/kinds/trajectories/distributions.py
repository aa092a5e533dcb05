"""The distributions of single values, cut to the intervals that laws and conditions leave them.

`Distribution` is that of a number, a mixture of logistics in deviations from where it is expected;
`Choices` that of a number that takes few values, such as a rate before and after an event.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from surrogate.kinds.trajectories.sites import edges, latent, value
from surrogate.kinds.trajectories.variables import Variable
from surrogate.networks.logistic_mixture import LogisticMixture

LEVEL_SLACK = 1e-9  # relative, by which a level may lie outside of an interval


@dataclass(frozen=True)
class Distribution:
    """Of a number: u = (z - mean)/sd is a mixture of logistics. Values y are float64, (...)."""

    variable: Variable
    mixture: LogisticMixture
    mean: Tensor
    sd: Tensor

    def _standard(self, z: Tensor) -> Tensor:
        return ((z - self.mean) / self.sd).float()

    def _ends(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        first, last = edges(self.variable, low, high)
        return self._standard(first), self._standard(last)

    def log_share(self, low: Tensor, high: Tensor, within: tuple[Tensor, Tensor]) -> Tensor:
        """log P(low <= y <= high | within), (...), for an interval in `within`."""
        return self.mixture.log_share(*self._ends(low, high), self._ends(*within))

    def log_likelihood(self, y: Tensor, within: tuple[Tensor, Tensor]) -> Tensor:
        """log p(y | within) of the values y in `within`: of a real number the density of z."""
        if self.variable.kind != "real":
            return self.log_share(y, y, within)
        z = self._standard(latent(self.variable, y))
        return self.mixture.log_truncated(z, *self._ends(*within)) - self.sd.log()

    def sample(self, low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
        """A value in each interval, (B,), by `uniform` (2, B)."""
        u = self.mixture.sample(*self._ends(low, high), uniform)
        y = value(self.variable, self.mean + self.sd * u)
        y = torch.round(y) if self.variable.kind != "real" else y
        return torch.minimum(torch.maximum(y, low), high)


@dataclass(frozen=True)
class Choices:
    """One of the values `levels` (L,), ascending, by logits (..., L); values y are float64."""

    logits: Tensor
    levels: Tensor

    def _log_p(self, low: Tensor, high: Tensor) -> Tensor:
        """Logits (..., L), -inf outside of intervals (...)."""
        slack = LEVEL_SLACK * (1 + self.levels.abs())
        inside = self.levels >= low.unsqueeze(-1) - slack
        inside &= self.levels <= high.unsqueeze(-1) + slack
        return self.logits.masked_fill(~inside, -torch.inf)

    def log_share(self, low: Tensor, high: Tensor, within: tuple[Tensor, Tensor]) -> Tensor:
        """log P(low <= y <= high | within), (...), for an interval in `within`."""
        part, whole = (torch.logsumexp(self._log_p(*ends), -1) for ends in ((low, high), within))
        return torch.where(whole.isfinite(), part - whole, -torch.inf)

    def log_likelihood(self, y: Tensor, within: tuple[Tensor, Tensor]) -> Tensor:
        """log P(y | within) of the levels nearest to y."""
        chosen = (y.unsqueeze(-1) - self.levels).abs().argmin(-1, keepdim=True)
        own = self.levels[chosen[..., 0]]
        ends = torch.minimum(within[0], own), torch.maximum(within[1], own)
        return torch.log_softmax(self._log_p(*ends), -1).gather(-1, chosen)[..., 0]

    def sample(self, low: Tensor, high: Tensor, uniform: Tensor) -> Tensor:
        """A level in each interval (B,), by `uniform` (2, B); where there is none, its nearer end
        to any."""
        log_p = self._log_p(low, high)
        log_p = torch.where(log_p.isfinite().any(-1, keepdim=True), log_p, self.logits)
        share = torch.softmax(log_p.double(), -1).cumsum(-1)
        chosen = (share < uniform[0][:, None] * share[:, -1:]).sum(-1)
        y = self.levels[chosen.clamp_max(len(self.levels) - 1)]
        return torch.minimum(torch.maximum(y, low), high)
