"""Operators on images (B, C, H, W) that formulas can call, and the standard regions.

All operators are linear, so that `forall p: blur(image)(p) = target(p)` is a set of linear
equations. A region is a mask (H, W). Rows are counted from the top, columns from the left, from 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from constraints.ast.words import is_variable
from constraints.errors import FormulaError
from constraints.layout.functions import Function
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

CHANNELS = ("red", "green", "blue")
LUMA_WEIGHTS = (0.299, 0.587, 0.114)  # ITU-R BT.601
_BOX = re.compile(r"\s*([^=]+?)\s*=\s*(\d*)\s*:\s*(\d*)\s*,\s*(\d*)\s*:\s*(\d*)\s*")


def standard_regions(height: int, width: int) -> dict[str, Tensor]:
    """Masks (H, W) by name: the halves, the centre (the middle half of rows and of columns) and
    the border (an eighth on each side, at least one pixel). The middle row or column of an odd
    size is in neither half; a half without pixels is left out."""
    rows, columns = height // 2, width // 2
    every = (0, height), (0, width)
    edge = [max(1, size // 8) for size in (height, width)]
    found = {
        "upper": box(height, width, (0, rows), every[1]),
        "lower": box(height, width, (height - rows, height), every[1]),
        "left": box(height, width, every[0], (0, columns)),
        "right": box(height, width, every[0], (width - columns, width)),
        "centre": box(height, width, *((size // 4, size - size // 4) for size in (height, width))),
        "border": ~box(
            height, width, *((e, n - e) for e, n in zip(edge, (height, width), strict=True))
        ),
    }
    return {name: mask for name, mask in found.items() if bool(mask.any())}


def box(height: int, width: int, rows: tuple[int, int], columns: tuple[int, int]) -> Tensor:
    """The mask (H, W) of rows[0] <= row < rows[1] and columns[0] <= column < columns[1]."""
    mask = torch.zeros(height, width, dtype=torch.bool)
    mask[rows[0] : max(rows), columns[0] : max(columns)] = True
    return mask


REGIONS = ("upper", "lower", "left", "right", "centre", "border")


def region_from_text(text: str, height: int, width: int) -> tuple[str, Tensor]:
    """Name and mask (H, W) from `eyes=8:14,4:28`: rows 8 to 13, columns 4 to 27.

    An end that is left out is that of the image.
    """
    found = _BOX.fullmatch(text)
    if found is None:
        raise FormulaError(
            f"{text!r} is not a region",
            value=text,
            remedy="write name=rows,columns, as in eyes=8:14,4:28 (rows 8 to 13, columns 4 to 27)",
        )
    name, *ends = (str(part) for part in found.groups())
    if not is_variable(name):
        raise FormulaError(
            f"{name!r} cannot name a region", value=name, remedy="use a word such as eyes"
        )
    sides = []
    for i, (what, size) in enumerate((("rows", height), ("columns", width))):
        low, high = int(ends[2 * i] or 0), int(ends[2 * i + 1] or size)
        if not low < high <= size:
            raise FormulaError(
                f"{text!r}: {what} {low}:{high} are not in the image, which has {what} 0:{size}",
                value=(low, high),
                remedy="the first is smaller than the last, which is not included",
            )
        sides.append((low, high))
    return name, box(height, width, *sides)


# operators: (B, C, H, W) in and out


def flip(image: Tensor) -> Tensor:
    """Upside down."""
    return image.flip(-2)


def mirror(image: Tensor) -> Tensor:
    """Left for right."""
    return image.flip(-1)


def rotate(image: Tensor, degrees: Tensor | float = 90.0) -> Tensor:
    """Counter-clockwise."""
    angle = _number("the angle of rotate", degrees)
    if angle not in (90, 180, 270):
        raise FormulaError(
            f"rotate does not turn by {angle:g} degrees", value=angle, allowed=("90", "180", "270")
        )
    return torch.rot90(image, int(angle) // 90, (-2, -1))


def blur(image: Tensor, deviation: Tensor | float = 1.5) -> Tensor:
    """The convolution with a Gaussian of a standard deviation in pixels, mirrored at the edges."""
    sigma = _number("the width of blur", deviation)
    largest = max(image.shape[-2:])
    if not 0 < sigma <= largest:
        raise FormulaError(
            f"blur has no standard deviation of {sigma:g} pixels",
            value=sigma,
            remedy=f"give a number above 0 and up to the image's size, {largest}",
        )
    down, across = (_smoothing(size, sigma).to(image) for size in image.shape[-2:])
    return down @ image @ across.mT


def _smoothing(size: int, sigma: float) -> Tensor:
    """The Gaussian smoothing of n pixels as a matrix (n, n): faster than a convolution here."""
    radius = math.ceil(3 * sigma)
    away = torch.arange(-radius, radius + 1)
    weights = torch.exp(-0.5 * (away.double() / sigma) ** 2)
    period = max(2 * size - 2, 1)
    at = (torch.arange(size)[:, None] + away) % period  # beyond an edge the line runs back
    matrix = torch.zeros(size, size, dtype=torch.float64)
    shares = (weights / weights.sum()).expand(size, -1)
    return matrix.scatter_add_(1, torch.minimum(at, period - at) % size, shares)


def downsample(image: Tensor, factor: Tensor | float = 2.0) -> Tensor:
    """The means of blocks of factor x factor pixels."""
    size = _number("the factor of downsample", factor)
    height, width = image.shape[-2:]
    if not (size >= 1 and size.is_integer() and height % size == width % size == 0):
        common = math.gcd(height, width)
        legal = [str(n) for n in range(2, common + 1) if common % n == 0]
        raise FormulaError(
            f"downsample does not divide {height}x{width} pixels into blocks of {size:g}x{size:g}",
            value=size,
            allowed=legal or ["1"],
        )
    return torch.nn.functional.avg_pool2d(image, int(size))


def masked(image: Tensor, region: Tensor) -> Tensor:
    """Zero outside the region, a mask (H, W)."""
    if region.dtype != torch.bool:
        raise FormulaError(
            "the second argument of masked is not a region", remedy="write masked(image, centre)"
        )
    return image * region.to(image)


def grey(image: Tensor) -> Tensor:
    """One channel: the luma of the colours (ITU-R BT.601)."""
    if image.shape[1] == 1:
        return image
    weights = torch.tensor(LUMA_WEIGHTS, dtype=image.dtype, device=image.device)
    return (_coloured("grey", image) * weights[:, None, None]).sum(1, keepdim=True)


def red(image: Tensor) -> Tensor:
    """The first of three channels."""
    return _coloured("red", image)[:, :1]


def green(image: Tensor) -> Tensor:
    return _coloured("green", image)[:, 1:2]


def blue(image: Tensor) -> Tensor:
    return _coloured("blue", image)[:, 2:]


def _coloured(what: str, image: Tensor) -> Tensor:
    if image.shape[1] != len(CHANNELS):
        raise FormulaError(
            f"{what} takes an image of 3 channels (red, green, blue), not {image.shape[1]}",
            value=image.shape[1],
            remedy="write the image itself",
        )
    return image


def _number(what: str, value: Tensor | float) -> float:
    """An argument that is the same for all images."""
    if isinstance(value, torch.Tensor) and value.numel() != 1:
        raise FormulaError(
            f"{what} is a plain number, the same for every sample",
            value=tuple(value.shape),
            remedy="give a number or a parameter, not a signal",
        )
    return float(value)


def _operators() -> Mapping[str, Function]:
    plain = (flip, mirror, grey, red, green, blue)
    found = {each.__name__: Function(each, 1, True, "image", True) for each in plain}
    for each in (rotate, blur, downsample):
        found[each.__name__] = Function(each, 1, True, "image", True, optional=1)
    found["masked"] = Function(masked, 2, True, "image", True)
    return MappingProxyType(found)


OPERATORS = _operators()
