"""Covariances of few and of many coordinates."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from surrogate.diffusion.covariance import Covariance
from surrogate.errors import ModelError

SIZE, RANK = 40, 6


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def factors(count: int) -> Tensor:
    """Samples with RANK strong directions and noise of deviation 0.1 in all: (count, 4, 10)."""
    strong = torch.randn(RANK, SIZE, generator=generator(1), dtype=torch.float64)
    flat = torch.randn(count, RANK, generator=generator(2), dtype=torch.float64) @ strong
    flat = flat + 0.1 * torch.randn(count, SIZE, generator=generator(3), dtype=torch.float64)
    return flat.reshape(count, 4, 10)


def test_of_few_coordinates_it_is_exact() -> None:
    samples = factors(500)
    found = Covariance.of(samples)
    torch.testing.assert_close(found.matrix(found.values), torch.cov(samples.flatten(1).T))


def test_of_many_it_keeps_what_matters() -> None:
    samples = factors(20_000)
    whole = Covariance.of(samples)
    low = Covariance.of(samples, rank=RANK, whole=10)
    assert low.vectors.shape == (SIZE, RANK)
    assert low.values.shape == (RANK + 1,)
    exact, found = whole.matrix(whole.values), low.matrix(low.values)
    assert float((found - exact).abs().max()) < 0.01 * float(exact.diagonal().max())
    assert float(low.values[-1]) == pytest.approx(0.01, rel=0.05)
    assert float(found.trace()) == pytest.approx(float(exact.trace()), rel=1e-5)


def test_functions_of_it_agree_with_matrices() -> None:
    low = Covariance.of(factors(2000), rank=RANK, whole=10)
    c, eye = low.matrix(low.values), torch.eye(SIZE, dtype=torch.float64)
    x = torch.randn(5, 4, 10, generator=generator(4), dtype=torch.float64)
    for sigma in (0.05, 1.0, 20.0):
        gain = c @ torch.linalg.inv(c + sigma**2 * eye)
        level = torch.tensor(sigma)
        torch.testing.assert_close(low.matrix(low.gain(level)), gain)
        torch.testing.assert_close(low.matrix(low.posterior(level)), sigma**2 * gain)
        torch.testing.assert_close(low.apply(low.gain(level), x).flatten(1), x.flatten(1) @ gain.T)
    levels = torch.tensor([0.1, 1.0, 2.0, 5.0, 9.0])
    each = [low.apply(low.gain(s), x[i : i + 1]) for i, s in enumerate(levels)]
    torch.testing.assert_close(low.apply(low.gain(levels), x), torch.cat(each))


def test_it_is_the_same_every_time() -> None:
    before = torch.random.get_rng_state()
    first, second = (Covariance.of(factors(300), rank=5, whole=10) for _ in range(2))
    assert torch.equal(first.vectors, second.vectors)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_fewer_samples_than_directions() -> None:
    low = Covariance.of(factors(5), whole=10)
    assert low.vectors.shape == (SIZE, 4)
    assert math.isfinite(float(low.values.sum()))


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("whole", [1024, 10])
def test_independent_samples_one_after_the_other(times: int, whole: int) -> None:
    """Block by block, and so are functions of it, of low rank or not."""
    single = Covariance.of(factors(300), rank=RANK, whole=whole)
    found = single.repeated(times)
    assert found.size == times * SIZE
    assert (found.vectors.shape[1] == found.size) == (single.vectors.shape[1] == SIZE)
    eye = torch.eye(times, dtype=torch.float64)
    torch.testing.assert_close(
        found.matrix(found.values), torch.kron(eye, single.matrix(single.values))
    )
    x = torch.randn(4, times * SIZE, generator=generator(5), dtype=torch.float64)
    level = torch.tensor(0.7)
    one = single.apply(single.posterior(level), x.reshape(-1, SIZE)).reshape(x.shape)
    torch.testing.assert_close(found.apply(found.posterior(level), x), one)
    white = Covariance.white(3).repeated(times)
    torch.testing.assert_close(
        white.matrix(white.values), torch.eye(3 * times, dtype=torch.float64)
    )


@pytest.mark.parametrize("size", [1, 2, 30])
def test_white(size: int) -> None:
    white = Covariance.white(size)
    torch.testing.assert_close(white.matrix(white.values), torch.eye(size, dtype=torch.float64))


@pytest.mark.parametrize(
    ("values", "vectors"),
    [
        (torch.ones(3), torch.eye(2)),
        (torch.ones(2), torch.eye(3, 2)),
        (torch.ones(2), torch.eye(2)[None]),
        (torch.ones(0), torch.ones(2, 0)),
        (-torch.ones(2), torch.eye(2)),
        (torch.tensor([1.0, math.nan]), torch.eye(2)),
    ],
)
def test_what_is_no_covariance(values: Tensor, vectors: Tensor) -> None:
    with pytest.raises(ModelError, match="a covariance"):
        Covariance.restore(values, vectors)
