"""The paper's experiments: ours, the paper's method and others on the same model, in one run.

    python benchmarks/paper.py [NAME ...] [--samples 5000] [--paper-samples N] [--threads 2]
                               [--model FOLDER] [--judge FOLDER] [--data FOLDER] [--seed 1] [--save]

Scassola et al. 2023, "Zero-shot conditioning of score-based diffusion models by neuro-symbolic
constraints". Names are those of EXPERIMENTS; without any, all of them run. Each brings a table with
the published figures beside; rows are printed as they are finished, and --save keeps each
experiment when it is done (of others the page keeps what it had).
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import paper_digits
import paper_esirs
import paper_faces
import paper_tables
import paper_toy
import report
import torch
from paper_bench import Absent, Bench, Found

RESULTS = Path(__file__).parent / "results" / "paper.md"
TITLE = "# The paper's experiments"
EXPERIMENTS: dict[str, Callable[[Bench], Found]] = {
    "toy": paper_toy.experiment,
    "esirs-bridge": partial(paper_esirs.experiment, paper_esirs.BRIDGE),
    "esirs-bridge-80": partial(paper_esirs.experiment, paper_esirs.OTHER),
    "esirs-inequality": partial(paper_esirs.experiment, paper_esirs.INEQUALITY),
    "universal-guidance": paper_esirs.universal_guidance,
    **paper_tables.EXPERIMENTS,
    **paper_digits.EXPERIMENTS,
    **paper_faces.EXPERIMENTS,
}


def conditions(bench: Bench) -> str:
    """Where and how this was measured."""
    options = bench.options
    fewer = f", {bench.slow:,} of the slow methods" if bench.slow != bench.samples else ""
    return (
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}. {bench.samples:,} "
        f"samples{fewer}, seed {bench.seed}, {options.threads} threads."
    )


def kept(name: str, page: str) -> None:
    """Put an experiment into the page of results; what it has of others stays."""
    old = RESULTS.read_text("utf-8") if RESULTS.exists() else ""
    parts = dict(re.findall(r"^## (\S+)\n(.*?)(?=^## |\Z)", old, re.M | re.S))
    parts[name] = re.sub(r"^##? ", "### ", page, flags=re.M).split("\n", 1)[1]
    order = [known for known in EXPERIMENTS if known in parts]
    text = "\n".join(f"## {each}\n{parts[each].rstrip()}\n" for each in order)
    RESULTS.write_text(f"{TITLE}\n\n{text}", "utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument(
        "--paper-samples",
        type=int,
        help="of the slow methods, whose CPU time is then scaled [as --samples]",
    )
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--model",
        type=Path,
        help="a model's folder [eSIRS and digits: the bundled ones; tables, faces: trained now]",
    )
    parser.add_argument("--judge", type=Path, help="a classifier of digits [trained now]")
    parser.add_argument("--data", type=Path, help="the folder of the data [../shared/data]")
    parser.add_argument("--rejection-steps", type=int, default=30, help="of draws from tables")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--save", action="store_true", help=f"write results/{RESULTS.name}")
    options = parser.parse_args()
    odd = [name for name in options.names if name not in EXPERIMENTS]
    if odd:
        parser.error(f"there is no experiment {odd[0]!r}; have: {', '.join(EXPERIMENTS)}")
    torch.set_num_threads(options.threads)
    bench = Bench(options)
    for name in options.names or EXPERIMENTS:
        bench.say(name)
        try:
            found = EXPERIMENTS[name](bench)
        except Absent as problem:
            if options.names:
                parser.error(f"{name}: {problem}")
            bench.say(f"left out: {problem}")
            continue
        sections = {**found.tables, f"Targets: {name}": report.target_table(found.targets)}
        notes = [conditions(bench), *found.notes]
        report.show(sections, notes)
        if options.save:
            kept(name, report.markdown(name, sections, notes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
