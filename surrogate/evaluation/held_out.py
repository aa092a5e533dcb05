"""What a model is judged by: data that it never saw, and how far its samples are from them.

Samples of a dataset are independent, so any of them can be set aside. Windows of one series that
overlap are not: stretches of neighbours are set aside then, and those that share steps with them
are not learned from either. A split of such stretches would make a noise floor too low, so data
stand in for it: as many windows that were learned from, against those set aside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xarray as xr

from surrogate.evaluation.evaluate import evaluate
from surrogate.kinds.tables.align import is_table
from surrogate.kinds.trajectories.from_table import OVERLAP
from surrogate.model import Surrogate
from surrogate.random import Evaluation, Training, stream

MOST = 10_000  # samples that are set aside
STRETCHES = 10
SPARED = 0.3  # of the windows at most, those between included
COMPARED = 2_000_000  # numbers in the samples that are compared


@dataclass(frozen=True)
class Apart:
    """Numbers of samples, in order: those to judge by, and all that are not to be learned from."""

    judges: np.ndarray
    unseen: np.ndarray

    @property
    def overlapping(self) -> bool:
        return len(self.unseen) > len(self.judges)


def set_apart(data: xr.Dataset, seed: int) -> Apart:
    """A tenth of the samples, MOST at most."""
    count = data.sizes["sample"]
    wanted = max(1, min(count // 10, MOST))
    reach = int(data.attrs.get(OVERLAP, 0))
    if not reach:
        chosen = torch.randperm(count, generator=stream(seed, Training.HELD_OUT_CHOICE))[
            :wanted
        ].numpy()
        return Apart(np.sort(chosen), np.sort(chosen))
    # each stretch costs its neighbours too: few of them where windows are few
    stretches = min(STRETCHES, max(1, int(SPARED * count - wanted) // (2 * reach)))
    length = math.ceil(wanted / stretches)
    places = torch.randperm(count // length, generator=stream(seed, Training.HELD_OUT_CHOICE))[
        :stretches
    ].numpy()
    judges, unseen = np.zeros(count, bool), np.zeros(count, bool)
    for start in places * length:
        judges[start : start + length] = True
        unseen[max(0, start - reach) : start + length + reach] = True
    if unseen.sum() > count / 2:  # too few windows to leave any out between
        unseen = judges
    return Apart(np.flatnonzero(judges), np.flatnonzero(unseen))


def judge(model: Surrogate, data: xr.Dataset, apart: Apart, seed: int) -> dict[str, Any]:
    """How far unconditional samples are from held-out data, beside data from data.

    Of rows it is also told how near they come to those that were learned from.
    """
    most = max(1000, COMPARED // math.prod(model.shape))
    rows = apart.judges[:: math.ceil(len(apart.judges) / most)]
    reference = data.isel(sample=rows).load()
    samples = model.dataset(len(rows), seed=seed)
    if is_table(data):
        seen = np.setdiff1d(np.arange(data.sizes["sample"]), apart.unseen)
        learned = data.isel(sample=seen).load()
        return evaluate(samples, reference, seed=seed, train=learned).to_dict()
    found = evaluate(samples, reference, seed=seed).to_dict()
    if not apart.overlapping:
        return found
    seen = np.setdiff1d(np.arange(data.sizes["sample"]), apart.unseen)
    order = torch.randperm(len(seen), generator=stream(seed, Evaluation.LEARNED_CHOICE))[
        : len(rows)
    ].numpy()
    truth = evaluate(data.isel(sample=np.sort(seen[order])).load(), reference, seed=seed).to_dict()
    made: dict[str, Any] = _beside(found, truth)
    return made


def _beside(found: Any, truth: Any) -> Any:
    """The same distances with those of data in place of their floors."""
    if isinstance(found, Mapping) and "floor_sd" in found:
        floor = truth["value"]
        ratio = found["value"] / floor if floor > 0 else None
        return {**found, "floor": floor, "ratio": ratio}
    if isinstance(found, Mapping):
        return {name: _beside(value, truth[name]) for name, value in found.items()}
    if isinstance(found, list) and isinstance(truth, list):
        return [_beside(a, b) for a, b in zip(found, truth, strict=False)]
    return found
