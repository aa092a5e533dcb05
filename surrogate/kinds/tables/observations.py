"""An observed row as statements: numbers of some columns, the others unknown or missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from constraints import Layout
from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.observed import Expected, Observed, joined, sources

OF_SERIES = ("time", "upto", "nearest")  # options that rows do not have


def observations(data: Any, layout: Layout, options: ObservationOptions) -> Observed:
    """What a mapping, a Series or a DataFrame of one row says about rows of the table."""
    for name in OF_SERIES:
        if getattr(options, name):
            raise ModelError(
                f"{name} is about observed series, and these are rows",
                value=getattr(options, name),
                remedy=("leave out ", Setting(name)),
            )
    row = _row(data)
    found = sources(list(row), options.columns or {}, options.noise, layout.names)
    values = {source.column: _number(source.column, row[source.column]) for source in found}
    made = {
        source.column: [source.statement(values[source.column], lambda node: node, "")]
        for source in found
        if not np.isnan(values[source.column])
    }
    if not made:
        raise ModelError("nothing was observed: all values are missing", value=dict(row))
    seen = [str(source) for source in found if source.column in made]
    record = {"columns": {source.column: str(source.term) for source in found}}
    return Observed(joined(made), (f"observed: {', '.join(seen)}",), record)


def _row(data: Any) -> Mapping[str, Any]:
    if isinstance(data, Expected):
        return data.row()
    if isinstance(data, pd.DataFrame):
        if len(data) != 1:
            raise ModelError(
                f"{len(data)} rows were given where one was observed",
                value=len(data),
                remedy="choose one: data.iloc[[0]]",
            )
        data = data.iloc[0]
    if isinstance(data, pd.Series):
        data = data.to_dict()
    if not isinstance(data, Mapping):
        raise ModelError(
            f"an observed row is a dict, a Series or a DataFrame, not {type(data).__name__}",
            value=type(data).__name__,
        )
    return {str(name): value for name, value in data.items()}


def _number(name: str, value: Any) -> float:
    try:
        return float("nan" if value is None else value)
    except (TypeError, ValueError):
        raise ModelError(
            f"{name} is {value!r}, and only numbers can be observed",
            value=value,
            remedy=("state it as a rule: ", Setting("where", f"{name} = {value}")),
        ) from None
