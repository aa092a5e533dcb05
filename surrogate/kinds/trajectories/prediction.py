"""Linear prediction of the values of a step: where each is expected, given those before it.

    ẑ_j(t) = c_j + Σ_{i<j} b_ji z_i(t) + Σ_lag Σ_i a_ji^lag z_i(t - lag)

by least squares over all steps of the training data, with as many lags as step t has (an
autoregression with the order of drawing as its recursive form; Lütkepohl 2005, section 2.3). What a
decoder has to learn is then small and standardised: of prices the overnight return, and how far the
high is above open and close, not their levels.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

LAGS = 2
RELATIVE_CUTOFF = 1e-9  # of singular values, below which regressors are dependent
MAX_ROWS = 200_000  # of regressors


class LinearPrediction(nn.Module):
    """Of n series, in the order in which they are drawn.

    A *stack* (..., n (1 + LAGS)) holds z at t, t - 1, ...; entries that step t does not have, or
    that are drawn later, are not read. `weights` (1 + LAGS, n, n (1 + LAGS)) and `offset`
    (1 + LAGS, n) have a set for steps 0, 1, ... and one for all others. `move_mean` and `move_sd`
    (n, T) are those of z(t) - z(t - 1).
    """

    weights: Tensor
    offset: Tensor
    move_mean: Tensor
    move_sd: Tensor

    def __init__(self, series: int, steps: int) -> None:
        super().__init__()
        self.series = series
        sets, wide = 1 + LAGS, series * (1 + LAGS)
        self.register_buffer("weights", torch.zeros(sets, series, wide))
        self.register_buffer("offset", torch.zeros(sets, series))
        self.register_buffer("move_mean", torch.zeros(series, steps))
        self.register_buffer("move_sd", torch.ones(series, steps))

    def __call__(self, j: int, stack: Tensor, t: int | Tensor) -> Tensor:
        """ẑ_j at steps t, one or (...): (...)."""
        known = min(t, LAGS) if isinstance(t, int) else t.clamp_max(LAGS)
        found: Tensor = (self.weights[known, j] * stack).sum(-1) + self.offset[known, j]
        return found

    @torch.no_grad()
    def fit(self, z: Tensor) -> None:
        """Least squares on z (N, T, n), float64."""
        n = self.series
        every = stacks(z)
        for known in range(min(1 + LAGS, z.shape[1])):
            some = every[:, known : known + 1] if known < LAGS else every[:, LAGS:]
            rows = some.reshape(-1, every.shape[2])
            rows = rows[:: max(1, -(-len(rows) // MAX_ROWS))]
            past = [n * lag + i for lag in range(1, known + 1) for i in range(n)]
            for j in range(n):
                columns = [*range(j), *past]
                weights, offset = _least_squares(rows[:, columns], rows[:, j])
                self.weights[known, j, columns] = weights.float()
                self.offset[known, j] = offset.float()


def stacks(z: Tensor) -> Tensor:
    """z (..., T, n) at t, t - 1, ..., 0 before the first step: (..., T, n (1 + LAGS))."""
    parts = [z]
    for _ in range(LAGS):
        before = parts[-1]
        parts.append(torch.cat([torch.zeros_like(before[..., :1, :]), before[..., :-1, :]], -2))
    return torch.cat(parts, -1)


def _least_squares(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (k,) and offset of y (m,) on x (m, k), standardised; dependent columns share."""
    if not x.shape[1]:
        return x.new_zeros(0), y.mean()
    mean, scale = x.mean(0), x.std(0)
    scale = torch.where(scale > 0, scale, torch.inf)
    u, s, v = torch.linalg.svd((x - mean) / scale, full_matrices=False)
    kept = s > RELATIVE_CUTOFF * s.max().clamp_min(1e-300)
    inner = torch.where(kept, (u.mT @ (y - y.mean())) / torch.where(kept, s, 1.0), 0.0)
    weights = (v.mT @ inner) / scale
    return weights, y.mean() - weights @ mean
