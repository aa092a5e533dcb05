"""Forecasts in the table of inference: the last part of a series is held out, windows of the first
part are learned, and windows of the last are forecast from their first steps.

    python benchmarks/inference_forecasts.py [--only measles ...] [--origins 40] [--preset default]

measles     London, weekly; 1978-1987 held out, eight weeks given, the next twelve forecast
load        ETTh1, hourly oil temperature; the last fifth held out, 12 hours given, the next 12
demand      hourly demand of a simulated town: a daily cycle, weekends, weather; the same split
seasonal    a simulated autoregression of monthly values with a season; 12 months given, 12 ahead
stock       prices of one share; the last fifth held out, 16 days given, the next 8 forecast

Every row is compared with seasonal naive and climatology, in levels and in logarithms, the better
one of each, and random walks where there is no season (`forecast_baselines`).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import forecast_baselines
import forecast_scores
import numpy as np
import pandas as pd
import report
import torch
from report import Target

import surrogate as sg
from surrogate.kinds.trajectories.from_table import trajectories_from_table

ROOT = Path(__file__).parents[1]
SEED = 100
DRAWS = 500
ORIGINS = 40
MEASLES, ETTH, STOCK = "measles_england_wales.csv", "ETTh1.csv.gz", "stock_data.csv"
COVERAGE = 85.0, 95.0  # percent of held-out values in bands of 90 %


@dataclass(frozen=True)
class Task:
    """A series of one column, and the part of it that is forecast."""

    name: str
    frame: pd.DataFrame  # time, value; the whole record
    time: str | None
    column: str
    given: int
    ahead: int
    held_out: int  # rows at the end
    season: float | None  # in steps
    read: dict[str, Any] = field(default_factory=dict)  # further options of reading

    @property
    def window(self) -> int:
        return self.given + self.ahead

    @property
    def values(self) -> np.ndarray:
        return self.frame[self.column].to_numpy(np.float64)

    def origins(self, count: int) -> list[int]:
        """Rows at which windows of the held-out part begin, evenly spread, without gaps."""
        first, last = len(self.frame) - self.held_out, len(self.frame) - self.window
        every = np.unique(np.linspace(first, last, count).astype(int))
        values = self.values
        return [k for k in every.tolist() if np.isfinite(values[k : k + self.window]).all()]


def learned(task: Task, options: argparse.Namespace) -> tuple[sg.Surrogate, float]:
    """The model of the windows before the held-out part, and the CPU seconds that it took."""
    place = None if options.models is None else options.models / task.name
    if place is not None and place.exists():
        return sg.load(place), 0.0
    columns = [task.column, *([] if task.time is None else [task.time])]
    past = task.frame[columns].iloc[: len(task.frame) - task.held_out]
    how = {"time": task.time, "columns": [task.column], "window": task.window, "stride": 1}
    data, understood = trajectories_from_table(past, **how, **task.read)
    print(f"{task.name}: {understood}", flush=True)
    began = time.process_time()
    model = sg.fit(data, preset=options.preset)
    seconds = time.process_time() - began
    print(f"{task.name}: {model.codec.learned}; {seconds:.0f} s of CPU", flush=True)
    if place is not None:
        model.save(place)
    return model, seconds


@dataclass
class Scores:
    """Of all origins and steps: whether bands hold what came, CRPS by forecaster."""

    inside: list[float] = field(default_factory=list)
    half: list[float] = field(default_factory=list)
    crps: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    ess: list[float] = field(default_factory=list)

    def add(self, name: str, draws: np.ndarray, truth: np.ndarray) -> None:
        own = forecast_scores.crps(draws, truth).mean()
        self.crps.setdefault(name, []).append(float(own))

    def ratio(self, *names: str) -> float:
        """Mean CRPS relative to the best of some others."""
        best = min(np.mean(self.crps[name]) for name in names if name in self.crps)
        return float(np.mean(self.crps["model"]) / best)


def forecast(task: Task, model: sg.Surrogate, options: argparse.Namespace) -> Scores:
    """Forecasts of the held-out part from its first steps, given as a table with dates."""
    found, values = Scores(), task.values
    for k in task.origins(options.origins):
        seen, truth = task.frame.iloc[k : k + task.given], values[k + task.given : k + task.window]
        if task.time is None:
            seen = seen[[task.column]].assign(step=np.arange(task.given))
        began = time.perf_counter()
        draws = model.sample(options.draws, given=seen, time=task.time or "step", seed=SEED)
        found.seconds.append(time.perf_counter() - began)
        found.ess.append(float(draws.attrs["surrogate_ess"]))
        made = draws[task.column].transpose("sample", "time").values[:, task.given :]
        made = made.astype(np.float64)
        found.inside.append(float(forecast_scores.covered(made, truth).mean()))
        found.half.append(float(forecast_scores.covered(made, truth, 0.5).mean()))
        found.add("model", made, truth)
        known = values[: k + task.given]
        for name, each in simple(task, known, options.draws).items():
            found.add(name, each, truth)
    return found


def simple(task: Task, known: np.ndarray, draws: int) -> dict[str, np.ndarray]:
    """Draws (n, steps) of the forecasters to beat."""
    found = {}
    if task.season is not None:
        season = round(task.season)
        for name, logs in (("seasonal naive", False), ("seasonal naive of logs", True)):
            if not logs or np.nanmin(known) >= 0:
                own = season, task.ahead, draws, SEED
                found[name] = forecast_baselines.seasonal_naive(known, *own, logs=logs)
        found["climatology"] = forecast_baselines.climatology(known, task.season, task.ahead)
    logs = np.log1p(np.maximum(known, 0)) if np.nanmin(known) >= 0 else known
    moves = np.diff(logs)
    own = np.random.default_rng(SEED).choice(moves[np.isfinite(moves)], (draws, task.ahead))
    walk = logs[-1] + np.cumsum(own, 1)
    found["random walk"] = np.expm1(walk) if np.nanmin(known) >= 0 else walk
    return found


def row(task: Task, options: argparse.Namespace, model: sg.Surrogate | None = None) -> list[Target]:
    """Targets of one task, and what stands beside them."""
    seconds = 0.0
    if model is None:
        model, seconds = learned(task, options)
    found = forecast(task, model, options)
    inside = 100 * float(np.mean(found.inside))
    each = ", ".join(f"{name} {np.mean(values):.4g}" for name, values in found.crps.items())
    print(
        f"{task.name}: {len(found.inside)} origins; CRPS {each}; 50 % bands cover "
        f"{100 * float(np.mean(found.half)):.1f} %; median ESS {np.median(found.ess):,.0f}, "
        f"{np.median(found.seconds):.1f} s a forecast; training {seconds:.0f} s of CPU",
        flush=True,
    )
    targets = [
        Target("coverage of 90 % bands", inside, COVERAGE[0], unit=" %"),
        Target("coverage of 90 % bands", inside, COVERAGE[1], at_most=True, unit=" %"),
    ]
    if task.season is None:
        ratio = found.ratio("random walk")
        return [*targets, Target("CRPS / random walk", ratio, 1.0, at_most=True)]
    naive = found.ratio("seasonal naive", "seasonal naive of logs")
    return [
        *targets,
        Target("CRPS / seasonal naive", naive, 1.0, at_most=True),
        Target("CRPS / climatology", found.ratio("climatology"), 1.0, at_most=True),
    ]


# --- tasks ----------------------------------------------------------------------------------------


def london(options: argparse.Namespace) -> Task:
    frame = pd.read_csv(options.data / MEASLES)[["date", "London"]]
    held_out = int((frame.date >= "1978-01-01").sum())
    year = 365.2425 / 7
    return Task("measles", frame, "date", "London", 8, 12, held_out, year, {"missing": "drop"})


def measles(options: argparse.Namespace) -> list[Target]:
    return row(london(options), options)


def oil_temperature(options: argparse.Namespace) -> list[Target]:
    frame = pd.read_csv(options.data / ETTH)[["date", "OT"]]
    return row(Task("load", frame, "date", "OT", 12, 12, len(frame) // 5, 24.0), options)


def demand(options: argparse.Namespace) -> list[Target]:
    """y_t = exp(daily profile, weekends, an autoregression), of two years."""
    random = np.random.default_rng(SEED)
    dates = pd.date_range("2021-01-01", periods=2 * 365 * 24, freq="h")
    hour, weekend = np.asarray(dates.hour), np.asarray(dates.day_of_week) >= 5
    profile = 0.5 * np.sin(2 * np.pi * (hour - 8) / 24) + 0.25 * np.sin(4 * np.pi * (hour - 5) / 24)
    weather = autoregression(random, len(dates), (0.95,), 0.05)
    values = np.exp(4 + np.where(weekend, 0.4, 1.0) * profile + weather)
    frame = pd.DataFrame({"date": dates, "demand": values.round(2)})
    return row(Task("demand", frame, "date", "demand", 12, 12, len(frame) // 5, 24.0), options)


def seasonal(options: argparse.Namespace) -> list[Target]:
    """y_t = 20 + 3 cos(2π m/12) + an autoregression of order 2, of 100 years of months."""
    random = np.random.default_rng(SEED)
    dates = pd.date_range("1900-01-01", periods=1_200, freq="MS")
    cycle = 3 * np.cos(2 * np.pi * np.asarray(dates.month) / 12)
    values = 20 + cycle + autoregression(random, len(dates), (0.6, 0.2), 1.0)
    frame = pd.DataFrame({"date": dates, "y": values.round(3)})
    return row(Task("seasonal", frame, "date", "y", 12, 12, len(frame) // 5, 12.0), options)


def stock(options: argparse.Namespace) -> list[Target]:
    frame = pd.read_csv(options.data / STOCK)[["Close"]]
    return row(Task("stock", frame, None, "Close", 16, 8, len(frame) // 5, None), options)


def autoregression(
    random: np.random.Generator, count: int, weights: tuple[float, ...], sd: float
) -> np.ndarray:
    """x_t = Σ_k weights_k x_{t-k} + sd ε_t from 0."""
    x = np.zeros(count)
    for t in range(len(weights), count):
        x[t] = np.dot(weights, x[t - len(weights) : t][::-1]) + sd * random.normal()
    return x


ROWS: dict[str, Callable[[argparse.Namespace], list[Target]]] = {
    "measles": measles,
    "load": oil_temperature,
    "demand": demand,
    "seasonal": seasonal,
    "stock": stock,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What rows of forecasts are told."""
    parser.add_argument("--origins", type=int, default=ORIGINS, help="forecasts of a series")
    parser.add_argument("--draws", type=int, default=DRAWS, help="samples of a forecast")
    parser.add_argument("--preset", default="default", help="of models that are trained here")
    parser.add_argument("--models", type=Path, help="folder that keeps them")


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(ROWS))
    add_arguments(parser)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args(words)
    torch.set_num_threads(chosen.threads)
    head, _ = report.target_table([])
    body = []
    for name in chosen.only or ROWS:
        body += [[name, *cells] for cells in report.target_table(ROWS[name](chosen))[1]]
    report.show({"Forecasts": (["task", *head], body)}, [])
    return 0


if __name__ == "__main__":
    sys.exit(main())
