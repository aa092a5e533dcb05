"""The layout of a table for formulas: its columns (N,), with missing values."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from constraints import DataError, Layout, Signal
from surrogate.kinds import signals
from surrogate.kinds.kind import Data
from surrogate.kinds.signals import tensors as tensors


def layout(data: Data, instances: int | None = None) -> Layout:
    """The columns of numbers, dates and words."""
    count = signals.instances_in(data, instances)
    if isinstance(data, pd.DataFrame):
        if not data.columns.is_unique or not all(isinstance(name, str) for name in data.columns):
            raise DataError(
                "two columns of the table have the same name, or one that is no text",
                remedy="rename them",
            )
        columns = [signals.column(data, name) for name in signals.variables_in(data)]
        return Layout(signals.some([each for each in columns if each]), instances=count)
    return of_columns(data, count)


def of_columns(data: xr.Dataset, instances: int) -> Layout:
    """The same of a dataset over (sample,)."""

    def signal(name: str, bounds: tuple[float, float]) -> Signal | None:
        dims = tuple(dim for dim in data[name].dims if dim != "instance")
        return signals.column(data, name, bounds) if dims == ("sample",) else None

    found = signals.signals_in(data, signal)
    parameters = signals.parameters_in(data, [each.name for each in found])
    return Layout(found, parameters=parameters, instances=instances)
