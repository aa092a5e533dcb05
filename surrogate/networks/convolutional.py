"""A small convolutional classifier of images: scores (B, K) of images (B, C, H, W).

3 x 3 convolutions with stride 2 until few pixels are left; between them residual steps
x + conv(silu(norm(x))), and at the end the mean over all positions. It is smooth (SiLU) and treats
each image by itself (group norm, Wu & He 2018, arXiv:1803.08494), so its gradient with respect to
an image exists and does not depend on the batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import silu

from surrogate.networks.embedding import at_least_one
from surrogate.networks.unet import FORMAT, halved

MIN_CLASSIFIER_SIDE = 4  # pixels a side at which nothing halves the size further
GROUP = 8  # features normalised together: one alone would lose its mean, which carries the class


def halvings_for(side: int) -> int:
    """How often an image of `side` pixels is halved: at least once."""
    return max(1, math.ceil(math.log2(max(1.0, side / MIN_CLASSIFIER_SIDE))))


def norm_of(width: int) -> nn.GroupNorm:
    return nn.GroupNorm(width // GROUP, width)


class Step(nn.Module):
    """A convolution of (B, C, H, W), added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = norm_of(width)
        self.convolve = nn.Conv2d(width, width, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = x + self.convolve(silu(self.norm(x)))
        return out


class Convolutional(nn.Module):
    """Images (B, C, H, W), 0 to 1, to scores (B, K); `depth` steps at each size."""

    def __init__(
        self, channels: int, side: int, classes: int, features: int = 32, depth: int = 1
    ) -> None:
        """`side`: the longer side of the images, in pixels."""
        super().__init__()
        at_least_one(channels=channels, side=side, classes=classes, features=features, depth=depth)
        features = GROUP * math.ceil(features / GROUP)
        layers: list[nn.Module] = []
        width = channels
        for i in range(halvings_for(side)):
            wider = features * (2 if i else 1)
            layers.append(nn.Conv2d(width, wider, 3, padding=1, stride=2))
            layers.extend(Step(wider) for _ in range(depth))
            width = wider
        self.layers = nn.Sequential(*layers)
        self.norm = norm_of(width)
        self.leave = nn.Linear(width, classes)
        nn.init.zeros_(self.leave.weight)  # every class as likely, at first
        nn.init.zeros_(self.leave.bias)
        self.to(memory_format=FORMAT)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        with halved(images, self.training and torch.is_grad_enabled()):
            centred = (2 * images - 1).contiguous(memory_format=FORMAT)
            seen = silu(self.norm(self.layers(centred))).mean((2, 3))
            scores: Tensor = self.leave(seen)
        return scores.to(images.dtype)
