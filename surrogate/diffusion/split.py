"""Which samples are held out of training.

A tenth of the samples is held out to stop early and to judge the model by. Windows that were cut
from one long series overlap: contiguous stretches of them are held out then, and windows that share
steps with a stretch are not learned from either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from surrogate.random import Training, stream

MAX_HELD_OUT = 10_000  # samples
MAX_STRETCHES = 10  # of overlapping windows
MAX_EXCLUDED = 0.3  # of overlapping windows, as a share


@dataclass(frozen=True)
class Split:
    """Numbers of samples in increasing order: those held out, and all that are not learned from."""

    held_out: np.ndarray
    excluded: np.ndarray
    count: int  # samples in all

    @property
    def overlapping(self) -> bool:
        """Whether samples share steps with their neighbours."""
        return len(self.excluded) > len(self.held_out)

    @property
    def learned(self) -> np.ndarray:
        """Numbers of the samples that are learned from."""
        return np.setdiff1d(np.arange(self.count), self.excluded)


def split(count: int, seed: int, overlap: int = 0) -> Split:
    """Hold out a tenth of `count` samples, MAX_HELD_OUT at most.

    `overlap`: how many neighbours on either side a sample shares steps with.
    """
    wanted = max(1, min(count // 10, MAX_HELD_OUT))
    generator = stream(seed, Training.HELD_OUT_CHOICE)
    if not overlap:
        chosen = np.sort(torch.randperm(count, generator=generator)[:wanted].numpy())
        return Split(chosen, chosen, count)
    # each stretch excludes its neighbours too: few stretches where windows are few
    stretches = min(MAX_STRETCHES, max(1, int(MAX_EXCLUDED * count - wanted) // (2 * overlap)))
    length = math.ceil(wanted / stretches)
    places = torch.randperm(count // length, generator=generator)[:stretches].numpy()
    held_out, excluded = np.zeros(count, bool), np.zeros(count, bool)
    for start in places * length:
        held_out[start : start + length] = True
        excluded[max(0, start - overlap) : start + length + overlap] = True
    if excluded.sum() > count / 2:  # too few windows to leave a gap between
        excluded = held_out
    return Split(np.flatnonzero(held_out), np.flatnonzero(excluded), count)
