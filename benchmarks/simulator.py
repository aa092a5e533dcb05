"""How fast is the simulator? A textbook C program and other simulators, side by side in one run.

    python benchmarks/simulator.py [--quick] [--save] [--json FILE]

Speeds are trajectories per CPU second on one thread, best of five; all programs run the same
networks on the same time grids, and their means at the last time must agree within noise.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

# before numba is loaded: kernels are compiled afresh, so that "first call" means what it says
_CACHE = tempfile.TemporaryDirectory(prefix="benchmark-")
os.environ["SURROGATE_CACHE"] = _CACHE.name

import numpy as np  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import xarray as xr  # noqa: E402
from rich.console import Console  # noqa: E402
from textbook_c import FLAGS, Run, TextbookC, disagreement  # noqa: E402

from simulators import Reaction, ReactionNetwork, models, simulate  # noqa: E402

RESULTS = Path(__file__).parent / "results" / "simulator.md"
MOST_BYTES = 400_000_000  # of recorded states in one run
NOISE = 5.0  # standard errors by which two programs may differ
REPEATS = 5

# --- what is run ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A network to run, and which peers run it too."""

    label: str
    network: ReactionNetwork
    peers: tuple[str, ...] = tuple(peers.PEERS)


def with_parameters(network: ReactionNetwork, **values: float) -> ReactionNetwork:
    return replace(network, parameters={**network.parameters, **values})


def ring(reactions: int = 300) -> ReactionNetwork:
    """Particles hop around a ring, both ways: as many species as half the reactions."""
    size = reactions // 2
    hops = []
    for i in range(size):
        after = (i + 1) % size
        hops.append(Reaction(f"forth{i}", f"X{i} -> X{after}", "k"))
        hops.append(Reaction(f"back{i}", f"X{after} -> X{i}", "k/2"))
    species = {f"X{i}": 20 + 20 * (i % 2) for i in range(size)}
    return ReactionNetwork(
        f"ring{reactions}", species, {"k": 1.0}, reactions=hops, until=2, points=30
    )


def cases(quick: bool) -> Iterator[Case]:
    esirs = models.esirs()
    yield Case("esirs, N=100, uniform starts", esirs, ("bioscrape", "libroadrunner"))
    yield Case("esirs, N=100, one start", replace(esirs, start="fixed"))
    yield Case("esirs, N=10,000", with_parameters(esirs, N=10_000), ())
    for name, make in models.MODELS.items():
        if name != "esirs":
            yield Case(name, make(), peers=() if quick else tuple(peers.PEERS))
    yield Case("ring, 300 reactions", ring(300), ())


# --- one case -------------------------------------------------------------------------------------


@dataclass
class Row:
    """One case measured. `peers`: speed, or the reason why there is none."""

    label: str
    reactions: int
    events: float  # per trajectory
    first_call: float  # CPU seconds, compilation included where it is the first of its kind
    ours: float
    c: float
    peers: dict[str, float | str] = field(default_factory=dict)
    worst: float = 0.0  # largest disagreement with the C program, in standard errors

    @property
    def ratio(self) -> float:
        return self.ours / self.c


def states(data: xr.Dataset, network: ReactionNetwork, step: int) -> np.ndarray:
    """States at one grid step, shape (samples, species)."""
    return np.stack([data[name].values[:, step] for name in network.species], axis=1)


def timed(work: Callable[[], xr.Dataset]) -> tuple[float, xr.Dataset]:
    """CPU seconds of this process, and what it made."""
    before = time.process_time()
    data = work()
    return time.process_time() - before, data


def measure(case: Case, seconds: float, folder: Path, say: Callable[[str], None]) -> Row:
    network = case.network
    say(f"{case.label}: compile")
    first_call, few = timed(partial(simulate, network, 200, threads=1))
    c = TextbookC.build(network, folder)
    trial = c.run(states(few, network, 0))
    most = MOST_BYTES // (8 * network.points * len(network.species))
    n = int(np.clip(trial.speed * seconds, 200, most))
    others: dict[str, float | str] = {}
    ours, textbook = 0.0, 0.0
    for repeat in range(REPEATS):  # side by side, so that both meet the same disturbances
        say(f"{case.label}: {n:,} trajectories, {repeat + 1} of {REPEATS}")
        spent, data = timed(partial(simulate, network, n, seed=repeat, threads=1))
        initial = states(data, network, 0)
        reference = c.run(initial, seed=repeat)
        ours, textbook = max(ours, n / spent), max(textbook, reference.speed)
    mine = Run.of(states(data, network, -1), ours)
    worst = disagreement(mine, reference)
    for name in case.peers:
        say(f"{case.label}: {name}")
        run, why = peers.measure(name, network, initial, seconds)
        others[name] = run.speed if run else why
        worst = max(worst, disagreement(run, reference) if run else 0.0)
    return Row(
        case.label,
        len(network.reactions),
        reference.events or 0.0,
        first_call,
        ours,
        textbook,
        others,
        worst,
    )


