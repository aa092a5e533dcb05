"""How good is a surrogate, and how soon? Against fresh simulation, data and the paper's model.

    python benchmarks/surrogate_quality.py [PART ...] [--save] [--model FOLDER] [--scale 0.01]

Parts: esirs, quick, paper, lotka, measles, speed, memory, toy; all of them if none is named. With
--save a part that was run replaces its own section of the results, and the others stay.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parents[1]))

import fidelity
import measles
import numpy as np
import paper_model
import report
import torch
import toy_mixture
import xarray as xr
from runs import ROOT, Bench, Found

from simulators import ReactionNetwork, models, simulate_to
from surrogate.diffusion.schedule import SubVP
from surrogate.kinds.opening import open_file
from surrogate.model import Surrogate
from surrogate.random import stream

RESULTS = Path(__file__).parent / "results" / "surrogate.md"
HEADING = "# Surrogate benchmark"
MEASLES = Path("data") / "measles_england_wales.csv"
WINDOWS = {"window": 52, "stride": 4, "pool": "cases", "missing": "drop"}
FILE_SIZES = 100_000, 2_000_000  # trajectories in the files of the memory part
SEED = 100  # of the first set of samples
Target = report.Target


# --- learned against simulated --------------------------------------------------------------------


@dataclass
class Judged:
    """A model's samples against fresh simulation."""

    samples: list[xr.Dataset]
    variables: list[fidelity.Distances]
    correlation: fidelity.Distances

    def table(self) -> report.Section:
        return fidelity.table([*self.variables, self.correlation])


def judge(bench: Bench, model: Surrogate, network: ReactionNetwork, names: Sequence[str]) -> Judged:
    bench.say(f"{fidelity.SETS} sets of {bench.samples:,} samples")
    samples = [model.sample(bench.samples, seed=SEED + k) for k in range(fidelity.SETS)]
    bench.say("against fresh simulation")
    truth = fidelity.Truth.of(network, names, bench.samples)
    return Judged(samples, truth.histograms(samples), truth.correlation(samples))


def unbounded(model: Surrogate, n: int, seed: int) -> xr.Dataset:
    """Samples of the plain denoiser, which nothing keeps within the range of the data."""
    return model.codec.to_dataset(model.draw(n, seed, bounded=False))


def protocol(bench: Bench, counts: ModuleType = fidelity) -> str:
    return (
        f"{counts.SETS} sets of {bench.samples:,} samples against {counts.REFERENCES} exact ones "
        f"of as many, averaged over the pairs; floor: {counts.FLOOR} exact sets in place of the "
        f"samples. `truth / floor`: {counts.SETS} further exact sets, measured in the same way, "
        "and the standard error of such a ratio."
    )


def esirs(bench: Bench) -> Found:
    run = bench.esirs("default")
    model = Surrogate.load(run.folder)
    judged = judge(bench, model, models.esirs(), ("S", "I"))
    plain = [unbounded(model, bench.samples, SEED + k) for k in range(fidelity.SETS)]
    shares = [100 * fidelity.consistent(sets, 100) for sets in (judged.samples, plain)]
    targets = [Target("default training, wall time", run.minutes, 15, at_most=True, unit=" min")]
    for each in judged.variables:
        targets.append(Target(f"median D({each.name}) / floor", each.ratio(), 1.15, at_most=True))
    for each in judged.variables:
        targets.append(Target(f"max D({each.name}) / floor", each.ratio(np.max), 1.5, at_most=True))
    ratio = judged.correlation.ratio()
    targets.append(Target("mean correlation error / floor", ratio, 1.5, at_most=True))
    targets.append(Target("consistent after rounding", shares[0], 99.5, unit=" %"))
    notes = [
        run.took("default", bench.options.threads),
        protocol(bench),
        f"Consistent (no species negative, their sum 100, at all steps): {shares[0]:.2f} %; with "
        f"the denoised estimate not kept within the range of the data: {shares[1]:.2f} %.",
    ]
    return Found(targets, {"Distances": judged.table()}, notes)


