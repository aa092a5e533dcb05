"""Verdicts as variables of a dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import numpy as np
import pandas as pd
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.label_names import LABEL_MEANINGS, LOG_LIKELIHOOD

D = TypeVar("D", xr.Dataset, pd.DataFrame, xr.Dataset | pd.DataFrame)


def with_label_variables(
    data: D,
    rules: Sequence[str],
    verdicts: np.ndarray,
    margins: np.ndarray,
    log_likelihood: np.ndarray | None = None,
) -> D:
    """A dataset with the variables of LABEL_MEANINGS, unless there is no rule, and the
    log-likelihood (N,); rules have a dimension of their own."""
    if not isinstance(data, xr.Dataset):
        raise ModelError(
            f"labels are variables of an xarray.Dataset, not {type(data).__name__}",
            value=type(data).__name__,
        )
    free = data.drop_vars([*LABEL_MEANINGS, "rule", LOG_LIKELIHOOD], errors="ignore")
    if log_likelihood is not None:
        about = {"long_name": "log-likelihood of the observations"}
        free = free.assign({LOG_LIKELIHOOD: ("sample", log_likelihood, about)})
    if not rules:
        return free
    values = (verdicts.all(1), margins.min(1), verdicts, margins)
    made = {
        name: (("sample", "rule")[: value.ndim], value, {"long_name": meaning})
        for (name, meaning), value in zip(LABEL_MEANINGS.items(), values, strict=True)
    }
    return free.assign(made).assign_coords(rule=("rule", np.array(rules, dtype=object)))
