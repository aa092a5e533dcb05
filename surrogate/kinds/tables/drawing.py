"""Rows while they are drawn, column by column (`drawn_columns`), under linear conditions.

Values may be given: then nothing is drawn, and these rows get the weights that they have under the
conditions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor

from surrogate.kinds.conditions import Conditions, Remainder
from surrogate.kinds.decoder import Uniforms
from surrogate.kinds.tables.drawn_columns import DrawnColumns, Place
from surrogate.kinds.tables.sites import Choice, Number
from surrogate.kinds.weighted import MIN_LOG_SHARE, Weighted


class Distributions(Protocol):
    """The distributions of columns in the order in which they are drawn."""

    drawn: DrawnColumns
    exact: bool  # whether equations are met by their value, not by any within their tolerance

    def read(self, noisy: Tensor, sigma: float) -> Tensor:
        """The context (B, n) of noisy rows (B, D)."""
        ...

    def head(
        self, j: int, context: Tensor, seen: Sequence[Tensor], known: Sequence[Tensor]
    ) -> Tensor:
        """Parameters (B, outputs) of the j-th value, by features and values of those before it."""
        ...


class Drawing:
    """Rows of one instance (B, D) while they are drawn.

    `given`: values (`DrawnColumns.values`) to visit instead of drawing them from `uniform`.
    `possible` (B,): whether every value found a place that laws leave.
    """

    def __init__(
        self,
        distributions: Distributions,
        noisy: Tensor,
        sigma: float,
        uniform: Uniforms | None,
        conditions: Conditions[Place],
        instance: int,
        weighted: Weighted,
        given: Sequence[Tensor] | None = None,
    ) -> None:
        self.distributions, self.drawn = distributions, distributions.drawn
        self.uniform, self.conditions, self.instance = uniform, conditions, instance
        self.weighted, self.given = weighted, given
        count = len(noisy)
        self.rows = torch.arange(count)
        self.context = distributions.read(noisy, sigma)
        self.x = torch.zeros(count, *self.drawn.codec.shape, dtype=torch.float64)
        self.possible = torch.ones(count, dtype=torch.bool)
        self.known, self.seen = list[Tensor](), list[Tensor]()

    def run(self) -> tuple[Tensor, Tensor]:
        """Encoded rows (N, D), and the noisy ones that they descend from, (N,)."""
        for j, site in enumerate(self.drawn.sites):
            head = self.distributions.head(j, self.context, self.seen, self.known)
            y, settled = self._value(j, site, head)
            settled |= self._place(j, site, y)
            rows = self.weighted.resample(self.weighted.log_weights) if settled else None
            if rows is not None:
                self._select(rows)
        return self.x, self.rows

    def _value(self, j: int, site: Choice | Number, head: Tensor) -> tuple[Tensor, bool]:
        """A value (B,), and whether it settled a condition."""
        place = self.instance, j
        coordinates = self.drawn.coordinates_of(place)
        remainder = self.conditions.at(place, coordinates)
        given = None if self.given is None else self.given[j]
        if isinstance(site, Choice) and site.numbers is None:
            return self._category(place, site, head, remainder, given)
        like = torch.zeros(len(self.x), dtype=torch.float64)
        low, high = self.drawn.interval(j, self.known, like)
        lawful = site.log_share(head, low, high, True) if site.name in self.drawn.bound else like
        self.possible &= lawful.isfinite()
        missing = site.optional
        if missing and self.conditions.concern(coordinates):
            missing = False  # a comparison with a missing value does not hold
            if remainder is None:
                self.weighted.log_weights += site.log_share(head, low, high, False)
        if remainder is not None:
            a, b = remainder.interval()
            a, b = torch.maximum(low, a), torch.minimum(high, b)
            share = site.log_share(head, a, b, False) - lawful
            share = share.masked_fill(~(share > MIN_LOG_SHARE), -torch.inf)  # NaN, too
            self.weighted.settle(self.conditions.settled_by(place), share)
            met = share.isfinite()
            low, high = torch.where(met, a, low), torch.where(met, b, high)
            if self.distributions.exact:
                low, high = _narrowed(site, low, high, remainder)
        if given is not None:
            return given, remainder is not None
        assert self.uniform is not None
        y = site.draw(head, low, high, missing, self.uniform)
        return y, remainder is not None

    def _category(
        self,
        place: Place,
        site: Choice,
        head: Tensor,
        remainder: Remainder | None,
        given: Tensor | None,
    ) -> tuple[Tensor, bool]:
        allowed = None
        if remainder is not None:
            allowed = remainder.allows(torch.eye(site.outputs, dtype=torch.float64))
            share = site.log_share_of(head, allowed)
            self.weighted.settle(self.conditions.settled_by(place), share)
        if given is not None:
            return given, remainder is not None
        assert self.uniform is not None
        return site.draw_of(head, allowed, self.uniform), remainder is not None

    def _place(self, j: int, site: Choice | Number, y: Tensor) -> bool:
        """Write a value into the encoded rows, and count it for the conditions; whether it settled
        a factor."""
        if self.uniform is not None:
            spread = self.uniform(site.ties).mT.numpy()
            self.x[:, site.at] = torch.from_numpy(site.encoded(y.numpy(), spread))
        coordinates = self.drawn.coordinates_of((self.instance, j))
        self.conditions.add(site.data_units(y), coordinates)
        self.known.append(y)
        self.seen.append(site.seen(y))
        known = self.conditions.known_after((self.instance, j))
        if known is not None:
            self.weighted.settle(*known)
        return known is not None

    def _select(self, rows: Tensor) -> None:
        """Go on with resampled points."""
        self.weighted.select(rows)
        self.conditions.select(rows)
        self.context, self.x, self.rows = self.context[rows], self.x[rows], self.rows[rows]
        self.possible = self.possible[rows]
        self.known = [y[rows] for y in self.known]
        self.seen = [each[rows] for each in self.seen]


def _narrowed(
    site: Choice | Number, low: Tensor, high: Tensor, remainder: Remainder
) -> tuple[Tensor, Tensor]:
    """Intervals (B,) without the tolerance of equations, where a value lies in them."""
    if not isinstance(site, Number):
        return low, high
    a, b = (torch.clamp(end, low, high) for end in remainder.exact_interval())
    empty = torch.from_numpy(site.part(a, b).empty) | (a > b)
    return torch.where(empty, low, a), torch.where(empty, high, b)
