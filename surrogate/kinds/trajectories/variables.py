"""Variables of a dataset as a codec sees them, and their values.

A variable over (sample, time) is a series, one over (sample,) is static; its values are real
numbers, integers, booleans or words. Numbers and booleans are read as float64 (n, T) or (n, 1),
words as the codes of their categories. Values that are missing, or outside of the domain of their
transform, are refused with their place.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
import xarray as xr
from torch import Tensor

from constraints import DataError, FormulaError, Layout, Signal
from surrogate.errors import ModelError, as_model_error
from surrogate.kinds.codec import Samples, plain
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.signals import layout_of, slices
from surrogate.kinds.trajectories.cycles import Cycle
from surrogate.kinds.trajectories.transforms import Identity, Transform, dequantised, rounded

VALUE_KINDS = ("real", "integer", "boolean", "words")
NUMBER_KINDS = ("real", "integer")
MAX_CATEGORIES = 64  # categories of one variable: each is a channel
MAX_EXACT_INTEGER = 2**53  # whole numbers beyond it are not exact in float64


@dataclass(frozen=True)
class Variable:
    """One variable. A `total` is not in the data: it is the sum that a relation conserves.

    `low` and `high` are the ends of its range, where it has hard ones; `levels` its values, where
    real numbers take only few.
    """

    name: str
    kind: str
    static: bool = False
    dtype: str = "float64"
    dims: tuple[str, ...] = ("sample", "time")
    attrs: Mapping[str, Any] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    transform: Transform = field(default_factory=Identity)
    total: bool = False
    low: float = -math.inf
    high: float = math.inf
    levels: tuple[float, ...] = ()

    @property
    def channels(self) -> tuple[str, ...]:
        """Numbers have one channel, words one for each category."""
        if self.kind != "words":
            return (self.name,)
        return tuple(f"{self.name}: {word}" for word in self.categories)

    @property
    def cycle(self) -> Cycle | None:
        """The cycle of the calendar whose place it holds."""
        return Cycle.of(self.attrs) if self.static and self.kind == "real" else None

    def spread(self, values: Tensor) -> Tensor:
        """Values (n, T) over the channels (n, K, T), in data units: words are one-hot."""
        if self.kind != "words":
            return values[:, None]
        hot = torch.nn.functional.one_hot(values.long(), len(self.categories))
        return hot.movedim(-1, 1).to(values.dtype)

    def finished(self, values: Tensor) -> Tensor:
        """Values as data have them: counts rounded, few values at the nearest of them."""
        if self.kind == "integer":
            return rounded(values)
        if not self.levels:
            return values
        levels = torch.tensor(self.levels, dtype=values.dtype)
        return levels[(values.unsqueeze(-1) - levels).abs().argmin(-1)]

    def forward(self, spread: Tensor, uniform: Tensor | float) -> Tensor:
        """Transformed channels (n, K, T); `uniform` on [0, 1) dequantises integers."""
        counts = self.kind == "integer"
        return self.transform.forward(dequantised(spread, uniform) if counts else spread)


# --- variables of a dataset -----------------------------------------------------------------------


def survey(data: xr.Dataset) -> tuple[Layout, tuple[Variable, ...], tuple[str, ...]]:
    """The layout of a dataset for formulas, its variables, and the names of those left out."""
    if not isinstance(data, xr.Dataset):
        raise ModelError(
            f"trajectories are an xarray.Dataset, not {type(data).__name__}",
            value=type(data).__name__,
        )
    if not {"sample", "time"} <= set(data.sizes):
        raise ModelError(
            "trajectories have the dimensions (sample, time), these "
            f"({', '.join(str(d) for d in data.sizes)})",
            value=tuple(str(d) for d in data.sizes),
            remedy="rename the dimensions",
        )
    if 0 in (data.sizes["sample"], data.sizes["time"]):
        raise ModelError(
            "the dataset is empty: it has no samples or no times",
            remedy="give at least 2 trajectories",
        )
    names = [str(name) for name in data.data_vars]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ModelError(f"two variables have the name {twice[0]!r}", remedy="rename one of them")
    for name in names:
        if not name.isprintable() or not name or '"' in name:
            raise ModelError(
                f"{name!r} cannot be a name in formulas", value=name, remedy="rename the variable"
            )
    try:
        layout = layout_of(data)
    except (DataError, FormulaError) as problem:
        raise as_model_error(problem) from None
    found: list[Variable] = []
    ignored: list[str] = []
    for key, array in data.data_vars.items():
        name = str(key)
        kind = _kind(array, layout.find(name))
        if name in LABELS or not array.dims:
            continue
        if kind is None or set(array.dims) not in ({"sample", "time"}, {"sample"}):
            ignored.append(name)
            continue
        dims = tuple(str(dim) for dim in array.dims)
        found.append(
            Variable(name, kind, len(dims) == 1, _dtype(array, kind), dims, plain(array.attrs))
        )
    if all(variable.static for variable in found):
        raise ModelError(
            "the dataset has no series: no variable over (sample, time) holds numbers or words",
            value=names,
            remedy="add a variable over (sample, time)",
        )
    return layout, tuple(found), tuple(ignored)


def _kind(array: xr.DataArray, signal: Signal | None) -> str | None:
    if array.dims == ("sample",) and Cycle.of(array.attrs) is not None:
        return "real"  # with few values, whether these are whole or not
    match getattr(array.dtype, "kind", "O"):
        case "b":
            return "boolean"
        case "i" | "u":
            return "integer"
        case "f":  # counts with a fill value are read as floats; the layout knows
            return "integer" if signal is not None and signal.integer else "real"
        case "c" | "M" | "m" | "V":
            return None
    return "words"


def _dtype(array: xr.DataArray, kind: str) -> str:
    own = array.dtype
    if kind == "integer" and own.kind == "f":
        own = np.dtype(array.encoding.get("dtype", np.int64))
    return str(own) if getattr(own, "kind", "O") in "iufbUS" else "object"


# --- values ---------------------------------------------------------------------------------------


def sample_number(samples: Samples, index: int) -> int:
    """The index in the dataset of one of these samples."""
    return samples.start + index if isinstance(samples, slice) else int(samples[index])


def pieces(samples: Samples, total: int, size: int) -> Iterator[slice | np.ndarray]:
    """The samples, a bounded number at a time, in their order."""
    if isinstance(samples, slice):
        start, stop, step = samples.indices(total)
        if step == 1:
            for piece in slices(max(0, stop - start), size):
                yield slice(start + piece.start, start + piece.stop)
            return
    numbers = np.arange(total)[samples]
    for piece in slices(len(numbers), size):
        yield numbers[piece]


def read(data: xr.Dataset, variable: Variable, samples: Samples) -> Tensor:
    """Values of some samples: float64 (n, T), or (n, 1) of a static variable."""
    values = _numbers(data, variable, samples)
    if values.size:
        low, high = values.min(), values.max()
        if not _fine(variable, low, high) or not _whole(variable, values):
            raise _refusal(data, variable)
    return torch.from_numpy(values)


def words_of(data: xr.Dataset, variable: Variable, samples: Samples) -> set[str]:
    """The different words in some samples; missing ones are refused."""
    codes, words = _words(_stored(data, variable, samples))
    found = {words[code] for code in np.unique(codes)}
    if None in found:
        raise _refusal(data, variable)
    return {word for word in found if word is not None}


def _stored(data: xr.Dataset, variable: Variable, samples: Samples) -> np.ndarray:
    """Values as they are in the file: (n, T) or (n, 1)."""
    array = data.variables[variable.name].isel(sample=samples).transpose("sample", ...)
    try:
        values = np.asarray(array.values)
    except MemoryError:
        raise
    except Exception as problem:  # a damaged file opens, and fails when it is read
        raise ModelError(f"cannot read the values of {variable.name}: {problem}") from None
    return values[:, None] if variable.static else values


def _numbers(data: xr.Dataset, variable: Variable, samples: Samples) -> np.ndarray:
    """Values as numbers, NaN where they are missing; words as codes, -1 missing and -2 unknown."""
    values = _stored(data, variable, samples)
    if variable.kind != "words":
        try:
            return np.ascontiguousarray(values, np.float64)
        except (TypeError, ValueError):
            raise ModelError(
                f"{variable.name} holds {values.dtype} where the model has numbers",
                value=str(values.dtype),
                remedy="convert it to numbers",
            ) from None
    place = {word: code for code, word in enumerate(variable.categories)}
    codes, words = _words(values)
    numbers = np.array([-1 if word is None else place.get(word, -2) for word in words], np.float64)
    return np.asarray(numbers[codes])


def _words(values: np.ndarray) -> tuple[np.ndarray, list[str | None]]:
    """Codes of values, and the word of each code; None is a missing one."""
    flat = np.asarray(values, dtype=object).ravel()
    codes, kinds = pd.factorize(flat, use_na_sentinel=True)
    words: list[str | None] = [
        (k.decode("utf-8", "replace") if isinstance(k, bytes) else str(k)).strip() or None
        for k in kinds
    ]
    return codes.reshape(values.shape), [*words, None]  # code -1 is the last


def _fine(variable: Variable, low: float, high: float) -> bool:
    """Whether numbers between low and high can be encoded; NaN is not."""
    if variable.kind == "words":
        return bool(low >= 0)
    domain = variable.transform
    most = MAX_EXACT_INTEGER if variable.kind == "integer" else math.inf
    return bool(domain.low < low and high < domain.high and -most < low and high < most)


def _whole(variable: Variable, values: np.ndarray) -> bool:
    return variable.kind != "integer" or bool((values == np.rint(values)).all())


def _refusal(data: xr.Dataset, variable: Variable) -> ModelError:
    """The error for bad values: what is wrong, how often in the whole dataset, and where first."""
    total, steps = data.sizes["sample"], data.sizes["time"]
    count, samples, first, value = 0, 0, "", math.nan
    for rows in slices(total, max(1, 500_000 // steps)):
        values = _numbers(data, variable, rows)
        wrong = ~np.isfinite(values)
        if variable.kind == "words":
            wrong = values < 0 if variable.categories else values == -1
        elif variable.kind == "integer":
            wrong |= (values != np.rint(values)) | (np.abs(values) >= MAX_EXACT_INTEGER)
        if variable.kind != "words":
            wrong |= (values <= variable.transform.low) | (values >= variable.transform.high)
        count += int(wrong.sum())
        samples += int(wrong.any(1).sum())
        if wrong.any() and not first:
            sample, step = (int(i) for i in np.argwhere(wrong)[0])
            value = values[sample, step]
            first = f"sample {rows.start + sample}"
            first += "" if variable.static else f", step {step} (time {_time(data, step)})"
            if variable.kind == "words":
                word = _stored(data, variable, rows)[sample, step]
    where = f"{count:,} values in {samples:,} of {total:,} samples, first at {first}"
    name, transform = variable.name, variable.transform
    if variable.kind == "words":
        if pd.isna(word) or not str(word).strip():
            return ModelError(f"{name} is missing {where}", remedy="drop or repair those samples")
        return ModelError(
            f"{name} has unknown words, such as {word!r}: {where}",
            value=word,
            allowed=variable.categories,
        )
    if not math.isfinite(value):
        what = "missing (NaN)" if math.isnan(value) else "infinite"
        remedy = "drop or repair those samples"
        return ModelError(f"{name} has {what} values: {where}", value=value, remedy=remedy)
    if variable.kind == "integer" and (value != round(value) or abs(value) >= MAX_EXACT_INTEGER):
        return ModelError(
            f"{name} should hold whole numbers below 2^53, and has {value:g}: {where}",
            value=value,
            remedy="make it a real variable",
        )
    return ModelError(
        f"{name}: {transform.kind} needs values between {transform.low:.4g} and "
        f"{transform.high:.4g}, not {value:g}: {where}",
        value=value,
        remedy="choose wider ends or identity",
    )


def _time(data: xr.Dataset, step: int) -> str:
    if "time" not in data.variables:
        return str(step)
    when = data["time"].values[step]
    return f"{when:g}" if isinstance(when, np.floating) else str(when)
