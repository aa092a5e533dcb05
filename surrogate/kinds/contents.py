"""What a dataset holds, as formulas see it: its signals, and their values as tensors.

A dataset over (sample, time), or a table with a sample in each row, is a batch of signals: series
x (N, T), columns (N,), categories as codes (N,), images (N, C, H, W) with values from 0 to 1.
Values that are missing are refused with their place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import (
    DataError,
    Layout,
    Signal,
)
from constraints.physics.rules import limits
from surrogate.kinds.images.values import IMAGE, channels_of, is_images, size_of
from surrogate.kinds.label_names import ABSENT, LABELS, label_columns

Data = xr.Dataset | pd.DataFrame
EVERYTHING = slice(None)


def layout_of(data: Data, instances: int | None = None) -> Layout:
    """The signals, grid, parameters and bounds that formulas about `data` may use.

    `instances`: so many rows in a row are a sample, if it is not for a dimension to tell.
    """
    if instances is None:
        own = isinstance(data, xr.Dataset) and "instance" in data.sizes
        instances = int(data.sizes["instance"]) if own else 1
    if isinstance(data, pd.DataFrame):
        odd = [name for name in data.columns if not isinstance(name, str)]
        if odd or not data.columns.is_unique:
            raise DataError("the columns of a table need names of their own, which are text")
        columns = [_column(data, name, limit=(-math.inf, math.inf)) for name in _names(data)]
        return Layout(_some([each for each in columns if each is not None]), instances=instances)
    if "sample" not in data.dims:
        raise DataError(f"the dataset has no dimension 'sample' (have: {list(data.dims)})")
    about = described(data)
    bounds = limits(about) if about else {}
    times = _times(data) if "time" in data.dims else ()
    found: list[Signal] = []
    for name in _names(data):
        if name == IMAGE and is_images(data):
            width, height = size_of(data)
            shape = (channels_of(data), height, width)
            found.append(Signal(name, "image", shape, low=0.0, high=1.0, span=1.0))
            continue
        limit = bounds.get(name, (-math.inf, math.inf))
        dims = tuple(dim for dim in data[name].dims if dim != "instance")
        if set(dims) == {"sample", "time"} and data[name].dtype.kind in "iufb":
            steps, whole = (len(times),), _whole(data[name])
            found.append(Signal(name, "series", steps, whole, *limit, span=_span(data[name])))
        elif dims == ("sample",):
            column = _column(data, name, limit)
            found += [] if column is None else [column]
    parameters = _parameters(data, about, [signal.name for signal in found])
    return Layout(_some(found), times, parameters, instances=instances)


def _some(signals: list[Signal]) -> tuple[Signal, ...]:
    if not signals:
        raise DataError("the data have no signals: neither series nor columns of numbers or words")
    return tuple(signals)


def described(data: Data) -> dict[str, Any]:
    """The description of the simulation that made the data; empty where there is none."""
    try:
        about = json.loads(data.attrs["surrogate_config"])
    except (KeyError, TypeError, ValueError):
        return {}
    return about if isinstance(about, dict) and isinstance(about.get("network"), dict) else {}


def samples_of(data: Data) -> int:
    return len(data) if isinstance(data, pd.DataFrame) else int(data.sizes["sample"])


def _names(data: Data) -> list[str]:
    """Variables that may be signals: not labels of an earlier judgement, and fit for a formula."""
    own = [str(name) for name in (data.data_vars if isinstance(data, xr.Dataset) else data.columns)]
    labels = LABELS if isinstance(data, xr.Dataset) else label_columns(data)
    return [n for n in own if n not in labels and n.isprintable() and n and '"' not in n]


def _column(data: Data, name: str, limit: tuple[float, float]) -> Signal | None:
    """One value a sample: a number, or one of a few words; None for what is neither."""
    kind = data[name].dtype
    table = _is_table(data)
    if isinstance(kind, pd.CategoricalDtype) or not pd.api.types.is_numeric_dtype(kind):
        if pd.api.types.is_timedelta64_dtype(kind):
            return None
        if pd.api.types.is_datetime64_any_dtype(kind):
            absent = table and bool(pd.isna(data[name].values).any())
            return Signal(name, "column", span=_days(data[name]), optional=absent, dates=True)
    elif not pd.api.types.is_bool_dtype(kind):
        whole = _whole(data[name]) or _happens_whole(data[name], table)
        absent = table and bool(pd.isna(np.asarray(data[name])).any())
        span = _span(data[name])
        return Signal(name, "column", (), whole, *limit, span=span, optional=absent)
    words = set(_words(data, name, EVERYTHING))
    labels = tuple(sorted(word for word in words if word is not None))
    if not labels:
        return None
    labels += (ABSENT,) if table and None in words and ABSENT not in labels else ()
    return Signal(name, "category", (len(labels),), categories=labels)


def _is_table(data: Data) -> bool:
    """Whether a sample is a row, in which some values may be missing."""
    return isinstance(data, pd.DataFrame) or "time" not in data.sizes


def _days(values: Any) -> float | None:
    """How far dates lie apart."""
    known = pd.Series(np.ravel(np.asarray(values))).dropna()
    return float((known.max() - known.min()) / pd.Timedelta(days=1)) if len(known) else None


def _whole(values: Any) -> bool:
    """Whether the values are counts; those with a fill value were read as floats."""
    kind = values.dtype
    if isinstance(values, xr.DataArray) and not {"scale_factor", "add_offset"} & {*values.encoding}:
        kind = values.encoding.get("dtype", kind)
    return np.dtype(getattr(kind, "numpy_dtype", kind)).kind in "iub"


def _happens_whole(values: Any, table: bool) -> bool:
    """Whether a table's floats are counts all the same: 5000.0, as spreadsheets write them."""
    if not table:
        return False
    known = np.asarray(values, float)
    known = known[~np.isnan(known)]
    return known.size > 0 and bool((known == known.round()).all())


