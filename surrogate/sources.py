"""Where training batches come from: blocks of a dataset, or fresh ones from a simulator.

A source keeps one block of encoded samples in memory, so that a run's memory does not grow with
its data. A block, its noise and the order of its batches are functions of the seed and of the
step, which makes a run repeatable and resumable.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate.codecs import TimeSeriesCodec
from surrogate.training import seeded

BLOCK = 32_768  # samples kept in memory
Load = Callable[[int], Tensor]


class Blocks:
    """Batches from blocks: `load(j)` gives the j-th, (N, *shape)."""

    def __init__(self, load: Load, size: int, seed: int) -> None:
        self.load, self.size, self.seed = load, size, seed
        self._kept: tuple[int, Tensor] | None = None

    def batch(self, step: int, size: int) -> Tensor:
        """The samples of a step: (size, *shape)."""
        batches = max(1, self.size // size)
        j, i = divmod(step, batches)
        if self._kept is None or self._kept[0] != j:
            block = self.load(j)
            order = torch.randperm(len(block), generator=seeded(self.seed, 3, j))
            self._kept = j, block[order]
        block = self._kept[1]
        part = block[i * size : (i + 1) * size]
        if len(part) == size:
            return part
        again = torch.randint(len(block), (size,), generator=seeded(self.seed, 4, step))
        return block[again]  # fewer samples than a batch


def from_dataset(
    codec: TimeSeriesCodec, data: xr.Dataset, held_out: np.ndarray, seed: int
) -> Blocks:
    """Every sample but those held out, block by block in random order, epoch after epoch."""
    count = data.sizes["sample"]
    blocks = -(-count // BLOCK)
    kept = np.ones(count, bool)
    kept[held_out] = False

    def load(j: int) -> Tensor:
        epoch, place = divmod(j, blocks)
        order = torch.randperm(blocks, generator=seeded(seed, 5, epoch))
        start = int(order[place]) * BLOCK
        rows = start + np.flatnonzero(kept[start : start + BLOCK])
        return codec.encode(data, rows, seeded(seed, 6, j))

    return Blocks(load, min(BLOCK, count) - min(len(held_out), count // 2), seed)


def from_simulator(
    codec: TimeSeriesCodec, simulate: Callable[[int, int], xr.Dataset], seed: int
) -> Blocks:
    """Fresh trajectories in every block: `simulate(first, samples)` makes those it is asked for."""

    def load(j: int) -> Tensor:
        fresh = simulate(j * BLOCK, BLOCK)
        return codec.encode(fresh, slice(None), seeded(seed, 6, j))

    return Blocks(load, BLOCK, seed)
