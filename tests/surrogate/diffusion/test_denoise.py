"""Denoisers and scores convert; networks without a say leave the exact Gaussian answer."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from surrogate.diffusion.covariance import Covariance
from surrogate.diffusion.denoise import (
    Denoiser,
    Preconditioned,
    ScoreDenoiser,
    Whitened,
    expand,
    smooth,
)
from surrogate.diffusion.gaussian import GaussianDenoiser
from surrogate.diffusion.schedule import EDM, VE, VP, Schedule, SubVP
from surrogate.errors import ModelError
from tests.surrogate.analytic import SIGMAS, gaussian, generator

SHAPES = [(5, 6), (5, 2, 3), (5, 1, 2, 3)]
SCHEDULES = [VE(), VP(), SubVP(), EDM()]
LEVELS = torch.tensor([0.05, 0.3, 1.0, 4.0, 30.0], dtype=torch.float64)


class Recorder(nn.Module):
    """A network that keeps what it is asked, and answers `gain` times its input."""

    def __init__(self, gain: float = 0.0) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(gain, dtype=torch.float64))

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        self.asked = x, noise
        return self.gain * x


def noisy(shape: tuple[int, ...], sigma: Tensor = LEVELS) -> Tensor:
    """Standard data under noise."""
    x = torch.randn(shape, generator=generator(1), dtype=torch.float64)
    return x + expand(sigma, x) * torch.randn(shape, generator=generator(2), dtype=torch.float64)


def white(dim: int, deviation: float = 1.0) -> GaussianDenoiser:
    eye = torch.eye(dim, dtype=torch.float64)
    return GaussianDenoiser(torch.zeros(dim, dtype=torch.float64), deviation**2 * eye)


@pytest.mark.parametrize("shape", SHAPES)
def test_expand(shape: tuple[int, ...]) -> None:
    x = torch.zeros(shape)
    each = expand(LEVELS, x)
    assert each.shape == (5,) + (1,) * (len(shape) - 1)
    assert each.dtype == x.dtype
    assert (x + each).flatten(1)[:, 0].tolist() == LEVELS.float().tolist()
    assert expand(LEVELS[2], x).flatten().tolist() == [1.0] * 5


def test_expand_refuses_levels_of_another_batch() -> None:
    with pytest.raises(ModelError, match=r"shape \(5,\) for a batch of shape \(4, 6\)"):
        expand(LEVELS, torch.zeros(4, 6))
    with pytest.raises(ModelError, match="one for each"):
        expand(LEVELS[:1], torch.zeros(5, 6))


@pytest.mark.parametrize("shape", SHAPES)
def test_score_is_the_gradient_of_the_log_density(shape: tuple[int, ...]) -> None:
    data = gaussian()
    x = noisy(shape).requires_grad_()
    (exact,) = torch.autograd.grad(data.log_prob(x, LEVELS).sum(), x)
    torch.testing.assert_close(data.score(x.detach(), LEVELS), exact)


@pytest.mark.parametrize("each", SCHEDULES, ids=repr)
def test_score_in_the_coordinates_of_a_schedule(each: Schedule) -> None:
    """p_t(x_t) of x_t = α x_0 + σ n is the density of data α x_0 under noise σ."""
    data = gaussian()
    for t in torch.tensor([0.2, 0.6, 0.9], dtype=torch.float64):
        alpha, sigma = each(t)
        scaled = GaussianDenoiser(
            alpha * data.mean, alpha**2 * data.covariance.matrix(data.covariance.values)
        )
        x = noisy((5, 2, 3), sigma)
        expected = scaled.score(x, sigma)
        torch.testing.assert_close(data.score(x, sigma, alpha), expected)
        torch.testing.assert_close(data.score(x, sigma.expand(5), alpha.expand(5)), expected)


# --- preconditioning ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("deviation", [0.5, 1.0])
def test_preconditioning_alone_denoises_white_data(
    shape: tuple[int, ...], deviation: float
) -> None:
    x = noisy(shape)
    model = Preconditioned(Recorder(), deviation)
    torch.testing.assert_close(model(x, LEVELS), white(6, deviation)(x, LEVELS))


def test_network_sees_and_predicts_unit_variance() -> None:
    n = 100_000
    chance = SIGMAS * math.sqrt(2 / n)
    clean = 0.5 * torch.randn(n, 1, generator=generator(3), dtype=torch.float64)
    noise = torch.randn(clean.shape, generator=generator(4), dtype=torch.float64)
    for sigma in LEVELS:
        x = clean + sigma * noise
        model = Preconditioned(network := Recorder(), 0.5).requires_grad_(False)
        skipped = model(x, sigma)
        scaled, level = network.asked
        assert float(scaled.var()) == pytest.approx(1, abs=chance)
        torch.testing.assert_close(level, (sigma.log() / 4).expand(1))
        network.gain.fill_(1)
        c_out = (model(x, sigma) - skipped) / scaled
        assert float(((clean - skipped) / c_out).var()) == pytest.approx(1, abs=chance)


def whitened(network: Recorder) -> tuple[Whitened, Tensor]:
    """For data of six coordinates with a covariance, and that covariance (6, 6)."""
    mixing = torch.randn(6, 6, generator=generator(5), dtype=torch.float64)
    matrix = mixing @ mixing.mT / 6
    return Whitened(network, Covariance(matrix)), matrix


@pytest.mark.parametrize("gain", [0.0, 0.3])
def test_whitening_with_a_multiple_of_the_identity_is_preconditioning(gain: float) -> None:
    x, one = noisy((5, 2, 3)), torch.eye(6, dtype=torch.float64)
    plain, own = Preconditioned(Recorder(gain), 0.5), Whitened(Recorder(gain), Covariance(one / 4))
    torch.testing.assert_close(own(x, LEVELS), plain(x, LEVELS))
    torch.testing.assert_close(own(x, LEVELS[0]), plain(x, LEVELS[0]))


def test_whitening_alone_denoises_gaussian_data() -> None:
    x = noisy((5, 6))
    model, matrix = whitened(Recorder())
    exact = GaussianDenoiser(torch.zeros(6, dtype=torch.float64), matrix)
    torch.testing.assert_close(model(x, LEVELS), exact(x, LEVELS))


def test_a_whitened_network_sees_and_predicts_unit_variance() -> None:
    n = 50_000
    model, matrix = whitened(network := Recorder())
    root = torch.linalg.cholesky(matrix)
    clean = torch.randn(n, 6, generator=generator(6), dtype=torch.float64) @ root.mT
    noise = torch.randn(clean.shape, generator=generator(7), dtype=torch.float64)
    for sigma in LEVELS:
        skipped = model(clean + sigma * noise, sigma).detach()
        seen, level = network.asked
        torch.testing.assert_close(level, (sigma.log() / 4).expand(1))
        targets = model.standardised(clean - skipped, sigma)
        for each in (seen, targets):
            off = (torch.cov(each.mT) - torch.eye(6)).abs().max()
            assert float(off) < SIGMAS * math.sqrt(2 / n)


def test_data_are_smooth_where_half_of_the_directions_are_still() -> None:
    one = torch.eye(8, dtype=torch.float64)
    assert not smooth(Covariance(one))
    assert smooth(Covariance(torch.diag(torch.tensor([2.0] * 4 + [1e-4] * 4))))
    assert not smooth(Covariance(torch.diag(torch.tensor([2.0] * 5 + [1e-4] * 3))))
    few = one[:, :3]  # of low rank: five directions share the last variance
    assert smooth(Covariance.restore(torch.tensor([3.0, 2.0, 2.0, 1e-4]), few))
    assert not smooth(Covariance.restore(torch.tensor([3.0, 2.0, 2.0, 0.1]), few))


def test_directions_without_variance_stay_nearly_still() -> None:
    flat = torch.diag(torch.tensor([1.0, 0.0], dtype=torch.float64))
    model = Whitened(Recorder(1.0), Covariance(flat)).requires_grad_(False)
    x = torch.tensor([[0.5, 3.0]], dtype=torch.float64)
    assert abs(float(model(x, torch.tensor(0.1))[0, 1])) < 1e-3
    assert model.standardised(x, torch.tensor(0.1)).isfinite().all()


def test_without_noise_nothing_is_to_be_done() -> None:
    x = noisy((5, 6)).float()
    network = Recorder(1.0)
    assert torch.equal(Preconditioned(network)(x, torch.zeros(())), x)
    assert network.asked[1].isfinite().all()


# --- scores ---------------------------------------------------------------------------------------


class Oracle(nn.Module):
    """The network that makes a `ScoreDenoiser` exact."""

    def __init__(self, data: GaussianDenoiser, schedule: Schedule, cap: float, prior: bool) -> None:
        super().__init__()
        self.data, self.schedule, self.cap, self.prior = data, schedule, cap, prior

    def forward(self, scaled: Tensor, t: Tensor) -> Tensor:
        alpha, sigma = self.schedule(t)
        variance = expand(alpha**2 + sigma**2, scaled)
        x_t = scaled * variance.sqrt()
        score = self.data.score(x_t, sigma, alpha) + self.prior * x_t / variance
        return score / expand(torch.minimum(1 / sigma, torch.full_like(t, self.cap)), scaled)


@pytest.mark.parametrize("each", SCHEDULES, ids=repr)
@pytest.mark.parametrize(("cap", "prior"), [(1.0, True), (5.0, False), (math.inf, True)])
def test_scores_of_a_network_become_a_denoiser(each: Schedule, cap: float, prior: bool) -> None:
    data = gaussian()
    model = ScoreDenoiser(Oracle(data, each, cap, prior), each, cap, prior)
    for shape in SHAPES:
        x = noisy(shape)
        torch.testing.assert_close(model(x, LEVELS), data(x, LEVELS))
        torch.testing.assert_close(model(x, LEVELS[3]), data(x, LEVELS[3]))
        torch.testing.assert_close(model.score(x, LEVELS), data.score(x, LEVELS))


@pytest.mark.parametrize("each", SCHEDULES, ids=repr)
def test_prior_alone_denoises_white_data(each: Schedule) -> None:
    x = noisy((5, 6))
    network = Recorder()
    torch.testing.assert_close(ScoreDenoiser(network, each)(x, LEVELS), white(6)(x, LEVELS))
    torch.testing.assert_close(each.ratio(network.asked[1]), LEVELS)


def test_cap_limits_the_scale() -> None:
    x = noisy((5, 6))
    sigma = torch.tensor(0.1, dtype=torch.float64)
    network = Recorder(1.0)
    scores = [
        ScoreDenoiser(network, VE(), cap, prior=False).score(x, sigma) for cap in (2.0, 10, 99)
    ]
    torch.testing.assert_close(scores[1], 5 * scores[0])
    torch.testing.assert_close(scores[2], scores[1])


def test_below_the_least_level_the_score_stays_that_of_the_least() -> None:
    x = noisy((5, 6))
    model = ScoreDenoiser(Recorder(0.7), VE(), cap=5.0)
    low = torch.tensor(0.001, dtype=torch.float64)
    torch.testing.assert_close(model(x, torch.zeros_like(low)), x)
    torch.testing.assert_close(model.score(x, low), model.score(x, 10 * low), rtol=1e-3, atol=1e-3)


# --- both -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Preconditioned, lambda f: ScoreDenoiser(f, SubVP())])
def test_are_modules_and_denoisers(kind: type[Preconditioned]) -> None:
    model = kind(Recorder(0.3))
    assert isinstance(model, Denoiser)
    assert [name for name, _ in model.named_parameters()] == ["network.gain"]
    x = noisy((5, 2, 3))
    model(x, LEVELS).square().sum().backward()
    assert model.network.gain.grad is not None
    short = model.float()(x.float(), LEVELS)
    assert short.dtype == torch.float32
    torch.testing.assert_close(short.double(), model.double()(x, LEVELS), rtol=1e-3, atol=1e-3)


def test_bad_settings() -> None:
    with pytest.raises(ModelError, match="sigma_data must be a number > 0, not 0"):
        Preconditioned(Recorder(), 0.0)
    with pytest.raises(ModelError, match="cap must be a number > 0"):
        ScoreDenoiser(Recorder(), VE(), cap=-1.0)