# --- threads and start-up -------------------------------------------------------------------------


def two_threads(seconds: float) -> float:
    """Gain of two threads over one in wall time, best of several of each, taken in turn."""
    network, n = models.esirs(), int(400_000 * seconds)
    walls = [np.inf, np.inf]
    for repeat in range(2 * REPEATS):
        for extra in (0, 1):
            began = time.perf_counter()
            simulate(network, n, seed=repeat, threads=1 + extra)
            walls[extra] = min(walls[extra], time.perf_counter() - began)
    return float(walls[0] / walls[1])


def cold_start() -> float:
    """Seconds from the start of Python to the first trajectories, with nothing compiled before."""
    code = "from simulators import models, simulate; simulate(models.esirs(), 10)"

    def once() -> float:
        with tempfile.TemporaryDirectory() as cache:
            return wall([sys.executable, "-c", code], SURROGATE_CACHE=cache)

    return min(once() for _ in range(REPEATS))


def command(*arguments: str) -> float | None:
    """Best wall time of the `surrogate` command, once it has run before; None without it."""
    script = Path(sys.executable).parent / "surrogate"
    if not script.exists():
        return None
    try:
        wall([str(script), *arguments])
        return min(wall([str(script), *arguments]) for _ in range(REPEATS))
    except subprocess.CalledProcessError:
        return None


def wall(arguments: list[str], **environment: str) -> float:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            arguments, check=True, capture_output=True, cwd=folder, env=os.environ | environment
        )
    return time.perf_counter() - began


# --- tau-leaping ----------------------------------------------------------------------------------


@dataclass
class Leap:
    """Tau-leaping against exact runs: speed, and the bias of one species.

    Differences of mean and standard deviation, root mean square over the grid: in standard errors
    (about 1 when there is no bias, only noise) and in percent of the exact value.
    """

    label: str
    species: str
    speedup: float
    mean_errors: float
    mean_percent: float
    sd_errors: float
    sd_percent: float


def large_lotka_volterra(scale: float = 100.0) -> ReactionNetwork:
    """Prey and predators `scale` times as many, with the same mean course."""
    small = models.lotka_volterra()
    counts = {name: int(scale * int(str(count))) for name, count in small.species.items()}
    rate = small.parameters["predation"] / scale
    return replace(with_parameters(small, predation=rate), species=counts)


def leaping(label: str, network: ReactionNetwork, n: int) -> list[Leap]:
    runs = {}
    for method in ("tau", "direct"):
        simulate(network, 1, threads=1, method=method)
        run = partial(simulate, network, n, seed=len(method), threads=1, method=method)
        runs[method] = timed(run)
    speedup = runs["direct"][0] / runs["tau"][0]
    found = []
    for name in network.species:
        tau, exact = (runs[method][1][name].values[:, 1:].astype(float) for method in runs)
        mean, noise, sd, sd_noise = _compare(tau, exact)
        bias = (mean / noise, 100 * mean / exact.mean(0), sd / sd_noise, 100 * sd / exact.std(0))
        rms = (float(np.sqrt(np.mean(value**2))) for value in bias)
        found.append(Leap(label, name, speedup, *rms))
    return found


def _compare(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, ...]:
    """Difference of the means, its standard error, and both for the sds; each (T,)."""

    def sd_variance(x: np.ndarray) -> np.ndarray:
        centred, sd = x - x.mean(0), x.std(0)
        return np.asarray((np.mean(centred**4, axis=0) / sd**2 - sd**2) / (4 * len(x)))

    noise = np.sqrt(one.var(0) / len(one) + two.var(0) / len(two))
    sd_noise = np.sqrt(sd_variance(one) + sd_variance(two))
    return one.mean(0) - two.mean(0), noise, one.std(0) - two.std(0), sd_noise


# --- targets and tables ---------------------------------------------------------------------------


