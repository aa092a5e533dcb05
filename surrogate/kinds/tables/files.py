"""Tables of rows in files: selection of columns, given types, and missing values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action, Setting
from surrogate.errors import ModelError, unknown_name
from surrogate.io.formats import Say
from surrogate.io.grids import restored
from surrogate.io.reading import TableOptions
from surrogate.kinds.label_names import LABELS, label_columns
from surrogate.kinds.tables.schema import infer_types, to_frame

Data = xr.Dataset | pd.DataFrame


def opened(data: Data, path: str, options: TableOptions) -> Data:
    """Rows of a file with the selected columns, and with their labels."""
    if isinstance(data, xr.Dataset):
        try:
            data = restored(data)
        except (OSError, RuntimeError, ValueError) as problem:  # a damaged file fails only now
            raise ModelError(f"cannot read {path!r} as rows: {problem}") from None
    if options.columns is None:
        return data
    names = [str(name) for name in data]
    beside = _beside(data)  # labels and numbers of rows are kept
    check_columns(path, options.columns, [name for name in names if name not in beside])
    kept: Data = data[[name for name in names if name in options.columns or name in beside]]
    return kept


def _beside(data: Data) -> set[str]:
    """Names of labels and row numbers, which are kept whatever columns are selected."""
    if not isinstance(data, pd.DataFrame):
        return {n for n in LABELS if n in data.data_vars and "kind" not in data[n].attrs}
    found = {*label_columns(data), "log_weight"} & {*data.columns}
    if "sample" in data and pd.api.types.is_integer_dtype(data["sample"]):
        found |= {"sample", "instance"} & {*data.columns}
    return found


def check_columns(path: str, columns: Sequence[str], have: Sequence[str]) -> None:
    """Refuse columns that a table does not have, and the same one twice."""
    for name in columns:
        if name not in have:
            raise unknown_name("column", name, have).at(path)
    if len(set(columns)) < len(columns):
        raise ModelError(
            f"columns must be different names, not {','.join(columns)}",
            value=list(columns),
            remedy="name each column once",
        )


def learnable(data: Data, path: str, options: TableOptions, say: Say) -> xr.Dataset:
    """Rows to learn from, with given or inferred types; `say` receives a summary of these."""
    if isinstance(data, xr.Dataset) and "instance" in data.dims:
        raise ModelError(
            f"{path!r} holds several rows in each sample",
            remedy=(
                "write them one by one: ",
                Action('sg.write(draws, "rows.csv")', "surrogate sample MODEL -o rows.csv"),
            ),
        )
    frame = to_frame(data) if isinstance(data, xr.Dataset) else data
    frame = frame if options.columns is None else frame[list(options.columns)]
    try:
        understood = infer_types(frame, options.types or {}, options.missing or "model")
    except ModelError as problem:
        raise problem.at(path) from None
    for line in understood.lines():
        say(line)
    return understood.data


def as_read(data: Data, options: TableOptions) -> pd.DataFrame:
    """A DataFrame whose columns have the given types, for `sg.fit`."""
    frame = to_frame(data) if isinstance(data, xr.Dataset) else data
    if options.missing in ("refuse", "drop"):
        gaps = frame.isna().to_numpy()
        if gaps.any() and options.missing == "refuse":
            row, column = (int(i) for i in np.argwhere(gaps)[0])
            raise ModelError(
                f"{frame.columns[column]} is missing in row {row}",
                remedy=("repair it, or drop such rows (", Setting("missing", "drop"), ")"),
            )
        frame = frame.dropna().reset_index(drop=True)
    if not options.types:
        return frame
    typed = to_frame(infer_types(frame, options.types).data)
    made = {}
    for name, kind in options.types.items():
        if kind != "ignore":
            made[name] = typed[name].astype("category") if kind == "category" else typed[name]
    ignored = [name for name, kind in options.types.items() if kind == "ignore"]
    return frame.assign(**made).drop(columns=ignored)
