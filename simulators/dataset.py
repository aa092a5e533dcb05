"""Trajectories as a labelled dataset: recorded variables, and attributes that describe them."""

from __future__ import annotations

import json
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any

import numpy as np
import xarray as xr

from simulators import rates
from simulators.engine import Engine

INTEGERS = (np.int8, np.int16, np.int32, np.int64)


def smallest_type(largest: float) -> np.dtype[Any]:
    """The smallest signed integer type that holds 0..largest."""
    return np.dtype(next(kind for kind in INTEGERS if largest <= np.iinfo(kind).max))


def known_types(engine: Engine) -> dict[str, np.dtype[Any]]:
    """Types of species that a conserved total bounds; the others follow from the counts."""
    network, start = engine.network, engine.start
    if network.total is None or not engine.discrete or start.total_varies:
        return {}
    members = tuple(network.total.coefficients)
    places = [network.variables.index(name) for name in members]
    total = start.states(0, 1)[0, places].sum()
    return dict.fromkeys(members, smallest_type(float(total)))


def block(
    engine: Engine,
    first: int,
    out: np.ndarray,
    types: Mapping[str, np.dtype[Any]] = MappingProxyType({}),
) -> dict[str, np.ndarray]:
    """Recorded variables of one block: (n, T) species and rules, (n,) parameters that vary."""
    parameters = engine.start.parameters(first, out.shape[0])
    varying = {name: np.asarray(parameters[name]) for name in engine.start.varying}
    return recorded(engine, out, varying, types)


def recorded(
    engine: Engine,
    out: np.ndarray,
    varying: Mapping[str, np.ndarray],
    types: Mapping[str, np.dtype[Any]] = MappingProxyType({}),
) -> dict[str, np.ndarray]:
    """Recorded variables of trajectories (n, V + L, T) with these parameters (n,) that vary."""
    network = engine.network
    count = out.shape[0]
    made: dict[str, np.ndarray] = {}
    for v, name in enumerate(network.variables):
        counts = name in network.species and engine.discrete
        values = out[:, v]
        kind = types.get(name) if counts else values.dtype
        made[name] = values.astype(kind or smallest_type(float(values.max(initial=0.0))))
    for row, text in enumerate(engine.latches, len(network.variables)):
        values = out[:, row]
        if (values == np.round(values)).all():
            values = values.astype(smallest_type(float(np.abs(values).max(initial=0.0))))
        made[latched(text)] = np.array(values)
    if network.rules:
        columns = {name: value[:, None] for name, value in varying.items()}
        states = dict(zip(network.variables, out.transpose(1, 0, 2), strict=False))
        known = {
            **engine.start.parameters(0, 1),
            **columns,
            **states,
            "time": engine.times[None, :],
        }
        for name, rule in network.inlined_rules.items():
            value = np.asarray(rates.evaluate(rule, known), np.float64)
            made[name] = np.array(np.broadcast_to(value, (count, engine.times.size)))
    for name, value in varying.items():
        if name not in made:
            made[name] = value.astype(np.float64)
    return made


def latched(text: str) -> str:
    """The name of the variable with the greatest value of an expression since the time before."""
    return f"max({text})"


def frame(
    engine: Engine, variables: Mapping[str, np.ndarray], samples: int, first: int
) -> xr.Dataset:
    """Dataset over (sample, time) with the attributes of the contract."""
    network = engine.network
    time_attrs = {"long_name": "model time", "axis": "T", "units": network.time_unit}
    sample_attrs = {"standard_name": "realization", "long_name": "trajectory", "units": "1"}
    index = np.arange(first, first + samples, dtype=np.int64)
    data = {
        name: (("sample", "time") if value.ndim == 2 else ("sample",), value, _attrs(engine, name))
        for name, value in variables.items()
    }
    coords = {
        "sample": ("sample", index, sample_attrs),
        "time": ("time", engine.times, time_attrs),
    }
    return xr.Dataset(data, coords, attributes(engine))


def _attrs(engine: Engine, name: str) -> dict[str, str]:
    network = engine.network
    if name in network.species:
        return {"long_name": f"count of {name}", "units": "1"}
    if name in network.rules:
        return {"long_name": f"{name} = {network.rules[name]}"}
    for text in engine.latches:
        if name == latched(text):
            return {"long_name": f"greatest {text} since the time before", "latch": text}
    return {"long_name": f"parameter {name}"}


def attributes(engine: Engine) -> dict[str, Any]:
    """Global attributes: enough to reproduce the file."""
    network = engine.network
    config = {
        "network": network.to_dict(),
        **engine.start.describe(),
        "conservation_laws": [dict(law.coefficients) for law in network.conservation_laws],
        "method": engine.method,
        "exact": engine.exact,
        "discrete": engine.discrete,
    }
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "Conventions": "CF-1.11",
        "title": f"{network.title or network.name}: simulated trajectories",
        "source": f"surrogate-toolkit {_version('surrogate-toolkit')}, method {engine.method}",
        "references": network.reference,
        "history": f"{stamp} {shlex.join([command_name(), *sys.argv[1:]])}",
        "surrogate_seed": str(engine.seed),
        "surrogate_config": json.dumps(config),
        "surrogate_versions": json.dumps(
            {"python": platform.python_version()}
            | {name: _version(name) for name in ("surrogate-toolkit", "numpy", "numba", "xarray")}
        ),
    }


def command_name() -> str:
    """The name of the program, without its folder."""
    return sys.argv[0].replace("\\", "/").rsplit("/", 1)[-1] or "python"


@cache
def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
