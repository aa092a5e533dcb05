"""Data as signals: what the layouts of all kinds are made of, and values as tensors.

A formula about data sees signals: series x (N, T), columns (N,), categories as codes (N,), images
(N, C, H, W). Each kind makes the `Layout` of its data from the parts below (see the modules
`layout` of its folder); `layout_of` and `tensors_of` ask the kind. Missing values are refused with
their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import DataError, Layout, Signal
from constraints.physics.rules import limits
from surrogate.io.attributes import simulation
from surrogate.kinds.kind import Data as Data
from surrogate.kinds.kind import kind_of
from surrogate.kinds.label_names import ABSENT, LABELS, label_columns

ALL_ROWS = slice(None)
UNBOUNDED = (-math.inf, math.inf)
SPAN_VALUES = 1_000_000  # values that the span of a signal is measured with
CHUNK_VALUES = 1_000_000  # values that are searched for missing ones at a time
CHUNK_SAMPLES = 100_000  # samples whose totals are computed at a time


# --- any kind -------------------------------------------------------------------------------------


def layout_of(data: Data, instances: int | None = None) -> Layout:
    """The signals, grid, parameters and bounds that formulas about `data` may use.

    `instances`: how many consecutive samples a formula sees at once, unless the data have a
    dimension `instance`.
    """
    if isinstance(data, xr.Dataset) and "sample" not in data.dims:
        raise DataError(
            f"the dataset has no dimension 'sample', but {list(data.dims)}",
            value=list(data.dims),
            remedy="rename the dimension of samples",
        )
    return kind_of(data).layout(data, instances)


def tensors_of(
    data: Data,
    layout: Layout,
    samples: slice = ALL_ROWS,
    names: set[str] | None = None,
) -> dict[str, Tensor]:
    """The signals (of `names` only) of some samples; DataError where a value is missing.

    With several instances each sample is that many consecutive rows: (B, instances, ...).
    """
    return kind_of(data).tensors(data, layout, samples, names)


# --- parts of layouts -----------------------------------------------------------------------------


def instances_in(data: Data, instances: int | None) -> int:
    """The number of instances in a sample: as given, else the size of the dimension."""
    if instances is not None:
        return instances
    return int(data.sizes.get("instance", 1)) if isinstance(data, xr.Dataset) else 1


def signals_in(
    data: xr.Dataset, signal: Callable[[str, tuple[float, float]], Signal | None]
) -> tuple[Signal, ...]:
    """The signals that `signal(name, bounds)` makes of the variables of a dataset."""
    about = described(data)
    bounds = limits(about) if about else {}
    found = [signal(name, bounds.get(name, UNBOUNDED)) for name in variables_in(data)]
    return some([each for each in found if each is not None])


def some(signals: Sequence[Signal]) -> tuple[Signal, ...]:
    """The signals; DataError if there are none."""
    if not signals:
        raise DataError("the data have no signals: neither series nor columns of numbers or words")
    return tuple(signals)


def described(data: Data) -> dict[str, Any]:
    """The description of the simulation that made the data; empty where there is none."""
    return simulation(data.attrs)


def samples_of(data: Data) -> int:
    """The number of samples."""
    return len(data) if isinstance(data, pd.DataFrame) else int(data.sizes["sample"])


def variables_in(data: Data) -> list[str]:
    """Variables that may be signals: not labels of an earlier verdict, and fit for a formula."""
    own = [str(name) for name in (data.data_vars if isinstance(data, xr.Dataset) else data.columns)]
    labels = LABELS if isinstance(data, xr.Dataset) else label_columns(data)
    return [n for n in own if n not in labels and n.isprintable() and n and '"' not in n]


def column(
    data: Data, name: str, bounds: tuple[float, float] = UNBOUNDED, *, optional: bool = True
) -> Signal | None:
    """The signal of a variable (N,) of numbers, dates or words; None for other values.

    `optional`: values may be missing, as in the rows of a table.
    """
    kind = data[name].dtype
    if isinstance(kind, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(kind):
        if pd.api.types.is_timedelta64_dtype(kind):
            return None
        if pd.api.types.is_datetime64_any_dtype(kind):
            absent = optional and bool(pd.isna(data[name].values).any())
            return Signal(name, "column", span=_days(data[name]), optional=absent, dates=True)
    elif not pd.api.types.is_bool_dtype(kind):
        whole = is_whole(data[name]) or (optional and _happens_whole(data[name]))
        absent = optional and bool(pd.isna(np.asarray(data[name])).any())
        span = span_of(data[name])
        return Signal(name, "column", (), whole, *bounds, span=span, optional=absent)
    words = set(_words(data, name, ALL_ROWS))
    labels = tuple(sorted(word for word in words if word is not None))
    if not labels:
        return None
    labels += (ABSENT,) if optional and None in words and ABSENT not in labels else ()
    return Signal(name, "category", (len(labels),), categories=labels)


def _days(values: Any) -> float | None:
    """How far dates lie apart."""
    known = pd.Series(np.ravel(np.asarray(values))).dropna()
    return float((known.max() - known.min()) / pd.Timedelta(days=1)) if len(known) else None


def is_whole(values: Any) -> bool:
    """Whether the values are counts; those with a fill value were read as floats."""
    kind = values.dtype
    if isinstance(values, xr.DataArray) and not {"scale_factor", "add_offset"} & {*values.encoding}:
        kind = values.encoding.get("dtype", kind)
    return np.dtype(getattr(kind, "numpy_dtype", kind)).kind in "iub"


def _happens_whole(values: Any) -> bool:
    """Whether floats are counts all the same: 5000.0, as spreadsheets write them."""
    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    return known.size > 0 and bool((known == known.round()).all())


def span_of(values: Any) -> float | None:
    """The range of the first values (some 1,000,000); None where there are none."""
    if isinstance(values, pd.Series):
        known = np.asarray(values.iloc[:SPAN_VALUES], float)
    else:
        steps = max(1, values.size // max(1, values.sizes["sample"]))
        known = read(values.isel(sample=slice(max(1, SPAN_VALUES // steps))))
    known = known[np.isfinite(known)]
    return float(known.max()) - float(known.min()) if known.size else None


def parameters_in(data: xr.Dataset, signals: Sequence[str]) -> dict[str, float]:
    """Numbers a formula may name: scalar variables and the parameters of the simulation.

    Where no N is among them, it is the total of the only law that conserves a plain head count.
    """
    about: Mapping[str, Any] = described(data)
    own = about["network"].get("parameters") if about else {}
    known = {**(own or {}), **(about.get("parameters") or {})}
    scalars = {str(k): v.values.item() for k, v in data.variables.items() if not v.dims}
    known |= {name: value for name, value in scalars.items() if name not in LABELS}
    found = {
        name: float(value)
        for name, value in known.items()
        if name not in signals and isinstance(value, (int, float)) and math.isfinite(value)
    }
    totals = [
        list(law)
        for law in about.get("conservation_laws") or []
        if len(law) > 1 and set(law.values()) == {1} and set(law) <= set(signals)
    ]
    if "N" not in (*found, *signals) and len(totals) == 1:
        ends = set[float]()
        for rows in slices(data.sizes["sample"], CHUNK_SAMPLES):
            first = data.isel(time=0, sample=rows)
            start = sum(read(first[name]).astype(np.float64) for name in totals[0])
            ends |= {float(np.min(start)), float(np.max(start))}
        if len(ends) == 1:
            found["N"] = ends.pop()
    return found


# --- values ---------------------------------------------------------------------------------------


Read = Callable[[Data, Signal, slice], Tensor]


def tensor(data: Data, signal: Signal, rows: slice) -> Tensor:
    """The values of a series, column or category: (n, T) or (n,)."""
    values = _codes(data, signal, rows) if signal.categories else _numbers(data, signal.name, rows)
    absent = values < 0 if signal.categories else ~np.isfinite(values)
    if signal.optional:
        absent &= np.isinf(values)
    if absent.any():
        raise _missing(data, signal)
    return torch.from_numpy(values)


def tensors(
    data: Data, layout: Layout, samples: slice, names: set[str] | None, read: Read = tensor
) -> dict[str, Tensor]:
    """`tensors_of` with the function that reads one signal."""
    rows = samples
    apart = isinstance(data, xr.Dataset) and "instance" in data.sizes
    if layout.instances > 1 and not apart:
        count = samples_of(data)
        if count % layout.instances:
            raise DataError(
                f"{count} samples do not divide into groups of {layout.instances}",
                value=count,
                remedy=f"give a multiple of {layout.instances} samples",
            )
        begin, end, step = samples.indices(count // layout.instances)
        if step != 1:
            raise DataError("groups of samples are consecutive: a step of 1 is needed", value=step)
        rows = slice(begin * layout.instances, end * layout.instances)
    chosen = [signal for signal in layout.signals if names is None or signal.name in names]
    found = {signal.name: read(data, signal, rows) for signal in chosen}
    if layout.instances > 1 and not apart:
        return {k: x.reshape(-1, layout.instances, *x.shape[1:]) for k, x in found.items()}
    return found


def read(array: xr.DataArray) -> np.ndarray:
    """Values from where they are stored; a damaged file opens, and fails when it is read."""
    try:
        return np.asarray(array.values)
    except MemoryError:
        raise
    except Exception as problem:
        raise DataError(f"cannot read the values of {array.name}: {problem}") from None


def _numbers(data: Data, name: str, rows: slice) -> np.ndarray:
    """Values of a variable, (n,) or (n, T), of a type that torch has."""
    if isinstance(data, pd.DataFrame):
        column = data[name].iloc[rows]
        kind: Any = getattr(column.dtype, "numpy_dtype", column.dtype)
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            return days_of(column.to_numpy("datetime64[ns]"))
        values = column.to_numpy(np.float64 if column.hasnans else kind, na_value=np.nan)
    else:
        array = data[name].isel(sample=rows)
        first = [dim for dim in ("sample", "instance") if dim in array.dims]
        values = read(array.transpose(*first, ...))
        if values.dtype.kind == "M":
            return days_of(values)
    known = values.dtype.type in (np.float32, np.uint8)
    wider: dict[str, type] = {"u": np.int64, "f": np.float64, "b": np.int8}
    kind = values.dtype.type if known else wider.get(values.dtype.kind, values.dtype.type)
    return np.array(values, dtype=kind, order="C")


def days_of(dates: np.ndarray) -> np.ndarray:
    """Dates as days since 1970, NaN where they are missing."""
    exact = dates.astype("datetime64[ns]").view(np.int64)
    return np.where(np.isnat(dates), np.nan, exact / 86_400e9)


def _words(data: Data, name: str, rows: slice) -> list[str | None]:
    """Values of a categorical variable as words; None where it is missing."""
    if isinstance(data, pd.DataFrame):
        column = data[name].iloc[rows]
    else:
        values = data[name].isel(sample=rows).transpose("sample", ...)
        column = pd.Series(read(values).astype(object).ravel())
    codes, kinds = pd.factorize(column)
    words = [
        (k.decode("utf-8", "replace") if isinstance(k, bytes) else str(k)).strip() for k in kinds
    ]
    return [words[code] if code >= 0 and words[code] else None for code in codes]


def _codes(data: Data, signal: Signal, rows: slice) -> np.ndarray:
    """The number of each sample's category, (n,); -1 where it is missing."""
    place = {word: code for code, word in enumerate(signal.categories)}
    absent = place.get(ABSENT, -1)
    words = _words(data, signal.name, rows)
    codes = np.array([absent if w is None else place.get(w, -1) for w in words], np.int64)
    apart = isinstance(data, xr.Dataset) and "instance" in data[signal.name].dims
    return codes.reshape(-1, data.sizes["instance"]) if apart else codes


def _missing(data: Data, signal: Signal) -> DataError:
    """Which samples of the whole dataset lack a value."""
    count, first, what = 0, "", "NaN"
    total = samples_of(data)
    for rows in slices(total, max(1, CHUNK_VALUES // max(1, signal.size))):
        if signal.categories:
            values = _codes(data, signal, rows).astype(np.float64)
            absent = values < 0
        else:
            values = _numbers(data, signal.name, rows)
            absent = np.isinf(values) if signal.optional else ~np.isfinite(values)
        if absent.any() and not first:
            place = np.argwhere(absent)[0]
            what = "infinite values" if np.isinf(values[tuple(place)]) else "missing values"
            first = f"sample {rows.start + place[0]}"
            first += f", step {place[1]}" if len(place) == 2 else ""
        count += int(absent.reshape(len(absent), -1).any(1).sum())
    return DataError(
        f"{signal.name} has {what} in {count:,} of {total:,} samples, first at {first}",
        value=signal.name,
        remedy="drop or repair them",
    )


def slices(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(total, start + size))
