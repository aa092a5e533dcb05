"""A codec as JSON, and the coordinates and types of the data it was made from.

Numbers survive exactly: JSON has the shortest text that reads back as the same float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.kinds.codec import plain, rules_in_config
from surrogate.kinds.trajectories import transforms as channels
from surrogate.kinds.trajectories.config_layout import (
    layout_from_config,
    layout_to_config,
    list_in,
    mapping_in,
    value_in,
)
from surrogate.kinds.trajectories.conservation import Relation, checked_laws
from surrogate.kinds.trajectories.integer_types import smallest_integer_type
from surrogate.kinds.trajectories.variables import MAX_EXACT_INTEGER, VALUE_KINDS, Variable

if TYPE_CHECKING:
    from surrogate.kinds.trajectories.codec import TimeSeriesCodec

KIND = "timeseries"  # of a codec, in its JSON


# --- values and coordinates -----------------------------------------------------------------------


def typed(variable: Variable, values: np.ndarray) -> np.ndarray:
    """Decoded values in the type of the data; counts that outgrow it get a wider one."""
    if variable.kind == "words":
        words: np.ndarray = np.array(variable.categories, dtype=object)[values]
        return words.astype(variable.dtype)
    if not np.isfinite(values).all() or (
        variable.kind == "integer" and _max_abs(values) >= MAX_EXACT_INTEGER
    ):
        raise ModelError(
            f"{variable.name} decodes to numbers beyond any data, such as {_max_abs(values):g}: "
            "sampling has diverged",
            value=_max_abs(values),
            remedy=["sample with more ", Setting("steps"), ", or train the model for longer"],
        )
    if variable.kind == "boolean":
        return values >= 0.5
    kind = np.dtype(variable.dtype)
    if kind.kind in "iu" and values.size:
        low, high = values.min(), values.max()
        if low < np.iinfo(kind).min or high > np.iinfo(kind).max:
            kind = np.dtype(smallest_integer_type(low, high))
    return values.astype(kind)


def _max_abs(values: np.ndarray) -> float:
    return float(np.abs(values).max(initial=0.0))


def coordinates(data: xr.Dataset) -> dict[str, dict[str, Any]]:
    """Coordinates of the data: the grid, others along time, and scalars."""
    found = {}
    for key, array in data.variables.items():
        if set(array.dims) <= {"time"}:
            packed = _pack(array)
            if packed is not None and (key in data.coords or not array.dims):
                found[str(key)] = packed
    attrs = plain(data["sample"].attrs) if "sample" in data.variables else {}
    found["sample"] = {"dims": ["sample"], "dtype": "int64", "values": [], "attrs": attrs}
    return found


def _pack(array: xr.Variable) -> dict[str, Any] | None:
    """An array as JSON; None for types that JSON cannot hold."""
    values = np.asarray(array.values)
    match values.dtype.kind:
        case "M" | "m":
            numbers: Any = values.view(np.int64).tolist()
        case "f" if not np.isfinite(values).all():
            return None
        case "i" | "u" | "f" | "b" | "U":
            numbers = values.tolist()
        case _:
            return None
    dims = [str(dim) for dim in array.dims]
    about = {"dims": dims, "dtype": str(values.dtype), "attrs": plain(array.attrs)}
    return {**about, "values": numbers}


def unpacked(coords: Mapping[str, Mapping[str, Any]], samples: int) -> dict[str, Any]:
    """Coordinates of a dataset with that many samples."""
    found: dict[str, Any] = {}
    for name, packed in coords.items():
        kind = np.dtype(packed["dtype"])
        if kind.kind not in "iufbMmU" or not set(packed["dims"]) <= {"sample", "time"}:
            raise ValueError(f"{name} has type {kind} and dimensions {packed['dims']}")
        values = np.arange(samples) if name == "sample" else _array(packed["values"], kind)
        found[name] = (tuple(packed["dims"]), values, dict(packed["attrs"]))
    return found


def _array(values: Any, kind: np.dtype[Any]) -> np.ndarray:
    if kind.kind in "Mm":
        return np.array(values, np.int64).view(kind)
    return np.array(values, kind)


# --- to JSON --------------------------------------------------------------------------------------


def to_config(codec: TimeSeriesCodec) -> dict[str, Any]:
    return {
        "kind": KIND,
        "variables": [_variable(each) for each in codec.variables],
        "relations": [
            {"dependent": r.dependent, "weights": dict(r.weights), "total": r.total}
            for r in codec.relations
        ],
        "mean": codec.mean.tolist(),
        "scale": codec.scale.tolist(),
        "fixed": [[None if math.isnan(v) else v for v in row] for row in codec.fixed.tolist()],
        "layout": layout_to_config(codec.signals),
        "coords": {name: dict(packed) for name, packed in codec.coords.items()},
        "about": codec.about,
        "ignored": list(codec.ignored),
        **({"rules": dict(codec.stated)} if codec.stated else {}),
        **({"gains": dict(codec.gains)} if codec.gains else {}),
        **({"known": dict(codec.known)} if codec.known else {}),
    }


def _variable(variable: Variable) -> dict[str, Any]:
    return {
        "name": variable.name,
        "kind": variable.kind,
        "static": variable.static,
        "dtype": variable.dtype,
        "dims": list(variable.dims),
        "attrs": dict(variable.attrs),
        "categories": list(variable.categories),
        "transform": variable.transform.to_config(),
        "total": variable.total,
        "low": variable.low if math.isfinite(variable.low) else None,
        "high": variable.high if math.isfinite(variable.high) else None,
        **({"levels": list(variable.levels)} if variable.levels else {}),
    }


# --- from JSON ------------------------------------------------------------------------------------


def from_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a codec; ModelError says which part of a config is wrong."""
    if not isinstance(config, Mapping) or config.get("kind") != KIND:
        kind = config.get("kind") if isinstance(config, Mapping) else config
        raise ModelError(
            f"this is no codec of time series: its kind is {kind!r}", value=kind, allowed=[KIND]
        )
    variables = tuple(_read_variable(each) for each in list_in(config, "variables"))
    names = [variable.name for variable in variables]
    if len(set(names)) < len(names) or not names:
        raise ModelError("in the codec, variables need names of their own")
    relations = _read_relations(list_in(config, "relations"), variables)
    layout = layout_from_config(mapping_in(config, "layout"))
    strange = set(layout.names) - set(names)
    if strange:
        raise ModelError(f"in the codec, the layout has a signal {strange.pop()!r} of no variable")
    dependent = {relation.dependent for relation in relations}
    rows = sum(len(v.channels) for v in variables if v.name not in dependent)
    shape = rows, layout.steps
    parts = {key: _read_array(config, key, shape) for key in ("mean", "scale", "fixed")}
    scale = parts["scale"]
    if not bool(parts["mean"].isfinite().all() & ((scale > 0) & scale.isfinite()).all()):
        raise ModelError("in the codec, means are finite numbers and scales are above 0")
    coords = mapping_in(config, "coords")
    try:
        grid = xr.Dataset(coords=unpacked(coords, 1)).sizes.get("time", layout.steps)
        if grid != layout.steps:
            raise ValueError(f"{grid} times where there are {layout.steps} steps")
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise ModelError(f"in the codec, coords cannot be read: {problem}") from None
    return {
        "variables": variables,
        "relations": relations,
        **parts,
        "signals": layout,
        "coords": coords,
        "about": _text(config, "about"),
        "ignored": tuple(str(name) for name in list_in(config, "ignored")),
        "stated": rules_in_config(config),
        "gains": _read_numbers(config, "gains"),
        "known": _read_numbers(config, "known"),
    }


