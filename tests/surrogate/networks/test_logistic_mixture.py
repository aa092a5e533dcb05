"""Mixtures of logistics against scipy: masses of intervals, densities, truncated draws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch import Tensor

from surrogate.kinds.trajectories.sites import FAR
from surrogate.networks.logistic_mixture import MAX_REACH, LogisticMixture, log_mass
from tests.surrogate.analytic import generator

# P(KS statistic > KS_BOUND/√n) = 2 e^(-2 KS_BOUND²) = 3e-6 of draws from the distribution itself
KS_BOUND = 2.59


def numbers(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def mixture(rows: int = 1) -> LogisticMixture:
    """Three components, one of them far and narrow: (rows, 3)."""
    log_weights = numbers(0.5, 0.3, 0.2).log()
    location, scale = numbers(-1.0, 2.0, 9.0), numbers(0.7, 2.0, 0.05)
    return LogisticMixture(*(each.expand(rows, 3) for each in (log_weights, location, scale.log())))


def below(z: np.ndarray) -> np.ndarray:
    """The distribution function of `mixture`."""
    found = np.zeros(np.shape(z))
    for weight, location, scale in ((0.5, -1.0, 0.7), (0.3, 2.0, 2.0), (0.2, 9.0, 0.05)):
        found += weight * stats.logistic.cdf(z, location, scale)
    return found


ENDS = [(-1.0, 1.0), (-0.5, 0.5), (3.0, 3.1), (-30.0, -29.0), (29.0, 30.0), (-35.0, 35.0)]


@pytest.mark.parametrize(("low", "high"), [*ENDS, (0.0, 1e-6), (38.0, 39.0), (-39.0, -38.0)])
def test_mass_of_an_interval_equals_scipy(low: float, high: float) -> None:
    """In the upper tail scipy's survival function keeps the digits that 1 - cdf loses."""
    if low > 0:
        exact = stats.logistic.sf(low) - stats.logistic.sf(high)
    else:
        exact = stats.logistic.cdf(high) - stats.logistic.cdf(low)
    found = float(log_mass(numbers(low), numbers(high)))
    assert found == pytest.approx(math.log(exact), rel=1e-9)


@given(st.floats(-35, 35), st.floats(1e-3, 20))
def test_masses_are_symmetric(low: float, width: float) -> None:
    found = log_mass(numbers(low, -low - width), numbers(low + width, -low))
    assert float(found[0]) == pytest.approx(float(found[1]), rel=1e-9, abs=1e-12)


def test_masses_of_counts_add_to_one() -> None:
    n = torch.arange(-100, 100, dtype=torch.float64)
    found = mixture(len(n)).log_interval(n - 0.5, n + 0.5).exp()
    torch.testing.assert_close(found.sum(), numbers(1.0)[0], rtol=0, atol=1e-9)
    exact = below(n.numpy() + 0.5) - below(n.numpy() - 0.5)
    np.testing.assert_allclose(found.numpy(), exact, rtol=1e-6, atol=1e-12)


def test_density_is_the_slope_of_the_mass() -> None:
    z = torch.linspace(-8, 12, 41, dtype=torch.float64)
    exact = sum(
        weight * stats.logistic.pdf(z.numpy(), location, scale)
        for weight, location, scale in ((0.5, -1.0, 0.7), (0.3, 2.0, 2.0), (0.2, 9.0, 0.05))
    )
    np.testing.assert_allclose(mixture(41).log_density(z).exp().numpy(), exact, rtol=1e-9)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("low", "high"),
    [(-FAR, FAR), (-FAR, 0.0), (3.0, FAR), (-math.inf, 4.0), (1.0, math.inf)],
)
def test_open_ends_have_finite_gradients(low: float, high: float, kind: torch.dtype) -> None:
    parameters = [
        each.to(kind).clone().requires_grad_()
        for each in (mixture().log_weights, mixture().location, mixture().log_scale)
    ]
    ends = (torch.tensor([end], dtype=kind) for end in (low, high))
    found = LogisticMixture(*parameters).log_interval(*ends)
    found.sum().backward()
    assert found.isfinite().all()
    for each in parameters:
        assert each.grad is not None
        assert each.grad.isfinite().all()
    exact = (1.0 if high > 1e9 else float(below(np.array(high)))) - float(below(np.array(low)))
    assert float(found.exp().detach()) == pytest.approx(exact, rel=1e-5)


