"""A small perceptron that gives the parameters of one distribution."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import silu


class Head(nn.Module):
    """Features (..., inputs) to the parameters of a distribution (..., outputs)."""

    def __init__(self, inputs: int, outputs: int, width: int) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.middle = nn.Linear(width, width)
        self.leave = nn.Linear(width, outputs)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor) -> Tensor:
        hidden = silu(self.enter(x))
        hidden = hidden + silu(self.middle(hidden))
        out: Tensor = self.leave(hidden)
        return out
