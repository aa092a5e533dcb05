"""Tables <-> normalised tensors (B, D): the channels of the columns, one after the other.

A table is a dataset over (sample,) whose variables carry their column type, as `schema.infer_types`
makes it from a DataFrame: attrs["kind"] is number, integer, date, category or boolean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import Formula, FormulaError, Layout
from constraints.compile.dependents import DependentColumn
from constraints.compile.sums import DependentSum
from constraints.gaussian.latent import LatentMap
from surrogate.errors import ModelError
from surrogate.io.rules import attribute, parsed, stated_in
from surrogate.kinds.codec import NONE, Codec, Samples, plain, rules_in_config
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.tables import columns
from surrogate.kinds.tables.columns import (
    CATEGORICAL_TYPES,
    NUMERIC_TYPES,
    CategoricalColumn,
    Column,
    NumericColumn,
)
from surrogate.kinds.tables.dependents import DerivedColumn, find_dependents, restored
from surrogate.kinds.tables.sums import SumColumn, restored_sums, with_sums


@dataclass(frozen=True, eq=False)
class TableCodec(Codec):
    """The codec of one table's rows. Made by `fit`."""

    columns: tuple[Column, ...]
    stated: Mapping[str, str] = field(
        default_factory=dict
    )  # rules, declared or found: name -> text

    kind = "table"
    noun = "rows"

    @classmethod
    def fit(cls, data: xr.Dataset, rows: np.ndarray | None = None) -> TableCodec:
        """Codec of a dataset over (sample,).

        Numbers are encoded by the quantiles of `rows`; categories are those of the whole table,
        since an unknown one could not be encoded.
        """
        found: list[NumericColumn | CategoricalColumn] = []
        for name, kind in kinds(data).items():
            values = np.asarray(data[name].values)
            some = values if rows is None or kind in CATEGORICAL_TYPES else _learned(values, rows)
            found.append(columns.fit_column(name, kind, some, plain(data[name].attrs)))
        stated = stated_in(data.attrs)
        made = cls(with_sums(data, find_dependents(data, found), stated), stated)
        if not made.shape[0]:
            raise ModelError("all rows are the same: there is nothing to learn from them")
        return made

    # --- description ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int]:
        return (sum(column.size for column in self.columns),)

    @property
    def affine(self) -> bool:
        return True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    @property
    def learned(self) -> str:
        led = [
            f"{c.name} from {c.determinant.name}"
            for c in self.columns
            if isinstance(c, DerivedColumn)
        ]
        led += [f"{c.name} from a sum" for c in self.columns if isinstance(c, SumColumn)]
        return ", ".join(self.names) + (f" ({', '.join(led)})" if led else "")

    @cached_property
    def _layout(self) -> Layout:
        try:
            return Layout(tuple(column.signal() for column in self.columns))
        except FormulaError as problem:
            raise ModelError(str(problem)) from None

    def layout(self) -> Layout:
        return self._layout

    def warps(self) -> Mapping[str, LatentMap]:
        return {c.name: c.quantiles for c in self.columns if isinstance(c, NumericColumn)}

    def followers(self) -> Mapping[str, DependentColumn]:
        return {c.name: c.follower() for c in self.columns if isinstance(c, DerivedColumn)}

    def sums(self) -> Mapping[str, DependentSum]:
        return {c.name: c.dependent_sum() for c in self.columns if isinstance(c, SumColumn)}

    @cached_property
    def rules(self) -> Mapping[str, Formula]:
        return parsed(self.stated)

    @property
    def imposed_rules(self) -> Mapping[str, Formula]:
        """None: sums hold by construction, and orders between columns by the decoder."""
        return NONE

    def _parts(self) -> Iterator[tuple[Column, slice | list[int]]]:
        """Each column with the channels that it is decoded from."""
        for column in self.columns:
            if isinstance(column, SumColumn):
                spans = [self._channels[term.name] for term in column.terms]
                yield column, [i for span in spans for i in range(span.start, span.stop)]
                continue
            source = column.determinant if isinstance(column, DerivedColumn) else column
            yield column, self._channels[source.name]

    def channels(self) -> list[tuple[Column, slice]]:
        """Each column with channels of its own, and these."""
        return [(column, self._channels[column.name]) for column in self.columns if column.size]

    @cached_property
    def _channels(self) -> dict[str, slice]:
        ends = np.cumsum([column.size for column in self.columns]).tolist()
        starts = [0, *ends[:-1]]
        return {c.name: slice(a, b) for c, a, b in zip(self.columns, starts, ends, strict=True)}

    # --- encoding and decoding --------------------------------------------------------------------

    def encode(
        self,
        data: xr.Dataset,
        samples: Samples,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        rows = data.isel(sample=samples)
        count, size = rows.sizes["sample"], self.shape[0]
        uniform = torch.rand((count, size), generator=generator, dtype=torch.float64).numpy()
        parts = [
            column.encode(np.asarray(rows[column.name].values), uniform[:, at])
            for column, at in self.channels()
        ]
        return torch.from_numpy(np.concatenate(parts, 1)).to(dtype)

    def decode(self, x: Tensor) -> dict[str, Tensor]:
        """Numbers (B,) and the weights of categories (B, K), in data units."""
        self._check(x)
        return {column.name: column.decode(x[:, at]) for column, at in self._parts()}

    def latent(self, x: Tensor) -> dict[str, Tensor]:
        """Numbers as standard normals (B,), and the weights of categories (B, K)."""
        return {column.name: column.latent(x[:, at]) for column, at in self._parts()}

    def _check(self, x: Tensor) -> None:
        if x.ndim != 2 or tuple(x.shape[1:]) != self.shape:
            raise ModelError(f"encoded rows have shape (B, {self.shape[0]}), not {tuple(x.shape)}")

    @torch.no_grad()
    def finish(self, x: Tensor) -> dict[str, np.ndarray]:
        self._check(x)
        exact = x.detach().to("cpu", torch.float64).numpy()
        if not np.isfinite(exact).all():
            raise ModelError("a row has diverged: it is not finite")
        return {column.name: column.finish(exact[:, at]) for column, at in self._parts()}

    def signals_of(self, x: Tensor) -> dict[str, Tensor]:
        exact = x.detach().to("cpu", torch.float64).numpy()
        return {c.name: torch.from_numpy(c.signals_of(exact[:, at])) for c, at in self._parts()}

    def to_dataset(self, x: Tensor, attrs: Mapping[str, Any] = NONE) -> xr.Dataset:
        made = self.finish(x)
        about = {column.name: dict(column.attrs) for column in self.columns}
        held = {  # fastpath: else xarray turns None into NaN
            name: xr.Variable("sample", values, about[name], fastpath=True)
            for name, values in made.items()
        }
        own = {**attribute(self.stated), **attrs}
        return xr.Dataset(held, {"sample": np.arange(len(x))}, own)

    def within(self, x: Tensor) -> Tensor:
        return torch.cat([column.within(x[:, at]) for column, at in self.channels()], 1)

    # --- compatibility and storage ----------------------------------------------------------------

    def matches(self, data: xr.Dataset) -> None:
        found = kinds(data)
        missing = [name for name in self.names if name not in found]
        if missing:
            raise self._lacks(missing)
        for column in self.columns:
            if (found[column.name] in NUMERIC_TYPES) != (column.kind in NUMERIC_TYPES):
                raise ModelError(
                    f"{column.name} is a {found[column.name]} in the table, and a {column.kind} in "
                    "the model",
                    value=found[column.name],
                    remedy=f"give a column of type {column.kind}",
                )

    def _lacks(self, missing: Sequence[str]) -> ModelError:
        return ModelError(
            f"the table lacks {', '.join(missing)}",
            value=list(missing),
            remedy=f"the model has {', '.join(self.names)}",
        )

    def read(self, data: Any) -> xr.Dataset:
        """A DataFrame with the columns of this codec as a dataset."""
        if not isinstance(data, pd.DataFrame):
            return super().read(data)
        frame = data
        missing = [name for name in self.names if name not in frame.columns]
        if missing:
            raise self._lacks(missing)
        made = {}
        for column in self.columns:
            try:
                held = _read(frame[column.name], column.kind)
            except (TypeError, ValueError) as problem:
                raise ModelError(
                    f"{column.name} is no {column.kind}: {problem}", value=column.name
                ) from None
            made[column.name] = ("sample", held, dict(column.attrs) | {"kind": column.kind})
        return xr.Dataset(made)

    def to_config(self) -> dict[str, Any]:
        stated = {"rules": dict(self.stated)} if self.stated else {}
        listed = [column.to_config() for column in self.columns]
        return {"kind": self.kind, "columns": listed, **stated}

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> TableCodec:
        """What `to_config` wrote; ModelError says what is wrong."""
        if not isinstance(config, Mapping) or config.get("kind") != cls.kind:
            raise ModelError("this is no codec of tables")
        listed = config.get("columns")
        if not isinstance(listed, list) or not listed:
            raise ModelError("in the codec, there are no columns")
        alone = [columns.from_config(each) for each in listed]
        names = [column.name for column in alone]
        if len(set(names)) < len(names):
            raise ModelError("in the codec, columns need names of their own")
        follows = {each["name"]: each["follows"] for each in listed if "follows" in each}
        sums = {each["name"]: each["sum"] for each in listed if "sum" in each}
        made = cls(restored_sums(restored(alone, follows), sums), rules_in_config(config))
        made.layout()
        return made


def _learned(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The values of `rows`; those of all rows where `rows` lack either missing or present ones."""
    gaps = pd.isna(values)
    own = gaps[rows]
    return values if gaps.any() and (own.all() or not own.any()) else values[rows]


def _read(values: pd.Series[Any], kind: str) -> np.ndarray:
    if kind in CATEGORICAL_TYPES:
        return np.asarray(values.astype(object))
    if kind == "date":
        return np.asarray(pd.to_datetime(values), "datetime64[ns]")
    return np.asarray(pd.to_numeric(values).astype("Float64").astype(float))


def kinds(data: xr.Dataset) -> dict[str, str]:
    """The column type of each variable over (sample,): attrs["kind"], else by its dtype."""
    if not isinstance(data, xr.Dataset):
        raise ModelError(f"a table is an xarray.Dataset here, not {type(data).__name__}")
    found = {}
    for key, array in data.data_vars.items():
        own = array.attrs.get("kind")
        known = own in (*NUMERIC_TYPES, *CATEGORICAL_TYPES)  # a column may have the name of a label
        if array.dims == ("sample",) and (known or str(key) not in LABELS):
            found[str(key)] = str(own) if known else _kind(array)
    if not found:
        raise ModelError("the table has no columns over the dimension 'sample'")
    return found


def _kind(array: xr.DataArray) -> str:
    known = {"i": "integer", "u": "integer", "f": "number", "b": "boolean", "M": "date"}
    return known.get(array.dtype.kind, "category")
