"""Tables: samples are rows."""

from __future__ import annotations

from typing import Any

import pandas as pd
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.images.values import is_images
from surrogate.kinds.kind import Kind
from surrogate.kinds.tables import schema


class Tables(Kind):
    """Rows of numbers, words, booleans and dates: a DataFrame, or a dataset over (sample,)."""

    name = "rows"
    stored = "table"
    singular = "row"
    dimensions = "(sample,)"

    # --- recognising ------------------------------------------------------------------------------

    def holds(self, data: object) -> bool:
        if isinstance(data, pd.DataFrame):
            return True
        if not isinstance(data, xr.Dataset) or "sample" not in data.dims:
            return False
        return "time" not in data.dims and not is_images(data)

    def from_python(self, data: Any, **options: Any) -> xr.Dataset:
        """`types` and `missing`: see `surrogate.kinds.tables.schema.understand`."""
        if isinstance(data, pd.DataFrame):
            return schema.understand(data, **options).data
        if options:
            raise ModelError(f"{next(iter(options))} applies to a DataFrame, not to a dataset")
        if not isinstance(data, xr.Dataset):
            raise ModelError(f"a table is a pandas.DataFrame, not {type(data).__name__}")
        return data

    def to_python(self, data: xr.Dataset) -> pd.DataFrame:
        return schema.to_frame(data)
