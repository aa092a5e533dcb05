"""The cost of the README's bridge beside its floor: its network FLOPs at this machine's GEMM rate.

    python benchmarks/bridge_cost.py [--samples 5000] [--threads 1] [--method auto]

FLOPs are those of all matrix products of the run, counted by torch; the GEMM rate is that of single
precision products of the shape that the decoder's heads have, measured in the same process.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import torch
from torch.utils.flop_counter import FlopCounterMode

from constraints import bridge
from surrogate.guidance.sampler import sample
from surrogate.model import pretrained

ROWS, WIDTH, REPEATS = 7_500, 128, 200
GOAL = bridge("S0=95,I0=5,S25=30", ("S", "I", "R"))


def gemm_rate() -> float:
    """FLOP/s of CPU time."""
    a, b = torch.randn(ROWS, WIDTH), torch.randn(WIDTH, WIDTH)
    a @ b
    began = time.process_time()
    for _ in range(REPEATS):
        a @ b
    return REPEATS * 2 * ROWS * WIDTH**2 / (time.process_time() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=5_000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--method", default="auto")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    model = pretrained("esirs")
    with FlopCounterMode(display=False) as counted:
        sample(model, options.samples, GOAL, seed=1, method=options.method)
    began, wall = time.process_time(), time.perf_counter()
    found = sample(model, options.samples, GOAL, seed=1, method=options.method)
    spent, wall = time.process_time() - began, time.perf_counter() - wall
    rate = gemm_rate()
    flops = counted.get_total_flops()
    print(
        f"{options.samples:,} samples by {found.diagnostics.method}: {spent:.1f} CPU s, "
        f"{wall:.1f} s; {flops / 1e9:,.0f} GFLOP of networks, {flops / rate:.1f} s at "
        f"{rate / 1e9:.0f} GFLOP/s; log P {found.diagnostics.log_probability:.3f}"
    )


if __name__ == "__main__":
    main()