def targets(
    rows: list[Row], threads: float, seconds: dict[str, float | None]
) -> list[report.Target]:
    uniform, fixed, large, *others = rows
    found = [
        report.Target("esirs N=100: ours / textbook C", uniform.ratio, 3.0),
        report.Target("esirs N=10,000: ours / textbook C", large.ratio, 3.0),
    ]
    for name, wanted in (("bioscrape", 10.0), ("gillespy2", 50.0)):
        speed = fixed.peers.get(name)
        ratio = fixed.ours / speed if isinstance(speed, float) else None
        found.append(report.Target(f"esirs N=100: ours / {name}", ratio, wanted))
    slowest = min(others, key=lambda row: row.ratio)
    found.append(
        report.Target(
            f"every network: ours / textbook C (least: {slowest.label})", slowest.ratio, 1.3
        )
    )
    found.append(report.Target("two threads / one thread, wall time", threads, 1.7))
    limits = {"first call, nothing compiled": 10.0, "surrogate simulate esirs, compiled": 3.0}
    limits["surrogate --help"] = 0.5
    found += [
        report.Target(name, seconds[name], limit, at_most=True, unit=" s")
        for name, limit in limits.items()
    ]
    return found


def speed_table(rows: list[Row]) -> report.Section:
    head = ["network", "reactions", "events each", "ours /s", "events/s", "C /s", "ours / C"]
    head += [f"ours / {name}" for name in peers.PEERS] + ["first call", "agree"]
    body = []
    for row in rows:
        line = [row.label, str(row.reactions), f"{row.events:,.0f}", f"{row.ours:,.0f}"]
        line += [f"{row.ours * row.events / 1e6:,.0f} M", f"{row.c:,.0f}", f"{row.ratio:.2f}"]
        for name in peers.PEERS:
            speed = row.peers.get(name)
            line.append(f"{row.ours / speed:.0f}" if isinstance(speed, float) else "–")
        line += [f"{row.first_call:.1f} s", f"{row.worst:.1f} se"]
        body.append(line)
    return head, body


def leap_table(leaps: list[Leap]) -> report.Section:
    head = ["network", "species", "tau / direct", "mean, se", "mean, %", "sd, se", "sd, %"]
    return head, [
        [
            leap.label,
            leap.species,
            f"{leap.speedup:.1f}×",
            f"{leap.mean_errors:.1f}",
            f"{leap.mean_percent:.2f}",
            f"{leap.sd_errors:.1f}",
            f"{leap.sd_percent:.2f}",
        ]
        for leap in leaps
    ]


def reasons(rows: list[Row]) -> list[str]:
    """Why a peer has no figure, each reason once."""
    missing = {
        f"{name}: {speed}"
        for row in rows
        for name, speed in row.peers.items()
        if isinstance(speed, str)
    }
    return sorted(missing)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short runs, peers on esirs only")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures to FILE")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} to results/")
    options = parser.parse_args()
    seconds = 0.25 if options.quick else 1.0
    status = Console(stderr=True)

    rows = []
    with tempfile.TemporaryDirectory() as folder, status.status("") as line:
        for case in cases(options.quick):
            rows.append(measure(case, seconds, Path(folder), line.update))
        line.update("tau-leaping")
        few = 300 if options.quick else 5_000
        huge = with_parameters(models.esirs(), N=100_000)
        leaps = leaping("esirs, N=100,000", replace(huge, start="fixed"), few)
        leaps += leaping("lotka_volterra × 100", large_lotka_volterra(), few)
        line.update("threads and start-up")
        threads = two_threads(seconds)
        starts = {
            "first call, nothing compiled": cold_start(),
            "surrogate simulate esirs, compiled": command("simulate", "esirs"),
            "surrogate --help": command("--help"),
        }
    found = targets(rows, threads, starts)
    sections = {
        "Targets": report.target_table(found),
        "Speed, one thread": speed_table(rows),
        "Tau-leaping against exact runs": leap_table(leaps),
    }
    notes = [
        f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores, "
        f"load average {os.getloadavg()[1]:.1f}; C is gcc {' '.join(FLAGS)}.",
        "Trajectories per CPU second on one thread, best of five. "
        "`agree`: largest difference of a mean at the last time, in standard errors.",
        *(f"No figure for {reason}." for reason in reasons(rows)),
    ]
    report.show(sections, notes)
    if options.json:
        figures: dict[str, Sequence[Any]] = {"rows": rows, "leaps": leaps, "targets": found}
        plain = {key: [asdict(item) for item in items] for key, items in figures.items()}
        options.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(
            report.markdown("Simulator benchmark", sections, notes), encoding="utf-8"
        )
    apart = [row.label for row in rows if row.worst > NOISE]
    if apart:
        status.print(f"programs disagree on: {', '.join(apart)}", style="red")
    return 1 if apart else 0


if __name__ == "__main__":
    sys.exit(main())
