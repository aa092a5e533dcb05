"""The layout of trajectories for formulas: series (N, T) on a grid, and columns (N,)."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import xarray as xr

from constraints import DataError, Layout, Signal
from constraints.ast.dates import canonical_date
from surrogate.errors import ModelError
from surrogate.kinds import signals
from surrogate.kinds.signals import tensors as tensors
from surrogate.kinds.trajectories.calendar import STEP_UNIT, step_times

REGRID = "interpolate, or train a model on this grid"


def layout(data: xr.Dataset, instances: int | None = None) -> Layout:
    """Series and columns, the grid, and the parameters of the simulation."""
    times, dates = _times(data), _dates(data)

    def signal(name: str, bounds: tuple[float, float]) -> Signal | None:
        array = data[name]
        dims = tuple(dim for dim in array.dims if dim != "instance")
        if set(dims) == {"sample", "time"} and array.dtype.kind in "iufb":
            whole, span = signals.is_whole(array), _span(array)
            return Signal(name, "series", (len(times),), whole, *bounds, span=span)
        if dims == ("sample",):
            return signals.column(data, name, bounds, optional=False)
        return None

    _check_numbers(data)
    found = signals.signals_in(data, signal)
    parameters = signals.parameters_in(data, [each.name for each in found])
    count = signals.instances_in(data, instances)
    return Layout(found, times, parameters, instances=count, dates=dates)


def _check_numbers(data: xr.Dataset) -> None:
    """DataError where the only series are words, which formulas cannot read."""
    series = {name: x for name, x in data.data_vars.items() if {"sample", "time"} <= set(x.dims)}
    words = [str(name) for name, x in series.items() if x.dtype.kind in "OUST"]
    if words and len(words) == len(data.data_vars):
        raise DataError(
            f"{', '.join(words)}: series of words alone cannot be learned",
            value=words,
            remedy="add a series of numbers, such as 0 or 1 for whether it is a certain word",
        )


def _span(array: xr.DataArray) -> float | None:
    """The range of a trajectory's values, the median over samples: prices of a month vary less
    than those of all years."""
    overall = signals.span_of(array)
    steps = max(1, array.size // max(1, array.sizes["sample"]))
    some = array.isel(sample=slice(max(1, signals.SPAN_VALUES // steps)))
    values = np.asarray(signals.read(some.transpose("sample", ...)), float)
    values = values.reshape(some.sizes["sample"], -1) if some.size else np.zeros((0, 1))
    with np.errstate(invalid="ignore"):
        ranges = values.max(1) - values.min(1)
    ranges = ranges[np.isfinite(ranges)]
    typical = float(np.median(ranges)) if ranges.size else 0.0
    return typical if typical > 0 else overall


def _times(data: xr.Dataset) -> tuple[float, ...]:
    """The grid as numbers; dates count in their unit, or in seconds, from the first."""
    if "time" not in data.variables:
        return tuple(float(i) for i in range(data.sizes["time"]))
    times = np.asarray(data["time"].values)
    try:
        if times.dtype.kind == "M" and STEP_UNIT in data["time"].attrs:
            times = step_times(times, str(data["time"].attrs[STEP_UNIT]))
        elif times.dtype.kind == "M":
            times = (times - times[0]) / np.timedelta64(1, "s")
        elif times.dtype.kind == "m":
            times = times / np.timedelta64(1, "s")
        elif times.dtype.kind == "O":  # calendars of their own
            times = np.array([(each - times[0]).total_seconds() for each in times])
        grid = times.astype(np.float64)
    except (AttributeError, TypeError, ValueError):
        raise DataError(
            f"the times {times[:3]} are neither numbers nor dates", value=times[:3].tolist()
        ) from None
    if not np.isfinite(grid).all():
        raise DataError("some of the times are missing", remedy="drop or repair them")
    return tuple(grid.tolist())


def _dates(data: xr.Dataset) -> tuple[str, ...]:
    """The dates of the grid, if it has some."""
    times = np.asarray(data["time"].values) if "time" in data.variables else np.empty(0)
    if times.dtype.kind != "M" or np.isnat(times).any() or (np.diff(times.view("i8")) <= 0).any():
        return ()
    return tuple(canonical_date(each) for each in times)


def same_grid(own: tuple[float, ...], other: tuple[float, ...]) -> None:
    """ModelError unless two grids have the same times."""
    if len(own) != len(other):
        raise ModelError(
            f"the dataset has {len(other)} times, the model {len(own)}",
            value=len(other),
            remedy=REGRID,
        )
    gap = min((b - a for a, b in pairwise(own)), default=1.0)
    for step, (a, b) in enumerate(zip(own, other, strict=True)):
        if abs(a - b) > 1e-6 * gap:
            raise ModelError(
                f"the grids differ, first at step {step}: time {b:g} in the dataset, {a:g} in the "
                "model",
                value=b,
                remedy=REGRID,
            )
