"""Plain draws of a scenario's prior, of which those that meet the formula are accepted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from surrogate.guidance.scenario import Scenario
from surrogate.random import Sampling, derived, stream

MAX_BATCH = 5_000  # draws at a time
MIN_BATCH = 500


@dataclass(frozen=True)
class Accepted:
    """Unconditional draws that were accepted."""

    x: Tensor
    """Accepted draws, (n, D), float64."""
    drawn: int
    """How many were drawn."""
    met: int
    """How many of these satisfied the formula, with or without the laws of the network."""
    lawful: int
    """How many of these obey the laws of the network."""
    every: Tensor | None = None
    """All draws, (drawn, D), if they were kept."""

    @property
    def rate(self) -> float:
        """The acceptance rate."""
        return len(self.x) / self.drawn if self.drawn else 0.0

    @property
    def lawful_share(self) -> float:
        """The share of the draws that obey the laws of the network."""
        return self.lawful / self.drawn if self.drawn else 0.0

    def __add__(self, other: Accepted) -> Accepted:
        every = None
        if self.every is not None and other.every is not None:
            every = torch.cat([self.every, other.every])
        return Accepted(
            torch.cat([self.x, other.x]),
            self.drawn + other.drawn,
            self.met + other.met,
            self.lawful + other.lawful,
            every,
        )


@torch.no_grad()
def reject(
    scenario: Scenario,
    wanted: int,
    max_draws: int,
    seed: int,
    purpose: Sampling,
    *,
    steps: int | None = None,
    progress: Callable[[int], None] = lambda accepted: None,
    first_batch: int = 0,
    keep: bool = False,
) -> Accepted:
    """Draw until `wanted` samples are accepted, or `max_draws` are drawn.

    Batches are drawn with seeds of their own, derived from (seed, purpose, batch): neighbouring
    seeds, and a pilot and its run, share no draws. A call that goes on where another ended has a
    `first_batch` that was not drawn yet. `keep`: also what is not accepted.
    """
    generator = stream(seed, purpose, *([first_batch] if first_batch else []))
    parts: list[Tensor] = []
    kept: list[Tensor] = []
    drawn = met = lawful = accepted = 0
    batch = first_batch
    while accepted < wanted and drawn < max_draws:
        count = min(_batch_size(wanted, accepted, drawn), max_draws - drawn)
        own = derived(seed, purpose, batch)
        x = scenario.prior.draw(scenario.instances * count, own, steps=steps).double()
        x, batch = scenario.joined(x), batch + 1
        verdicts = scenario.satisfied(x)
        value = scenario.log_value(x, verdicts)
        log_uniform = torch.rand(count, generator=generator, dtype=torch.float64).log()
        found = x[log_uniform < value]
        met += int(verdicts.satisfied.sum())
        lawful += int(verdicts.consistent.sum())
        kept += [x] if keep else []
        parts.append(found)
        drawn, accepted = drawn + count, accepted + len(found)
        progress(len(found))
    every = torch.cat(parts) if parts else torch.zeros(0, scenario.size, dtype=torch.float64)
    return Accepted(every, drawn, met, lawful, torch.cat(kept) if kept else None)


def _batch_size(wanted: int, accepted: int, drawn: int) -> int:
    """The size of the next batch: missing samples over the acceptance rate, plus a tenth."""
    if not drawn:
        return min(MAX_BATCH, max(MIN_BATCH, wanted))
    rate = max(accepted, 1) / drawn
    return min(MAX_BATCH, max(MIN_BATCH, int(1.1 * (wanted - accepted) / rate)))
