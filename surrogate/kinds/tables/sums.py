"""Columns that are sums of others, `count = casual + registered`: restored exactly.

A declared or found identity Σ w_i x_i = c between numeric columns, exact in the data, determines
one of them, x_d = c' + Σ v_i x_i. It has no channel; it is computed from the finished others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import FormulaError, Layout, Signal
from constraints.compile.sums import DependentSum
from constraints.physics.linear_laws import LinearLaw, equalities, linear_laws
from surrogate.errors import ModelError
from surrogate.io.rules import parsed
from surrogate.kinds.tables.column_values import as_numbers
from surrogate.kinds.tables.columns import Column, NumericColumn

SUM_TOLERANCE = 1e-9  # by which sums of real numbers may differ, relative to their terms
NUMBERS = ("number", "integer")


@dataclass(frozen=True, eq=False)
class SumColumn(Column):
    """A column constant + Σ weight·term, whose channels are those of its terms, side by side.

    `own`: the column as it would be by itself.
    """

    own: NumericColumn
    terms: tuple[NumericColumn, ...]
    weights: tuple[float, ...]
    constant: float = 0.0

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.own.name

    @property
    def kind(self) -> str:  # type: ignore[override]
        return self.own.kind

    @property
    def attrs(self) -> Mapping[str, Any]:  # type: ignore[override]
        return self.own.attrs

    @property
    def size(self) -> int:
        return 0

    def signal(self) -> Signal:
        """Without bounds: those of its terms imply others."""
        return replace(self.own.signal(), low=-np.inf, high=np.inf)

    def dependent_sum(self) -> DependentSum:
        """The sum as constraints see it."""
        names = (term.name for term in self.terms)
        return DependentSum(dict(zip(names, self.weights, strict=True)), self.constant)

    def encode(self, values: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        return np.zeros((len(values), 0))

    def decode(self, x: Tensor) -> Tensor:
        parts = torch.split(x, [term.size for term in self.terms], 1)
        found = x.new_full((len(x),), self.constant)
        for term, weight, part in zip(self.terms, self.weights, parts, strict=True):
            found = found + weight * term.decode(part)
        return found

    def latent(self, x: Tensor) -> Tensor:
        """None of its own: formulas are restated about its terms, see `without_sums`."""
        return x.new_zeros(len(x))

    def signals_of(self, x: np.ndarray) -> np.ndarray:
        ends = np.cumsum([term.size for term in self.terms])[:-1]
        parts = np.split(x, ends, axis=1)
        found = np.full(len(x), self.constant)
        for term, weight, part in zip(self.terms, self.weights, parts, strict=True):
            found = found + weight * term.signals_of(part)
        return np.rint(found) if self.kind == "integer" else found

    def finish(self, x: np.ndarray) -> np.ndarray:
        return self.own.restored(self.signals_of(x))

    def within(self, x: Tensor) -> Tensor:
        return x

    def to_config(self) -> dict[str, Any]:
        made = self.dependent_sum()
        sums = {"weights": dict(made.weights), "constant": made.constant}
        return self.own.to_config() | {"sum": sums}


def with_sums(
    data: xr.Dataset, columns: Sequence[Column], stated: Mapping[str, str]
) -> tuple[Column, ...]:
    """The columns, with those that a stated identity determines as sums."""
    numeric = {c.name: c for c in columns if isinstance(c, NumericColumn) and _plain(c)}
    if not stated or not numeric:
        return tuple(columns)
    layout = Layout(tuple(column.signal() for column in columns))
    made: dict[str, SumColumn] = {}
    used: set[str] = set()
    for rule in parsed(stated).values():
        for law in equalities(_rows(rule, layout)):
            column = _sum_of(law, numeric, {*made, *used})
            if column is None or {term.name for term in column.terms} & set(made):
                continue
            if _exact(column, data):
                made[column.name] = column
                used |= {term.name for term in column.terms}
    return tuple(made.get(column.name, column) for column in columns)


def _plain(column: NumericColumn) -> bool:
    return column.kind in NUMBERS and column.known is None and column.varies


def _rows(rule: Any, layout: Layout) -> tuple[LinearLaw, ...]:
    try:
        return linear_laws(rule, layout) or ()
    except FormulaError:
        return ()


def _sum_of(
    law: LinearLaw, numeric: Mapping[str, NumericColumn], taken: set[str]
) -> SumColumn | None:
    """The last member that may be determined, the sum of the others if there is one."""
    if not set(law.now) <= set(numeric) or len(law.now) < 2:
        return None
    positive = [name for name, weight in law.now.items() if weight > 0]
    few = min(positive, [name for name in law.now if name not in positive], key=len)
    order = sorted(
        law.now, key=lambda name: (len(few) == 1 and name in few, list(numeric).index(name))
    )
    whole = all(numeric[name].kind == "integer" for name in law.now)
    able = [name for name in order if name not in taken and (not whole or abs(law.now[name]) == 1)]
    if not able:
        return None
    own = able[-1]
    others = [name for name in order if name != own]
    weights = tuple(-law.now[name] / law.now[own] for name in others)
    terms = tuple(numeric[name] for name in others)
    return SumColumn(numeric[own], terms, weights, -law.constant / law.now[own] or 0.0)


def _exact(column: SumColumn, data: xr.Dataset) -> bool:
    found = np.full(data.sizes["sample"], column.constant)
    size = np.abs(found)
    for term, weight in zip(column.terms, column.weights, strict=True):
        part = weight * _values(term, data)
        found, size = found + part, size + np.abs(part)
    own = _values(column.own, data)
    slack = 0.0 if column.kind == "integer" else SUM_TOLERANCE
    return bool((np.abs(found - own) <= slack * (size + np.abs(own))).all())


def _values(column: NumericColumn, data: xr.Dataset) -> np.ndarray:
    return as_numbers(column.name, column.kind, np.asarray(data[column.name].values))


def restored_sums(columns: Sequence[Column], sums: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns with the sums that `SumColumn.to_config` described."""
    numeric = {c.name: c for c in columns if isinstance(c, NumericColumn)}
    made: list[Column] = []
    for column in columns:
        if column.name not in sums:
            made.append(column)
            continue
        about = sums[column.name]
        weights = about.get("weights") if isinstance(about, Mapping) else None
        constant = about.get("constant") if isinstance(about, Mapping) else None
        terms = [numeric.get(name) for name in weights] if isinstance(weights, Mapping) else []
        fine = isinstance(weights, Mapping) and all(map(_number, [*weights.values(), constant]))
        known = [t for t in terms if t is not None and t.name not in sums]
        if not fine or not isinstance(column, NumericColumn) or len(known) < max(1, len(terms)):
            raise ModelError(f"in the codec, {column.name} is a sum of no columns", value=about)
        assert isinstance(weights, Mapping)
        assert constant is not None
        made.append(SumColumn(column, tuple(known), tuple(map(float, weights.values())), constant))
    return tuple(made)


def _number(value: Any) -> bool:
    return type(value) in (int, float) and bool(np.isfinite(value))
