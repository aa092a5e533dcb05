"""Random numbers that belong to a trajectory, not to a thread or a chunk.

Everything random about trajectory `i` of an ensemble comes from 64-bit words `word(seed, k, i)`,
where k says what the word is for (`Word`). For a fixed seed and k the word is a bijection of i
(splitmix64, Steele et al. 2014), so streams never coincide. Neighbouring seeds share no words: the
seed and k are mixed before i enters.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from simulators.errors import InputError

GOLDEN = 0x9E3779B97F4A7C15
_MASK_64 = (1 << 64) - 1


class Word(IntEnum):
    """What a word is for: the first k of each use. These numbers never change."""

    STREAM = 0  # and 1, 2, 3: state of the xoshiro256++ stream (`kernels.codegen.streams`)
    START = 4  # and on: parameters, then initial counts
    MASTER_EQUATION = 1_000_000  # seed of draws from the master equation
    PARTICLE_FILTER = 1_000_001  # seeds of the stages of particle filters
    SPLITTING = 1_000_002  # seeds of the stages of weighted ensembles


def check_seed(seed: int) -> int:
    """The seed as an integer in [0, 2^64)."""
    if (
        isinstance(seed, bool)
        or not isinstance(seed, int | np.integer)
        or not 0 <= seed <= _MASK_64
    ):
        raise InputError(
            f"seed must be a whole number from 0 to 2^64 - 1, not {seed!r}", value=seed
        )
    return int(seed)


def mix(z: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser on uint64, elementwise."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = z ^ (z >> np.uint64(31))
    return mixed


def words(seed: int, k: int, first: int, count: int) -> np.ndarray:
    """word(seed, k, i) for i = first .. first + count - 1; uint64, shape (count,)."""
    base = mix(np.array([(seed + (k + 1) * GOLDEN) & _MASK_64], dtype=np.uint64))
    index = np.arange(first + 1, first + count + 1, dtype=np.uint64)
    return mix(base + index * np.uint64(GOLDEN))


def uniforms(seed: int, draw: int, first: int, count: int) -> np.ndarray:
    """Uniform numbers in (0, 1), one per trajectory, for draw number `draw`; shape (count,)."""
    bits = words(seed, Word.START + draw, first, count)
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