def _read_numbers(config: Mapping[str, Any], key: str) -> dict[str, float]:
    """Numbers by the names of variables; earlier versions have none."""
    found = mapping_in(config, key) if key in config else {}
    if not all(isinstance(number, (int, float)) for number in found.values()):
        raise ModelError(f"in the codec, {key} are numbers", value=dict(found))
    return {str(name): float(number) for name, number in found.items()}


def _text(config: Any, key: str) -> str:
    return str(value_in(config, key, str, "text"))


def _flag(config: Any, key: str) -> bool:
    return bool(value_in(config, key, bool, "true or false"))


def _read_variable(config: Any) -> Variable:
    name, kind, dtype = (_text(config, key) for key in ("name", "kind", "dtype"))
    if kind not in VALUE_KINDS:
        raise ModelError(
            f"in the codec, {name} has the unknown kind {kind!r}", value=kind, allowed=VALUE_KINDS
        )
    try:
        letter: str = np.dtype(dtype).kind
    except TypeError:
        letter = "unknown"
    if letter not in {"words": "USO", "boolean": "b", "integer": "iuf", "real": "f"}[kind]:
        raise ModelError(f"in the codec, {name} cannot be {kind} of type {dtype!r}", value=dtype)
    static = _flag(config, "static")
    dims = tuple(str(dim) for dim in list_in(config, "dims"))
    total = _flag(config, "total")
    if not total and (set(dims) != ({"sample"} if static else {"sample", "time"})):
        raise ModelError(f"in the codec, {name} has the dimensions {dims}", value=dims)
    categories = tuple(str(word) for word in list_in(config, "categories"))
    if (kind == "words") != bool(categories) or len(set(categories)) < len(categories):
        raise ModelError(f"in the codec, {name} has the categories {categories}", value=categories)
    transform = channels.from_config(mapping_in(config, "transform"), name=name)
    attrs = mapping_in(config, "attrs")
    low, high = (
        value_in(config, key, (int, float, type(None)), "a number") for key in ("low", "high")
    )
    low, high = -math.inf if low is None else low, math.inf if high is None else high
    if not low <= high:
        raise ModelError(f"in the codec, {name} has the range [{low}, {high}]", value=(low, high))
    levels = list_in(config, "levels") if "levels" in config else []
    if not all(isinstance(value, (int, float)) for value in levels) or levels != sorted(levels):
        raise ModelError(f"in the codec, {name} has the levels {levels}", value=levels)
    own = name, kind, static, dtype, dims, attrs, categories, transform, total, low, high
    return Variable(*own, tuple(float(value) for value in levels))


