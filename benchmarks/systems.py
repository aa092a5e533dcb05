"""Every system in one table: networks, scenarios, real series and tables, each beside its floor.

    python benchmarks/systems.py [--only NAME ...] [--models FOLDER] [--preset default]
                                 [--minutes 15] [--samples 10000] [--threads 2] [--save]

Models are trained once and kept in the folder of --models with the rows that were measured, so that
a run can be continued: the table shows all rows that the folder holds. D and C2ST compare plain
samples with fresh simulations of the same number (tables: with held-out rows); D is divided by its
noise floor, the distance of the truth from itself, and of the variables the furthest counts.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import report
import systems_bench
import systems_networks
import systems_series
import systems_tables
import timegan_scores
import torch
from systems_bench import Absent, Bench, Row

from constraints.errors import SurrogateError

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "systems.md"
ROWS: dict[str, Callable[[Bench], Row]] = {
    **systems_networks.ROWS,
    **systems_series.ROWS,
    **systems_tables.ROWS,
}
NOTES = [
    "C2ST: accuracy of gradient-boosted trees, 3 folds, on levels and increments (tables: on "
    "columns); 0.5 is chance. Figures in parentheses are the truth: exact, or 200,000 simulations.",
    "Windows: TimeGAN's protocol, beside the scores of the data against themselves. Conditions on "
    "tables: against rejection from the same model.",
]


def options(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", metavar="NAME", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--models", type=Path, default=ROOT / "benchmarks" / "models")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--iterations", type=int, help="training steps [the preset's]")
    parser.add_argument("--minutes", type=float, help="at most, of each training [no limit]")
    parser.add_argument("--samples", type=int, default=10_000, help="plain samples of each system")
    parser.add_argument("--guided", type=int, default=5_000, help="samples of a scenario")
    parser.add_argument("--event-samples", type=int, default=50_000, help="that show rare events")
    parser.add_argument("--gru-steps", type=int, default=timegan_scores.STEPS)
    parser.add_argument("--forecasts", type=int, default=20, help="held-out windows")
    parser.add_argument("--forecast-draws", type=int, default=500, help="continuations of each")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--save", action="store_true", help=f"write results/{RESULTS.name}")
    chosen = parser.parse_args(words)
    odd = [name for name in chosen.only or () if name not in ROWS]
    if odd:
        parser.error(f"there is no row {odd[0]!r}; have: {', '.join(ROWS)}")
    return chosen


def conditions(chosen: argparse.Namespace) -> str:
    """Where and how this was measured."""
    capped = "" if chosen.minutes is None else f", {chosen.minutes:g} min at most"
    return (
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}; {chosen.threads} threads, "
        f"preset {chosen.preset}{capped}; {chosen.samples:,} plain samples, {chosen.guided:,} of a "
        "scenario."
    )


def sections(rows: dict[str, Row]) -> dict[str, report.Section]:
    """The table of all rows, and their targets."""
    ordered = [rows[name] for name in ROWS if name in rows]
    head, _ = report.target_table([])
    body = [
        [row.system, *cells] for row in ordered for cells in report.target_table(row.targets)[1]
    ]
    return {"Systems": systems_bench.table(ordered), "Targets": (["system", *head], body)}


def main(words: list[str] | None = None) -> int:
    chosen = options(words)
    torch.set_num_threads(chosen.threads)
    bench, failed = Bench(chosen), 0
    for name in chosen.only or ROWS:
        bench.say(name)
        try:
            row = ROWS[name](bench)
        except (Absent, SurrogateError) as problem:  # the other rows can go on
            bench.say(f"{name}: no figures, {problem}")
            failed += not isinstance(problem, Absent)
            continue
        bench.keep(name, row)
        bench.say(" | ".join(row.cells()))
    found = sections(bench.kept())
    notes = [conditions(chosen), *NOTES]
    report.show(found, notes)
    if chosen.save:
        RESULTS.write_text(report.markdown("Systems", found, notes), "utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
