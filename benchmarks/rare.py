"""Rare events whose probabilities are known: splitting, plain simulation, weighted simulation.

    python benchmarks/rare.py [--save] [--seeds 50] [--only birth-death] [--trajectories]

First passage in continuous time in four networks, and events of an epidemic on its grid. The truth
is the master equation's (`benchmarks/rare_networks.py`). For each task: the error of the mean over
the seeds, in its standard errors; how often the stated interval of 95 % holds it; and the CPU
seconds that a relative error of 10 % takes, from the spread and cost of one run, beside those of
plain simulation, (1 - P)/P/0.01 trajectories, and of the weighted simulation of
`benchmarks/weighted_ssa.py`. `--trajectories` compares trajectories with the exact conditional law.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import report
from rare_networks import TASKS, Task
from weighted_ssa import weighted_ssa

import surrogate as sg
from simulators import simulate, split

RESULTS = Path(__file__).parent / "results" / "rare.md"
PLAIN = 20_000  # trajectories that plain simulation is timed with
WEIGHTED = 20_000  # trajectories of one run of weighted simulation
WANTED = 0.1


def run(task: Task, seeds: int) -> dict[str, list[float]]:
    """Figures of splitting, one for each seed."""
    network = task.network()
    rule = sg.rule(task.rule, like=simulate(network, 100))
    found: dict[str, list[float]] = {
        "ratio": [],
        "inside": [],
        "relative": [],
        "cpu": [],
        "wall": [],
    }
    for seed in range(seeds):
        cpu, wall = time.process_time(), time.perf_counter()
        got = split(network, rule, seed=seed)
        found["cpu"].append(time.process_time() - cpu)
        found["wall"].append(time.perf_counter() - wall)
        found["ratio"].append(got.probability / task.truth)
        found["inside"].append(float(got.low <= task.truth <= got.high))
        found["relative"].append(got.relative_error)
        print(
            task.name, seed, json.dumps({k: round(v[-1], 4) for k, v in found.items()}), flush=True
        )
    return found


def plain(task: Task) -> float:
    """CPU seconds of one trajectory of plain simulation."""
    network = task.network()
    latch = sg.rule(task.rule, like=simulate(network, 100)).latches
    began = time.process_time()
    simulate(network, PLAIN, latch=latch, threads=1)
    return (time.process_time() - began) / PLAIN


def row(task: Task, found: dict[str, list[float]]) -> tuple[list[str], list[report.Target]]:
    ratio, count = np.array(found["ratio"]), len(found["ratio"])
    mean, spread = float(ratio.mean()), float(ratio.std(ddof=1))
    cost = float(np.mean(found["cpu"])) * (spread / WANTED) ** 2
    crude = plain(task) * (1 - task.truth) / task.truth / WANTED**2
    cells = [
        task.name,
        f"{task.truth:.6g}",
        f"{mean:.3f}",
        f"{(mean - 1) / (spread / np.sqrt(count)):+.1f}",
        f"{spread:.3f}",
        f"{max(abs(ratio - 1)):.3f}",
        f"{int(sum(found['inside']))} of {count}",
        f"{np.mean(found['cpu']):.1f}",
        f"{np.max(found['wall']):.1f}",
        f"{cost:.1f}",
        f"{crude:.3g}",
    ]
    if task.biased is None:
        cells += ["–", "–"]
    else:
        began = time.process_time()
        got = np.array([weighted_ssa(task.network(), task.event, task.biased, WEIGHTED, seed)
                        for seed in range(10)]) / task.truth  # fmt: skip
        each = (time.process_time() - began) / 10
        cells += [f"{got.mean():.3f}", f"{each * (got.std(ddof=1) / WANTED) ** 2:.3g}"]
    targets = [
        report.Target(f"{task.name}: error of the mean, in standard errors",
                      abs(mean - 1) / (spread / np.sqrt(count)), 2, at_most=True, unit=""),
        report.Target(f"{task.name}: share of seeds whose interval holds the truth",
                      float(np.mean(found["inside"])), 0.9, unit=""),
        report.Target(f"{task.name}: standard deviation over seeds", spread, task.within,
                      at_most=True, unit=""),
    ]  # fmt: skip
    return cells, targets


def trajectories(samples: int = 5_000) -> report.Section:
    """Trajectories of the futile cycle by splitting against the exact conditional law, in D."""
    from rare_networks import conditional_futile_cycle

    task = next(each for each in TASKS if each.name == "futile cycle")
    network = task.network()
    times = [20, 40, 60, 80, 100]
    law = conditional_futile_cycle(times)  # (5, 101): of S5
    rule = sg.rule(task.rule, like=simulate(network, 100))
    drawn = split(network, rule, seed=1, copies=1_000).draw(samples).S5.values
    rng = np.random.default_rng(0)
    rows = []
    for at, time_ in enumerate(times):
        counts = np.bincount(drawn[:, time_], minlength=law.shape[1]) / samples
        own = [rng.multinomial(samples, law[at]) / samples for _ in range(200)]
        floor = float(np.mean([0.5 * np.abs(each - law[at]).sum() for each in own]))
        distance = 0.5 * float(np.abs(counts - law[at]).sum())
        rows.append([f"{time_}", f"{distance:.4f}", f"{floor:.4f}", f"{distance / floor:.2f}"])
    median = np.median([float(each[3]) for each in rows])
    return ["time", "D(S5)", "self-distance", "ratio"], [*rows, ["median", "", "", f"{median:.2f}"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} to results/")
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--only", action="append", choices=[task.name for task in TASKS])
    parser.add_argument("--trajectories", action="store_true")
    options = parser.parse_args()
    rows, targets = [], []
    for task in TASKS:
        if options.only and task.name not in options.only:
            continue
        cells, more = row(task, run(task, options.seeds))
        rows.append(cells)
        targets += more
    head = ["task", "P", "mean/P", "in its errors", "sd over seeds", "worst", "95 % interval",
            "CPU s", "most wall s", "CPU s to 10 %", "plain",
            "weighted: mean/P", "CPU s to 10 %"]  # fmt: skip
    sections = {"Probabilities": (head, rows), "Targets": report.target_table(targets)}
    if options.trajectories:
        sections["Trajectories of the futile cycle, 5,000"] = trajectories()
    notes = [
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, load "
        f"average {os.getloadavg()[0]:.1f}; {options.seeds} seeds, default settings.",
    ]
    report.show(sections, notes)
    if options.save:
        RESULTS.write_text(report.markdown("Rare events", sections, notes), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
