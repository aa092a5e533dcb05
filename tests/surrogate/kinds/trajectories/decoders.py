"""Decoders with random weights, and conditions on what they draw."""

from __future__ import annotations

import math
from typing import Any

import torch
import xarray as xr
from torch import Tensor

from surrogate.kinds.decoder import NO_SIGNAL, Pins
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.kinds.trajectories.decoder import TrajectoryDecoder
from tests.surrogate.analytic import generator


def encoded(codec: TimeSeriesCodec, data: xr.Dataset, seed: int = 0) -> Tensor:
    return codec.encode(data, slice(None), generator(seed))


def decoder_of(
    data: xr.Dataset, seed: int = 1, size: float = 1.0, **fitting: Any
) -> TrajectoryDecoder:
    """An untrained decoder of the data's codec, all weights random, also those that start at 0.

    `size`: of the weights; those of 1 let the logarithms of unbounded values drift far.
    """
    codec = TimeSeriesCodec.fit(data, **fitting)
    made = TrajectoryDecoder(codec, width=16, depth=1)
    source = generator(seed)
    with torch.no_grad():
        for weight in made.parameters():
            fan = weight.shape[-1] if weight.ndim > 1 else 1
            weight.copy_(size * torch.randn(weight.shape, generator=source) / math.sqrt(fan))
    made.measure(encoded(codec, data))
    return made.eval()


def drawn(
    decoder: TrajectoryDecoder,
    count: int,
    pins: Pins | None = None,
    seed: int = 2,
    **more: Any,
) -> tuple[Tensor, Tensor]:
    """Samples without a noisy trajectory, and their log-weights."""
    nothing = torch.zeros(count, *decoder.sites.codec.shape)
    return drawn_from(decoder, nothing, NO_SIGNAL, pins, seed, **more)


def drawn_from(
    decoder: TrajectoryDecoder,
    noisy: Tensor,
    sigma: float,
    pins: Pins | None = None,
    seed: int = 2,
    **more: Any,
) -> tuple[Tensor, Tensor]:
    """Samples given noisy trajectories, and their log-weights."""
    made = decoder.draw(noisy, sigma, generator(seed), pins, **more)
    return made.x, made.log_weights


def pins(
    decoder: TrajectoryDecoder, *conditions: tuple[dict[tuple[str, int], float], float, float]
) -> Pins:
    """Conditions low <= Σ weight·channel(step) <= high, as ({(channel, step): weight}, low, high).

    A static is named at step 0.
    """
    codec = decoder.sites.codec
    names, steps = codec.names, codec.shape[1]
    rows = torch.zeros(len(conditions), len(names) * steps, dtype=torch.float64)
    for row, (weights, _, _) in zip(rows, conditions, strict=True):
        for (name, step), weight in weights.items():
            row[names.index(name) * steps + step] = weight
    ends = torch.tensor([c[1:] for c in conditions], dtype=torch.float64)
    return Pins(rows, ends[:, 0], ends[:, 1])
