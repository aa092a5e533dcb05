"""Sources of training batches: a dataset, or a simulator that makes new samples.

A source keeps one block of encoded samples in memory, so the memory of a run does not grow with its
data. A block of a dataset consists of several contiguous pieces from all over it, each read at
once; an epoch contains every piece once. A block, its dequantisation noise and the order of its
batches are functions of the seed and the step, so a run is reproducible and can be resumed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate.random import Training, stream

BLOCK_SAMPLES = 32_768  # kept in memory, or fewer if they are long
BLOCK_NUMBERS = 8_000_000  # in a block of long samples
MIN_BLOCK_SAMPLES = 2_048  # however long they are
PIECES_PER_BLOCK = 16
Load = Callable[[int], Tensor]


class Encoder(Protocol):
    """A map from samples to tensors: a codec."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one encoded sample."""

    def encode(
        self, data: xr.Dataset, samples: slice | np.ndarray, generator: torch.Generator
    ) -> Tensor:
        """Some samples as a normalised tensor (B, *shape)."""


def block_size(codec: Encoder) -> int:
    """Number of samples in a block."""
    return max(
        MIN_BLOCK_SAMPLES, min(BLOCK_SAMPLES, BLOCK_NUMBERS // max(1, math.prod(codec.shape)))
    )


class Blocks:
    """Batches from blocks: `load(j)` returns the j-th, (N, *shape), with N close to `size`."""

    def __init__(self, load: Load, size: int, seed: int) -> None:
        self.load, self.size, self.seed = load, size, seed
        self._kept: tuple[int, Tensor] | None = None

    def batch(self, step: int, size: int) -> Tensor:
        """The samples of a step: (size, *shape)."""
        batches = max(1, self.size // size)
        j, i = divmod(step, batches)
        if self._kept is None or self._kept[0] != j:
            self._kept = None  # before the next is made: two would take twice the room
            block = self.load(j)
            order = torch.randperm(len(block), generator=stream(self.seed, Training.SHUFFLE, j))
            self._kept = j, block[order]
        block = self._kept[1]
        part = block[i * size : (i + 1) * size]
        if len(part) == size:
            return part
        again = torch.randint(
            len(block), (size,), generator=stream(self.seed, Training.REPEATS, step)
        )
        return block[again]  # fewer samples than the batches need


def from_dataset(codec: Encoder, data: xr.Dataset, held_out: np.ndarray, seed: int) -> Blocks:
    """Every sample but those held out, in blocks of equal size, epoch after epoch."""
    count = data.sizes["sample"]
    blocks = -(-count // block_size(codec))
    pieces = blocks * PIECES_PER_BLOCK if blocks > 1 else 1
    edges = np.linspace(0, count, pieces + 1).astype(np.int64).tolist()
    kept = torch.ones(count, dtype=torch.bool)
    kept[torch.from_numpy(held_out)] = False

    def load(j: int) -> Tensor:
        epoch, place = divmod(j, blocks)
        order = torch.randperm(pieces, generator=stream(seed, Training.BLOCK_ORDER, epoch)).tolist()
        noise, parts = stream(seed, Training.DEQUANTISATION, j), []
        for piece in sorted(order[place * PIECES_PER_BLOCK : (place + 1) * PIECES_PER_BLOCK]):
            # whole, then without what is held out: a file reads scattered samples one by one
            rows = slice(edges[piece], edges[piece + 1])
            parts.append(codec.encode(data, rows, noise)[kept[rows]])
        return torch.cat(parts)

    return Blocks(load, max(1, (count - len(held_out)) // blocks), seed)


def from_simulator(codec: Encoder, simulate: Callable[[int, int], xr.Dataset], seed: int) -> Blocks:
    """New trajectories in every block: `simulate(first, samples)` returns the next ones."""
    size = block_size(codec)

    def load(j: int) -> Tensor:
        fresh = simulate(j * size, size)
        return codec.encode(fresh, slice(None), stream(seed, Training.DEQUANTISATION, j))

    return Blocks(load, size, seed)
