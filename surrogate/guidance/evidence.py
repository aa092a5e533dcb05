"""log Z and its error from independent batches with fewer and with more noise levels.

Each batch estimates the Z of its discretised chain without bias; the chain itself is biased by
about b/n in log Z for n noise levels. Batches with n_1 and with n_2 > n_1 levels show that bias:
with d the difference of their log Z, Richardson's extrapolation to n = ∞ would add

    c d,   c = n_1 / (n_2 - n_1),

to the estimate of the finer ones. d is too noisy to correct with, and counts as an error: with s
the standard error of the finer batches and s_d that of d, the error is (s² + c²(d² + s_d²))½. Where
batches disagree beyond a factor of e, it is at least the standard deviation of their log Z.
`benchmarks/mixture_25.py` measures how often the interval holds the closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from surrogate.guidance import smc

COARSE, FINE = 2 / 3, 3 / 2  # noise levels of batches, as shares of those requested
SMALL_SAMPLE_FACTOR = 2.0  # of a variance with two degrees of freedom, so that 1.96 errors suffice
MAX_LOG_DISAGREEMENT = 1.0  # between batches: above, they do not estimate the same number


class LogZ(NamedTuple):
    """An estimate of log Z and its standard error."""

    value: float
    error: float


def level_counts(steps: int, batches: int) -> list[int]:
    """The numbers of noise levels of independent batches, coarse and fine by turns."""
    coarse, fine = max(3, round(COARSE * steps)), math.ceil(FINE * steps)
    return [fine if j % 2 else coarse for j in range(batches)]


def combined(log_zs: Sequence[float], steps: Sequence[int]) -> LogZ:
    """log Z from the log Z of batches and their numbers of noise levels, of which there are two."""
    every = torch.tensor(log_zs, dtype=torch.float64)
    counts = torch.tensor(steps)
    if not bool(every.isfinite().all()):  # some batches found nothing: any factor is possible
        return LogZ(float(smc.log_mean_exp(every)), math.inf)
    coarse, fine = every[counts == counts.min()], every[counts == counts.max()]
    variance = SMALL_SAMPLE_FACTOR * float(coarse.var() + fine.var()) / 2
    error = math.sqrt(variance / len(fine))
    difference = float(smc.log_mean_exp(fine) - smc.log_mean_exp(coarse))
    difference_error = math.sqrt(variance / len(fine) + variance / len(coarse))
    ratio = float(counts.min()) / float(counts.max() - counts.min())
    bias = ratio * math.hypot(difference, difference_error)
    error = math.hypot(error, bias)
    if float(every.max() - every.min()) > MAX_LOG_DISAGREEMENT:
        error = max(error, float(every.std()))
    return LogZ(float(smc.log_mean_exp(fine)), error)
