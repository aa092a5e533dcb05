"""Linear conditions on values that are drawn one after another: low <= Σ weight·y <= high.

A condition is settled by the last value that it concerns. All values before it are known by then,
and what they leave of the condition is an interval of that last value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import Tensor

from surrogate.kinds.decoder import Pins

S = TypeVar("S", bound=Hashable)
SLACK = 1e-9  # by which a category may miss a condition
CONSTANT_SLACK = 1e-6  # relative, by which values that all data share may miss one


@dataclass(frozen=True)
class Remainder:
    """What is left for one value: conditions low <= weights @ y <= high on its coordinates y."""

    weights: Tensor  # (k, coordinates)
    low: Tensor  # (B, k)
    high: Tensor  # (B, k)

    def interval(self) -> tuple[Tensor, Tensor]:
        """The interval of a value with one coordinate, (B,) each."""
        weight = self.weights[:, 0]
        ends = self.low / weight, self.high / weight
        return torch.minimum(*ends).amax(1), torch.maximum(*ends).amin(1)

    def allows(self, choices: Tensor) -> Tensor:
        """Which of the points (choices, coordinates) meet the conditions: (B, choices)."""
        at = choices @ self.weights.mT  # (choices, k)
        met = (at >= self.low[:, None] - SLACK) & (at <= self.high[:, None] + SLACK)
        return met.all(2)


class Conditions(Generic[S]):
    """Conditions on B points while their values are drawn; `sums` (B, k) of the values so far."""

    def __init__(
        self,
        pins: Pins,
        count: int,
        sites: Sequence[S],
        coordinates: Callable[[S], list[int]],
    ) -> None:
        """`sites`: the values in the order in which they are drawn; `coordinates`: of a site among
        the columns of `pins.rows`."""
        self.pins = pins
        self.sums = torch.zeros(count, len(pins), dtype=torch.float64)
        self._settled: dict[S, list[int]] = {}
        self._constant: list[int] = []  # conditions that concern no site
        if not len(pins):
            return
        open_rows = set(range(len(pins)))
        for site in reversed(sites):
            used = (pins.rows[:, coordinates(site)] != 0).any(1)
            found = sorted(row for row in open_rows if bool(used[row]))
            if found:
                self._settled[site] = found
                open_rows.difference_update(found)
            if not open_rows:
                break
        self._constant = sorted(open_rows)

    def at(self, site: S, coordinates: list[int], copies: int = 1) -> Remainder | None:
        """What a site settles; None if nothing. Its value stands at `copies` coordinates in a row,
        from each of `coordinates` on."""
        rows = self._settled.get(site)
        if rows is None:
            return None
        weights = torch.stack(
            [self.pins.rows[rows, first : first + copies].sum(1) for first in coordinates], 1
        )
        missing = self.sums[:, rows]
        return Remainder(weights, self.pins.low[rows] - missing, self.pins.high[rows] - missing)

    def settled_by(self, site: S) -> list[int]:
        """The conditions that a site settles."""
        return self._settled.get(site, [])

    def concern(self, coordinates: list[int]) -> bool:
        """Whether any condition reads one of these coordinates."""
        return bool((self.pins.rows[:, coordinates] != 0).any())

    def select(self, rows: Tensor) -> None:
        """Go on with some of the points."""
        self.sums = self.sums[rows]

    def add(self, values: Tensor, coordinates: list[int]) -> None:
        """Count values (B, n) at some coordinates (n,)."""
        if len(self.pins):
            self.sums += values @ self.pins.rows[:, coordinates].mT

    def log_weights(self) -> Tensor:
        """Of conditions on values that are the same in all data, once they are counted: 0 where
        they hold, else -inf; (B,)."""
        rows, found = self._constant, self.sums[:, self._constant]
        slack = CONSTANT_SLACK * (1 + found.abs())
        low, high = self.pins.low[rows], self.pins.high[rows]
        met = ((found >= low - slack) & (found <= high + slack)).all(1)
        return torch.where(met, 0.0, -torch.inf).to(self.sums)
