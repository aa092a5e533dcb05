"""A residual multilayer perceptron on inputs of which some are masked (B, inputs).

Pre-normalised blocks (He et al. 2016; Ba et al. 2016), linear out, 0 at first.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import silu

from surrogate.networks.head import Dropout


class Residual(nn.Module):
    """x + V silu(W norm(x))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor, place: int, dropout: Dropout | None = None) -> Tensor:
        hidden = silu(self.inner(self.norm(x)))
        out: Tensor = x + self.outer(hidden if dropout is None else dropout(hidden, place))
        return out


class MaskedMLP(nn.Module):
    """(B, inputs) to (B, outputs)."""

    def __init__(self, inputs: int, outputs: int, width: int, depth: int) -> None:
        super().__init__()
        self.enter = nn.Linear(inputs, width)
        self.blocks = nn.ModuleList(Residual(width) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, outputs)
        nn.init.zeros_(self.leave.weight)
        nn.init.zeros_(self.leave.bias)

    def forward(self, x: Tensor, dropout: Dropout | None = None) -> Tensor:
        hidden = self.enter(x)
        for i, block in enumerate(self.blocks):
            hidden = block(hidden, i, dropout)
        hidden = silu(self.norm(hidden))
        out: Tensor = self.leave(hidden if dropout is None else dropout(hidden, len(self.blocks)))
        return out
