"""Formulas at a Gaussian belief, against exact normal probabilities and Monte Carlo."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from constraints import (
    DataError,
    FormulaError,
    Layout,
    LogLTN,
    LogProbabilistic,
    Robustness,
    compiled,
    parse,
)
from constraints.gaussian.expectation import log_expectation

STEPS = 12
LAYOUT = Layout.series("S I", STEPS)
DRAWS = 40_000
ATOMS = [
    "I(3) <= 1",
    "S(3) = 0.5",
    "S(3) = 0.5 +- 0.4",
    "-0.5 <= S(2) + 2 * I(4) <= 1",
    "abs(S(2) - I(2)) <= 1",
    "mean(S) >= 0.1",
    "sum(I, 0, 3) <= 0.5 and S(7) <= 1",
    "delta(S)(4) <= 0.2",
    "integral(S, 2, 6) <= 1",
    "cumsum(I)(2) >= 0",
    "S(1) != 0.4",
    "I(3) <= 1 or S(3) >= 0.3",
]
OVER_TIME = [
    "forall t: I(t) <= 1.5",
    "forall t: -2 <= S(t) + I(t) <= 2.5",
    "max(I) <= 2",
    "exists t in [0, 5]: I(t) >= 1.5",
    "forall t in [0, 8]: exists u in [t, t + 3]: I(u) > 0",
]


def correlated(r: float, variance: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """Both series with correlation r between neighbouring steps: (D, D)."""
    steps = torch.arange(STEPS, dtype=dtype)
    one = r ** (steps[:, None] - steps[None]).abs() if r else torch.eye(STEPS, dtype=dtype)
    return variance * torch.block_diag(one, one)


def means(count: int = 3, scale: float = 0.4) -> Tensor:
    draw = torch.Generator().manual_seed(5)
    return scale * torch.randn(count, 2 * STEPS, generator=draw, dtype=torch.float64)


def monte_carlo(text: str, mean: Tensor, covariance: Tensor, semantics: LogProbabilistic) -> Tensor:
    """(estimate, standard error) of log E e^c, for one mean."""
    draw = torch.Generator().manual_seed(7)
    noise = torch.randn(DRAWS, len(mean), generator=draw, dtype=torch.float64)
    x = mean + noise @ torch.linalg.cholesky(covariance).T
    weight = compiled(parse(text), LAYOUT)(x, semantics).exp()
    return torch.stack([weight.mean().log(), weight.std() / weight.mean() / math.sqrt(DRAWS)])


@pytest.mark.parametrize("text", [*ATOMS, *OVER_TIME, "S(1) * I(2) <= 0.5", "exp(S(1)) <= 1.2"])
@pytest.mark.parametrize(
    "semantics",
    [LogProbabilistic(k=3.0), LogProbabilistic(k=20.0, gaussian=2.0), LogLTN(k=3.0, alpha=2.0)],
)
def test_a_zero_covariance_gives_the_ordinary_value(
    text: str, semantics: LogProbabilistic | LogLTN
) -> None:
    program = compiled(parse(text), LAYOUT)
    none = torch.zeros(2 * STEPS, 2 * STEPS, dtype=torch.float64)
    torch.testing.assert_close(
        log_expectation(program, means(), none, semantics), program(means(), semantics)
    )


@pytest.mark.parametrize("text", ATOMS)
@pytest.mark.parametrize("k", [1.0, 6.0])
def test_atoms_are_averaged_exactly(text: str, k: float) -> None:
    semantics = LogProbabilistic(k=k)
    covariance = correlated(0.8, 0.5)
    if "and" in text or "or" in text or "!=" in text:  # independence is then an assumption
        covariance = correlated(0.0, 0.5)
    if "!=" in text:
        covariance = covariance * 1e-4
    for mean in means(2):
        found = log_expectation(compiled(parse(text), LAYOUT), mean[None], covariance, semantics)
        expected, error = monte_carlo(text, mean, covariance, semantics)
        assert abs(found - expected) <= 5 * error + 1e-3


@pytest.mark.parametrize("text", OVER_TIME)
@pytest.mark.parametrize(("r", "variance"), [(0.9, 0.3), (0.9, 1.0), (0.99, 1.0)])
def test_correlated_steps_come_close_where_independent_ones_fail(
    text: str, r: float, variance: float
) -> None:
    """Two-sided intervals are the worst, 0.3 off; taking steps for independent is 5 off."""
    semantics = LogProbabilistic(k=5.0)
    covariance, mean = correlated(r, variance), means(1)[0]
    program = compiled(parse(text), LAYOUT)
    found = log_expectation(program, mean[None], covariance, semantics)
    apart = log_expectation(program, mean[None], torch.diag(covariance.diagonal()), semantics)
    expected, error = monte_carlo(text, mean, covariance, semantics)
    assert abs(found - expected) <= 0.3 * max(1.0, abs(expected)) + 5 * error
    assert abs(found - expected) <= abs(apart - expected) + 5 * error


def test_uncorrelated_steps_are_summed() -> None:
    covariance, semantics = correlated(0.0, 0.7), LogProbabilistic(k=4.0)
    whole = log_expectation(
        compiled(parse("forall t: I(t) <= 1"), LAYOUT), means(), covariance, semantics
    )
    single = (parse(f"I({t}) <= 1") for t in range(STEPS))
    parts = [
        log_expectation(compiled(step, LAYOUT), means(), covariance, semantics) for step in single
    ]
    torch.testing.assert_close(whole, torch.stack(parts).sum(0))


@pytest.mark.parametrize("r", [0.3, 0.6, 0.8, 0.95])
def test_the_power_reproduces_orthant_probabilities(r: float) -> None:
    """P(y_1 >= 0, ..., y_10 >= 0) of equally correlated normals, which scipy integrates."""
    layout = Layout.series("x", 10)
    covariance = torch.full((10, 10), r, dtype=torch.float64).fill_diagonal_(1.0)
    program = compiled(parse("forall t: x(t) >= 0"), layout)
    for shift in (0.0, 1.0):
        mean = torch.full((1, 10), shift, dtype=torch.float64)
        found = log_expectation(program, mean, covariance, LogProbabilistic(k=math.inf))
        exact = multivariate_normal.cdf(mean[0].numpy(), cov=covariance.numpy(), rng=1)
        independent = 10 * torch.special.log_ndtr(mean[0, 0])
        assert abs(found - math.log(exact)) < 0.5 * abs(math.log(exact)) + 0.02
        assert abs(found - math.log(exact)) < 0.5 * abs(independent - math.log(exact))


def test_hard_atoms_are_normal_probabilities() -> None:
    hard = LogProbabilistic(k=math.inf, half_unit=True)
    layout = Layout.series("I", 3, integer=True)
    program = compiled(parse("I(1) <= 20"), layout)
    mean = torch.tensor([[0.0, 25.0, 0.0], [0.0, 3.0, 0.0]], dtype=torch.float64)
    found = log_expectation(program, mean, 4.0 * torch.eye(3, dtype=torch.float64), hard)
    expected = torch.special.log_ndtr((20.5 - mean[:, 1]) / 2.0)
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("text", [*ATOMS, *OVER_TIME])
def test_gradients_match_finite_differences(text: str) -> None:
    covariance, semantics = correlated(0.7, 0.4), LogProbabilistic(k=4.0)
    program = compiled(parse(text), LAYOUT)

    def value(mean: Tensor) -> Tensor:
        return log_expectation(program, mean, covariance, semantics)

    mean = means(1).requires_grad_()
    (slope,) = torch.autograd.grad(value(mean).sum(), mean)
    along = torch.randn(mean.shape, generator=torch.Generator().manual_seed(1), dtype=mean.dtype)
    h = 1e-5
    with torch.no_grad():
        difference = (value(mean + h * along) - value(mean - h * along)) / (2 * h)
    torch.testing.assert_close((slope * along).sum(), difference[0], atol=1e-5, rtol=1e-3)


def test_a_nonlinear_atom_is_right_for_small_variances() -> None:
    text, semantics = "S(1) * exp(I(2)) <= 0.3", LogProbabilistic(k=5.0)
    covariance, mean = correlated(0.5, 0.003), means(1)[0]
    found = log_expectation(compiled(parse(text), LAYOUT), mean[None], covariance, semantics)
    expected, error = monte_carlo(text, mean, covariance, semantics)
    assert abs(found - expected) < 0.01 + 5 * error


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_finite_far_away(dtype: torch.dtype) -> None:
    formula = parse("(forall t: I(t) <= 0) and (exists t: S(t) = 0) and (max(S) <= 1 or S(1) = 9)")
    program = compiled(formula, LAYOUT)
    for scale in (0.0, 1.0, 1e3, 1e4):
        for k in (0.5, 50.0):
            mean = (scale * means()).to(dtype).requires_grad_()
            for variance in (0.0, 1e-4, 1.0, 1e4):
                covariance = correlated(0.9, variance, dtype)
                value = log_expectation(program, mean, covariance, LogProbabilistic(k=k))
                (slope,) = torch.autograd.grad(value.sum(), mean)
                assert torch.isfinite(value).all()
                assert torch.isfinite(slope).all()
                assert (value <= 1e-6).all()


def test_instances_and_columns() -> None:
    layout = Layout.columns("alcohol sugar", instances=2)
    program = compiled(parse("alcohol[1] > alcohol[2] + 1"), layout)
    covariance = torch.eye(4, dtype=torch.float64)
    mean = torch.tensor([[12.0, 0.0, 10.0, 0.0]], dtype=torch.float64)  # alcohol, sugar; again
    found = log_expectation(program, mean, covariance, LogProbabilistic(k=math.inf))
    expected = torch.special.log_ndtr(torch.tensor([1 / math.sqrt(2)], dtype=torch.float64))
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)


def test_invalid_posteriors_are_rejected() -> None:
    program = compiled(parse("I(0) <= 1"), LAYOUT)
    mean, covariance = means(), correlated(0.5, 1.0)
    with pytest.raises(DataError, match=r"shape \(B, 24\)"):
        log_expectation(program, mean[:, :3], covariance)
    with pytest.raises(DataError, match=r"covariance has shape \(24, 24\), not \(3, 24\)"):
        log_expectation(program, mean, covariance[:3])
    with pytest.raises(DataError, match="negative variance"):
        log_expectation(program, mean, -covariance)
    with pytest.raises(FormulaError, match=r"Robustness has no expectation .*\(have: LogProb"):
        log_expectation(program, mean, covariance, Robustness())  # type: ignore[arg-type]
    with pytest.raises(DataError, match="NaN"):
        log_expectation(program, mean * math.nan, covariance)
