"""Losses against their closed forms for Gaussian data, where the truth minimises them."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from surrogate.diffusion.denoise import Denoiser, expand
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.losses import LogNormal, Loss, emphasis, slicing
from surrogate.errors import ModelError
from tests.surrogate.analytic import SIGMAS, gaussian, generator, toy

N = 20_000
LEVELS = (0.05, 0.7, 6.0)


def at(sigma: float) -> LogNormal:
    """One noise level."""
    return LogNormal(math.log(sigma), spread=0)


def assert_mean(values: Tensor, expected: float) -> None:
    chance = values.std().item() / math.sqrt(len(values))
    assert abs(values.mean().item() - expected) <= SIGMAS * chance + 1e-6 * abs(expected)


def matrix(of: GaussianDenoiser) -> Tensor:
    return of.covariance.matrix(of.covariance.values)


def wrong() -> GaussianDenoiser:
    """Another mean and another covariance than the data's."""
    data = gaussian()
    return GaussianDenoiser(data.mean + 0.3, 1.5 * matrix(data) + 0.2 * torch.eye(6))


class Bent(Denoiser):
    """An exact denoiser, and a little of something else."""

    def __init__(self, exact: Denoiser, much: float) -> None:
        self.exact, self.much = exact, much

    def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
        return self.exact(x, sigma) + self.much * torch.sin(x + 1) / (1 + 1 / expand(sigma, x))


@pytest.mark.parametrize("sigma", LEVELS)
@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_denoising_loss_of_the_truth(sigma: float, scale: float) -> None:
    """What is left is the spread of the clean point: λ tr C_σ / D."""
    data = gaussian()
    found = Loss(at(sigma), scale=scale)(data, data.sample(N, generator()), generator(1))
    weight = (sigma**2 + scale**2) / (sigma * scale) ** 2
    assert_mean(found, weight * data.posterior(sigma).trace().item() / 6)


@pytest.mark.parametrize("sigma", LEVELS)
def test_denoising_loss_of_another(sigma: float) -> None:
    """More than the truth's by λ E|D' - D|² / D."""
    data, other = gaussian(), wrong()
    clean = data.sample(N, generator())
    loss, level = Loss(at(sigma)), torch.tensor(sigma)
    more = loss(other, clean, generator(1)) - loss(data, clean, generator(1))
    noisy = data.sample(N, generator(2), sigma)
    apart = (other(noisy, level) - data(noisy, level)).square().mean()
    excess = (sigma**2 + 1) / sigma**2 * apart.item()
    chance = SIGMAS * more.std().item() / math.sqrt(N)
    assert abs(more.mean().item() - excess) <= 1.5 * chance + 1e-6
    assert more.mean() > chance


@pytest.mark.parametrize("sigma", LEVELS)
@pytest.mark.parametrize("denoiser", [gaussian(), wrong()], ids=["truth", "another"])
def test_sliced_loss(sigma: float, denoiser: GaussianDenoiser) -> None:
    """For the score -P(x - m): σ² (½ tr P(C + σ²I)P + ½ |P(mean - m)|² - tr P) / D."""
    data, eye = gaussian(), torch.eye(6, dtype=torch.float64)
    found = Loss(at(sigma), sliced=1)(denoiser, data.sample(N, generator()), generator(1))
    precision = torch.linalg.inv(matrix(denoiser) + sigma**2 * eye)
    square = (precision @ (matrix(data) + sigma**2 * eye) @ precision).trace()
    square += (precision @ (data.mean - denoiser.mean)).square().sum()
    expected = sigma**2 * (square / 2 - precision.trace()) / 6
    assert_mean(found, expected.item())


