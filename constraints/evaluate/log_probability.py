"""Log-probabilities: log(1 - e^x) without cancellation (Mächler 2012), and a finite log 0."""

from __future__ import annotations

import math

import torch
from torch import Tensor

NEVER = -1e30  # the log-probability of the impossible; -inf has no finite gradients


def log1mexp(x: Tensor) -> Tensor:
    """log(1 - exp(x)) for x <= 0, elementwise."""
    # the clamps keep the branch that is not taken from sending NaN gradients
    near = torch.log(-torch.expm1(x.clamp(min=-math.log(2.0))))
    far = torch.log1p(-torch.exp(x.clamp(max=-math.log(2.0))))
    return torch.where(x > -math.log(2.0), near, far)
