"""Batches: every sample once in an epoch, none that is held out, and never all in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from simulators import models, simulate
from surrogate.diffusion import batches as sources
from surrogate.diffusion.batches import Blocks, block_size, from_dataset, from_simulator
from surrogate.kinds.trajectories.codec import TimeSeriesCodec

HELD_OUT = np.arange(3, 1000, 10)


class Numbers:
    """Encodes a sample as its number, and remembers what was asked for."""

    shape = (1, 1)

    def __init__(self) -> None:
        self.asked: list[slice] = []

    def encode(self, data: xr.Dataset, rows: slice, generator: torch.Generator) -> Tensor:
        self.asked.append(rows)
        numbers = torch.arange(data.sizes["sample"], dtype=torch.float64)[rows]
        return numbers[:, None, None]


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> tuple[Numbers, Blocks]:
    monkeypatch.setattr(sources, "MIN_BLOCK_SAMPLES", 1)
    monkeypatch.setattr(sources, "BLOCK_SAMPLES", 256)
    codec, data = Numbers(), xr.Dataset({"x": ("sample", np.zeros(1000))})
    return codec, from_dataset(codec, data, HELD_OUT, seed=2)  # type: ignore[arg-type]


def test_an_epoch_has_every_sample_once(source: tuple[Numbers, Blocks]) -> None:
    """Blocks are equal, so no sample is drawn more often for being in a small one."""
    _, blocks = source
    for epoch in range(2):
        parts = [blocks.load(4 * epoch + j).flatten() for j in range(4)]
        assert max(map(len, parts)) - min(map(len, parts)) <= 2 * sources.PIECES_PER_BLOCK
        seen = torch.cat(parts).sort().values
        assert seen.tolist() == sorted({*range(1000)} - {*HELD_OUT.tolist()})
    assert blocks.size == 900 // 4


def test_a_block_comes_from_all_over_the_data(source: tuple[Numbers, Blocks]) -> None:
    codec, blocks = source
    first, second = blocks.load(0).flatten(), blocks.load(1).flatten()
    assert first.min() < 200
    assert first.max() > 800
    assert not set(first.tolist()) & set(second.tolist())
    assert len(codec.asked) == 2 * sources.PIECES_PER_BLOCK
    assert max(rows.stop - rows.start for rows in codec.asked) <= 1000 // 64 + 1


def test_batches_are_functions_of_the_step(source: tuple[Numbers, Blocks]) -> None:
    _, blocks = source
    there = [blocks.batch(step, 50) for step in range(9)]
    back = [blocks.batch(step, 50) for step in reversed(range(9))][::-1]
    assert all(torch.equal(a, b) for a, b in zip(there, back, strict=True))
    one_block = torch.cat(there[:4]).flatten().tolist()
    assert len(set(one_block)) == 200  # without repetition


def test_blocks_smaller_than_a_batch_are_drawn_again() -> None:
    blocks = Blocks(lambda j: torch.arange(5.0)[:, None], 5, 0)
    assert blocks.batch(0, 16).shape == (16, 1)


@pytest.mark.parametrize(
    ("shape", "size"), [((2, 30), 32_768), ((3, 1000), 2666), ((50, 999), 2048)]
)
def test_long_samples_make_smaller_blocks(shape: tuple[int, int], size: int) -> None:
    codec = Numbers()
    codec.shape = shape
    assert block_size(codec) == size  # type: ignore[arg-type]


def test_a_file_is_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lazily opened, it gives the batches that it gives from memory."""
    monkeypatch.setattr(sources, "MIN_BLOCK_SAMPLES", 64)
    monkeypatch.setattr(sources, "BLOCK_SAMPLES", 64)
    data = simulate(models.esirs(), samples=300, seed=1)
    data.to_netcdf(tmp_path / "a.nc")
    codec = TimeSeriesCodec.fit(data)
    most = 0
    encode = TimeSeriesCodec.encode

    def watched(
        self: TimeSeriesCodec, data: xr.Dataset, rows: slice, noise: torch.Generator
    ) -> Tensor:
        nonlocal most
        most = max(most, rows.stop - rows.start)
        return encode(self, data, rows, noise)

    monkeypatch.setattr(TimeSeriesCodec, "encode", watched)
    with xr.open_dataset(tmp_path / "a.nc", cache=False) as lazy:
        there, here = (from_dataset(codec, each, np.arange(30), 0) for each in (lazy, data))
        for step in (0, 3, 11):
            assert torch.equal(there.batch(step, 16), here.batch(step, 16))
        assert not lazy.S.variable._in_memory
    assert most <= 64 // sources.PIECES_PER_BLOCK


def test_every_block_of_a_simulator_is_fresh() -> None:
    asked: list[tuple[int, int]] = []

    def make(first: int, samples: int) -> xr.Dataset:
        asked.append((first, samples))
        return xr.Dataset({"x": ("sample", np.zeros(4))})

    blocks = from_simulator(Numbers(), make, seed=0)  # type: ignore[arg-type]
    blocks.load(0)
    blocks.load(1)
    assert asked == [(0, blocks.size), (blocks.size, blocks.size)]
