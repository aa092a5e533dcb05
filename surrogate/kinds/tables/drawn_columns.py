"""The columns of a table in the order in which a decoder draws them.

Choices come first, those of fewest values before others, then numbers in the order of the table:
what has few values is learned well from little, and tells most of what follows. Columns that are
constant, that follow from a category or that are sums of others are not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from constraints import FormulaError
from constraints.physics.linear_laws import LinearLaw, linear_laws
from surrogate.kinds.support import Support
from surrogate.kinds.tables.codec import TableCodec
from surrogate.kinds.tables.columns import CategoricalColumn, Column, NumericColumn
from surrogate.kinds.tables.dependents import DerivedColumn
from surrogate.kinds.tables.sites import USUAL, Choice, Mixtures, Number, site_of
from surrogate.kinds.tables.sums import SumColumn

Place = tuple[int, int]  # instance, number of the column in the order of drawing


class SumRelation(NamedTuple):
    """dependent = total - Σ weight·x."""

    dependent: str
    weights: Mapping[str, float]
    total: float


class DrawnColumns:
    """What is drawn of the rows of a codec."""

    def __init__(self, codec: TableCodec, mixtures: Mixtures = USUAL) -> None:
        self.codec = codec
        found = [
            site_of(column, at, mixtures)
            for column, at in codec.channels()
            if isinstance(column, NumericColumn | CategoricalColumn)
        ]
        self.sites = sorted(found, key=lambda site: _rank(site))
        ends = np.cumsum([0, *(site.coordinates for site in self.sites)]).tolist()
        self._first: list[int] = ends[:-1]
        self.coordinates: int = ends[-1]

    def reordered(self, order: Sequence[int]) -> DrawnColumns:
        """The same columns drawn in another order; coordinates stay where they are."""
        made = copy(self)
        made.sites = [self.sites[j] for j in order]
        made._first = [self._first[j] for j in order]
        vars(made).pop("support", None)
        return made

    def order(self, instances: int) -> list[Place]:
        """All values in the order of drawing."""
        return [(i, j) for i in range(instances) for j in range(len(self.sites))]

    def coordinates_of(self, place: Place) -> list[int]:
        """Of a value in points (instances · coordinates,)."""
        instance, j = place
        first = instance * self.coordinates + self._first[j]
        return list(range(first, first + self.sites[j].coordinates))

    # --- values -----------------------------------------------------------------------------------

    def values(self, clean: Tensor) -> list[Tensor]:
        """The values (B,) of encoded rows (B, D), in the order of drawing."""
        exact = clean.detach().to("cpu", torch.float64).numpy()
        return [torch.from_numpy(site.values(exact)) for site in self.sites]

    def signals(self, y: Tensor) -> dict[str, Tensor]:
        """The signals of coordinates (B, coordinates): an affine map."""
        own = {
            site.name: y[:, first : first + site.coordinates]
            for site, first in zip(self.sites, self._first, strict=True)
        }
        return {column.name: self._signal(column, own, y) for column in self.codec.columns}

    def _signal(self, column: Column, own: Mapping[str, Tensor], y: Tensor) -> Tensor:
        match column:
            case DerivedColumn():
                weights = self._signal(column.determinant, own, y)
                values = torch.tensor(column.values, dtype=y.dtype).nan_to_num(0.0)
                if isinstance(column.own, CategoricalColumn):
                    values = one_hot(values.long(), len(column.own.categories)).to(y)
                return weights @ values
            case SumColumn():
                parts = zip(column.weights, column.terms, strict=True)
                total = sum(
                    (w * self._signal(term, own, y) for w, term in parts), start=0 * y[:, 0]
                )
                return total + column.constant
            case CategoricalColumn():
                return own.get(column.name, y.new_ones(len(y), 1))
            case NumericColumn():
                constant = y.new_full((len(y), 1), column.quantiles.values[0])
                return own.get(column.name, constant)[:, 0]
        raise TypeError(type(column).__name__)

    # --- laws -------------------------------------------------------------------------------------

    @cached_property
    def laws(self) -> list[LinearLaw]:
        """The linear rules among columns of numbers that are never missing, sums included."""
        numbers = {
            c.name for c in self.codec.columns if isinstance(c, NumericColumn) and c.known is None
        }
        sums = {c.name for c in self.codec.columns if isinstance(c, SumColumn)}
        found: list[LinearLaw] = []
        for rule in self.codec.rules.values():
            try:
                rows = linear_laws(rule, self.codec.layout()) or ()
            except FormulaError:
                continue
            found += [row for row in rows if set(row.now) <= numbers | sums]
        return found

    @cached_property
    def support(self) -> Support | None:
        """The intervals of the columns under the laws; None without laws."""
        if not self.laws:
            return None
        columns = self.codec.columns
        relations = [
            SumRelation(
                c.name, dict(zip(_names(c), (-w for w in c.weights), strict=True)), c.constant
            )
            for c in columns
            if isinstance(c, SumColumn)
        ]
        plain = [c for c in columns if isinstance(c, NumericColumn) and c.known is None]
        order = [site.name for site in self.sites if site.name in {c.name for c in plain}]
        ranges = {c.name: c.quantiles.values for c in plain}
        whole = frozenset(c.name for c in plain if c.kind == "integer")
        return Support(order, self.laws, relations, ranges, whole)

    def interval(self, j: int, known: Sequence[Tensor], like: Tensor) -> tuple[Tensor, Tensor]:
        """The interval (B,) that laws leave to the j-th value, given those before it."""
        site = self.sites[j]
        if self.support is None or site.name not in self.bound:
            return torch.full_like(like, -torch.inf), torch.full_like(like, torch.inf)
        now = {own.name: y for own, y in zip(self.sites, known, strict=False)}
        return self.support.interval(site.name, now, None, like)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The columns that laws truncate."""
        named = {name for law in self.laws for name in law.now}
        sums = {c.name: _names(c) for c in self.codec.columns if isinstance(c, SumColumn)}
        return frozenset(term for name in named for term in sums.get(name, (name,)))


def _names(column: SumColumn) -> tuple[str, ...]:
    return tuple(term.name for term in column.terms)


def _rank(site: Choice | Number) -> int:
    return site.outputs if isinstance(site, Choice) else 10**9
