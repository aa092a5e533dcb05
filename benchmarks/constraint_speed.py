"""How fast are constraints? Torch by hand and other libraries, side by side in one run.

    python benchmarks/constraint_speed.py [--quick] [--save] [--json FILE]

Times are CPU seconds for values and gradients of a whole batch on one thread, medians of many runs
taken in turn; all programs get the same signals, and their values and gradients must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import constraint_peers as peers
import report
import torch
from rich.console import Console
from torch import Tensor

from constraints import Layout, LogProbabilistic, Robustness, compiled, parse

RESULTS = Path(__file__).parent / "results" / "constraints.md"
TOLERANCE = 1e-4  # float32: relative to 1 + |value|
OURS, HAND, STLCGPP, RTAMT = "ours", "torch by hand", "STLCG++", "RTAMT"
SEMANTICS = ("robustness", "log-probabilistic")


def ours(
    text: str, names: tuple[str, ...], steps: int, trace: bool, semantics: str
) -> Callable[..., Tensor]:
    """Our program as a function of the signals, each (B, T): (B,) at step 0, or a trace (B, T)."""
    program = compiled(parse(text), Layout.series(names, steps))
    meaning = Robustness() if semantics == "robustness" else LogProbabilistic(k=1.0)

    def value(*signals: Tensor) -> Tensor:
        named = dict(zip(names, signals, strict=True))
        return program.trace(named, meaning, end="clip") if trace else program(named, meaning)

    return value


def our_run(case: peers.Case, semantics: str) -> peers.Run:
    value = ours(case.formula, tuple(case.signals), case.steps, case.trace, semantics)
    # a trace has a value at every step, more than the others compute
    return peers.with_gradient(
        case, lambda *s: case.selected(value(*s)) if case.trace else value(*s)
    )


# --- one case -------------------------------------------------------------------------------------


@dataclass
class Row:
    """One program on one formula under one semantics."""

    case: str
    semantics: str
    program: str
    seconds: float  # for the whole batch
    apart: float  # largest difference from torch by hand, relative to 1 + |value|


def apart(one: peers.Result, two: peers.Result) -> float:
    """Largest difference of values and, where both have them, gradients; first traces if fewer."""
    pairs = [(one[0], two[0]), *(zip(one[1], two[1], strict=True) if one[1] and two[1] else ())]
    worst = []
    for mine, other in pairs:
        expected = other[: len(mine)]
        worst.append(((mine - expected).abs() / (1 + expected.abs())).max())
    return float(torch.stack(worst).max())  # nan if any is


def measure(
    case: peers.Case, semantics: str, seconds: float, traces: int, missing: set[str]
) -> list[Row]:
    programs: dict[str, Callable[[], peers.Run]] = {
        HAND: lambda: peers.by_hand(case, semantics),
        OURS: lambda: our_run(case, semantics),
    }
    if semantics == "robustness":
        for form in ("recurrent", "masking"):
            programs[f"{STLCGPP}, {form}"] = lambda form=form: peers.stlcgpp(case, form)
        programs[RTAMT] = lambda: peers.rtamt(case, traces)
    runs = {}
    for name, prepare in programs.items():
        try:
            runs[name] = prepare()
        except ImportError as error:
            missing.add(f"{name}: cannot import from {error.name}")
    results = {name: run() for name, run in runs.items()}
    times = peers.race(runs, seconds)
    if RTAMT in times:
        times[RTAMT] *= case.batch / traces
    return [
        Row(case.label, semantics, name, times[name], apart(results[name], results[HAND]))
        for name in runs
    ]


# --- targets and tables ---------------------------------------------------------------------------


def fastest(rows: list[Row], case: str, semantics: str, program: str) -> float | None:
    """Seconds of a program, in the faster of its forms."""
    found = [
        row.seconds
        for row in rows
        if (row.case, row.semantics) == (case, semantics) and row.program.startswith(program)
    ]
    return min(found, default=None)


def ratio(above: float | None, below: float | None) -> float | None:
    return above / below if above is not None and below is not None else None


def targets(rows: list[Row], cases: list[peers.Case]) -> list[report.Target]:
    found = []
    for case in cases:
        for semantics in SEMANTICS:
            mine, hand = (fastest(rows, case.label, semantics, name) for name in (OURS, HAND))
            title = f"{case.label}, {semantics}: time of ours / {HAND}"
            found.append(report.Target(title, ratio(mine, hand), 1.5, at_most=True))
    for case in cases:
        mine = fastest(rows, case.label, "robustness", OURS)
        for peer in (STLCGPP, RTAMT):
            other = fastest(rows, case.label, "robustness", peer)
            title = f"{case.label}, robustness: time of {peer} / ours"
            found.append(report.Target(title, ratio(other, mine), 20.0))
    return found


def time_table(rows: list[Row]) -> report.Section:
    head = ["formula", "semantics", "program", "ms a batch", "time / ours", "apart"]
    body = []
    for row in rows:
        times = ratio(row.seconds, fastest(rows, row.case, row.semantics, OURS))
        against = "–" if times is None else f"{times:.2f}"
        line = [row.case, row.semantics, row.program, f"{1e3 * row.seconds:,.2f}"]
        body.append([*line, against, f"{row.apart:.0e}"])
    return head, body


def describe(case: peers.Case) -> str:
    where = "every step where the windows fit" if case.trace else "step 0"
    size = f"{case.batch:,} traces of {case.steps:,} steps"
    return f"{case.label}: `{case.formula}`, {size}, at {where}."


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="short runs")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the figures to FILE")
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} to results/")
    options = parser.parse_args()
    seconds, traces = (2.0, 20) if options.quick else (15.0, 50)
    torch.set_num_threads(1)
    status = Console(stderr=True)

    cases, rows, missing = [peers.outbreak(), peers.recurrence()], [], set[str]()
    with status.status("") as line:
        for case in cases:
            for semantics in SEMANTICS:
                line.update(f"{case.label}, {semantics}")
                rows += measure(case, semantics, seconds, traces, missing)
    found = targets(rows, cases)
    sections = {
        "Targets": report.target_table(found),
        "Values and gradients, one thread": time_table(rows),
    }
    notes = [
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}.",
        *(describe(case) for case in cases),
        "Median CPU time of values and gradients, float32; RTAMT: values only, scaled up from "
        f"{traces} traces. `apart`: largest difference from {HAND}, relative to 1 + |value|.",
        *(f"No figure for {reason}." for reason in sorted(missing)),
    ]
    report.show(sections, notes)
    if options.json:
        plain = {"rows": [asdict(row) for row in rows], "targets": [asdict(t) for t in found]}
        options.json.write_text(json.dumps(plain, indent=1), encoding="utf-8")
    if options.save:
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(
            report.markdown("Constraint benchmark", sections, notes), encoding="utf-8"
        )
    wrong = [f"{row.program} on {row.case}" for row in rows if not row.apart <= TOLERANCE]
    if wrong:
        status.print(f"disagree with {HAND}: {', '.join(wrong)}", style="red")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
