"""A compact U-Net for images (B, C, H, W) (Ronneberger et al. 2015, arXiv:1505.04597).

Images of 16 pixels a side or more are read in blocks of 2 x 2 pixels: convolutions at full
resolution cost most and contribute least. Each level halves the size, the first one doubling the
width, with residual blocks of two 3 x 3 convolutions on the way down and up; skip connections are
added, and the smallest size has self-attention. Every block is modulated by the noise level as in
`embedding` and starts as the identity; the output starts at zero.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn.functional import (
    interpolate,
    pad,
    pixel_shuffle,
    pixel_unshuffle,
    scaled_dot_product_attention,
    silu,
)

from surrogate.networks.embedding import FEATURES, NoiseEmbedding, at_least_one

MIN_UNET_SIDE = 8  # pixels a side at which no level halves the size further
MIN_SIDE_FOR_BLOCKS = 16  # pixels a side from which 2x2 blocks of pixels are read as one
GROUPS = 8
WIDTH = 64
FORMAT = torch.channels_last  # which convolutions on processors prefer


def levels_for(side: int) -> int:
    """Number of resolutions for an image of `side` pixels, each half of the previous one."""
    return 1 + max(0, math.ceil(math.log2(max(1.0, side / MIN_UNET_SIDE))))


def halved(x: Tensor, training: bool) -> AbstractContextManager[object]:
    """Arithmetic in bfloat16 while training, where the processor supports it: twice as fast."""
    if not training:
        return nullcontext()
    has = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    if x.device.type == "cpu" and not has():
        return nullcontext()
    return torch.autocast(x.device.type, torch.bfloat16)


def _start_at_zero(*layers: nn.Module) -> None:
    for layer in layers:
        for weight in layer.parameters():
            nn.init.zeros_(weight)


class Residual(nn.Module):
    """Two convolutions of (B, C, H, W), modulated by (B or 1, FEATURES), added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.GroupNorm(GROUPS, width)
        self.enter = nn.Conv2d(width, width, 3, padding=1)
        self.second = nn.GroupNorm(GROUPS, width, affine=False)
        self.modulation = nn.Linear(FEATURES, 2 * width)
        self.leave = nn.Conv2d(width, width, 3, padding=1)
        _start_at_zero(self.modulation, self.leave)

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        hidden = self.second(self.enter(silu(self.first(x))))
        shift, scale = self.modulation(noise)[:, :, None, None].chunk(2, 1)
        change: Tensor = self.leave(silu(torch.addcmul(shift, hidden, 1 + scale)))
        return x + change


class Attention(nn.Module):
    """Self-attention among the pixels of (B, C, H, W)."""

    def __init__(self, width: int, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(GROUPS, width)
        self.enter = nn.Conv2d(width, 3 * width, 1)
        self.leave = nn.Conv2d(width, width, 1)
        _start_at_zero(self.leave)

    def forward(self, x: Tensor) -> Tensor:
        parts = self.enter(self.norm(x)).flatten(2).unflatten(1, (3, self.heads, -1))
        query, key, value = parts.transpose(-1, -2).unbind(1)
        mixed = scaled_dot_product_attention(query, key, value)
        out: Tensor = x + self.leave(mixed.transpose(-1, -2).reshape(x.shape))
        return out


class UNet(nn.Module):
    """(B, C, H, W) to (B, C, H, W), initially zero; `depth` blocks at each size, down and up."""

    def __init__(
        self, channels: int, height: int, width: int, features: int | None = None, depth: int = 1
    ) -> None:
        super().__init__()
        features = WIDTH if features is None else features
        at_least_one(channels=channels, height=height, width=width, features=features, depth=depth)
        features = GROUPS * math.ceil(features / GROUPS)
        self.block = 2 if min(height, width) >= MIN_SIDE_FOR_BLOCKS else 1
        self.levels = levels_for(math.ceil(max(height, width) / self.block))
        self.unit = self.block * 2 ** (self.levels - 1)  # sizes are filled up to multiples of it
        widths = [features * (2 if i else 1) for i in range(self.levels)]
        self.noise = NoiseEmbedding()
        self.enter = nn.Conv2d(channels * self.block**2, features, 3, padding=1)
        self.depth = depth
        # `depth` in a row at each size
        self.down = nn.ModuleList(Residual(each) for each in widths for _ in range(depth))
        self.up = nn.ModuleList(Residual(each) for each in reversed(widths) for _ in range(depth))
        self.shrink, self.grow = nn.ModuleList(), nn.ModuleList()
        for wide, narrow in zip(widths[1:], widths, strict=False):
            self.shrink.append(nn.Conv2d(narrow, wide, 3, padding=1, stride=2))
            self.grow.insert(0, nn.Conv2d(wide, narrow, 1))
        self.middle = Residual(widths[-1])
        self.attention = Attention(widths[-1])
        self.norm = nn.GroupNorm(GROUPS, features)
        self.leave = nn.Conv2d(features, channels * self.block**2, 3, padding=1)
        _start_at_zero(self.leave)
        self.to(memory_format=FORMAT)  # type: ignore[call-overload]

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        """The network's output at x (B, C, H, W) and c_noise (B,) or (1,): (B, C, H, W)."""
        with halved(x, self.training and torch.is_grad_enabled()):
            return self._forward(x, self.noise(noise)).to(x.dtype)

    def _forward(self, x: Tensor, features: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        whole = pad(x, (0, -width % self.unit, 0, -height % self.unit))
        hidden = self.enter(pixel_unshuffle(whole, self.block).contiguous(memory_format=FORMAT))
        passed = []
        for i, block in enumerate(self.down):
            if i and i % self.depth == 0:
                hidden = self.shrink[i // self.depth - 1](hidden)
            passed.append(hidden)
            hidden = block(hidden, features)
        hidden = self.attention(self.middle(hidden, features))
        for i, block in enumerate(self.up):
            if i and i % self.depth == 0:
                hidden = self.grow[i // self.depth - 1](hidden)
                hidden = interpolate(hidden, scale_factor=2.0, mode="nearest")
            hidden = block(hidden + passed.pop(), features)
        out: Tensor = pixel_shuffle(self.leave(silu(self.norm(hidden))), self.block)
        return out[..., :height, :width]
