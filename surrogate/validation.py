"""Validation of a model: the distances of its samples from data that were held out of training.

Distances come with a noise floor, the distance between two halves of the reference. Halves of
overlapping windows would give a floor that is too low: training windows take the place of one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
import xarray as xr

from surrogate.data import evaluate
from surrogate.diffusion.split import Split
from surrogate.model import Surrogate
from surrogate.random import Evaluation, stream

MAX_COMPARED_NUMBERS = 2_000_000  # in all samples that are compared
MIN_VALIDATION_SAMPLES = 1_000  # however large they are


def validate(model: Surrogate, data: xr.Dataset, split: Split, seed: int) -> dict[str, Any]:
    """The evaluation of unconditional samples against held-out data, for the model's card."""
    limit = max(MIN_VALIDATION_SAMPLES, MAX_COMPARED_NUMBERS // math.prod(model.shape))
    rows = split.held_out[:: math.ceil(len(split.held_out) / limit)]
    reference = data.isel(sample=rows).load()
    samples = model.dataset(len(rows), seed=seed)
    if model.kind.detects_copies:
        learned = data.isel(sample=split.learned).load()
        return evaluate(samples, reference, seed=seed, train=learned).to_dict()
    found = evaluate(samples, reference, seed=seed).to_dict()
    if not split.overlapping:
        return found
    learned_rows = split.learned
    order = torch.randperm(len(learned_rows), generator=stream(seed, Evaluation.LEARNED_CHOICE))
    chosen = np.sort(learned_rows[order[: len(rows)].numpy()])
    floors = evaluate(data.isel(sample=chosen).load(), reference, seed=seed).to_dict()
    made: dict[str, Any] = _with_floors(found, floors)
    return made


def _with_floors(found: Any, floors: Any) -> Any:
    """The same distances, with those of `floors` as their noise floors."""
    if isinstance(found, Mapping) and "floor_sd" in found:
        floor = floors["value"]
        ratio = found["value"] / floor if floor > 0 else None
        return {**found, "floor": floor, "ratio": ratio}
    if isinstance(found, Mapping):
        return {name: _with_floors(value, floors[name]) for name, value in found.items()}
    if isinstance(found, list) and isinstance(floors, list):
        return [_with_floors(a, b) for a, b in zip(found, floors, strict=False)]
    return found
