"""The master equation by size: CPU seconds and memory, and its integrator against scipy's.

    python benchmarks/master_equation.py          # SIR epidemics of 5e3, 3e5 and 2e6 states

Each size runs in a process of its own, so that its memory is its own. `expm_multiply` (Al-Mohy &
Higham 2011) is scipy's action of a matrix exponential on a vector, from Taylor polynomials.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import expm_multiply

from simulators import MasterEquation, models
from simulators.exact.chain import Chain
from simulators.exact.monitors import exists, reaches

SIZES = {99: None, 763: None, 1998: 1.0}  # population, and until when, where not the model's own


def timed(what: str, run: object) -> object:
    began = time.process_time()
    found = run()  # type: ignore[operator]
    took = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  {what:34s} {took:8.2f} s  {memory:5.2f} GB", flush=True)
    return found


def generator(chain: Chain) -> sparse.csr_array:
    """Q as a matrix, transposed to act on distributions."""
    size = len(chain)
    jumps = sparse.csr_array((chain.entries, chain.columns, chain.starts), shape=(size, size))
    return (chain.rate * (jumps + sparse.diags_array(chain.stays - 1.0))).T.tocsr()


def run(population: int) -> None:
    until = SIZES[population]
    network = models.sir()
    MasterEquation(network, {"I": 3}, {"N": 30}).draw(3, {2: "I > 2"})  # compiles
    given = ({"I": max(3, population // 100)}, {"N": population})
    exact = timed("states and chain", lambda: MasterEquation(network, *given, until=until))
    assert isinstance(exact, MasterEquation)
    jumps = exact._chain.rate * float(np.ptp(exact.times))
    estimate = exact.seconds()
    print(f"  {len(exact.states):,} states, {jumps:,.0f} jumps, a pass: {estimate:.1f} s")
    level = f"I >= {population // 3}"
    timed("P of a rule at every step", lambda: exact.probability({"all": f"I <= {population}"}))
    timed("P of exists", lambda: exact.probability({"path": exists(level)}))
    first, last = float(exact.times[0]), float(exact.times[-1])
    timed("P of a first passage", lambda: exact.probability({"path": reaches(level, first, last)}))
    timed("marginals", exact.marginals)
    timed("1,000 draws given a step", lambda: exact.draw(1_000, {10: "I > 2"}))
    if population < 1000:
        q, gap = generator(exact._chain), float(exact.times[1] - exact.times[0])
        one = timed("one step by uniformisation", lambda: exact._chain.forward(exact._start, gap))
        other = timed("one step by expm_multiply", lambda: expm_multiply(q * gap, exact._start))
        print(f"  largest difference {np.abs(np.asarray(one) - np.asarray(other)).max():.1e}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run(int(sys.argv[1]))
    else:
        for size in SIZES:
            print(f"SIR, population {size}", flush=True)
            subprocess.run([sys.executable, __file__, str(size)], check=True)
