"""The trial that decides which cycles of the calendar are learned (`cycles`).

A series is regressed on the last values of all, with and without the harmonics of a cycle (harmonic
regression), and judged by the log-likelihood of what was left out, under a Laplace density of the
residuals: windows are cut into FOLDS stretches, each is predicted from the others. A cycle stays if
it gains MIN_GAIN nats a value, and twice as much as the standard error over so many windows as
share no step. Cycles are tried together, the best one first. Series that are never negative are
taken by their logarithms, since seasons of counts and loads are factors.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from surrogate.errors import ModelError
from surrogate.io.attributes import CALENDAR, OVERLAP
from surrogate.kinds.trajectories.calendar import CALENDAR_UNITS, TRADING_DAYS, UNIT_SECONDS
from surrogate.kinds.trajectories.cycles import DAY, SECONDS, Cycle, completed, dates_of
from surrogate.kinds.trajectories.prediction import LAGS, stacks
from surrogate.kinds.trajectories.variables import NUMBER_KINDS, Variable, read, survey

AUTO, NONE = "auto", "none"
MIN_GAIN = 0.003  # nats a value
MIN_PERIODS = 2  # of a cycle, that the windows must span
MAX_PLACES = 96  # of a day: quarters of an hour
SMALL_SHARE = 0.01  # of the mean of real numbers, that is added before logarithms are taken
MAX_WINDOWS = 2_000  # of a trial
FOLDS = 5


def with_cycles(
    data: xr.Dataset,
) -> tuple[xr.Dataset, dict[str, float]]:
    """The dataset with a variable for each cycle that its attribute CALENDAR names, or else that
    wins its trial, and what those gained, in nats a value."""
    wanted = str(data.attrs.get(CALENDAR, AUTO))
    able = [] if wanted == NONE else possible(data)
    if wanted == AUTO:
        gains = trial(data, able) if able else {}
        chosen = [cycle for cycle in able if cycle.name in gains]
        return completed(data, chosen), {each.variable: gains[each.name] for each in chosen}
    named = [] if wanted == NONE else [each.strip() for each in wanted.split(",")]
    known = {cycle.name: cycle for cycle in able}
    for name in named:
        if name not in known:
            raise ModelError(
                f"the {name} cannot be learned of these windows: it takes a column of dates, "
                f"windows that span two or more of it, and several places in it to begin at",
                value=name,
                allowed=[*known, NONE],
            )
    return completed(data, [known[name] for name in named]), {}


def possible(data: xr.Dataset) -> list[Cycle]:
    """The cycles that windows with dates may have: longer than a few steps, and of which they begin
    at several places."""
    starts = dates_of(data)
    if starts is None or data.sizes["time"] < 2 or data["time"].dtype.kind not in "iuf":
        return []
    unit = str(data["time"].attrs.get("units", ""))
    seconds = _seconds(unit)
    if seconds is None:
        return []
    step = float(np.diff(data["time"].values[:2])[0]) * seconds
    span = float((starts.max() - starts.min()) / np.timedelta64(1, "s"))
    found = []
    for name, period in SECONDS.items():
        places = _number_of_places(name, unit, step)
        if places is None or span < MIN_PERIODS * period:
            continue
        cycle = Cycle(name, period / seconds, places)
        if cycle.variable not in data.variables and len(np.unique(cycle.begins(starts))) > 1:
            found.append(cycle)
    return found


def _seconds(unit: str) -> float | None:
    """Of a unit of times."""
    if unit == TRADING_DAYS:
        return 7 / 5 * DAY
    if unit in CALENDAR_UNITS:
        return CALENDAR_UNITS[unit] * DAY
    return float(UNIT_SECONDS[unit]) if unit in UNIT_SECONDS else None


def _number_of_places(name: str, unit: str, step: float) -> int | None:
    """How many places a cycle has for steps of so many seconds; None where it has too few."""
    steps = round(SECONDS[name] / step)
    if steps < 4:
        return None
    if name == "year":
        return 52 if steps >= 50 else 12 if steps >= 12 else 4
    if unit == TRADING_DAYS:
        return None  # holidays move its weekdays
    return min(steps, MAX_PLACES) if name == "day" else 7 * max(1, min(24, round(DAY / step)))


# --- the trial ------------------------------------------------------------------------------------


def trial(data: xr.Dataset, cycles: Sequence[Cycle]) -> dict[str, float]:
    """Gains of the cycles that are to be learned, the best one first."""
    series = [v for v in survey(data)[1] if v.kind in NUMBER_KINDS and not v.static]
    count = data.sizes["sample"]
    if not series or count < 2 * FOLDS or data.sizes["time"] <= LAGS:
        return {}
    own = _Regressors.of(data, series, cycles, np.arange(count)[:: -(-count // MAX_WINDOWS)])
    apart = max(2.0, count / (1 + float(data.attrs.get(OVERLAP, 0))))
    found: dict[str, float] = {}
    score = own.scores([])
    while len(found) < len(cycles):
        others = [cycle.name for cycle in cycles if cycle.name not in found]
        tried = {name: own.scores([*found, name]) - score for name in others}
        best = max(tried, key=lambda name: float(tried[name].mean()))
        gain, error = float(tried[best].mean()), float(tried[best].std()) / math.sqrt(apart)
        if gain < max(MIN_GAIN, 2 * error):
            break
        found[best], score = gain, score + tried[best]
    return found


@dataclass(frozen=True)
class _Regressors:
    """Of n windows: values z (n, T, V), 1 and lagged z (n, T, L), harmonics by cycle (n, T, F)."""

    z: Tensor
    lagged: Tensor
    waves: Mapping[str, Tensor]

    @classmethod
    def of(
        cls,
        data: xr.Dataset,
        series: Sequence[Variable],
        cycles: Sequence[Cycle],
        rows: np.ndarray,
    ) -> _Regressors:
        z = torch.stack([_stabilised(read(data, v, rows), v) for v in series], -1)
        starts = dates_of(data)
        assert starts is not None
        times = torch.as_tensor(data["time"].values - data["time"].values[0])
        waves = {}
        for cycle in cycles:
            begun = torch.as_tensor(cycle.begins(starts[rows]))[:, None]
            waves[cycle.name] = torch.stack(cycle.harmonics(begun, times), -1).double()
        lagged = [torch.ones_like(z[..., :1]), stacks(z)[..., len(series) :]]
        return cls(z, torch.cat(lagged, -1), waves)

    def scores(self, names: Sequence[str]) -> Tensor:
        """Mean log-likelihood of a value in each window, (n,), by the harmonics of some cycles."""
        x = torch.cat([self.lagged, *(self.waves[name] for name in names)], -1)[:, LAGS:]
        scale = x.flatten(0, 1).abs().mean(0).clamp_min(1e-12)
        x, z = x / scale, self.z[:, LAGS:]
        found = z.new_zeros(len(z))
        for some in torch.arange(len(z)).tensor_split(FOLDS):
            others = torch.ones(len(z), dtype=torch.bool)
            others[some] = False
            past, target = x[others].flatten(0, 1), z[others].flatten(0, 1)
            weights = torch.linalg.lstsq(past, target, driver="gelsd").solution
            spread = (target - past @ weights).abs().mean(0).clamp_min(1e-12)
            rest = (z[some] - x[some] @ weights).abs()
            found[some] = -(torch.log(2 * spread) + rest / spread).mean((1, 2))
        return found


def _stabilised(values: Tensor, variable: Variable) -> Tensor:
    """Values, log(y + c) if all are at least 0; c is one, or small where numbers are real."""
    if values.min() < 0:
        return values
    small = SMALL_SHARE * float(values.mean().clamp_min(1e-9))
    return torch.log(values + (1.0 if variable.kind == "integer" else small))
