"""Rejection: unconditional samples, and of them those that meet the scenario. Exact for the model.

The share that is kept is the scenario's probability. A soft formula c <= 0 keeps a sample with
probability e^c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from surrogate.guidance.scenario import Scenario

TOGETHER = 5_000
FIRST = 500  # draws at least


@dataclass
class Kept:
    """What was kept, x (n, D), out of how many draws; `met`: those that satisfy the formula."""

    x: Tensor
    drawn: int
    met: int

    @property
    def rate(self) -> float:
        return len(self.x) / self.drawn if self.drawn else 0.0


@torch.no_grad()
def reject(
    scenario: Scenario,
    wanted: int,
    most: int,
    seed: int,
    generator: Generator,
    *,
    steps: int | None = None,
    progress: Callable[[int], None] = lambda kept: None,
) -> Kept:
    """Draw until `wanted` samples are kept, or `most` are drawn."""
    parts: list[Tensor] = []
    drawn = met = kept = turn = 0
    while kept < wanted and drawn < most:
        count = min(_enough(wanted, kept, drawn), most - drawn)
        x = scenario.model.draw(scenario.instances * count, seed + turn, steps=steps).double()
        x, turn = scenario.joined(x), turn + 1
        value = scenario.log_value(x)
        chance = torch.rand(count, generator=generator, dtype=torch.float64).log()
        found = x[chance < value]
        met += int(scenario.satisfied(x)[0].sum())
        parts.append(found)
        drawn, kept = drawn + count, kept + len(found)
        progress(len(found))
    every = torch.cat(parts) if parts else torch.zeros(0, scenario.size, dtype=torch.float64)
    return Kept(every, drawn, met)


def _enough(wanted: int, kept: int, drawn: int) -> int:
    """How many to draw next: what is missing by the share that was kept, and some more."""
    if not drawn:
        return min(TOGETHER, max(FIRST, wanted))
    share = max(kept, 1) / drawn
    return min(TOGETHER, max(FIRST, int(1.1 * (wanted - kept) / share)))
