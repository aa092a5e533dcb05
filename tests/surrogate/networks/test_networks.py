"""What every network must do: keep shapes, start at zero, learn with all of its weights."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from surrogate.errors import ModelError
from surrogate.networks.residual_mlp import ResidualMLP
from surrogate.networks.temporal_mlp import (
    MAX_PATCHES,
    MAX_SINGLE_PATCH,
    PATCH_NUMBERS,
    TemporalMLP,
    fitting_width,
    patching,
)
from tests.surrogate.analytic import generator

Shape = tuple[int, ...]
SERIES = [(1, 1), (2, 30), (3, 1000), (7, 53)]
SHAPES: list[Shape] = [*SERIES, (1,), (12,)]
B = 3


def network(shape: Shape, seed: int = 0, **sizes: int) -> nn.Module:
    """For series (C, T), or rows (D,)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TemporalMLP(*shape, **sizes) if len(shape) == 2 else ResidualMLP(*shape, **sizes)


def shaken(shape: Shape) -> nn.Module:
    """With random weights everywhere, also where training starts at zero."""
    made = network(shape, width=32, depth=2)
    source = generator(1)
    with torch.no_grad():
        for weight in made.parameters():
            fan = weight.shape[-1] if weight.ndim > 1 else 1
            weight.copy_(torch.randn(weight.shape, generator=source) / math.sqrt(fan))
    return made


def inputs(shape: Shape, batch: int = B) -> tuple[Tensor, Tensor]:
    return torch.randn(batch, *shape, generator=generator(2)), torch.linspace(-1.5, 1, batch)


@pytest.fixture(params=SHAPES, ids=str)
def shape(request: pytest.FixtureRequest) -> Shape:
    found: Shape = request.param
    return found


def test_starts_at_zero(shape: Shape) -> None:
    x, noise = inputs(shape)
    out = network(shape)(x, noise)
    assert out.shape == x.shape
    assert out.abs().max() == 0


def test_every_weight_learns(shape: Shape) -> None:
    """Zeros at the start open one after another: the map out, the gates, what is behind them."""
    made = network(shape, width=32, depth=2)
    before = {name: weight.detach().clone() for name, weight in made.named_parameters()}
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    x, noise = inputs(shape, 8)
    for _ in range(4):
        optimizer.zero_grad()
        (made(x, noise) - x.roll(1, -1) - 1).square().mean().backward()
        optimizer.step()
    for name, weight in made.named_parameters():
        assert weight.grad is not None, name
        assert weight.grad.abs().max() > 0, name
        assert not torch.equal(weight, before[name]), name


def test_learns_what_the_noise_level_is() -> None:
    """A target that only the level tells: its sign, at two levels close to each other."""
    made = network((2, 30), width=32, depth=2)
    optimizer = torch.optim.Adam(made.parameters(), lr=3e-3)
    x = torch.randn(64, 2, 30, generator=generator())
    noise = torch.tensor([0.1, 0.2]).repeat(32)
    target = torch.tensor([-1.0, 1.0]).repeat(32)[:, None, None].expand_as(x)
    for _ in range(60):
        optimizer.zero_grad()
        (made(x, noise) - target).square().mean().backward()
        optimizer.step()
    assert (made(x, noise) - target).square().mean() < 0.1


def test_noise_levels_matter(shape: Shape) -> None:
    x, noise = inputs(shape)
    made = shaken(shape)
    assert ((made(x, noise) - made(x, noise + 0.3)).flatten(1).abs().amax(1) > 1e-3).all()


def test_samples_do_not_see_each_other(shape: Shape) -> None:
    x, noise = inputs(shape, 5)
    made = shaken(shape)
    together = made(x, noise)
    for i in range(5):
        torch.testing.assert_close(made(x[i : i + 1], noise[i : i + 1])[0], together[i])
    order = torch.tensor([3, 0, 4, 1, 2])
    torch.testing.assert_close(made(x[order], noise[order]), together[order])
    assert made(x[:0], noise[:0]).shape == (0, *shape)