@pytest.mark.parametrize("sigma", LEVELS)
def test_sliced_loss_is_least_at_the_true_score(sigma: float) -> None:
    """More than the truth's by ½ σ² E|s' - s|² / D: half the denoising loss's, per unit weight."""
    data, other = gaussian(), wrong()
    clean = data.sample(N, generator())
    loss, level = Loss(at(sigma), sliced=1), torch.tensor(sigma)
    more = loss(other, clean, generator(1)) - loss(data, clean, generator(1))
    noisy = data.sample(N, generator(2), sigma)
    apart = (other.score(noisy, level) - data.score(noisy, level)).square().mean()
    chance = SIGMAS * more.std().item() / math.sqrt(N)
    assert abs(more.mean().item() - sigma**2 * apart.item() / 2) <= 1.5 * chance + 1e-6
    assert more.mean() > chance


@pytest.mark.parametrize("sliced", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("sigma", LEVELS)
def test_the_truth_is_where_the_loss_is_flat(sliced: float, sigma: float) -> None:
    """Of two clusters too: bending their denoiser either way costs the same, and costs."""
    data, much = toy(), 0.1
    clean = data.sample(N, generator()).double()
    loss = Loss(at(sigma), sliced=sliced, scale=3.6)
    bent = [loss(Bent(data, m), clean, generator(1)) for m in (-much, 0.0, much)]
    assert_mean(bent[2] - bent[0], 0)
    bend = bent[2] - 2 * bent[1] + bent[0]
    assert bend.mean() > SIGMAS * bend.std() / math.sqrt(N)


def test_a_mixture_is_the_weighted_sum() -> None:
    data, other = gaussian(), wrong()
    clean = data.sample(50, generator())
    levels = LogNormal(0, 2)
    denoising = Loss(levels)(other, clean, generator(1))
    sliced = Loss(levels, sliced=1)(other, clean, generator(1))
    mixed = Loss(levels, sliced=0.3)(other, clean, generator(1))
    torch.testing.assert_close(mixed, 0.7 * denoising + 0.3 * sliced)


@pytest.mark.parametrize("sliced", [0.0, 0.5])
def test_several_draws(sliced: float) -> None:
    """Each sample is seen at several levels: as precise as so many more samples."""
    data = gaussian()
    clean = data.sample(500, generator())
    found = Loss(draws=4, sliced=sliced)(data, clean, generator(1))
    assert found.shape == (2000,)
    again = Loss(sliced=sliced)(data, clean.repeat(4, 1), generator(1))
    assert torch.equal(found, again)
    assert len(set(found.tolist())) == 2000


def test_random_signs_are_exact_in_one_dimension() -> None:
    """vᵀ∇(vᵀs) is s' whatever the sign, so that two directions give the same."""
    x = torch.linspace(-8, 8, 50)[:, None]
    sigma = torch.full((50,), 0.5)
    one, other = (slicing(toy(), x, sigma, generator(seed)) for seed in (0, 1))
    assert torch.equal(one, other)


@pytest.mark.parametrize("sliced", [0.0, 0.5, 1.0])
def test_gradients(sliced: float) -> None:
    """They reach the parameters also where gradients are otherwise off for the sliced part."""

    class Line(torch.nn.Module, Denoiser):
        def __init__(self) -> None:
            super().__init__()
            self.slope = torch.nn.Parameter(torch.tensor(0.3))

        def forward(self, x: Tensor, sigma: Tensor) -> Tensor:
            return self.slope * x

    line = Line()
    clean = torch.randn(N, 1, generator=generator())
    loss = Loss(at(1.0), sliced=sliced)
    loss(line, clean, generator()).mean().backward()  # type: ignore[no-untyped-call]
    assert line.slope.grad is not None
    # D = ax of x ~ N(0, 2): E 2(ax - x0)² has the slope 8a - 4, the sliced loss (a - 1)² + a - 1
    # has 2a - 1
    expected = (1 - sliced) * (8 * 0.3 - 4) + sliced * (2 * 0.3 - 1)
    assert abs(line.slope.grad.item() - expected) < 0.15 * (1 - sliced) + 0.03
    with torch.no_grad():
        assert not loss(line, clean[:3], generator()).requires_grad


@pytest.mark.parametrize("shape", [(5, 3), (5, 2, 4), (5, 1, 2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_rank_and_type(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    data = gaussian(math.prod(shape[1:]))
    found = Loss(sliced=0.5, draws=2)(data, torch.ones(shape, dtype=dtype), generator())
    assert found.shape == (10,)
    assert found.dtype == dtype
    assert found.isfinite().all()


def test_log_normal_levels() -> None:
    found = LogNormal(-0.5, 0.7)(N, generator(), torch.zeros(())).log()
    assert_mean(found, -0.5)
    assert_mean((found + 0.5).square(), 0.49)
    wide = LogNormal(0, 9)(N, generator(), torch.zeros(()))
    assert wide.min().item() == pytest.approx(0.002)
    assert wide.max().item() == pytest.approx(80)


def test_same_seed_same_loss() -> None:
    data = gaussian()
    clean = data.sample(20, generator())
    for loss in (Loss(), Loss(LogNormal(0, 2), draws=2, sliced=0.5)):
        first = loss(data, clean, generator(3))
        assert torch.equal(first, loss(data, clean, generator(3)))
        assert not torch.equal(first, loss(data, clean, generator(4)))


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: Loss(draws=0), "draws must be >= 1, not 0"),
        (lambda: Loss(sliced=1.1), "between 0 and 1, not 1.1"),
        (lambda: Loss(sliced=math.nan), "between 0 and 1, not nan"),
        (lambda: Loss(scale=0), "scale must be a number > 0, not 0"),
        (lambda: LogNormal(low=0, high=1), "0 < low < high, not 0 and 1"),
        (lambda: LogNormal(low=2, high=1), "0 < low < high, not 2 and 1"),
        (lambda: LogNormal(low=5, high=math.inf), "not 5 and inf"),
        (lambda: LogNormal(spread=-1), "spread >= 0, not -0.8 and -1"),
        (lambda: LogNormal(mean=math.nan), "not nan and 1.4"),
    ],
)
def test_bad_settings(bad: object, message: str) -> None:
    assert callable(bad)
    with pytest.raises(ModelError, match=message):
        bad()


def test_emphasis_finds_the_edges() -> None:
    """A uniform coordinate among normal ones counts more; none has an edge: all count alike."""
    generator = torch.Generator().manual_seed(0)
    clean = torch.randn(4000, 2, 5, generator=generator)
    clean[:, 0, 0] = (2 * torch.rand(4000, generator=generator) - 1) * math.sqrt(3)
    noise = torch.randn(clean.shape, generator=generator)
    low = torch.full((2, 5), -6.0)
    low[0, 0] = -math.sqrt(3)
    weights = emphasis(clean, lambda x: x.clamp(low, -low), noise)
    assert weights.mean() == pytest.approx(1)
    assert weights[0, 0] > 3 * weights[1, 4]
    assert weights.flatten()[1:].std() < 1e-3
    even = emphasis(clean, lambda x: x, noise)
    assert torch.equal(even, torch.ones(2, 5))


def test_weights_of_coordinates() -> None:
    """The loss is the weighted mean of the coordinates' errors."""
    clean = torch.zeros(3, 4)
    weights = torch.tensor([4.0, 0.0, 0.0, 0.0])
    off = torch.tensor([2.0, 1.0, 1.0, 1.0])

    class Off(Denoiser):
        def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
            return off.expand_as(x)

    sigma = torch.ones(3)
    found = Loss(weights=weights).denoising(Off(), clean, clean, sigma)
    assert torch.allclose(found, torch.full((3,), 2 * 4.0))


def test_units_of_errors() -> None:
    """Errors are taken in the units that are given, at their noise levels."""
    clean, sigma = torch.zeros(3, 4), torch.tensor([1.0, 2.0, 4.0])

    class Off(Denoiser):
        def __call__(self, x: Tensor, sigma: Tensor) -> Tensor:
            return torch.ones_like(x)

    found = Loss(units=lambda error, level: error / level[:, None]).denoising(
        Off(), clean, clean, sigma
    )
    assert torch.allclose(found, 1 / sigma**2)
