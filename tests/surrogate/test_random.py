"""Random streams: unrelated, and a function of their place."""

from __future__ import annotations

import math
from itertools import product

import torch

from surrogate.random import stream


def test_seeded_streams_are_unrelated() -> None:
    places = [(seed, *place) for seed in range(4) for place in ((), (0,), (1,), (0, 0), (0, 1))]
    places += [(0, 1, step) for step in range(30)] + [(-1, 5), (2**63 - 1, 7), (10**30, 1)]
    n = 20_000
    draws = torch.stack([torch.randn(n, generator=stream(*place)) for place in places])
    off = torch.corrcoef(draws) - torch.eye(len(places))
    assert off.abs().max() < 5.5 / math.sqrt(n)
    assert abs(draws.mean()) < 5 / math.sqrt(draws.numel())


def test_seeded_places_do_not_meet() -> None:
    """Torch's generator knows 32 bits of its seed: they alone must differ, but for chance."""
    places = product(range(3), range(4), range(800))
    seeds = [stream(*place).initial_seed() % 2**32 for place in places]
    assert len(seeds) - len(set(seeds)) <= 1  # 0.01 expected
    assert stream(3, 1, 2).initial_seed() != stream(3, 2, 1).initial_seed()
    same = (torch.rand(5, generator=stream(9, 1)) for _ in range(2))
    assert torch.equal(*same)