def _read_relations(configs: list[Any], variables: Sequence[Variable]) -> tuple[Relation, ...]:
    series = {v.name for v in variables if v.kind != "words" and not v.static}
    statics = {v.name for v in variables if v.kind != "words" and v.static}
    found = []
    for config in configs:
        dependent, weights = _text(config, "dependent"), mapping_in(config, "weights")
        total = value_in(config, "total", (int, float, str), "a number or a name")
        checked_laws([{**weights, dependent: 1}])
        if not isinstance(total, str) and not abs(total) < MAX_EXACT_INTEGER:
            raise ModelError(f"in the codec, the total of {dependent!r} is {total:g}", value=total)
        if not {dependent, *weights} <= series or (isinstance(total, str) and total not in statics):
            raise ModelError(f"in the codec, the relation of {dependent!r} names no variable")
        found.append(Relation(dependent, dict(weights), total))
    dependents = [relation.dependent for relation in found]
    if len(set(dependents)) < len(found) or any({*r.weights} & {*dependents} for r in found):
        raise ModelError("in the codec, a species depends on itself or has two relations")
    return tuple(found)


def _read_array(config: Any, key: str, shape: tuple[int, int]) -> Tensor:
    try:
        filled = [[math.nan if v is None else v for v in row] for row in list_in(config, key)]
        found = torch.tensor(filled, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise ModelError(f"in the codec, {key!r} cannot be read: {problem}") from None
    if tuple(found.shape) != shape:
        raise ModelError(
            f"in the codec, {key!r} has shape {tuple(found.shape)} where {shape} is expected",
            value=tuple(found.shape),
        )
    return found
