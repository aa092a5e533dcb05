"""Observed series as statements about steps: rows of a table, at times of the model's grid.

Times are dates, if the grid has dates; steps, in a column of that name; or model times. Missing
values and times without a row are not observed. What is off the grid is refused with the nearest
times, or moved there on request.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from constraints import Formula, Layout
from constraints.ast.dates import moment
from constraints.compile.names import at_step
from constraints.errors import Action, FormulaError, Setting
from surrogate.errors import ModelError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds.observed import Expected, Observed, Source, joined, sources
from surrogate.kinds.trajectories.date_formats import read_dates
from surrogate.kinds.trajectories.records import GRID_TOLERANCE

TIME_NAMES = ("time", "date", "step", "day", "week", "month", "year", "t")  # of columns
STEP = "step"
GRID_SLACK = 1e-6  # of a step, by which times may be off the grid
MAX_SHOWN = 3  # times that an error lists


@dataclass(frozen=True)
class Reading:
    """One observed number: its column with what that observes, its step, and the statement."""

    column: str
    source: str
    step: int
    value: float
    statement: Formula


def observations(data: Any, layout: Layout, options: ObservationOptions) -> Observed:
    """What a DataFrame, Series or Dataset of observed series says about trajectories."""
    table = _Table.read(data, layout, options)
    found, early = table.readings(options)
    every: dict[str, list[Any]] = {source.column: [] for source in table.sources}
    steps: dict[str, list[int]] = {source.column: [] for source in table.sources}
    for each in found:
        every[each.column].append(each.statement)
        steps[each.column].append(each.step)
    if not found:
        raise ModelError(
            "nothing was observed: all values are missing, or none is that early",
            value=options.upto,
            remedy=("give data with values, or a later ", Setting("upto")),
        )
    grid = table.grid
    notes = [
        f"observed: {source}, {_spelled(at, grid)}"
        for source in table.sources
        if (at := steps[source.column])
    ]
    twice = sorted({step for at in steps.values() for step in at if at.count(step) > 1})
    notes += [
        f"several values at {grid.named(step)} count as independent observations"
        for step in twice[:MAX_SHOWN]
    ]
    if early:
        notes.append(f"not observed: {early:,} row{'s' * (early > 1)} before {grid.texts[0]}")
    ignored = [name for name in table.columns if name not in every]
    notes += [f"not observed: {', '.join(ignored)}"] if ignored else []
    record = {
        "time": table.when,
        "columns": {source.column: str(source.term) for source in table.sources},
        "noise": {s.column: str(s.noise) for s in table.sources if s.noise is not None},
        "nearest": options.nearest,
        "upto": options.upto,
        "every": options.every,
        "last_step": max(step for at in steps.values() for step in at),
    }
    return Observed(joined(every), tuple(notes), record)


def readings(
    data: Any, layout: Layout, options: ObservationOptions, *, within: bool = False
) -> list[Reading]:
    """Observed numbers one by one; `within`: those after the last time of the grid are left out."""
    table = _Table.read(data, layout, options)
    if within and options.upto is None:
        last = table.grid.texts[-1] if table.grid.dated else str(table.grid.times[-1])
        options = replace(options, upto=last)
    return table.readings(options)[0]


@dataclass(frozen=True)
class _Table:
    """Observed data, the column of its times, the grid in its unit, and what columns observe."""

    frame: pd.DataFrame
    when: str
    columns: list[str]
    sources: list[Source]
    series: list[str]
    grid: Grid

    @classmethod
    def read(cls, data: Any, layout: Layout, options: ObservationOptions) -> _Table:
        frame = as_frame(data)
        when = time_column(frame, options.time)
        series = [signal.name for signal in layout.signals if signal.kind == "series"]
        known = [*layout.names, *layout.parameters]
        columns = [str(name) for name in frame if name != when and _numeric(frame[name])]
        _check_numbers(frame, options.columns or {})
        found = sources(columns, options.columns or {}, options.noise, known)
        return cls(frame, when, columns, found, series, Grid.of(layout, frame[when], when))

    def readings(self, options: ObservationOptions) -> tuple[list[Reading], int]:
        """Observed numbers, and how many rows are before the grid."""
        places, early = self.grid.places(self.frame[self.when], self.when, options)
        found = []
        for source in self.sources:
            values = self.frame[source.column].to_numpy(np.float64)
            for row, step in places:
                if np.isnan(values[row]):
                    continue
                made = source.statement(
                    float(values[row]),
                    lambda node, step=step: at_step(node, self.series, step),  # type: ignore[misc]
                    f"at {self.when} {self.frame[self.when].iloc[row]}",
                )
                found.append(Reading(source.column, str(source), step, float(values[row]), made))
        return found, early


def _spelled(steps: Sequence[int], grid: Grid) -> str:
    first, last = grid.named(steps[0]), grid.named(steps[-1])
    return f"1 value at {first}" if len(steps) == 1 else f"{len(steps)} values at {first} to {last}"


def _check_numbers(frame: pd.DataFrame, columns: Iterable[str]) -> None:
    """ModelError for a column of words where numbers were observed."""
    for name in columns:
        if name in frame and not _numeric(frame[name]):
            known = pd.to_numeric(frame[name], errors="coerce").isna() & frame[name].notna()
            row = int(known.to_numpy().argmax())
            raise ModelError(
                f"{name} of the observed data holds {str(frame[name].iloc[row])!r} in row {row}, "
                "which is no number",
                value=str(frame[name].iloc[row]),
                remedy="leave it empty where nothing was observed",
            )


def as_frame(data: Any) -> pd.DataFrame:
    """Observed data as a table with the times in a column."""
    if isinstance(data, Expected):
        return pd.DataFrame(data.rows())
    if isinstance(data, xr.Dataset):
        if data.sizes.get("sample", 1) != 1:
            raise ModelError(
                f"{data.sizes['sample']} samples were given where one series was observed",
                value=data.sizes["sample"],
                remedy="choose one: data.isel(sample=0)",
            )
        data = data.squeeze("sample", drop=True) if "sample" in data.dims else data
        table: pd.DataFrame = data.to_dataframe().reset_index()
        return table
    if isinstance(data, pd.Series):
        data = data.to_frame(data.name or "value")
    if not isinstance(data, pd.DataFrame):
        raise ModelError(
            f"observed data are a DataFrame, a Series, a Dataset or a file, not "
            f"{type(data).__name__}",
            value=type(data).__name__,
        )
    if isinstance(data.index, pd.RangeIndex):
        return data
    if data.index.name is None and data.index.dtype.kind in "iu" and _time_names(data):
        return data.reset_index(drop=True)  # numbers of rows that were chosen of a longer table
    name = data.index.name or ("date" if data.index.dtype.kind == "M" else "time")
    return data.reset_index(names=[str(name)]) if name not in data else data.reset_index(drop=True)


def observed_dates(data: Any, options: ObservationOptions) -> np.ndarray | None:
    """The dates of observed data, ascending, each once; None where times are numbers."""
    frame = as_frame(data)
    when = time_column(frame, options.time)
    if _numeric(frame[when]):
        return None
    dates = _dates(frame[when].dropna(), when)
    return np.unique(dates[~np.isnat(dates)]) if len(dates) else None


def _dates(column: pd.Series[Any], name: str) -> np.ndarray:
    """A column of dates, (N,) datetime64[us]; NaT where they are missing."""
    dates = column.to_numpy()
    dates = dates if dates.dtype.kind == "M" else read_dates(column, name)[0]
    return dates.astype("datetime64[us]")


def time_column(frame: pd.DataFrame, requested: str | None) -> str:
    """The column of times: the requested one, or one with a usual name."""
    names = [str(name) for name in frame]
    if requested is not None and requested not in names:
        raise ModelError(
            f"the observed data have no column {requested!r}", value=requested, allowed=names
        )
    found = requested or next(iter(_time_names(frame)), None)
    if found is None:
        raise ModelError(
            "no column of the observed data is a time by its name",
            value=names,
            allowed=list(TIME_NAMES),
            remedy=("name it: ", Setting("time", "COLUMN")),
        )
    return found


def _time_names(frame: pd.DataFrame) -> list[str]:
    """Columns that are times by their names, the likeliest first."""
    lower = {str(name).lower(): str(name) for name in reversed(list(frame))}
    return [lower[each] for each in TIME_NAMES if each in lower]


def _numeric(column: pd.Series[Any]) -> bool:
    return column.dtype.kind in "iufb"


@dataclass(frozen=True)
class Grid:
    """The times (T,) that observations are placed on, in the unit of the observed column."""

    times: np.ndarray
    texts: Sequence[str]  # how errors and notes name them
    model_times: np.ndarray
    dated: bool = False

    @classmethod
    def of(cls, layout: Layout, column: pd.Series[Any], name: str) -> Grid:
        """The grid of a layout: as dates, as steps or as model times, whatever the column holds."""
        model_times = np.asarray(layout.times)
        if not _numeric(column):
            if not layout.dates:
                raise ModelError(
                    f"{name} of the observed data holds dates, and the model counts times from 0",
                    value=str(column.iloc[0]) if len(column) else name,
                    remedy=Action(
                        'say when they begin: start="1978-01-22", unit="day"',
                        "say when they begin: --start 1978-01-22 --unit day",
                    ),
                )
            dates = np.array(layout.dates, "datetime64[us]")
            return cls(_seconds(dates), layout.dates, model_times, dated=True)
        if name.lower() == STEP:
            steps = np.arange(len(layout.times))
            return cls(steps.astype(np.float64), [f"step {k}" for k in steps], model_times)
        return cls(model_times, [f"time {time:g}" for time in layout.times], model_times)

    def named(self, step: int) -> str:
        return self.texts[step]

    def places(
        self, column: pd.Series[Any], name: str, options: ObservationOptions
    ) -> tuple[list[tuple[int, int]], int]:
        """(row, step) of the rows that count, in order of time; and how many are too early: the
        record of a series may begin before the window does."""
        at = self._numbers(column, name)
        rows = np.flatnonzero(np.isfinite(at) & (at <= self._last(options.upto)))
        rows = rows[np.argsort(at[rows], kind="stable")]
        gap = np.diff(self.times).min(initial=np.inf) if len(self.times) > 1 else 1.0
        early = int((at[rows] < self.times[0] - gap / 2).sum()) if self.dated else 0
        rows = rows[early:]
        rows = rows[np.isin(at[rows], np.unique(at[rows])[:: options.every])]
        nearest = np.abs(at[rows, None] - self.times).argmin(1)
        slack = GRID_TOLERANCE if self.dated else GRID_SLACK
        off = np.abs(at[rows] - self.times[nearest]) > slack * gap
        far = (at[rows] > self.times[-1] + gap / 2) | (at[rows] < self.times[0] - gap / 2)
        if far.any():
            bad = column.iloc[rows[far][0]]
            raise ModelError(
                f"{int(far.sum())} of the observed times lie outside of the model's, which are "
                f"from {self.texts[0]} to {self.texts[-1]}: {name} {bad}",
                value=str(bad),
                remedy=("leave them out (", Setting("upto"), ")", *self._other_start()),
            )
        if off.any() and not options.nearest:
            shown = [
                f"{column.iloc[row]} (nearest {self.texts[step]})"
                for row, step in zip(rows[off][:MAX_SHOWN], nearest[off], strict=False)
            ]
            zoned = _zone_note(column.iloc[rows[off][0]])
            raise ModelError(
                f"{int(off.sum())} of the observed times are not on the model's grid: "
                f"{', '.join(shown)}{zoned}",
                value=str(column.iloc[rows[off][0]]),
                remedy=("move them to the nearest times: ", Setting("nearest", True)),
            )
        return list(zip(rows.tolist(), nearest.tolist(), strict=True)), early

    def _other_start(self) -> tuple[str | Setting, ...]:
        """Another remedy of data that reach beyond a grid of dates."""
        return (", or begin later (", Setting("start"), ")") if self.dated else ()

    def _numbers(self, column: pd.Series[Any], name: str) -> np.ndarray:
        """The column (N,) in the unit of the grid; NaN where a time is missing."""
        if _numeric(column):
            return column.to_numpy(np.float64)
        dates = _dates(column, name)
        return np.where(np.isnat(dates), np.nan, _seconds(dates))

    def _last(self, upto: str | float | None) -> float:
        """The last time that counts, in the unit of the grid: also of dates a model time."""
        if upto is None:
            return np.inf
        try:
            number = float(upto)
            return float(np.interp(number, self.model_times, self.times)) if self.dated else number
        except ValueError:
            pass
        try:
            if self.dated:
                return float(_seconds(np.array([moment(upto)], "datetime64[us]"))[0])
        except FormulaError:
            pass
        raise ModelError(
            f"{upto!r} is no time of the observed data",
            value=upto,
            remedy=("give ", Setting("upto"), " as a date" * self.dated or " as a number"),
        )


def _zone_note(date: Any) -> str:
    """What a date with a time zone is in UTC, in which it is read; empty without one."""
    if isinstance(date, (int, float, np.number)):
        return ""
    try:
        stamp = datetime.fromisoformat(str(date))
    except ValueError:
        return ""
    if not stamp.utcoffset():
        return ""
    moved = stamp.astimezone(UTC).strftime("%Y-%m-%d %H:%M")
    return f"; dates with a time zone are read in UTC: {date} is {moved}, leave out the offset"


def _seconds(dates: np.ndarray) -> np.ndarray:
    return dates.astype("datetime64[us]").astype(np.int64) / 1e6
