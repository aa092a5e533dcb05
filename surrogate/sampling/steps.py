"""Shared by samplers: the steps down noise levels σ_0 > σ_1 > ... >= 0, and white noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch
from torch import Generator, Tensor

from surrogate.errors import ModelError

Progress = Callable[[int], None]  # receives the number of steps just done
SIGMA_MIN, SIGMA_MAX = 0.005, 80.0  # noise levels that samplers go through, in normalised units


def walk(sigmas: Tensor, progress: Progress | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """The level and the next, for each step down `sigmas` (n + 1,)."""
    falling = sigmas.ndim == 1 and len(sigmas) > 1 and bool((sigmas.diff() < 0).all())
    if not falling or not float(sigmas[-1]) >= 0:
        raise ModelError(
            f"noise levels must fall from the first to the last, not {sigmas.tolist()}",
            value=sigmas.tolist(),
            remedy="make them with `karras`; the last may be 0",
        )
    for sigma, below in pairwise(sigmas):
        yield sigma, below
        if progress is not None:
            progress(1)


def white(x: Tensor, generator: Generator) -> Tensor:
    """Standard normal noise like x."""
    return torch.randn(x.shape, generator=generator, dtype=x.dtype, device=x.device)
