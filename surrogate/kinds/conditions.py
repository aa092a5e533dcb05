"""Linear conditions on values that are drawn one after another: low <= Σ weight·y <= high.

A condition is settled by the last value that it concerns. All values before it are known by then,
and what they leave of the condition is an interval of that last value. A factor of the likelihood
is known once the last value that it depends on has been drawn.
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
    tolerance: Tensor  # (k,), of verdicts, by which both ends are moved outwards

    def exact_interval(self) -> tuple[Tensor, Tensor]:
        """The same as `interval` without tolerances."""
        low, high = self.low + self.tolerance, self.high - self.tolerance
        return Remainder(self.weights, low, high, 0 * self.tolerance).interval()

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
    """Conditions and factors on B points while their values are drawn.

    sums: (B, k) of the values so far. read: (B, n), those that factors depend on.
    """

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
        every = sorted({c for factor in pins.factors for c in factor.coordinates})
        self._columns = {c: i for i, c in enumerate(every)}  # of `read`, by coordinate
        self.read = torch.zeros(count, len(self._columns), dtype=torch.float64)
        self._known: dict[S, list[int]] = {}  # factors that are known after a site
        self._late: list[int] = []  # those that depend on values that all data share
        if pins.factors:
            self._find_factors(sites, coordinates)
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

    def _find_factors(self, sites: Sequence[S], coordinates: Callable[[S], list[int]]) -> None:
        """The last site of each factor."""
        owner = {c: i for i, site in enumerate(sites) for c in coordinates(site)}
        for j, factor in enumerate(self.pins.factors):
            if factor.coordinates and all(c in owner for c in factor.coordinates):
                last = sites[max(owner[c] for c in factor.coordinates)]
                self._known.setdefault(last, []).append(j)
            else:
                self._late.append(j)

    @property
    def active(self) -> bool:
        """Whether there are any conditions or factors."""
        return self.pins.total > 0

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
        low, high = self.pins.low[rows] - missing, self.pins.high[rows] - missing
        return Remainder(weights, low, high, self.pins.tolerances[rows])

    def settled_by(self, site: S) -> list[int]:
        """The conditions that a site settles."""
        return self._settled.get(site, [])

    def concern(self, coordinates: list[int]) -> bool:
        """Whether any condition or factor reads one of these coordinates."""
        if any(c in self._columns for c in coordinates):
            return True
        return bool((self.pins.rows[:, coordinates] != 0).any())

    def select(self, rows: Tensor) -> None:
        """Go on with some of the points."""
        self.sums, self.read = self.sums[rows], self.read[rows]

    def add(self, values: Tensor, coordinates: list[int]) -> None:
        """Count values (B, n) at some coordinates (n,)."""
        if len(self.pins):
            self.sums += values @ self.pins.rows[:, coordinates].mT
        for i, c in enumerate(coordinates):
            if c in self._columns:
                self.read[:, self._columns[c]] = values[:, i]

    def known_after(self, site: S) -> tuple[list[int], Tensor] | None:
        """The factors that are known once a site is drawn, numbered after the conditions, and the
        sum of their log-densities (B,); None if there are none."""
        found = self._known.get(site)
        if found is None:
            return None
        return [len(self.pins) + j for j in found], self._log_density(found)

    def _log_density(self, factors: list[int]) -> Tensor:
        total = torch.zeros(len(self.read), dtype=torch.float64)
        for j in factors:
            factor = self.pins.factors[j]
            columns = [self._columns[c] for c in factor.coordinates]
            total = total + factor.log_density(self.read[:, columns])
        return total

    @property
    def late(self) -> list[int]:
        """The factors that are known at the end only, numbered after the conditions."""
        return [len(self.pins) + j for j in self._late]

    def log_weights(self) -> Tensor:
        """Of conditions on values that are the same in all data, once they are counted: 0 where
        they hold, else -inf; and of factors that depend on such values; (B,)."""
        rows, found = self._constant, self.sums[:, self._constant]
        slack = CONSTANT_SLACK * (1 + found.abs())
        low, high = self.pins.low[rows], self.pins.high[rows]
        met = ((found >= low - slack) & (found <= high + slack)).all(1)
        return torch.where(met, 0.0, -torch.inf).to(self.sums) + self._log_density(self._late)
