"""From weighted particles to samples: as they are, or resampled with copies moved (MCMC)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from surrogate.guidance import smc
from surrogate.guidance.outcome import Question
from surrogate.guidance.rejuvenation import first_moved, rejuvenate
from surrogate.random import Sampling, stream

MIN_DISTINCT = 0.5  # ancestors, as a share of the samples, below which first numbers are moved


def selected(
    question: Question[Any], x: Tensor, log_weights: Tensor, ancestors: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The requested number of samples x (n, D), their log-weights (n,) and ancestors (n,).

    The method's setting `weighted` says whether they keep their weights.
    """
    generator = stream(question.seed, Sampling.SELECTION)
    if getattr(question.settings, "weighted", False):
        alive = log_weights.isfinite().nonzero()[:, 0]
        rows = alive[torch.randperm(len(alive), generator=generator)[: question.samples]]
        return x[rows], log_weights[rows] - log_weights[rows].max(), ancestors[rows]
    rows = smc.systematic(log_weights, question.samples, generator)
    repeated = torch.cat([rows.new_zeros(1), rows.diff() == 0]).bool()  # rows ascend
    order = torch.randperm(len(rows), generator=generator)
    rows, repeated = rows[order], repeated[order]
    x = x[rows]
    if bool(repeated.any()):
        x[repeated] = rejuvenate(question.scenario, x[repeated], generator)
    if smc.distinct(ancestors[rows]) < MIN_DISTINCT * len(rows):
        x = first_moved(question.scenario, x, generator)
    return x, torch.zeros(len(x), dtype=torch.float64), ancestors[rows]
