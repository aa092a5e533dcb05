"""Trajectories as a long table: a row for each step of each sample.

The columns are `sample`, then `date` or `time`, then the variables; what a sample has once (static
variables, verdicts, weights) is repeated in each of its rows. A table of this form, with one grid
for all samples, is recognised when it is read, and needs no options.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.kinds.label_names import LABELS, RULE_PREFIX
from surrogate.kinds.trajectories.calendar import Clock
from surrogate.kinds.trajectories.date_formats import read_dates, utc_dates
from surrogate.kinds.trajectories.records import Run, array_of, as_steps, values_of
from surrogate.kinds.trajectories.table_samples import TableSamples, to_dataset

SAMPLE, DATE, TIME = "sample", "date", "time"
ORIGINS = ("run", "start")  # coordinates of windows and runs of a table
KEPT_ATTRIBUTES = (str, int, float)  # of a dataset, in the formats of tables that have some


# --- writing --------------------------------------------------------------------------------------


def to_frame(data: xr.Dataset) -> pd.DataFrame:
    """A row for each sample and step."""
    if "instance" in data.sizes:
        raise ModelError(
            "samples of several instances do not fit into a table",
            value=data.sizes["instance"],
            remedy=("write a dataset: ", Action('sg.write(data, "samples.nc")', "-o samples.nc")),
        )
    samples, steps = data.sizes["sample"], data.sizes["time"]
    times = np.asarray(data["time"].values) if "time" in data.variables else np.arange(steps)
    made: dict[str, Any] = {
        SAMPLE: np.repeat(np.arange(samples), steps),
        DATE if times.dtype.kind == "M" else TIME: np.tile(times, samples),
    }
    origins = [name for name in ORIGINS if name in data.coords]
    for name in (*map(str, data.data_vars), *origins):
        array = data[name]
        if name in made:
            raise ModelError(
                f"a table of samples has a column {name!r} of its own",
                value=name,
                remedy=("write a dataset: ", Action('sg.write(data, "s.nc")', "-o samples.nc")),
            )
        if set(array.dims) == {"sample", "time"}:
            made[name] = array.transpose("sample", "time").values.ravel()
        elif array.dims == ("sample",):
            made[name] = np.repeat(array.values, steps)
    frame = pd.DataFrame(made)
    if "rule_satisfied" in data and data.sizes["rule"] > 1:
        verdicts = np.repeat(data["rule_satisfied"].values, steps, axis=0)
        rules = [f"{RULE_PREFIX}{rule}" for rule in data["rule"].values]
        frame = pd.concat([frame, pd.DataFrame(verdicts, columns=rules)], axis=1)
    frame.attrs = {k: v for k, v in data.attrs.items() if isinstance(v, KEPT_ATTRIBUTES)}
    return frame


# --- reading --------------------------------------------------------------------------------------


def holds_samples(table: pd.DataFrame) -> bool:
    """Whether a table has the form of `to_frame`: each sample has the same grid of times."""
    names = [str(name) for name in table.columns]
    if len(names) < 3 or names[0] != SAMPLE or names[1] not in (DATE, TIME):
        return False
    number = table.iloc[:, 0]
    if not pd.api.types.is_integer_dtype(number) or number.isna().any():
        return False
    numbers = number.to_numpy()
    steps = int((numbers == numbers[0]).sum())
    if steps < 2 or len(numbers) % steps:
        return False
    apart = numbers.reshape(-1, steps)
    times = table.iloc[:, 1].to_numpy().reshape(-1, steps)
    alone = len(np.unique(apart[:, 0])) == len(apart) and bool((apart == apart[:, :1]).all())
    return alone and bool((times == times[:1]).all())


def from_frame(table: pd.DataFrame) -> tuple[xr.Dataset, str]:
    """The samples of a table that `holds_samples`, and a summary."""
    when = str(table.columns[1])
    steps = int((table[SAMPLE] == table[SAMPLE].iloc[0]).sum())
    times, clock = _grid(table[when].iloc[:steps].reset_index(drop=True), when)
    values: dict[str, np.ndarray] = {}
    whole: set[str] = set()
    once: dict[str, np.ndarray] = {}
    for name in map(str, table.columns[2:]):
        if name.startswith(RULE_PREFIX):
            continue
        column = table[name]
        if name in (*LABELS, *ORIGINS):
            once[name] = column.to_numpy()[::steps]
            continue
        read = values_of(column)
        if read.isna().any():
            row = int(read.isna().to_numpy().argmax())
            raise ModelError(f"{name} is missing in row {row}", remedy="repair it")
        values[name] = array_of(read).reshape(-1, steps)
        whole |= {name} if str(read.dtype) == "Int64" else set()
    origins = {name: array for name, array in once.items() if name in ORIGINS}
    dated = times.dtype.kind == "M"
    attrs = clock.dated_attrs if dated else clock.attrs
    count = len(table) // steps
    said = f"a table of samples: {count:,} of {steps} steps"
    data, said = to_dataset(TableSamples(values, times, attrs, origins, whole), said)
    labels = {name: ("sample", array) for name, array in once.items() if name in LABELS}
    known = {k: v for k, v in table.attrs.items() if isinstance(v, KEPT_ATTRIBUTES)}
    return data.assign(labels).assign_attrs(known), said


def _grid(column: pd.Series[Any], name: str) -> tuple[np.ndarray, Clock]:
    """The times of a sample: numbers, or dates and their unit."""
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(np.float64), Clock(name)
    known = pd.api.types.is_datetime64_any_dtype(column)
    dates = utc_dates(column) if known else read_dates(column, name)[0]
    seconds = (dates - dates[0]) / np.timedelta64(1, "s")
    run = Run("", np.asarray(column), seconds, pd.DataFrame(), dates)
    return dates, as_steps([run], name, "steps")[1]