def _span(values: Any) -> float | None:
    """How far the first values (some 1,000,000) lie apart; None where there are none."""
    if isinstance(values, pd.Series):
        known = np.asarray(values.iloc[:1_000_000], float)
    else:
        steps = max(1, values.size // max(1, values.sizes["sample"]))
        known = _read(values.isel(sample=slice(max(1, 1_000_000 // steps))))
    known = known[np.isfinite(known)]
    return float(known.max()) - float(known.min()) if known.size else None


def _times(data: xr.Dataset) -> tuple[float, ...]:
    """The grid as numbers; dates count in seconds from the first."""
    if "time" not in data.variables:
        return tuple(float(i) for i in range(data.sizes["time"]))
    times = np.asarray(data["time"].values)
    try:
        if times.dtype.kind == "M":
            times = (times - times[0]) / np.timedelta64(1, "s")
        elif times.dtype.kind == "m":
            times = times / np.timedelta64(1, "s")
        elif times.dtype.kind == "O":  # calendars of their own
            times = np.array([(each - times[0]).total_seconds() for each in times])
        grid = times.astype(np.float64)
    except (AttributeError, TypeError, ValueError):
        raise DataError(f"the times {times[:3]} are neither numbers nor dates") from None
    if not np.isfinite(grid).all():
        raise DataError("some of the times are missing; drop or repair them")
    return tuple(grid.tolist())


def _parameters(
    data: xr.Dataset, about: Mapping[str, Any], signals: Sequence[str]
) -> dict[str, float]:
    """Numbers a formula may name: scalar variables and the parameters of the simulation.

    Where no N is among them, it is the total of the only law that conserves a plain head count.
    """
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
        for rows in slices(data.sizes["sample"], 100_000):
            first = data.isel(time=0, sample=rows)
            start = sum(_read(first[name]).astype(np.float64) for name in totals[0])
            ends |= {float(np.min(start)), float(np.max(start))}
        if len(ends) == 1:
            found["N"] = ends.pop()
    return found


# --- values ---------------------------------------------------------------------------------------


def tensors_of(
    data: Data,
    layout: Layout,
    samples: slice = EVERYTHING,
    names: set[str] | None = None,
) -> dict[str, Tensor]:
    """The signals (of `names` only) of some samples; DataError where one is missing.

    With several instances each sample is that many rows in a row: (B, instances, ...).
    """
    rows = samples
    apart = isinstance(data, xr.Dataset) and "instance" in data.sizes
    if layout.instances > 1 and not apart:
        count = samples_of(data)
        if count % layout.instances:
            raise DataError(f"{count} samples do not divide into groups of {layout.instances}")
        begin, end, step = samples.indices(count // layout.instances)
        if step != 1:
            raise DataError("groups of samples are taken one after the other")
        rows = slice(begin * layout.instances, end * layout.instances)
    chosen = [signal for signal in layout.signals if names is None or signal.name in names]
    found = {signal.name: _tensor(data, signal, rows) for signal in chosen}
    if layout.instances > 1 and not apart:
        return {k: x.reshape(-1, layout.instances, *x.shape[1:]) for k, x in found.items()}
    return found


def _tensor(data: Data, signal: Signal, rows: slice) -> Tensor:
    if signal.kind == "image" and isinstance(data, xr.Dataset):
        return _images(data[signal.name].isel(sample=rows))
    values = _codes(data, signal, rows) if signal.categories else _numbers(data, signal.name, rows)
    absent = values < 0 if signal.categories else ~np.isfinite(values)
    if signal.optional:
        absent &= np.isinf(values)
    if absent.any():
        raise _missing(data, signal)
    return torch.from_numpy(values)


def _images(array: xr.DataArray) -> Tensor:
    """(B, [instances,] C, H, W), from 0 to 1."""
    full = array if "channel" in array.dims else array.expand_dims("channel")
    order = [dim for dim in ("sample", "instance", "channel", "y", "x") if dim in full.dims]
    values = np.array(_read(full.transpose(*order)), np.float64, order="C")
    if array.dtype.kind in "iu":
        values /= 255
    if not np.isfinite(values).all():
        raise DataError("image has pixels that are missing (NaN) or infinite; drop or repair them")
    return torch.from_numpy(values)


def _read(array: xr.DataArray) -> np.ndarray:
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
        values = _read(array.transpose(*first, ...))
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
        column = pd.Series(_read(values).astype(object).ravel())
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
    for rows in slices(total, max(1, 1_000_000 // max(1, signal.size))):
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
        f"{signal.name} has {what} in {count:,} of {total:,} samples, first at {first}; "
        "drop or repair them"
    )


def slices(total: int, size: int) -> Iterator[slice]:
    for start in range(0, total, size):
        yield slice(start, min(total, start + size))
