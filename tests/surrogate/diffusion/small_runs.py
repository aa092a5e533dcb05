"""Small training runs on Gaussian data."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from surrogate.diffusion.denoise import Preconditioned
from surrogate.diffusion.training import Settings, Trainer
from surrogate.networks.residual_mlp import ResidualMLP
from surrogate.random import stream
from tests.surrogate.analytic import gaussian, generator


class Pool:
    """Batches from samples (N, *shape); from step `bad` on, other ones."""

    def __init__(self, samples: Tensor, bad: int | None = None, other: float = math.nan) -> None:
        self.samples, self.bad, self.other = samples, bad, other

    def batch(self, step: int, size: int) -> Tensor:
        if self.bad is not None and step >= self.bad:
            return torch.full_like(self.samples[:size], self.other)
        chosen = torch.randint(len(self.samples), (size,), generator=stream(3, step))
        return self.samples[chosen]


def untrained(size: int, width: int = 32, seed: int = 0) -> Preconditioned:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Preconditioned(ResidualMLP(size, width, 2))


class MeanDecoder(nn.Module):
    """A second network with one weight for each coordinate: their mean, by squared error.

    The random part of its loss has mean 0, and shows whether a run repeats its random numbers.
    """

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.full((size,), 2.0))

    @property
    def learners(self) -> dict[str, Any]:
        return {"": self}

    def loss(self, clean: Tensor, generator: torch.Generator) -> Tensor:
        noise = torch.randn(clean.shape, generator=generator)
        return (clean + 0.1 * noise - self.mean).square().mean(1)


def small(**settings: Any) -> Settings:
    given = {"steps": 60, "batch": 16, "warm_up": 10, "check_every": 15, "average": 0.95}
    return Settings(**{**given, **settings})


def trainer(settings: Settings | None = None, source: Pool | None = None, **more: Any) -> Trainer:
    """A small run on Gaussian data."""
    data = gaussian(2).sample(400, generator()).float()
    source = source or Pool(data[100:])
    return Trainer(untrained(2, 16), source, data[:100], settings=settings or small(), **more)


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[k], other[k]) for k in one)
