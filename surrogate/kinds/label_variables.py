"""Verdicts as variables of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.label_names import LABEL_MEANINGS

D = TypeVar("D", xr.Dataset, pd.DataFrame, xr.Dataset | pd.DataFrame)


def with_label_variables(
    data: D, rules: Sequence[str], verdicts: np.ndarray, margins: np.ndarray
) -> D:
    """A dataset with the variables of LABEL_MEANINGS; rules have a dimension of their own."""
    if not isinstance(data, xr.Dataset):
        raise ModelError(
            f"labels are variables of an xarray.Dataset, not {type(data).__name__}",
            value=type(data).__name__,
        )
    values = (verdicts.all(1), margins.min(1), verdicts, margins)
    made = {
        name: (("sample", "rule")[: value.ndim], value, {"long_name": meaning})
        for (name, meaning), value in zip(LABEL_MEANINGS.items(), values, strict=True)
    }
    free = data.drop_vars([*LABEL_MEANINGS, "rule"], errors="ignore")
    return free.assign(made).assign_coords(rule=("rule", np.array(rules, dtype=object)))
