"""The date of the first step: samples of windows, which begin anywhere, get a calendar.

Works on the JSON description of a codec, so that a scenario is checked before torch is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.trajectories.calendar import (
    CALENDAR_UNITS,
    DATES,
    SINCE_START,
    TRADING_DAYS,
    UNIT_SECONDS,
    Clock,
    dates_from,
)
from surrogate.kinds.trajectories.config_layout import list_in, mapping_in
from surrogate.kinds.trajectories.cycles import Cycle
from surrogate.kinds.trajectories.observations import observed_dates


def starting(
    config: Mapping[str, Any],
    start: Any = None,
    unit: str | None = None,
    observed: tuple[Any, ObservationOptions] | None = None,
) -> dict[str, Any]:
    """The description of a codec whose samples have dates, the first of them `start`; `unit`: of
    its times, day or week, if it is not the data's own. `observed`: observed data, and how they are
    read (`ObservationOptions`); windows begin on their first date if there is no `start`."""
    layout, coords = mapping_in(config, "layout"), mapping_in(config, "coords")
    seen = None if observed is None else observed_dates(*observed)
    if start is None:
        if seen is None or "dates" in layout or not _begins_anywhere(coords):
            return dict(config)
        start = seen[0]
    if "dates" in layout:
        own = list_in(layout, "dates")
        raise ModelError(
            f"the samples of this model have dates already, from {own[0]} to {own[-1]}",
            value=str(start),
            remedy="leave out start, or train on windows of a series, which may begin anywhere",
        )
    time = coords.get("time") or {}
    attrs = time.get("attrs") or {}
    unit = _unit(unit, attrs)
    dates = dates_from(start, [float(each) for each in list_in(layout, "times")], unit)
    if unit == TRADING_DAYS and seen is not None:
        dates = _without_holidays(dates, seen)
    packed = {
        "dims": ["time"],
        "dtype": DATES,
        "values": dates.view(np.int64).tolist(),
        "attrs": Clock(None, unit).dated_attrs,
    }
    known = {}
    for variable in list_in(config, "variables"):
        if (cycle := Cycle.of(variable.get("attrs") or {})) is not None:
            known[str(variable["name"])] = float(cycle.begins(dates[:1])[0])
    return {
        **config,
        "layout": {**layout, "dates": [str(day) for day in dates]},
        "coords": {**coords, "time": packed},
        **({"known": known} if known else {}),
    }


def dated(data: xr.Dataset, start: Any, unit: str | None = None) -> xr.Dataset:
    """Trajectories with dates on the time axis, the first of them `start`."""
    unit = _unit(unit, data["time"].attrs)
    dates = dates_from(start, data["time"].values.tolist(), unit)
    return data.assign_coords(time=("time", dates, Clock(None, unit).dated_attrs))


def _unit(requested: str | None, attrs: Mapping[str, Any]) -> str:
    """The unit of times: the requested one, or that of the time axis."""
    if requested is not None and not {requested, f"{requested}s"} & {
        *UNIT_SECONDS,
        *CALENDAR_UNITS,
    }:
        raise ModelError(
            f"unknown unit {requested!r}",
            value=requested,
            allowed=[*UNIT_SECONDS, *CALENDAR_UNITS],
        )
    unit = str(attrs.get("units", "1")) if requested is None else requested
    return f"{unit}s" if f"{unit}s" in UNIT_SECONDS else unit  # day, as simulators may say


def _begins_anywhere(coords: Mapping[str, Any]) -> bool:
    """Whether samples are windows of a series with dates."""
    attrs = (coords.get("time") or {}).get("attrs") or {}
    known = str(attrs.get("units")) in (*UNIT_SECONDS, *CALENDAR_UNITS, TRADING_DAYS)
    return known and SINCE_START in str(attrs.get("long_name"))


def _without_holidays(dates: np.ndarray, observed: np.ndarray) -> np.ndarray:
    """Trading days (T,) that are those of observed data (n,) as far as these reach: the holidays
    among them are known."""
    seen = observed[observed >= dates[0]][: len(dates)]
    if not len(seen) or seen[0] != dates[0]:
        return dates
    after = np.arange(1, len(dates) - len(seen) + 1)
    later = np.busday_offset(seen[-1].astype("datetime64[D]"), after, roll="backward")
    return np.concatenate([seen, later.astype(DATES)])
