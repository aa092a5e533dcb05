"""Random numbers by name: a generator is a function of (seed, stream, index).

Every consumer of random numbers has a stream of its own, so that results depend on neither the
order of work nor its division into batches. The numbers of streams are part of what a seed means:
change one, and the same seed gives other samples.
"""

from __future__ import annotations

from enum import IntEnum

import torch

_MASK = 2**63 - 1
_WORD = 2**64 - 1


class Training(IntEnum):
    """Streams of a training run."""

    NOISE = 1  # by step
    VALIDATION_NOISE = 2
    SHUFFLE = 3  # by block
    REPEATS = 4  # by step, where a block is smaller than a batch
    BLOCK_ORDER = 5  # by epoch
    DEQUANTISATION = 6  # by block
    INITIAL_WEIGHTS = 7
    HELD_OUT_DEQUANTISATION = 10
    HELD_OUT_CHOICE = 11
    EDGE_NOISE = 12
    DECODER = 13  # by step
    DECODER_VALIDATION = 14
    ANY_ORDER = 15  # by step
    ANY_ORDER_VALIDATION = 16


class Evaluation(IntEnum):
    """Streams of the evaluation of a model."""

    LIKELIHOOD_DEQUANTISATION = 9
    LEARNED_CHOICE = 12
    SOLVER_CHOICE = 30


class Sampling(IntEnum):
    """Streams of samplers, guided or not."""

    PLAIN = 8  # by batch
    PILOT = 20
    REJECTION = 21
    PARTICLES = 22  # by attempt, batch
    SELECTION = 23
    GUIDANCE = 24
    MOMENTS = 25  # by round
    SEQUENTIAL = 26  # by batch
    SEQUENTIAL_SCOUTS = 27
    LOOKAHEAD = 28
    UNLIKE = 29
    ADAPTATION = 35  # by case
    PREDICTIVE = 40


class Calibration(IntEnum):
    """Streams of simulation-based calibration."""

    TRUTHS = 50
    NOISE = 51  # by replicate
    TIES = 52  # by replicate
    REPLICATE = 53  # by replicate
    THINNING = 54  # by replicate


class ClassifierTraining(IntEnum):
    """Streams of the training of a classifier."""

    INITIAL_WEIGHTS = 20
    HELD_OUT_CHOICE = 21
    DENOISED = 22  # by batch
    BALANCE = 23
    AUGMENTATION = 24  # by step
    SHUFFLE = 25  # by epoch


def stream(seed: int, *place: int) -> torch.Generator:
    """The generator of one place of a run: a stream, and what counts within it."""
    return torch.Generator().manual_seed(derived(seed, *place))


def derived(seed: int, *place: int) -> int:
    """A seed for that place, unrelated to those of its neighbours (splitmix64)."""
    mixed = seed & _MASK
    for part in place:
        mixed = (mixed + 0x9E3779B97F4A7C15 * (int(part) + 1)) & _WORD
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        mixed ^= mixed >> 31
    return mixed & _MASK
