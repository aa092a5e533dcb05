"""Conditioning on data: posteriors beside exact ones, forecasts beside what happened.

    python benchmarks/inference.py [--only NAME ...] [--samples 5000] [--threads 2] [--save]

smoothing    eSIRS, half of the infected seen at eight steps (binomial): marginals and evidence of
             the bundled model against the master equation's
school       influenza in a boarding school, 1978: the posterior of beta/gamma of the bundled `sir`
             given all days, and the days after the fourth by what was known then
measles      London, ten years held out: twelve weeks after eight (`inference_forecasts`)
rate         a learned parameter, against the posterior on a grid (`inference_epidemics`)
calibration  ranks and coverage on eSIRS with exact counts (`inference_calibration`)
wrong-model  how often data of doubled rates are flagged (`inference_calibration`)
two_moons, sir, gaussian_linear, gaussian_mixture, slcp
             tables of parameters and data (`sbibm.py`), learned from --rows: equations on the data
             against reference posteriors (C2ST); of gaussian_linear also with half of the data
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import inference_calibration
import inference_forecasts
import numpy as np
import pandas as pd
import report
import sbibm
import scipy.stats
import torch
from inference_epidemics import rate
from report import Target

import surrogate as sg
from constraints import parse
from constraints.errors import SurrogateError
from simulators import MasterEquation, models, simulate
from simulators.exact.conditions import Likelihood
from surrogate.guidance.sampler import sample

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "inference.md"
SEED, TRUTH_SEED = 100, 777_003
SEEN_STEPS = (3, 6, 9, 12, 16, 20, 24, 28)
SHARE = 0.5  # of the infected that are seen
SCHOOL = "bsflu_1978_sbied.txt"
NOISE = "poisson(0.9*I)"
ROW_COUNTS, OBSERVATIONS = (1_000, 10_000, 100_000), 5  # of the tables
PUBLISHED_R0 = (3.6, 3.8)


def smoothing(options: argparse.Namespace) -> list[Target]:
    """Thinned counts on eSIRS, where the answer is known."""
    truth = simulate(models.esirs(), samples=1, seed=TRUTH_SEED, initial={"S": 95, "I": 5})
    random = np.random.default_rng(TRUTH_SEED)
    infected = truth.I.values[0]
    seen = {t: int(random.binomial(infected[t], SHARE)) for t in SEEN_STEPS}
    goal = parse(" and ".join(f"{y} ~ binomial(I({t}), {SHARE})" for t, y in seen.items()))
    began = time.perf_counter()
    found = sample(sg.pretrained("esirs"), options.samples, goal, seed=SEED)
    seconds = time.perf_counter() - began
    exact = MasterEquation(models.esirs())
    given = {
        t: Likelihood(lambda values, y=y: scipy.stats.binom.pmf(y, values["I"], SHARE))
        for t, y in seen.items()
    }
    draws = exact.draw(options.samples, given, seed=TRUTH_SEED)
    compared = sg.evaluate(found.dataset, against=draws)
    trees = compared.values.get("trees")
    log_z = found.diagnostics.log_probability
    off = None if log_z is None else abs(log_z - exact.log_probability(given))
    median = max(each.median.ratio for each in compared.variables)
    return [
        Target("median D, × self-distance", median, 1.2, at_most=True, unit="×"),
        Target("log evidence, off by", off, 0.1, at_most=True),
        Target(f"{options.samples:,} samples", seconds, 15, at_most=True, unit=" s"),
        Target("C2ST", None if trees is None else trees.accuracy, 0.55, at_most=True),
    ]


def school(options: argparse.Namespace) -> list[Target]:
    """Fourteen days of boys in bed."""
    path = options.data / SCHOOL
    if not path.exists():
        print(f"school: there is no {path}", file=sys.stderr)
        return []
    days = pd.read_csv(path, sep=r"\s+", comment="#")
    cases = pd.DataFrame({"time": days["day"], "B": days["B"]})
    model = sg.pretrained("sir")
    read = {"given": cases, "columns": {"B": "I"}, "noise": NOISE}
    low = high = None
    try:
        draws = model.sample(options.samples, seed=SEED, **read)
        low, high = np.quantile((draws.beta / draws.gamma).values, [0.05, 0.95]).tolist()
    except SurrogateError as problem:  # the forecast can be measured all the same
        print(f"school, all days: {problem}", file=sys.stderr)
    ahead = model.sample(options.samples, seed=SEED, upto=4, **read)
    random = np.random.default_rng(SEED)
    predicted = random.poisson(0.9 * ahead.I.values)  # what would be counted
    inside = []
    for day, count in cases[cases.time > 4].itertuples(index=False):
        step = int(np.abs(ahead.time.values - day).argmin())
        ends = np.quantile(predicted[:, step], [0.05, 0.95])
        inside.append(ends[0] <= count <= ends[1])
    return [
        Target("90 % interval of beta/gamma, low end", low, PUBLISHED_R0[1], at_most=True),
        Target("90 % interval of beta/gamma, high end", high, PUBLISHED_R0[0]),
        Target("later days in the 90 % band", 100 * float(np.mean(inside)), 80, unit=" %"),
    ]


def posterior(name: str, options: argparse.Namespace) -> list[Target]:
    """A table of parameters and data, conditioned on the data."""
    folder = options.data / "sbibm"
    if not (folder / name).exists():
        print(f"{name}: there is no {folder / name}", file=sys.stderr)
        return []
    found = list[Target]()
    for rows, wanted in zip(ROW_COUNTS, sbibm.TASKS[name].wanted, strict=True):
        if rows not in options.rows:
            continue
        began = time.process_time()
        model = sg.fit(sbibm.table(name, rows, TRUTH_SEED), seed=SEED)
        trained = time.process_time() - began
        scores, half = list[float](), list[float]()
        for number in range(1, OBSERVATIONS + 1):
            seen, reference = sbibm.observed(folder, name, number)
            thetas = [f"theta{i + 1}" for i in range(reference.shape[1])]

            def drawn(
                seen: dict[str, float], model: sg.Surrogate = model, thetas: list[str] = thetas
            ) -> np.ndarray:
                where = " and ".join(f"{k} = {v!r}" for k, v in seen.items())
                samples: pd.DataFrame = model.sample(options.samples, where=where, seed=SEED)
                return samples[thetas].to_numpy(float)

            try:
                scores.append(sbibm.c2st(reference, drawn(seen)))
            except SurrogateError as problem:
                print(f"{name}, {rows:,} rows, observation {number}: {problem}", file=sys.stderr)
            if name == "gaussian_linear":
                some = {k: v for k, v in seen.items() if int(k[1:]) % 2}
                exact = sbibm.half_posterior(some, options.samples, SEED)
                half.append(sbibm.c2st(exact, drawn(some)))
        median = float(np.median(scores)) if scores else None
        about = f"C2ST, {rows:,} rows, {len(scores)} of {OBSERVATIONS} observations"
        found.append(Target(about, median, wanted, at_most=True, unit=""))
        if half:
            about = f"C2ST, {rows:,} rows, half of x missing"
            found.append(Target(about, float(np.median(half)), 0.55, at_most=True, unit=""))
        about = f"training on {rows:,} rows, CPU"
        found.append(Target(about, trained / 60, 20, at_most=True, unit=" min"))
    return found


ROWS: dict[str, Callable[[argparse.Namespace], list[Target]]] = {
    "smoothing": smoothing,
    "school": school,
    "measles": inference_forecasts.measles,
    "rate": rate,
    **{name: partial(posterior, name) for name in sbibm.TASKS},
    "calibration": inference_calibration.calibration,
    "wrong-model": inference_calibration.wrong_model,
}


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(ROWS))
    parser.add_argument("--samples", type=int, default=5_000)
    inference_forecasts.add_arguments(parser)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000], choices=ROW_COUNTS)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", action="store_true", help=f"write results/{RESULTS.name}")
    chosen = parser.parse_args(words)
    torch.set_num_threads(chosen.threads)
    head, _ = report.target_table([])
    body = []
    for name in chosen.only or ROWS:
        body += [[name, *cells] for cells in report.target_table(ROWS[name](chosen))[1]]
    found = {"Conditioning on data": (["task", *head], body)}
    notes = [
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}; {chosen.threads} threads, "
        f"{chosen.samples:,} samples of the bundled models."
    ]
    report.show(found, notes)
    if chosen.save:
        RESULTS.write_text(report.markdown("Inference", found, notes), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