def quick(bench: Bench) -> Found:
    run = bench.esirs("quick")
    judged = judge(bench, Surrogate.load(run.folder), models.esirs(), ("S", "I"))
    targets = [Target("quick training, wall time", run.minutes, 2, at_most=True, unit=" min")]
    for each in judged.variables:
        targets.append(Target(f"median D({each.name}) / floor", each.ratio(), 1.6, at_most=True))
    share = 100 * fidelity.consistent(judged.samples, 100)
    notes = [run.took("quick", bench.options.threads), protocol(bench)]
    notes.append(f"Consistent after rounding: {share:.2f} %.")
    return Found(targets, {"Distances": judged.table()}, notes)


def lotka(bench: Bench) -> Found:
    run = bench.train("lotka", "default", "--simulate", "lotka_volterra")
    network = models.lotka_volterra()
    judged = judge(bench, Surrogate.load(run.folder), network, tuple(network.species))
    targets = [
        Target(f"median D({each.name}) / floor", each.ratio(), 1.5, at_most=True)
        for each in judged.variables
    ]
    notes = [run.took("default", bench.options.threads), protocol(bench)]
    return Found(targets, {"Distances": judged.table()}, notes)


# --- the paper's model beside ours ----------------------------------------------------------------


def paper(bench: Bench) -> Found | str:
    """Both models against the same truth, after the same CPU time."""
    options, network, names = bench.options, models.esirs(), ("S", "I")
    run = bench.esirs(options.beside)
    cpu = options.cpu or run.cpu
    if cpu is None:
        return "a model folder does not say what it cost: give --cpu SECONDS as well"
    theirs = paper_model.fit(network, names, cpu, bench.say)
    few = min(5_000, bench.samples)
    judged = fidelity.Truth.of(network, names, few)
    tried, best = paper_model.best_sampler(theirs, judged, few, bench.say)
    bench.say(f"{fidelity.SETS} sets of {bench.samples:,} samples of each")
    truth = fidelity.Truth.of(network, names, bench.samples)
    ours = Surrogate.load(run.folder)
    seeds = range(SEED, SEED + fidelity.SETS)
    samples = [ours.sample(bench.samples, seed=seed) for seed in seeds]
    others = [best(bench.samples, seed) for seed in seeds]
    mine, other = truth.histograms(samples), truth.histograms(others)
    targets, body = [], []
    for a, b in zip(mine, other, strict=True):
        # an excess below the noise counts as the noise
        excess = max(a.ratio() - 1, a.noise())
        closer, nearer = (b.ratio() - 1) / excess, b.ratio() / a.ratio()
        targets.append(Target(f"{a.name}: excess over the floor, theirs / ours", closer, 1.7))
        cells = [a.name, f"{a.ratio():.3f}", f"{b.ratio():.3f}", f"{closer:.2f}", f"{nearer:.2f}"]
        body.append([*cells, f"{a.truth():.3f} ± {a.noise():.3f}"])
    head = ["", "ours / floor", "theirs / floor", "excess, theirs / ours"]
    head += ["distance, theirs / ours", "truth / floor"]
    tables = {
        "Median D": (head, body),
        "Ours": fidelity.table([*mine, truth.correlation(samples)]),
        "Theirs": fidelity.table([*other, truth.correlation(others)]),
        "Ways to sample theirs (5,000 samples, median D / floor)": tried,
    }
    said = "its CPU time" if options.cpu is None else "the CPU time given"
    notes = [
        run.took(options.beside, options.threads),
        f"The paper's settings (sub-VP, perceptron 200-100-100, {paper_model.TRAJECTORIES:,} "
        f"trajectories) on one thread for {said}: {theirs.cpu:,.0f} s, {theirs.epochs:,} epochs; "
        "sampled in whichever way does best for it.",
        "Closer to the floor is taken literally: the target is the ratio of excesses, median D / "
        "floor - 1, theirs to ours, where ours counts as no less than its noise. The ratio of the "
        "distances themselves stands beside it.",
        protocol(bench),
    ]
    return Found(targets, tables, notes)


# --- speed and memory -----------------------------------------------------------------------------


