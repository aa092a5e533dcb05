"""A small perceptron that gives the parameters of one distribution."""

from __future__ import annotations

import torch
from torch import Generator, Tensor, nn
from torch.nn.functional import silu


class Dropout:
    """A share of the features set to 0, the others scaled up (Srivastava et al. 2014).

    The random numbers are those of a generator, so that a run can be resumed. Each `place` has one
    mask: networks that learn apart from each other share it, and so do the steps of a sample (Gal &
    Ghahramani 2016, arXiv:1512.05287).
    """

    def __init__(self, share: float, generator: Generator) -> None:
        self.share, self.generator = share, generator
        self._masks: dict[int, Tensor] = {}

    def __call__(self, x: Tensor, place: int) -> Tensor:
        if place not in self._masks:
            shape = len(x), *[1] * (x.ndim - 2), x.shape[-1]
            kept = torch.rand(shape, generator=self.generator) >= self.share
            self._masks[place] = kept / (1 - self.share)
        return x * self._masks[place]


class Head(nn.Module):
    """Features (..., inputs) to the parameters of a distribution (..., outputs), all 0 at first.

    `linear`: a linear map of the features is added, which is what sharp relations are made of.
    """

    def __init__(self, inputs: int, outputs: int, width: int, linear: bool = False) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.middle = nn.Linear(width, width)
        self.leave = nn.Linear(width, outputs)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)
        self.linear = nn.Linear(inputs, outputs, bias=False) if linear else None
        if self.linear is not None:
            nn.init.zeros_(self.linear.weight)

    def forward(self, x: Tensor, dropout: Dropout | None = None) -> Tensor:
        hidden = silu(self.enter(x))
        hidden = hidden if dropout is None else dropout(hidden, 0)
        hidden = hidden + silu(self.middle(hidden))
        hidden = hidden if dropout is None else dropout(hidden, 1)
        out: Tensor = self.leave(hidden)
        return out if self.linear is None else out + self.linear(x)
