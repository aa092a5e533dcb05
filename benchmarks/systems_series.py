"""Time series in the table of systems: TimeGAN's scores of windows, and a forecast as a bridge."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import forecast_scores
import numpy as np
import pandas as pd
import timegan_scores
import xarray as xr
from report import Target
from systems_bench import SEED, Bench, Row, data_file

from surrogate.data import evaluate
from surrogate.diffusion.split import split
from surrogate.guidance.sampler import sample
from surrogate.kinds import kind_of
from surrogate.kinds.trajectories.from_table import trajectories_from_table

WINDOW, GIVEN = 24, 16  # steps of a window; of a forecast, the first that are given
PRICES = ("Open", "High", "Low", "Close")
SINES, SINE_COLUMNS = 10_000, 5
# the largest discriminative and predictive scores
WANTED = {"stock": (0.067, 0.037), "etth": (0.061, 0.121), "sines": (0.006, 0.094)}
FILES = {"stock": "stock_data.csv", "etth": "ETTh1.csv.gz"}
COVERAGE = 85.0, 95.0  # percent of held-out values in bands of 90 %


def sines(samples: int = SINES, seed: int = 0) -> xr.Dataset:
    """TimeGAN's: (sin(η t + θ) + 1) / 2, with η and θ uniform in [0, 0.1] in each column."""
    random = np.random.default_rng(seed)
    rate, phase = random.uniform(0, 0.1, (2, samples, SINE_COLUMNS, 1))
    values = (np.sin(rate * np.arange(WINDOW) + phase) + 1) / 2
    return xr.Dataset(
        {f"x{k}": (("sample", "time"), values[:, k]) for k in range(SINE_COLUMNS)},
        {"time": np.arange(float(WINDOW))},
    )


def windows(bench: Bench, name: str, columns: tuple[str, ...] | None = None) -> xr.Dataset:
    """All windows of a series; TimeGAN's sines are made."""
    if name == "sines":
        return sines()
    frame = pd.read_csv(data_file(bench.options, FILES[name]))
    chosen = None if columns is None else list(columns)
    return trajectories_from_table(frame, window=WINDOW, stride=1, columns=chosen)[0]


def array(data: xr.Dataset, names: tuple[str, ...]) -> np.ndarray:
    """(n, T, d)"""
    parts = [data[name].transpose("sample", "time").values.astype(np.float64) for name in names]
    return np.stack(parts, -1)


def scores(name: str, bench: Bench) -> Row:
    """Samples by TimeGAN's protocol, beside the data's own scores."""
    data = windows(bench, name)
    model, training = bench.model(f"{name}-windows", lambda: data)
    draws = model.sample(data.sizes["sample"], seed=SEED)
    row = Row(f"{name}, windows of {WINDOW}").after(training)
    row.laws = evaluate(draws, data).values.get("consistent")
    names = tuple(str(each) for each in data.data_vars)
    real, made = array(data, names), array(draws, names)
    if name in FILES:
        real, made = timegan_scores.scaled(real, made)
    half = np.random.default_rng(SEED).permutation(len(real))
    halves = real[half[::2]], real[half[1::2]]
    steps = bench.options.gru_steps
    later = round(steps * timegan_scores.PREDICTIVE_STEPS / timegan_scores.STEPS)
    found = (
        timegan_scores.discriminative(real, made, SEED, steps),
        timegan_scores.predictive(real, made, SEED, later),
    )
    own = (
        timegan_scores.discriminative(*halves, SEED, steps),
        timegan_scores.predictive(real, real, SEED, later),
    )
    row.aim(laws=1.0)
    for label, score, data_score, wanted in zip(
        ("discriminative", "predictive"), found, own, WANTED[name], strict=True
    ):
        row.notes.append(f"{label} {score:.3f} (data {data_score:.3f})")
        row.targets.append(Target(f"{label} score", score, wanted, at_most=True, unit=""))
    return row


def forecast(bench: Bench) -> Row:
    """Stock windows whose first steps are given: bands and CRPS of the rest, held-out windows."""
    data = windows(bench, "stock", PRICES)
    model, training = bench.model("stock-prices", lambda: data)
    parts = split(data.sizes["sample"], int(model.about["seed"]), kind_of(data).overlap(data))
    chosen = parts.held_out[
        np.unique(np.linspace(0, len(parts.held_out) - 1, bench.options.forecasts).astype(int))
    ]
    learned = array(data.isel(sample=parts.learned), PRICES)
    returns = np.diff(np.log(learned[:, :2]), axis=1)[:, 0]  # each day once
    volatility = np.cov(returns.T)
    inside, mine, walk, laws, effective = [], [], [], [], []
    for k, window in enumerate(chosen):
        truth = array(data.isel(sample=[window]), PRICES)[0].T  # (V, T)
        answer = sample(model, bench.options.forecast_draws, pinned(truth[:, :GIVEN]), seed=SEED)
        draws = np.swapaxes(array(answer.dataset, PRICES), 1, 2)[..., GIVEN:]
        ahead = truth[:, GIVEN:]
        inside.append(forecast_scores.covered(draws, ahead))
        mine.append(forecast_scores.crps(draws, ahead))
        simple = forecast_scores.random_walk(
            truth[:, GIVEN - 1], volatility, WINDOW - GIVEN, len(draws), SEED + k
        )
        walk.append(forecast_scores.crps(simple, ahead))
        laws.append(float(answer.dataset.satisfied.mean()))
        effective.append(answer.diagnostics.ess)
        bench.say(f"forecast {k + 1} of {len(chosen)}: ESS {answer.diagnostics.ess:,.0f}")
    # relative to the price, so that years of high prices do not decide alone
    level = np.stack([array(data.isel(sample=[w]), PRICES)[0, GIVEN - 1] for w in chosen])
    ratio = float(
        (np.stack(mine) / level[..., None]).mean() / (np.stack(walk) / level[..., None]).mean()
    )
    coverage = 100 * float(np.mean(inside))
    row = Row(f"stock windows, first {GIVEN} steps given", float(np.mean(laws))).after(training)
    row.notes += [
        f"90 % bands cover {coverage:.1f} % of {len(chosen)} windows",
        f"CRPS / random walk's {ratio:.3f}",
        f"median ESS {np.median(effective):,.0f}",
    ]
    row.aim(laws=1.0)
    row.targets.append(Target("coverage of 90 % bands", coverage, COVERAGE[0], unit=" %"))
    row.at_most("coverage of 90 % bands", coverage, COVERAGE[1], " %")
    return row.at_most("CRPS / that of a random walk", ratio, 1.0, "×")


def pinned(values: np.ndarray, names: tuple[str, ...] = PRICES) -> str:
    """The formula that gives the first steps of every variable, (V, steps), their values."""
    return " and ".join(
        f"{name}({step}) = {float(value)!r}"
        for name, series in zip(names, values, strict=True)
        for step, value in enumerate(series)
    )


ROWS: dict[str, Callable[[Bench], Row]] = {
    **{name: partial(scores, name) for name in WANTED},
    "stock-forecast": forecast,
}
