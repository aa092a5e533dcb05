"""Validation of a model: the distances of its samples from data that were held out of training.

Distances come with a noise floor, the distance between two halves of the reference. Halves of
overlapping windows would give a floor that is too low: training windows take the place of one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import xarray as xr

from surrogate.data import evaluate
from surrogate.diffusion.split import Split
from surrogate.model import Surrogate
from surrogate.random import Evaluation as Stream
from surrogate.random import derived, stream
from surrogate.sampling.solvers import AUTOREGRESSIVE

MAX_COMPARED_NUMBERS = 2_000_000  # in all samples that are compared
MIN_VALIDATION_SAMPLES = 1_000  # however large they are
MIN_JUDGED_SAMPLES, MAX_JUDGED_SAMPLES = 200, 2_000  # held-out ones that choose a solver
DIFFUSION = "ode"


def plain_solver(
    model: Surrogate, data: xr.Dataset, split: Split, seed: int
) -> tuple[str, dict[str, float]] | None:
    """The solver whose plain samples trees tell least from held-out data, of the decoder by itself
    and of the diffusion that leaves only the last noise to it, or nothing; the latter where the
    data are few. And the accuracies of the trees, by solver, where they were compared.

    None where there is no choice.
    """
    if model.decoder is None or model.decoder.early:
        return None
    rows = split.held_out[:: math.ceil(len(split.held_out) / MAX_JUDGED_SAMPLES)]
    if len(rows) < MIN_JUDGED_SAMPLES:
        return DIFFUSION, {}
    reference = data.isel(sample=rows).load()
    own = derived(seed, Stream.SOLVER_CHOICE)
    found = {}
    for solver in (DIFFUSION, AUTOREGRESSIVE):
        samples = model.dataset(len(rows), seed=own, solver=solver)
        found[solver] = evaluate(samples, reference, seed=own).classifier.accuracy
    return min(found, key=lambda solver: found[solver]), found


def validate(model: Surrogate, data: xr.Dataset, split: Split, seed: int) -> dict[str, Any]:
    """The evaluation of unconditional samples against held-out data, with its verdict, for the
    model's card."""
    limit = max(MIN_VALIDATION_SAMPLES, MAX_COMPARED_NUMBERS // math.prod(model.shape))
    rows = split.held_out[:: math.ceil(len(split.held_out) / limit)]
    reference = data.isel(sample=rows).load()
    samples = model.dataset(len(rows), seed=seed)
    if model.kind.detects_copies:
        learned = data.isel(sample=split.learned).load()
        return evaluate(samples, reference, seed=seed, train=learned).to_dict()
    found = evaluate(samples, reference, seed=seed)
    if split.overlapping:
        order = torch.randperm(len(split.learned), generator=stream(seed, Stream.LEARNED_CHOICE))
        chosen = np.sort(split.learned[order[: len(rows)].numpy()])
        found = found.with_floors_of(
            evaluate(data.isel(sample=chosen).load(), reference, seed=seed)
        )
    return found.to_dict()
