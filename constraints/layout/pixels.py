"""The pixels that a quantifier or an aggregate ranges over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from constraints.ast.lowered import Pixels
from constraints.layout.signals import Layout
from constraints.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor


def mask(domain: Pixels, layout: Layout) -> Tensor:
    """The mask (H, W) of the pixels of a domain."""
    height, width = domain.shape[1:]
    if domain.region is None:
        return torch.ones(height, width, dtype=torch.bool)
    return layout.region(domain.region, (height, width))
