"""Averages of atoms: against quadrature, scipy's normal law, and their own laws."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, log_expit, log_ndtr, logsumexp

from constraints.evaluate.log_probability import log1mexp
from constraints.gaussian.averages import BLOCK_SIZE, NARROW_INTERVAL, average, average_gaussian

INF = math.inf
MODEL = 2.5e-4  # error of the closed form, narrow intervals included
# in units of 1 / k: one-sided atoms, the equality, intervals from narrow to wide
ATOMS = [(0.0, INF), (-INF, 0.0), (0.0, 0.0), (0.0, 1e-3), (-0.25, 0.25), (-1.0, 2.0), (0.0, 50.0)]
SHARPNESS = [0.01, 1.0, 1e4]


def soft(y: np.ndarray, low: float, high: float, k: float) -> np.ndarray:
    value = np.zeros_like(y)
    if low > -INF:
        value = value + log_expit(k * (y - low))
    if high < INF:
        value = value + log_expit(k * (high - y))
    return value


def quadrature(mean: float, variance: float, low: float, high: float, k: float) -> float:
    """log E exp(c(y)) by Gauss-Legendre cells around the mode of the (log-concave) integrand."""

    def log_integrand(y: np.ndarray) -> np.ndarray:
        return soft(y, low, high, k) - (y - mean) ** 2 / (2 * variance)

    def slope(y: float) -> float:
        value = -(y - mean) / variance
        value += k * expit(-k * (y - low)) if low > -INF else 0.0
        return value - (k * expit(-k * (high - y)) if high < INF else 0.0)

    left, right = mean - k * variance, mean + k * variance
    for _ in range(100):
        mode = 0.5 * (left + right)
        left, right = (mode, right) if slope(mode) > 0 else (left, mode)
    top = log_integrand(np.array(mode))

    def reach(sign: float) -> float:
        step = 1e-3 * min(math.sqrt(variance), 1 / k)
        while log_integrand(np.array(mode + sign * step)) > top - 40:
            step *= 1.3
        return mode + sign * step

    first, last = reach(-1.0), reach(1.0)
    edges = [bound + np.linspace(-40, 40, 401) / k for bound in (low, high) if abs(bound) < INF]
    cells = np.unique(np.concatenate([np.linspace(first, last, 401), *edges]))
    cells = cells[(cells >= first) & (cells <= last)]
    nodes, weights = np.polynomial.legendre.leggauss(4)
    half = np.diff(cells)[:, None] / 2
    y = cells[:-1, None] + half * (1 + nodes)
    total = logsumexp(log_integrand(y), b=half * weights)
    return float(total) - 0.5 * math.log(2 * math.pi * variance)


def assert_near(value: torch.Tensor, truth: np.ndarray, error: float) -> None:
    """Absolute error down to -50, relative beyond."""
    difference = np.abs(value.double().numpy() - truth)
    assert (difference < error * np.maximum(1.0, np.abs(truth) / 50)).all(), difference.max()


def scaled(atom: tuple[float, float], k: float) -> tuple[float, float]:
    return atom[0] / k, atom[1] / k


def grid(k: float) -> tuple[list[float], list[float]]:
    """Means and variances around the scale 1 / k and the largest ones asked for."""
    spreads = [0.01, 0.3, 1.0, 3.0, 30.0, 1000.0]  # k sqrt(variance)
    pairs = [
        (m / k * max(1.0, s), (s / k) ** 2)
        for s in spreads
        for m in (-40.0, -6.0, -2.5, -0.3, 0.0, 1.0, 4.0)
    ]
    pairs += [(m, v) for m in (-1e4, -30.0, 1e4) for v in (1e-6, 1.0, 1e6)]
    means, variances = zip(*pairs, strict=True)
    return list(means), list(variances)


@pytest.mark.parametrize("k", SHARPNESS)
@pytest.mark.parametrize("atom", ATOMS)
def test_soft_atoms_agree_with_quadrature(atom: tuple[float, float], k: float) -> None:
    low, high = scaled(atom, k)
    means, variances = grid(k)
    truth = np.array(
        [quadrature(m, v, low, high, k) for m, v in zip(means, variances, strict=True)]
    )
    for dtype, error in ((torch.float64, MODEL), (torch.float32, 2 * MODEL)):
        value = average(
            torch.tensor(means, dtype=dtype), torch.tensor(variances, dtype=dtype), low, high, k
        )
        assert_near(value, truth, error)


def test_hard_atoms_agree_with_the_normal_law() -> None:
    r = torch.linspace(-40, 40, 401, dtype=torch.float64)
    variance = torch.tensor([[1e-6], [1.0], [1e6]], dtype=torch.float64)
    mean = r * variance.sqrt()
    truth = log_ndtr(r.numpy())
    for dtype, error in ((torch.float64, 2e-7), (torch.float32, 2e-5)):
        value = average(mean.to(dtype), variance.to(dtype), 0.0, INF, INF)
        assert_near(value, truth, error)


@pytest.mark.parametrize("width", [1e-6, 0.01, 0.3, 5.0])
def test_hard_intervals_agree_with_the_normal_law(width: float) -> None:
    mean = torch.linspace(-30, 30, 121, dtype=torch.float64)
    # midpoint rule on the density: right where the difference of two log_ndtr would cancel
    y = (np.arange(4000) + 0.5) / 4000 * width
    log_density = -0.5 * (y - mean.numpy()[:, None]) ** 2 - 0.5 * math.log(2 * math.pi)
    truth = logsumexp(log_density, axis=1) + math.log(width / 4000)
    for dtype in (torch.float64, torch.float32):
        value = average(mean.to(dtype), torch.ones((), dtype=dtype), 0.0, width, INF)
        assert_near(value, truth, MODEL)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", SHARPNESS)
@pytest.mark.parametrize("atom", ATOMS)
def test_zero_variance_is_the_ordinary_value(
    atom: tuple[float, float], k: float, dtype: torch.dtype
) -> None:
    low, high = scaled(atom, k)
    mean = (torch.linspace(-60, 60, 49, dtype=dtype) / k).requires_grad_()
    variance = torch.zeros((), dtype=dtype)
    value = average(mean, variance, low, high, k)
    truth = soft(mean.detach().double().numpy(), low, high, k)
    rounding = 8 * torch.finfo(dtype).eps
    np.testing.assert_allclose(value.detach().numpy(), truth, rtol=rounding, atol=rounding)
    (gradient,) = torch.autograd.grad(value.sum(), mean)
    assert torch.isfinite(gradient).all()
    tiny = average(mean.detach(), variance + 1e-12 / k**2, low, high, k)
    assert (tiny - value).abs().max() < 2 * MODEL


def test_zero_variance_of_a_hard_atom() -> None:
    mean = torch.tensor([-1.0, 0.0, 0.5, 1.0, 2.0], requires_grad=True)
    variance = torch.zeros(5, requires_grad=True)
    value = average(mean, variance, 0.0, 1.0, INF)
    assert value.tolist() == [-INF, 0.0, 0.0, 0.0, -INF]
    value[1:4].sum().backward()
    assert not mean.grad.isnan().any()
    assert not variance.grad.isnan().any()


@pytest.mark.parametrize("k", [0.5, 50.0, INF])
@pytest.mark.parametrize("atom", ATOMS)
def test_gradients_agree_with_differences(atom: tuple[float, float], k: float) -> None:
    if math.isinf(k) and atom[0] == atom[1]:
        return
    points = [-30.0, -1.3, 0.0, 0.1, 3.1]
    mean = torch.tensor(points, dtype=torch.float64, requires_grad=True)
    variance = torch.tensor([[0.02], [1.0], [40.0]], dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(
        lambda m, v: average(m, v, *atom, k), (mean, variance), atol=2e-5, rtol=1e-4
    )


@pytest.mark.parametrize("atom", ATOMS)
def test_gradient_of_the_sharpness(atom: tuple[float, float]) -> None:
    k = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    mean = torch.tensor([-3.0, 0.4], dtype=torch.float64)
    variance = torch.tensor([0.5, 2.0], dtype=torch.float64)
    torch.autograd.gradcheck(lambda k: average(mean, variance, *atom, k), (k,), atol=1e-5)


@pytest.mark.parametrize("atom", ATOMS)
def test_float32_gradients_agree_with_float64(atom: tuple[float, float]) -> None:
    std = torch.logspace(-2, 7, 19, dtype=torch.float64).unsqueeze(1)
    mean = torch.linspace(-8, 8, 33, dtype=torch.float64) * std
    gradients = []
    for dtype in (torch.float32, torch.float64):
        m = mean.to(dtype).requires_grad_()
        v = std.square().expand(mean.shape).to(dtype).requires_grad_()
        dm, dv = torch.autograd.grad(average(m, v, *atom, 1.0).sum(), (m, v))
        gradients.append(torch.stack([dm.double() * std, dv.double() * std**2]))
    torch.testing.assert_close(*gradients, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("k", [0.01, 1.0, 1e4, INF])
@pytest.mark.parametrize("atom", [*ATOMS, (-5e3, 7e3), (1.0, 1.0 + 1e-12)])
def test_extremes_are_finite_and_not_positive(
    atom: tuple[float, float], k: float, dtype: torch.dtype
) -> None:
    if math.isinf(k) and atom[0] == atom[1]:
        return
    size = torch.cat([torch.zeros(1), torch.logspace(-12, 4, 33)])
    mean = torch.cat([-size, size]).to(dtype).requires_grad_()
    variance = torch.cat([torch.tensor([0.0, 1e-38, 1e-30, 1e-20]), torch.logspace(-12, 6, 19)])
    variance = variance[1 if math.isinf(k) else 0 :].to(dtype).unsqueeze(1).requires_grad_()
    value = average(mean, variance, *atom, k)
    assert torch.isfinite(value).all()
    assert (value <= 0).all()
    for gradient in torch.autograd.grad(value.sum(), (mean, variance)):
        assert torch.isfinite(gradient).all()


@settings(max_examples=60)
@given(
    st.floats(-50, 50),
    st.floats(1e-6, 1e4),
    st.floats(-5, 5),
    st.floats(1e-6, 100),
    st.sampled_from([0.01, 0.7, 15.0, 1e3, INF]),
)
def test_averages_obey_symmetry_and_monotonicity(
    mean: float, variance: float, low: float, width: float, k: float
) -> None:
    m, v = torch.tensor([mean, mean + 0.1], dtype=torch.float64), torch.tensor(variance).double()
    high = low + width
    above, below = average(m, v, low, INF, k), average(m, v, -INF, high, k)
    inside = average(m, v, low, high, k)
    assert above[1] >= above[0]
    assert below[1] <= below[0]
    assert torch.cat([above, below, inside]).max() <= 0
    slack = 2 * MODEL * (1 + inside.abs() / 50)
    assert (inside <= torch.minimum(above, below) + slack).all()
    # mirror images, and an atom with its complement
    torch.testing.assert_close(average(-m, v, -INF, -low, k), above)
    torch.testing.assert_close(average(-m, v, -high, -low, k), inside)
    opposite = average(m, v, -INF, low, k)
    torch.testing.assert_close(above.exp() + opposite.exp(), torch.ones(2, dtype=torch.float64))


def test_a_narrow_interval_is_continuous() -> None:
    mean = torch.linspace(-20, 20, 81, dtype=torch.float64)
    variance = torch.tensor([[1e-4], [1.0], [30.0]], dtype=torch.float64)
    equality = average(mean, variance, 0.5, 0.5, 1.0)
    narrow = average(mean, variance, 0.5, 0.5 + 1e-9, 1.0)
    torch.testing.assert_close(narrow, equality, rtol=0, atol=1e-8)


def test_narrow_parts_make_up_the_whole() -> None:
    mean = torch.linspace(-6, 6, 49, dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)
    for width in (
        NARROW_INTERVAL,
        2 * NARROW_INTERVAL,
        3 * NARROW_INTERVAL,
        4 * NARROW_INTERVAL,
    ):  # either side of the switch
        left = average(mean, one, 0.0, width / 2, INF)
        right = average(mean, one, width / 2, width, INF)
        whole = average(mean, one, 0.0, width, INF)
        torch.testing.assert_close(torch.logaddexp(left, right), whole, rtol=0, atol=MODEL)


def test_averages_agree_with_monte_carlo() -> None:
    generator = torch.Generator().manual_seed(7)
    y = 0.4 + 1.3 * torch.randn(400_000, generator=generator, dtype=torch.float64)
    for low, high, k in [(0.0, INF, 3.0), (-INF, -1.0, 1.0), (0.0, 0.0, 2.0), (-1.0, 1.0, 4.0)]:
        draws = torch.from_numpy(np.exp(soft(y.numpy(), low, high, k)))
        value = average(torch.tensor(0.4).double(), torch.tensor(1.69).double(), low, high, k)
        noise = draws.std() / math.sqrt(len(y))
        assert (value.exp() - draws.mean()).abs() < 4 * noise + MODEL * draws.mean()


def test_gradient_at_the_bound_is_not_lost() -> None:
    for k in (2.0, INF):
        mean = torch.zeros(1, requires_grad=True)
        average(mean, torch.ones(1), 0.0, INF, k).sum().backward()
        assert mean.grad.item() > 0.3


def test_broadcasting_and_blocks_do_not_change_values() -> None:
    generator = torch.Generator().manual_seed(3)
    mean = torch.randn(BLOCK_SIZE // 4 + 11, 9, generator=generator, requires_grad=True)
    variance = torch.rand(9, generator=generator).add(0.1).requires_grad_()
    value = average(mean, variance, 0.0, INF, 2.0)
    value.sum().backward()
    assert variance.grad.shape == (9,)
    last = average(mean[-1], variance, 0.0, INF, 2.0)
    torch.testing.assert_close(value[-1], last)
    assert average(torch.zeros(0, 3), torch.ones(3), 0.0, INF, 1.0).shape == (0, 3)
    assert (average(mean, variance, -INF, INF, 2.0) == 0).all()


def test_log1mexp_is_accurate_near_both_ends() -> None:
    x = -torch.logspace(-30, 2.5, 200, dtype=torch.float64)
    x.requires_grad_()
    value = log1mexp(x)
    small, large = np.split(x.detach().numpy(), [(x > -0.5).sum()])
    truth = np.concatenate([np.log(-np.expm1(small)), np.log1p(-np.exp(large))])
    np.testing.assert_allclose(value.detach().numpy(), truth, rtol=1e-13)
    value.sum().backward()
    torch.testing.assert_close(x.grad, -1 / torch.expm1(-x.detach()))


def test_the_gaussian_average_agrees_with_quadrature() -> None:
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for mean, variance, scale in [(0.3, 0.5, 0.8), (-2.0, 0.1, 1.5), (1.0, 0.0, 2.0)]:
        y = mean + math.sqrt(variance) * nodes
        truth = logsumexp(-scale * y**2, b=weights / weights.sum())
        value = average_gaussian(
            torch.tensor(mean).double(), torch.tensor(variance).double(), scale
        )
        assert value.item() == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "k", "words"),
    [
        (1.0, 0.0, 1.0, "low <= high"),
        (math.nan, 0.0, 1.0, "low <= high"),
        (INF, INF, 1.0, "low <= high"),
        (0.0, 1.0, 0.0, "positive"),
        (0.0, 1.0, math.nan, "positive"),
        (2.0, 2.0, INF, "hard equality.*2.0"),
    ],
)
def test_invalid_arguments_are_rejected(low: float, high: float, k: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        average(torch.zeros(1), torch.ones(1), low, high, k)
