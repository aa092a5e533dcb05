"""Where training batches come from: blocks of a dataset, or fresh ones from a simulator.

A source keeps one block of encoded samples in memory, so that a run's memory does not grow with
its data. A block of a dataset is a handful of pieces from all over it, each read in one go; an
epoch has every piece once. A block, its noise and the order of its batches are functions of the
seed and of the step, which makes a run repeatable and resumable.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate.kinds.codecs import Codec
from surrogate.random import Training, stream

BLOCK = 32_768  # samples kept in memory, or fewer if they are long
NUMBERS = 8_000_000  # in a block of long samples
FEWEST = 2_048  # samples in a block, however long
PIECES = 16  # that a block is made of
Load = Callable[[int], Tensor]


def block_size(codec: Codec) -> int:
    """Samples in a block."""
    return max(FEWEST, min(BLOCK, NUMBERS // max(1, math.prod(codec.shape))))


class Blocks:
    """Batches from blocks: `load(j)` gives the j-th, (N, *shape), where N is about `size`."""

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


def from_dataset(codec: Codec, data: xr.Dataset, held_out: np.ndarray, seed: int) -> Blocks:
    """Every sample but those held out, in blocks of equal size, epoch after epoch."""
    count = data.sizes["sample"]
    blocks = -(-count // block_size(codec))
    pieces = blocks * PIECES if blocks > 1 else 1
    edges = np.linspace(0, count, pieces + 1).astype(np.int64).tolist()
    kept = torch.ones(count, dtype=torch.bool)
    kept[torch.from_numpy(held_out)] = False

    def load(j: int) -> Tensor:
        epoch, place = divmod(j, blocks)
        order = torch.randperm(pieces, generator=stream(seed, Training.BLOCK_ORDER, epoch)).tolist()
        noise, parts = stream(seed, Training.DEQUANTISATION, j), []
        for piece in sorted(order[place * PIECES : (place + 1) * PIECES]):
            # whole, then without what is held out: a file reads scattered samples one by one
            rows = slice(edges[piece], edges[piece + 1])
            parts.append(codec.encode(data, rows, noise)[kept[rows]])
        return torch.cat(parts)

    return Blocks(load, max(1, (count - len(held_out)) // blocks), seed)


def from_simulator(codec: Codec, simulate: Callable[[int, int], xr.Dataset], seed: int) -> Blocks:
    """Fresh trajectories in every block: `simulate(first, samples)` makes those it is asked for."""
    size = block_size(codec)

    def load(j: int) -> Tensor:
        fresh = simulate(j * size, size)
        return codec.encode(fresh, slice(None), stream(seed, Training.DEQUANTISATION, j))

    return Blocks(load, size, seed)
