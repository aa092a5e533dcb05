"""How close are guided samples to the true conditional law, and at which cost?

    python benchmarks/sampler.py [--save] [--samples 5000] [--threads 2] [--model FOLDER]

The bundled eSIRS model, default settings, against the exact marginals of the master equation: D at
each step between the histogram of the samples and the exact distribution, beside what as many exact
draws have. A scenario about several steps at once is compared with simulated trajectories that meet
it.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import report
import torch
import xarray as xr

from constraints import Formula, bridge, compiled, parse
from simulators import MasterEquation, models, simulate
from surrogate.guidance.sampler import sample
from surrogate.kinds.signals import layout_of, tensors_of
from surrogate.model import Surrogate, pretrained

RESULTS = Path(__file__).parent / "results" / "sampler.md"
SPECIES = ["S", "I", "R"]
SIMULATED = 2_000_000  # trajectories, where there is no exact answer


@dataclass(frozen=True)
class Scenario:
    """A formula, the same as conditions of the master equation, and what is wanted of D."""

    name: str
    goal: Formula
    where: Mapping[Any, Any] | None  # None: not about one step at a time
    median: Mapping[str, float]
    most: float
    log_p: float | None = None  # by which log P may be off


def other(name: str, text: str, where: Mapping[Any, Any] | None = None) -> Scenario:
    """A scenario that is judged by the floor and by log P alone."""
    return Scenario(name, parse(text), where, {}, 1.5, 0.3 if name in RARE else 0.2)


RARE = ("one in a million",)
SCENARIOS = [
    Scenario(
        "bridge 95/5/30",
        bridge("S0=95,I0=5,S25=30", SPECIES),
        {0: "S = 95 and I = 5", 25: "S = 30"},
        {"S": 0.038, "I": 0.038},
        0.07,
    ),
    Scenario(
        "bridge 80/10/30",
        bridge("S0=80,I0=10,S25=30", SPECIES),
        {0: "S = 80 and I = 10", 25: "S = 30"},
        {"S": 0.038, "I": 0.038},
        0.07,
    ),
    Scenario(
        "I <= 20 at all steps",
        parse("forall t: I(t) <= 20"),
        {"all": "I <= 20"},
        {"S": 0.042, "I": 0.030},
        0.08,
        0.1,
    ),
    other(
        "either S = 20 or S = 40 at step 15",
        "S(0) = 80 and I(0) = 10 and (S(15) = 20 or S(15) = 40)",
        {0: "S = 80 and I = 10", 15: "S = 20 or S = 40"},
    ),
    other(
        "two bridges",
        "S(0) = 60 and I(0) = 20 and S(12) = 35 and I(22) = 20",
        {0: "S = 60 and I = 20", 12: "S = 35", 22: "I = 20"},
    ),
    other("late peak", "argmax(I) >= 22 and max(I) >= 34"),
    other(
        "one in a million",
        "S(0) = 60 and I(0) = 20 and I(20) = 12",
        {0: "S = 60 and I = 20", 20: "I = 12"},
    ),
]


def shares(values: np.ndarray, bins: int) -> np.ndarray:
    """Shares of each count at each step, (T, bins), of values (n, T)."""
    each = [np.bincount(values[:, t], minlength=bins)[:bins] for t in range(values.shape[1])]
    return np.array(each) / len(values)


def distances(data: xr.Dataset, law: np.ndarray, name: str) -> np.ndarray:
    """D of the samples from the exact distribution (T, bins) at each step: (T,)."""
    return 0.5 * np.abs(shares(data[name].values.astype(int), law.shape[1]) - law).sum(1)


Law = dict[str, np.ndarray]  # shares of each count at each step, (T, counts)


def truth(scenario: Scenario, samples: int, seed: int) -> tuple[Law, xr.Dataset, float]:
    """The distribution at each step, as many draws of it, and log P."""
    if scenario.where is not None:
        exact = MasterEquation(models.esirs())
        law = exact.marginals(scenario.where)
        draws = exact.draw(samples, scenario.where, seed=seed)
        return {n: law[n].values for n in "SI"}, draws, exact.log_probability(scenario.where)
    every = simulate(models.esirs(), samples=SIMULATED, seed=seed + 1)
    program, layout = compiled(scenario.goal, layout_of(every)), layout_of(every)
    met = np.concatenate(
        [
            program.verdict(tensors_of(every.isel(sample=slice(k, k + 100_000)), layout)).numpy()
            for k in range(0, SIMULATED, 100_000)
        ]
    )
    kept = every.isel(sample=np.flatnonzero(met))
    rest = {n: kept[n].values[samples:].astype(int) for n in "SI"}
    law = {n: shares(values, 101) for n, values in rest.items()}
    return law, kept.isel(sample=slice(samples)), float(np.log(met.mean()))


def measure(
    scenario: Scenario, model: Surrogate, options: argparse.Namespace
) -> tuple[list[report.Target], list[list[str]]]:
    law, draws, log_p = truth(scenario, options.samples, options.seed)
    began = time.perf_counter(), time.process_time()
    made = sample(model, options.samples, scenario.goal, seed=options.seed)
    wall, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    data, found = made.dataset, made.diagnostics
    targets, rows = [], []
    for name in "SI":
        d, floor = distances(data, law[name], name), distances(draws, law[name], name)
        median, most = float(np.median(d)), float(d.max())
        wanted = scenario.median.get(name)
        if wanted is None:
            ratio = median / float(np.median(floor))
            targets.append(
                report.Target(
                    f"{scenario.name}: median D({name}) / floor", ratio, 1.5, at_most=True
                )
            )
        else:
            label = f"{scenario.name}: median D({name})"
            targets.append(report.Target(label, median, wanted, at_most=True, unit=""))
            label = f"{scenario.name}: max D({name})"
            targets.append(report.Target(label, most, scenario.most, at_most=True, unit=""))
        cells = [f"{median:.4f} / {np.median(floor):.4f}", f"{most:.4f} / {floor.max():.4f}"]
        rows.append([scenario.name, name, *cells])
    off = abs(found.log_probability - log_p)
    if scenario.log_p is not None:
        label = f"{scenario.name}: log P off by"
        targets.append(report.Target(label, off, scenario.log_p, at_most=True, unit=""))
    met = 100 * float(data.satisfied.mean())
    targets.append(report.Target(f"{scenario.name}: met", met, 100, unit=" %"))
    if "bridge 95" in scenario.name:
        label = f"{scenario.name}: wall time"
        targets.append(report.Target(label, wall, 20, at_most=True, unit=" s"))
    share = f"{found.min_ess:.0%}"
    told = f"{found.log_probability:.3f} / {log_p:.3f}"
    for row in rows:
        row += [told, f"{wall:.1f}", f"{cpu:.0f}", share, f"{found.ancestors:,}"]
    return targets, rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} to results/")
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--model", type=Path, help="a model folder [the bundled one]")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = Surrogate.load(options.model) if options.model else pretrained("esirs")
    targets: list[report.Target] = []
    body: list[list[str]] = []
    for scenario in SCENARIOS:
        print(scenario.name, file=sys.stderr)
        made, rows = measure(scenario, model, options)
        targets += made
        body += rows
    head = ["scenario", "", "median D / floor", "max D / floor", "log P / exact"]
    head += ["wall s", "CPU s", "least effective", "ancestors"]
    sections = {"Targets": report.target_table(targets), "Samples": (head, body)}
    notes = [
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}.",
        f"{options.samples:,} samples, default settings, {options.threads} threads, against exact "
        "marginals; floor: as many exact draws, one set.",
    ]
    report.show(sections, notes)
    if options.save:
        RESULTS.write_text(report.markdown("Sampler benchmark", sections, notes) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
