"""The weights of points while a decoder draws them, value by value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from surrogate.kinds.decoder import Filter, Fork, Lookahead, Pins, Proposing

MIN_LOG_SHARE = -50.0  # log-probability of a condition on one value: below, tails are cut off


class Weighted:
    """The weights of points while they are drawn: log_weights (N,), their noisy points `rows` (N,),
    and what the weights already contain of conditions and factors to come: `foreseen` (N, k + m) of
    each, `guess` (N,) of all conditions by a look-ahead. `proposing`: of the first numbers; `fork`:
    an early end."""

    def __init__(
        self,
        log_weights: Tensor,
        foreseen: Tensor,
        resample: Callable[[Tensor], Tensor | None],
        lookahead: Lookahead | None = None,
        proposing: Proposing | None = None,
        fork: Fork | None = None,
    ) -> None:
        self.log_weights, self.foreseen, self.resample = log_weights.clone(), foreseen, resample
        self.rows = torch.arange(len(log_weights))
        self.lookahead, self.guess = lookahead, torch.zeros_like(log_weights)
        self.proposing, self.fork = proposing, fork

    @classmethod
    def of(cls, count: int, pins: Pins, particles: Filter | None) -> Weighted:
        if particles is not None:
            own = particles.log_weights, particles.foreseen, particles.resample
            proposing = None if particles.proposal is None else particles.proposal.started(count)
            return cls(*own, particles.lookahead, proposing, particles.fork)
        zero = torch.zeros(count, dtype=torch.float64)
        return cls(zero, torch.zeros(count, pins.total, dtype=torch.float64), lambda weights: None)

    def settle(self, conditions: list[int], log_probability: Tensor) -> None:
        """Put the log-probability (N,) of conditions or factors in the place of what was
        foreseen."""
        self.log_weights += log_probability - self.foreseen[:, conditions].sum(1)

    def look_ahead(self, t: int, values: Mapping[str, Tensor], sums: Tensor) -> bool:
        """Put the guess after step t in the place of the last one; whether there is one."""
        if self.lookahead is None:
            return False
        guess = self.lookahead.after(t, values, sums)
        self.log_weights += guess - self.guess
        self.guess = guess
        return True

    def select(self, rows: Tensor) -> None:
        """Go on with resampled points, of equal weights."""
        mean = torch.logsumexp(self.log_weights, 0) - math.log(len(rows))
        self.log_weights = torch.full_like(self.log_weights, float(mean))
        self.foreseen, self.rows = self.foreseen[rows], self.rows[rows]
        self.guess = self.guess[rows]
