"""Gaussian vectors in boxes."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import multivariate_normal, norm

from constraints.gaussian.chains import log_interval
from surrogate.guidance import truncated


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("low", "high"), [(-1.0, 2.0), (0.5, 0.6), (-math.inf, 1.0), (3.0, 9.0), (-30, -29), (25, 26)]
)
def test_intervals(low: float, high: float) -> None:
    found = log_interval(torch.tensor([low]).double(), torch.tensor([high]).double())
    a, b = (-high, -low) if low > 0 else (low, high)
    exact = norm.logcdf(b) + math.log1p(-math.exp(norm.logcdf(a) - norm.logcdf(b)))
    assert float(found) == pytest.approx(exact, rel=1e-6)


def test_quantiles() -> None:
    z = torch.linspace(-35, 3, 200, dtype=torch.float64)
    torch.testing.assert_close(
        truncated.quantile(torch.special.log_ndtr(z)), z, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize(("low", "high"), [(-1.0, 2.0), (0.5, 0.6), (3.0, 9.0), (-12.0, -11.0)])
def test_draws_in_an_interval(low: float, high: float) -> None:
    n = 20_000
    ends = (torch.full((n,), end, dtype=torch.float64) for end in (low, high))
    z = truncated.standard(*ends, torch.rand(n, generator=generator(), dtype=torch.float64))
    assert float(z.min()) >= low
    assert float(z.max()) <= high
    a, b = (-high, -low) if low > 0 else (low, high)
    share = norm.cdf(-z if low > 0 else z)
    ranks = torch.from_numpy((share - norm.cdf(a)) / (norm.cdf(b) - norm.cdf(a)))
    steps = (torch.arange(n) + 0.5) / n
    assert (ranks.sort().values - steps).abs().max() < 1.95 / math.sqrt(n)  # 1 in 1000


def test_boxes_have_their_probability() -> None:
    """The mean weight of many draws, and the moments of weighted ones."""
    covariance = torch.tensor([[2.0, 1.2, 0.3], [1.2, 1.5, -0.4], [0.3, -0.4, 1.0]]).double()
    mean = torch.tensor([0.5, -0.2, 1.0]).double()
    low, high = torch.tensor([0.0, 0.0, -0.5]).double(), torch.tensor([1.0, 2.0, 0.5]).double()
    n = 40_000
    u, weight = truncated.box(
        mean.expand(n, -1), torch.linalg.cholesky(covariance), low, high, generator()
    )
    assert bool(((u >= low) & (u <= high)).all())
    law = multivariate_normal(mean.numpy(), covariance.numpy(), seed=1)
    exact = law.cdf(high.numpy(), lower_limit=low.numpy())
    error = float(weight.exp().std()) / math.sqrt(n)
    assert abs(float(weight.exp().mean()) - exact) < 4.5 * error + 1e-4
    plain = torch.from_numpy(law.rvs(400_000))
    kept = plain[((plain >= low) & (plain <= high)).all(1)]
    share = torch.softmax(weight, 0)
    for i in range(3):
        found = float((share * u[:, i]).sum())
        noise = float(kept[:, i].std()) * math.sqrt(1 / len(kept) + 2 / n)
        assert abs(found - float(kept[:, i].mean())) < 5 * noise
