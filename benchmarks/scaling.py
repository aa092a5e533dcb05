"""How does the cost of a scenario grow with samples, and with the length of the series?

    python benchmarks/scaling.py [--save] [--threads 2]

Twisted particles, ten noise levels, on random walks of 2 channels and H steps, with networks that
are not trained, for the cost does not depend on it. Linear cost has the same seconds in each row,
per 1,000 samples, and per 1,000 samples and 100 numbers (H times channels).
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import report
import torch
import xarray as xr

from constraints import parse
from surrogate.diffusion.covariance import Covariance
from surrogate.guidance.scenario import Scenario
from surrogate.guidance.twisted import twisted
from surrogate.guidance.twisted_batches import levels
from surrogate.kinds.trajectories.codec import TimeSeriesCodec
from surrogate.model import Surrogate
from surrogate.random import stream

RESULTS = Path(__file__).parent / "results" / "scaling.md"
SCENARIOS = {
    "bridge": "a(0) = 0.5 +- 0.05 and b({last}) = 1 +- 0.05",
    "bound": "forall t: a(t) <= 2",
}
STEPS = 10


def walks(steps: int, count: int = 3000) -> xr.Dataset:
    """Two channels of stationary noise with a memory of a fifth of the series."""
    rng = np.random.default_rng(0)
    keep = np.exp(-5 / steps)
    x = rng.standard_normal((count, 2, steps))
    for t in range(1, steps):
        x[:, :, t] = keep * x[:, :, t - 1] + np.sqrt(1 - keep**2) * x[:, :, t]
    made = {name: (("sample", "time"), x[:, i]) for i, name in enumerate("ab")}
    return xr.Dataset(made, coords={"time": np.arange(float(steps))})


def model_of(steps: int) -> Surrogate:
    data = walks(steps)
    codec = TimeSeriesCodec.fit(data)
    model = Surrogate.untrained(codec, 0)
    model.covariance = Covariance.of(codec.encode(data, slice(None), stream(0)))
    return model


def seconds(model: Surrogate, text: str, count: int) -> float:
    """The best of two runs; what is made once for all batches is made before."""
    goal = parse(text.format(last=model.shape[1] - 1))
    scenario, sigmas = Scenario(model, goal), levels(model.covariance, STEPS)
    twisted(scenario, 8, sigmas, stream(1))
    found = []
    for run in range(2):
        began = time.perf_counter()
        twisted(scenario, count, sigmas, stream(2, run))
        found.append(time.perf_counter() - began)
    return min(found)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--save", action="store_true", help=f"write {RESULTS.name} to results/")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows, first = [], {}
    for steps, count in [
        (30, 1000),
        (30, 4000),
        (30, 16000),
        (100, 2000),
        (300, 2000),
        (1000, 2000),
    ]:
        model = model_of(steps)
        for name, text in SCENARIOS.items():
            taken = seconds(model, text, count)
            each = 1e3 * taken / count
            numbers = 2 * steps
            one = first.setdefault(name, each / numbers)
            cells = [name, f"{steps:,}", f"{count:,}", f"{taken:.2f}", f"{each:.2f}"]
            rows.append([*cells, f"{100 * each / numbers:.2f}", f"{each / numbers / one:.2f}×"])
            print(*rows[-1], sep="  ", file=sys.stderr)
    head = ["scenario", "H", "particles", "s", "s per 1,000", "and 100 numbers", "to the first"]
    notes = [
        f"Python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, "
        f"{os.cpu_count()} cores, load average {os.getloadavg()[1]:.1f}, "
        f"{options.threads} threads.",
        f"{STEPS} noise levels; 2 channels. At most 1× in the last column: no more than linear.",
    ]
    sections = {"Cost": (head, rows)}
    report.show(sections, notes)
    if options.save:
        RESULTS.write_text(report.markdown("Cost of a scenario", sections, notes) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
