"""Operators on images and regions of them, by themselves."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import conv2d, pad

from constraints import FormulaError, box
from constraints.layout.image_operators import (
    OPERATORS,
    blue,
    blur,
    downsample,
    flip,
    green,
    grey,
    masked,
    mirror,
    red,
    region_from_text,
    rotate,
    standard_regions,
)

SIZES = st.tuples(st.integers(1, 9), st.integers(1, 9))


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@given(SIZES)
def test_halves_are_mirror_images_without_the_middle(size: tuple[int, int]) -> None:
    found = standard_regions(*size)
    none = torch.zeros(size, dtype=torch.bool)
    upper, lower, left, right = (found.get(n, none) for n in ("upper", "lower", "left", "right"))
    assert upper.equal(lower.flip(0))
    assert left.equal(right.flip(1))
    assert not (upper & lower).any()
    assert not (left & right).any()
    assert int((~(upper | lower)).sum()) == size[1] * (size[0] % 2)
    assert int((~(left | right)).sum()) == size[0] * (size[1] % 2)
    assert all(mask.any() and mask.shape == size for mask in found.values())


def test_centre_and_border_have_their_sizes() -> None:
    found = standard_regions(8, 16)
    assert found["centre"].equal(box(8, 16, (2, 6), (4, 12)))
    assert found["border"].equal(~box(8, 16, (1, 7), (2, 14)))


def test_a_region_is_parsed_from_rows_and_columns() -> None:
    name, mask = region_from_text("eyes=8:14,4:28", 32, 32)
    assert name == "eyes"
    assert mask.nonzero()[[0, -1]].tolist() == [[8, 4], [13, 27]]
    assert int(mask.sum()) == 6 * 24
    assert region_from_text(" sky = :3 , : ", 5, 4)[1].equal(box(5, 4, (0, 3), (0, 4)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("eyes", "'eyes' is not a region; write name=rows,columns, as in eyes=8:14,4:28"),
        ("eyes=8,4", "write name=rows,columns"),
        ("eyes=-1:4,0:2", "write name=rows,columns"),
        ("eyes=8:40,4:28", "rows 8:40 are not in the image, which has rows 0:32"),
        ("eyes=8:14,28:4", "columns 28:4 are not in the image, which has columns 0:24"),
        ("eyes=8:8,0:4", "rows 8:8"),
        ("the eyes=8:14,0:4", "'the eyes' cannot name a region"),
        ("mean=8:14,0:4", "'mean' cannot name a region"),
    ],
)
def test_invalid_regions_are_rejected(text: str, says: str) -> None:
    with pytest.raises(FormulaError) as caught:
        region_from_text(text, 32, 24)
    assert says in str(caught.value)


@given(SIZES, st.sampled_from((1, 3)))
def test_flips_and_rotations_are_invertible(size: tuple[int, int], channels: int) -> None:
    x = drawn(2, channels, *size)
    assert mirror(mirror(x)).equal(x)
    assert flip(flip(x)).equal(x)
    assert rotate(x, 180).equal(flip(mirror(x)))
    assert rotate(rotate(x), 270).equal(x)
    assert rotate(x).shape[-2:] == size[::-1]


def test_flips_and_rotations_move_pixels_to_their_place() -> None:
    x = torch.arange(6.0).reshape(1, 1, 2, 3)
    assert mirror(x)[0, 0].tolist() == [[2, 1, 0], [5, 4, 3]]
    assert flip(x)[0, 0].tolist() == [[3, 4, 5], [0, 1, 2]]
    assert rotate(x)[0, 0].tolist() == [[2, 5], [1, 4], [0, 3]]  # the right edge is on top
    assert downsample(torch.arange(16.0).reshape(1, 1, 4, 4))[0, 0].tolist() == [
        [2.5, 4.5],
        [10.5, 12.5],
    ]


def test_blur_is_a_gaussian_convolution_with_reflected_edges() -> None:
    x, sigma, radius = drawn(2, 3, 9, 8), 1.5, 5
    weights = torch.exp(-0.5 * (torch.arange(-radius, radius + 1).double() / sigma) ** 2)
    weights /= weights.sum()
    wide = pad(x.reshape(-1, 1, 9, 8), (radius,) * 4, mode="reflect")
    kernel = (weights[:, None] * weights)[None, None]
    torch.testing.assert_close(blur(x), conv2d(wide, kernel).reshape(x.shape))
    torch.testing.assert_close(blur(torch.ones(1, 1, 1, 4), 3.0), torch.ones(1, 1, 1, 4))


def test_colour_channels_and_luma() -> None:
    x = drawn(2, 3, 4, 5)
    assert torch.cat([red(x), green(x), blue(x)], 1).equal(x)
    torch.testing.assert_close(grey(x), 0.299 * red(x) + 0.587 * green(x) + 0.114 * blue(x))
    assert grey(x[:, :1]).equal(x[:, :1])
    mask = box(4, 5, (0, 2), (0, 5))
    assert masked(x, mask)[:, :, :2].equal(x[:, :, :2])
    assert not masked(x, mask)[:, :, 2:].any()


@pytest.mark.parametrize("name", sorted(OPERATORS))
def test_operators_are_linear(name: str) -> None:
    function = OPERATORS[name]
    more = [box(4, 4, (1, 3), (0, 4))] if name == "masked" else []
    x, y = drawn(2, 3, 4, 4), drawn(2, 3, 4, 4, seed=1)
    assert function.linear
    together = function.call(2 * x - 3 * y, *more)
    torch.testing.assert_close(together, 2 * function.call(x, *more) - 3 * function.call(y, *more))
