"""How far probabilities of classes can be trusted.

The expected calibration error is the mean of |confidence - accuracy| over bins of confidence, the
probability of the likeliest class (Guo et al. 2017, "On calibration of modern neural networks").
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CONFIDENCE_BINS = 15  # of confidence
UNSURE = 0.6  # a confidence below it


@dataclass(frozen=True)
class Measured:
    """How good probabilities are: `unsure` is the share with a confidence below UNSURE."""

    accuracy: float
    calibration_error: float
    log_loss: float
    unsure: float
    images: int

    @classmethod
    def of(cls, log_p: Tensor, truth: Tensor) -> Measured:
        """Of log-probabilities (N, K) where the classes (N,) are true."""
        confidence, said = log_p.double().exp().max(1)
        right = (said == truth).double()
        where = (confidence * CONFIDENCE_BINS).long().clamp_max(CONFIDENCE_BINS - 1)
        gaps = torch.zeros(CONFIDENCE_BINS, dtype=torch.float64).index_add_(
            0, where, confidence - right
        )
        return cls(
            accuracy=right.mean().item(),
            calibration_error=gaps.abs().sum().item() / len(truth),
            log_loss=-log_p.double().gather(1, truth[:, None]).mean().item(),
            unsure=(confidence < UNSURE).double().mean().item(),
            images=len(truth),
        )
