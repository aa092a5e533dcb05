"""Random numbers in kernels: the published generator, and variates with the right law."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from scipy import stats

from simulators.kernels.codegen.streams import exponential, next_bits, poisson, seed_stream, unit
from simulators.random import words

MASK = (1 << 64) - 1


def _xoshiro(state: list[int]) -> int:
    """xoshiro256++ as its authors publish it, in Python integers."""

    def rotate(x: int, k: int) -> int:
        return ((x << k) | (x >> (64 - k))) & MASK

    result = (rotate((state[0] + state[3]) & MASK, 23) + state[0]) & MASK
    shifted = (state[1] << 17) & MASK
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = rotate(state[3], 45)
    return result


@njit
def _bits(seed: np.uint64, trajectory: int, count: int) -> np.ndarray:
    stream = np.zeros((4, 2), np.uint64)
    seed_stream(seed, trajectory, stream, 1)
    drawn = np.empty(count, np.uint64)
    for k in range(count):
        drawn[k] = next_bits(stream, 1)
    return drawn


@njit
def _exponentials(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    made, uniform = np.empty(bits.size), np.empty(bits.size)
    for k in range(bits.size):
        made[k], uniform[k] = exponential(bits[k]), unit(bits[k])
    return made, uniform


@njit
def _poissons(mean: float, count: int) -> np.ndarray:
    stream = np.zeros((4, 1), np.uint64)
    seed_stream(np.uint64(5), 0, stream, 0)
    made = np.empty(count)
    for k in range(count):
        made[k] = poisson(mean, stream, 0)
    return made


def test_the_stream_is_xoshiro_seeded_by_words() -> None:
    for seed, trajectory in [(0, 0), (7, 123_456_789), (MASK, 3)]:
        state = [int(words(seed, k, trajectory, 1)[0]) for k in range(4)]
        assert [int(b) for b in _bits(np.uint64(seed), trajectory, 50)] == [
            _xoshiro(state) for _ in range(50)
        ]


def test_exponential_is_minus_log_to_full_precision() -> None:
    edges = np.array([0, 1, 2**12, 2**63, MASK, MASK - 2**12], np.uint64)
    bits = np.concatenate([_bits(np.uint64(1), 1, 200_000), edges])
    made, uniform = _exponentials(bits)
    assert ((uniform > 0) & (uniform < 1)).all()
    assert (made > 0).all()
    np.testing.assert_allclose(made, -np.log(uniform), rtol=4e-16, atol=1e-300)


def test_uniform_and_exponential_laws() -> None:
    made, uniform = _exponentials(_bits(np.uint64(2), 0, 100_000))
    assert stats.kstest(uniform, "uniform").pvalue > 1e-3
    assert stats.kstest(made, "expon").pvalue > 1e-3


@pytest.mark.parametrize("mean", [0.05, 0.9, 4.0, 9.99, 10.0, 12.5, 60.0, 1e3, 1e6])
def test_poisson_law(mean: float) -> None:
    made = _poissons(mean, 100_000)
    law = stats.poisson(mean)
    edges = np.unique(law.ppf(np.linspace(0.001, 0.999, 40)))
    cells = np.diff(np.concatenate([[0.0], law.cdf(edges), [1.0]]))
    counts = np.histogram(made, np.concatenate([[-1.0], edges + 0.5, [np.inf]]))[0]
    keep = cells > 1e-12
    assert (
        stats.chisquare(counts[keep], cells[keep] / cells[keep].sum() * counts[keep].sum()).pvalue
        > 1e-4
    )
    assert counts[~keep].sum() == 0