def speed(bench: Bench) -> Found:
    model = Surrogate.load(bench.any_esirs().folder)
    torch.set_num_threads(bench.options.threads)
    n, steps = 5_000, bench.scaled(paper_model.STEPS, 10)
    model.sample(100)
    ours = min(wall(lambda: model.sample(n, seed=SEED)) for _ in range(3))
    bench.say(f"the paper's sampler, {steps:,} steps")
    sampler, generator = paper_model.euler(0, steps), stream(SEED)
    noise = torch.randn((n, *model.shape), generator=generator)
    theirs = wall(
        lambda: model.codec.to_dataset(sampler(model.denoiser, SubVP(), noise, generator))
    )
    targets = [Target(f"{n:,} samples, wall time", ours, 5, at_most=True, unit=" s")]
    size = sum(weight.numel() for weight in model.denoiser.parameters())
    head = ["sampler", "s for 5,000", "time / ours"]
    body = [["ours", f"{ours:.2f}", "1.0"]]
    label = f"the paper's: Euler-Maruyama, {steps:,} steps, no correctors"
    body.append([label, f"{theirs:.2f}", f"{theirs / ours:.1f}"])
    notes = [
        f"{bench.options.threads} threads; the same eSIRS network of {size:,} weights for both "
        "(the time does not depend on what it has learned); from noise to a dataset, the model "
        "loaded before. Ours: best of three."
    ]
    return Found(targets, {"Sampling": (head, body)}, notes)


def wall(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def memory(bench: Bench) -> Found:
    head = ["trajectories", "data in memory", "peak of training"]
    body, sizes, peaks = [], [], []
    for n in (bench.scaled(FILE_SIZES[0], 1_000), bench.scaled(FILE_SIZES[1], 2_000)):
        path = bench.folder / f"esirs-{n}.nc"
        bench.say(f"simulating {n:,} trajectories")
        simulate_to(path, models.esirs(), n, seed=1, force=True)
        with xr.open_dataset(path) as data:
            sizes.append(sum(data[name].nbytes for name in data.data_vars) / 1e6)
        run = bench.train(f"memory-{n}", "quick", str(path), iterations=100)
        path.unlink()
        peaks.append(run.peak)
        peak = "–" if run.peak is None else f"{run.peak:,.0f} MB"
        body.append([f"{n:,}", f"{sizes[-1]:,.0f} MB", peak])
    grown = None
    if None not in peaks:
        grown = 100 * (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])
    targets = [Target("growth of the peak / of the data", grown, 20, at_most=True, unit=" %")]
    notes = ["`surrogate train` of a netCDF file, 100 iterations, in a process of its own."]
    return Found(targets, {"Peak resident memory": (head, body)}, notes)


# --- real data ------------------------------------------------------------------------------------


def reports(bench: Bench) -> Found | str:
    """Measles in seven cities, as the command takes the table."""
    path = bench.options.shared / MEASLES
    if not path.exists():
        return f"there is no {MEASLES.name} in {path.parent}: give --shared FOLDER"
    messages: list[str] = []
    data = open_file(path, WINDOWS, messages.append).data
    given = [part for name, value in WINDOWS.items() for part in (f"--{name}", str(value))]
    run = bench.train("measles", "default", str(path.resolve()), *given)
    model, n = Surrogate.load(run.folder), data.sizes["sample"]
    samples = [model.sample(n, seed=SEED + k) for k in range(fidelity.REFERENCES)]
    targets, body = [], []
    for scale in measles.SCALES:
        found, random, block = measles.compare(scale, samples, data)
        median = float(np.median(found))
        ratios = [median / float(np.median(each)) for each in (random, block)]
        targets.append(Target(f"median D / floor, {scale}", ratios[0], 1.5, at_most=True))
        cells = [f"{np.median(each):.4f}" for each in (found, random, block)]
        worst = f"{found.max() / random.max():.2f}"
        body.append([scale, *cells, *(f"{ratio:.2f}" for ratio in ratios), worst])
    head = ["", "median D", "floor, at random", "floor, by blocks", "/ random", "/ blocks"]
    notes = [
        run.took("default", bench.options.threads),
        *messages,
        f"{len(samples)} sets of {n:,} samples against all {n:,} windows. The floor at random "
        "treats windows as independent, which is the stricter one and the target's; the one by "
        f"blocks splits stretches of {measles.YEARS} years. Most of these windows were learned "
        "from, so this shows how well the windows' own distribution is learned, not how well other "
        "years are foretold.",
    ]
    return Found(targets, {"Distances": ([*head, "max / random"], body)}, notes)