def test_an_end_beyond_reach_is_as_good_as_none() -> None:
    """A bound so far from a component that its tail is 0 in any precision has no gradient there."""
    one = LogisticMixture(numbers(0.0)[None], numbers(0.0)[None], numbers(0.0)[None])
    found = one.log_interval(numbers(-2 * MAX_REACH), numbers(2 * MAX_REACH))
    assert float(found) == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize(
    ("low", "high"), [(-FAR, FAR), (-2.0, 3.0), (0.0, 0.3), (8.0, 20.0), (12.0, 14.0), (-9.0, -6.0)]
)
def test_draws_follow_the_truncated_distribution(low: float, high: float) -> None:
    n = 20_000
    uniform = torch.rand((2, n), generator=generator(7), dtype=torch.float64)
    ends = numbers(low).expand(n), numbers(high).expand(n)
    drawn = mixture(n).sample(*ends, uniform).numpy()
    assert (drawn >= low - 1e-9).all()
    assert (drawn <= high + 1e-9).all()
    first, last = below(np.array(max(low, -1e9))), below(np.array(min(high, 1e9)))
    found = stats.kstest(drawn, lambda z: (below(z) - first) / (last - first))
    assert found.statistic < KS_BOUND / math.sqrt(n)


def test_draws_far_in_a_tail_keep_to_the_interval() -> None:
    """An exponential of the scale, where 1 - cdf is 0 in floating point."""
    n = 20_000
    one = LogisticMixture(*(numbers(0.0).expand(n, 1) for _ in range(3)))
    uniform = torch.rand((2, n), generator=generator(3), dtype=torch.float64)
    drawn = one.sample(numbers(36.0).expand(n), numbers(39.0).expand(n), uniform).numpy()
    exact = stats.truncexpon(b=3.0, loc=36.0)
    assert stats.kstest(drawn, exact.cdf).statistic < KS_BOUND / math.sqrt(n)


def test_an_interval_of_one_point_gives_that_point() -> None:
    n = 50
    at = torch.linspace(-30, 30, n, dtype=torch.float64)
    uniform = torch.rand((2, n), generator=generator(), dtype=torch.float64)
    torch.testing.assert_close(mixture(n).sample(at, at, uniform), at, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("low", "high"), [(-2.0, 3.0), (8.0, 20.0), (60.0, 61.0), (-1e4, -9.99e3), (1e5, 1e5 + 0.01)]
)
def test_a_truncated_density_integrates_to_one(low: float, high: float) -> None:
    """Also where the interval lies so far out that its mass is 0 in any precision."""
    z = torch.linspace(low, high, 20_001, dtype=torch.float64)
    ends = numbers(low).expand(len(z)), numbers(high).expand(len(z))
    found = mixture(len(z)).log_truncated(z, *ends).exp()
    assert float(torch.trapezoid(found, z)) == pytest.approx(1.0, rel=1e-3)
    if abs(low) < 30:
        exact = mixture(len(z)).log_density(z) - mixture(len(z)).log_interval(*ends)
        torch.testing.assert_close(found.log(), exact)


@pytest.mark.parametrize("start", [-3, 40, 2_000, -50_000])
def test_shares_of_counts_in_a_support_add_to_one(start: int) -> None:
    n = start + torch.arange(8, dtype=torch.float64)
    within = numbers(start - 0.5).expand(8), numbers(start + 7.5).expand(8)
    found = mixture(8).log_share(n - 0.5, n + 0.5, within).exp()
    torch.testing.assert_close(found.sum(), numbers(1.0)[0], rtol=0, atol=1e-6)


@given(st.floats(-1e3, 1e3), st.floats(1e-6, 10), st.floats(-8, 3), st.floats(0.0, 1.0))
def test_no_density_exceeds_what_its_narrowest_component_allows(
    low: float, width: float, log_scale: float, place: float
) -> None:
    """In single precision, too: a likelihood that is too large would be learned."""
    one = LogisticMixture(*(torch.tensor([[each]]) for each in (0.0, 0.0, log_scale)))
    z = torch.tensor([low + place * width])
    ends = torch.tensor([low]), torch.tensor([low + width])
    found = float(one.log_truncated(z, *ends))
    gap = float(ends[1] - ends[0])
    if gap > 0:
        assert found <= math.log(1 / gap + math.exp(-log_scale)) + 0.1