def test_same_seed_same_network(shape: Shape) -> None:
    x, noise = inputs(shape)
    one, same, other = (network(shape, seed, width=32).state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    made = shaken(shape)
    assert torch.equal(made(x, noise), made(x, noise))


@pytest.mark.parametrize("series", SERIES[1:])
def test_every_step_can_reach_every_other(series: tuple[int, int]) -> None:
    """From the first to the last and back, within a patch and across, between channels."""
    channels, steps = series
    made = shaken(series)
    x, noise = inputs(series, 1)
    x.requires_grad_()
    for channel, step in ((0, 0), (channels - 1, steps // 2), (channels - 1, steps - 1)):
        (slope,) = torch.autograd.grad(made(x, noise)[0, channel, step], x)
        assert (slope.abs() > 0).all()


def test_patches_have_places() -> None:
    """The same patch gives another output elsewhere, although its maps are shared."""
    made = shaken((1, 1000))
    out = made(torch.zeros(1, 1, 1000), torch.zeros(1))
    assert isinstance(made, TemporalMLP)
    patches = out[0, 0, : made.patch * (made.patches - 1)].reshape(-1, made.patch)
    assert (torch.cdist(patches, patches) + torch.eye(len(patches)) > 1e-3).all()


def test_cutting_keeps_neighbours_together() -> None:
    made = TemporalMLP(7, 53, width=8, depth=1)
    x = torch.arange(2 * 7 * 53.0).reshape(2, 7, 53)
    cut = made._cut(x)
    assert cut.shape == (2, made.patches, 7 * made.patch)
    first = cut[1, 1].reshape(7, made.patch)
    assert torch.equal(first, x[1, :, made.patch : 2 * made.patch])
    assert torch.equal(made._join(cut), x)


def test_double_precision() -> None:
    made = shaken((7, 53)).double()
    x, noise = inputs((7, 53))
    assert made(x.double(), noise.double()).dtype == torch.float64


@given(channels=st.integers(1, 600), steps=st.integers(1, 20_000))
@settings(max_examples=300, derandomize=True)
def test_patching(channels: int, steps: int) -> None:
    patches, each = patching(channels, steps)
    assert 1 <= patches <= MAX_PATCHES
    assert 1 <= each <= steps
    assert (patches - 1) * each < steps <= patches * each  # all is covered, no patch is empty
    if channels * steps <= MAX_SINGLE_PATCH:
        assert patches == 1
    elif steps <= MAX_PATCHES or channels * steps <= PATCH_NUMBERS * MAX_PATCHES / 2:
        assert channels * each <= max(channels, PATCH_NUMBERS)
    if patches > 1:  # one patch fewer would be longer than allowed
        longest = max(1, PATCH_NUMBERS // channels, -(-steps // MAX_PATCHES))
        assert each <= longest < steps / (patches - 1)
    assert 128 <= fitting_width(patches, channels * each) <= 512


@pytest.mark.parametrize(
    ("series", "patches", "width"),
    [((1, 1), 1, 256), ((2, 30), 1, 256), ((2, 100), 1, 256), ((7, 53), 6, 128),
     ((3, 1000), 48, 128), ((100, 1000), 63, 512)],
)  # fmt: skip
def test_sizes(series: tuple[int, int], patches: int, width: int) -> None:
    made = TemporalMLP(*series)
    assert made.patches == patches
    assert made.enter.out_features == width
    assert made.enter.in_features >= series[0]
    count = sum(weight.numel() for weight in made.parameters())
    assert 3e5 < count < 1.5e7


def test_residual_mlp_sizes() -> None:
    """Each part counted by hand: embedding, map in, blocks with their modulation, norm, map out."""
    size, width, depth = 5, 16, 3
    embedding = (64 + 1) * 64 + (64 + 1) * 64
    block = (64 + 1) * 3 * width + (width + 1) * 2 * width + (2 * width + 1) * width
    maps = (size + 1) * width + 2 * width + (width + 1) * size
    made = ResidualMLP(size, width, depth)
    found = sum(weight.numel() for weight in made.parameters())
    assert found == embedding + depth * block + maps


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: TemporalMLP(0, 5), "channels of a network must be a whole number >= 1, not 0"),
        (lambda: TemporalMLP(2, -5), "steps .* not -5"),
        (lambda: TemporalMLP(2, 5, width=0), "width .* not 0"),
        (lambda: TemporalMLP(2, 5, depth=0), "depth .* not 0"),
        (lambda: ResidualMLP(2, 1.5, 3), "width .* not 1.5"),  # type: ignore[arg-type]
        (lambda: ResidualMLP(2, 8, "4"), "depth .* not '4'"),  # type: ignore[arg-type]
    ],
)
def test_bad_sizes(bad: object, message: str) -> None:
    assert callable(bad)
    with pytest.raises(ModelError, match=message):
        bad()


@pytest.mark.parametrize("shape", [(5,), (2, 30), (3, 300)])
def test_one_level_for_all(shape: tuple[int, ...]) -> None:
    """A level that all share may be given once."""
    made = network(shape, width=32, depth=2)
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
    x, noise = inputs(shape, 8)
    torch.testing.assert_close(made(x, noise[:1]), made(x, noise[:1].expand(8)))