def toy(bench: Bench) -> Found:
    found = []
    for name in toy_mixture.LOSSES:
        bench.say(f"toy mixture, {name} score matching")
        steps = bench.scaled(toy_mixture.STEPS, 20)
        found.append(toy_mixture.measure(name, bench.samples, steps))
    targets = [Target(f"{e.name}: D / floor", e.ratio(), 1.15, at_most=True) for e in found]
    head = ["score matching", "D / floor", "truth / floor"]
    body = [[*each.row()[:2], each.row()[-1]] for each in found]
    notes = ["½ N(-3, 0.5²) + ½ N(4, 1); ⌊√n⌋ bins over the joint range."]
    notes.append(protocol(bench, toy_mixture))
    return Found(targets, {"Distances": (head, body)}, notes)


# --- all parts ------------------------------------------------------------------------------------

Part = tuple[str, Callable[[Bench], Found | str]]  # a string says why there are no figures
PARTS: dict[str, Part] = {
    "esirs": ("eSIRS, default preset", esirs),
    "quick": ("eSIRS, quick preset", quick),
    "paper": ("eSIRS, beside the paper's model", paper),
    "lotka": ("Lotka-Volterra, default preset", lotka),
    "measles": ("Measles in seven cities, default preset", reports),
    "speed": ("Time of sampling", speed),
    "memory": ("Memory of training", memory),
    "toy": ("Toy mixture", toy),
}


def save(title: str, page: str) -> None:
    """Put a section in its place among those that are there."""
    old = RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else ""
    sections = {part.splitlines()[0]: part for part in re.split(r"^## ", old, flags=re.M)[1:]}
    sections[title] = page.removeprefix("# ").replace("\n## ", "\n### ")
    ordered = [sections[name] for name, _ in PARTS.values() if name in sections]
    RESULTS.parent.mkdir(exist_ok=True)
    page = "\n\n".join([HEADING, *(f"## {part.rstrip()}" for part in ordered)])
    RESULTS.write_text(page + "\n", encoding="utf-8")


def measure(bench: Bench, name: str) -> None:
    title, part = PARTS[name]
    bench.say(title)
    found = part(bench)
    if isinstance(found, str):
        bench.say(f"{name}: skipped, {found}")
        return
    machine = (
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}."
    )
    if bench.options.scale != 1:
        machine += f" A trial: {bench.options.scale:g} of the work."
    sections = {"Targets": report.target_table(found.targets), **found.tables}
    report.show({f"{title}: {key}": table for key, table in sections.items()}, found.notes)
    if bench.options.save:
        save(title, report.markdown(title, sections, [machine, *found.notes]))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)} [all]")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} to results/")
    parser.add_argument("--model", type=Path, help="an eSIRS model folder, in place of training")
    parser.add_argument("--folder", type=Path, help="keep what is trained here")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="of the data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--samples", type=int, default=20_000, help="in each set that is compared")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the iterations")
    parser.add_argument("--beside", choices=("quick", "default"), default="default")
    parser.add_argument("--cpu", type=float, help="seconds for the paper's model [what ours took]")
    chosen = parser.parse_args()
    odd = [name for name in chosen.parts if name not in PARTS]
    if odd:
        parser.error(f"there is no part {odd[0]!r} (have: {', '.join(PARTS)})")
    chosen.model = chosen.model and chosen.model.resolve()
    return chosen


def main() -> int:
    chosen = options()
    torch.set_num_threads(chosen.threads)
    with tempfile.TemporaryDirectory(prefix="benchmark-") as place:
        bench = Bench(chosen, (chosen.folder or Path(place)).resolve())
        bench.folder.mkdir(parents=True, exist_ok=True)
        failed = 0
        for name in chosen.parts or PARTS:
            try:
                measure(bench, name)
            except subprocess.CalledProcessError as problem:  # the other parts can go on
                bench.say(f"{name}: no figures, training ended with status {problem.returncode}")
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
