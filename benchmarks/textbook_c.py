"""The direct method as a textbook writes it, in C, generated from any network without events.

Rates in an array, their sum in a loop, two uniforms, `log` from libm, a linear search, an update
from the stoichiometry table. The yardstick is fair to C: constants are folded, mass action is
written out, the compiler may use everything the machine has, only the loop itself is timed.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from string import Template

import numpy as np

from simulators import rates
from simulators.network import ReactionNetwork

FLAGS = ("-O3", "-march=native")


@dataclass(frozen=True)
class Run:
    """What one program did: speed, and the moments at the last time that show it did the work.

    `mean`, `sd`: one number per species, in the network's order.
    """

    samples: int
    speed: float  # trajectories per CPU second
    mean: tuple[float, ...]
    sd: tuple[float, ...]
    events: float | None = None  # per trajectory, where the program counts them

    @classmethod
    def of(cls, last: np.ndarray, speed: float) -> Run:
        """From the states at the last time, shape (samples, species)."""
        return cls(len(last), speed, tuple(last.mean(0).tolist()), tuple(last.std(0).tolist()))


def disagreement(one: Run, two: Run) -> float:
    """Largest difference of a mean in standard errors; beyond 5 the programs differ."""
    worst = 0.0
    for m, n, s, r in zip(one.mean, two.mean, one.sd, two.sd, strict=True):
        error = math.sqrt(s * s / one.samples + r * r / two.samples)
        worst = max(worst, abs(m - n) / error if error else math.inf * (m != n) or 0.0)
    return worst


def mass_action_constant(network: ReactionNetwork, reaction: int) -> float | None:
    """k if the rate is k·Π X(X-1)...(X-m+1), found by value at random states, else None."""
    law = network.propensities[reaction]
    if "time" in rates.names(law):
        return None
    states = np.random.default_rng(0).integers(10, 1000, (len(network.species), 8)).astype(float)
    counts = dict(zip(network.species, states, strict=True))
    product = np.ones(8)
    for name, order in network.reactions[reaction].sides[0].items():
        for less in range(order):
            product *= counts[name] - less
    ratio = rates.evaluate(law, counts | dict(network.parameters)) / product
    constant = float(np.broadcast_to(ratio, 8)[0])
    return constant if np.allclose(ratio, constant, rtol=1e-12, atol=0) else None


# --- the program ----------------------------------------------------------------------------------

_C = {
    "or": "({} || {})",
    "and": "({} && {})",
    "not": "(!{})",
    "true": "1",
    "false": "0",
    "^": "pow({}, {})",
    "min": "fmin({}, {})",
    "max": "fmax({}, {})",
    "abs": "fabs({})",
    "arcsin": "asin({})",
    "arccos": "acos({})",
    "arctan": "atan({})",
    "neg": "(-{})",
}


def _c(expression: rates.Expression, rename: dict[str, str]) -> str:
    if isinstance(expression, rates.Number):
        return f"({expression.value!r})"
    if isinstance(expression, rates.Name):
        return rename[expression.name]
    parts = [_c(part, rename) for part in expression.arguments]
    if expression.operator == "piecewise":
        return f"({parts[1]} ? {parts[0]} : {parts[2]})"
    if expression.operator in _C:
        return _C[expression.operator].format(*parts)
    if rates.RATE_OPERATORS[expression.operator].infix:
        return f"({parts[0]} {expression.operator} {parts[1]})"
    return f"{expression.operator}({', '.join(parts)})"


def _rates(network: ReactionNetwork) -> list[str]:
    index = {name: at for at, name in enumerate(network.species)}
    rename = {name: f"(double)x[{at}]" for name, at in index.items()}
    rename |= {name: f"({value!r})" for name, value in network.parameters.items()}
    lines = []
    for j, (reaction, law) in enumerate(zip(network.reactions, network.propensities, strict=True)):
        constant = mass_action_constant(network, j)
        if constant is None:
            text = _c(law, rename)
        else:
            text = repr(constant)
            for name, order in reaction.sides[0].items():
                for less in range(order):
                    text += f" * (x[{index[name]}] - {less})" if less else f" * x[{index[name]}]"
        lines.append(f"  a[{j}] = {text};")
    return lines


_PROGRAM = Template(r"""
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define M $reactions
#define V $species
#define T $steps

static uint64_t s[4];
static inline uint64_t rotl(uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
static inline uint64_t next(void) {  /* xoshiro256++ */
  uint64_t r = rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
  s[2] ^= s[0]; s[3] ^= s[1]; s[1] ^= s[2]; s[0] ^= s[3]; s[2] ^= t; s[3] = rotl(s[3], 45);
  return r;
}
static inline double uniform(void) { return ((next() >> 11) + 0.5) * 0x1.0p-53; }

static const int change[M][V] = {$change};
static const double times[T] = {$times};

static inline void propensities(const int *x, double *a) {
$rates
}

int main(int argc, char **argv) {  /* initial states, how many, seed */
  int n = atoi(argv[2]);
  uint64_t z = strtoull(argv[3], NULL, 10);
  for (int i = 0; i < 4; i++) {  /* splitmix64 */
    uint64_t y = (z += 0x9e3779b97f4a7c15u);
    y = (y ^ (y >> 30)) * 0xbf58476d1ce4e5b9u;
    y = (y ^ (y >> 27)) * 0x94d049bb133111ebu;
    s[i] = y ^ (y >> 31);
  }
  int *start = malloc(sizeof(int) * V * (size_t)n);
  int *out = malloc(sizeof(int) * T * V * (size_t)n);
  FILE *file = fopen(argv[1], "rb");
  if (!file || fread(start, sizeof(int) * V, n, file) != (size_t)n) return 1;
  struct timespec from, to;
  long events = 0;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
  for (int i = 0; i < n; i++) {
    int x[V], k = 0;
    double a[M], t = 0;
    for (int v = 0; v < V; v++) x[v] = start[(size_t)i * V + v];
    while (k < T) {
      propensities(x, a);
      double total = 0;
      for (int j = 0; j < M; j++) total += a[j];
      double then = t - log(uniform()) / total;
      while (k < T && times[k] < then) {
        for (int v = 0; v < V; v++) out[((size_t)i * T + k) * V + v] = x[v];
        k++;
      }
      if (k == T) break;
      double r = uniform() * total, c = 0;
      int j = 0;
      for (; j < M - 1; j++) {
        c += a[j];
        if (r < c) break;
      }
      for (int v = 0; v < V; v++) x[v] += change[j][v];
      t = then;
      events++;
    }
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
  printf("{\"cpu\": %.9f, \"events\": %ld, \"moments\": [",
         (to.tv_sec - from.tv_sec) + 1e-9 * (to.tv_nsec - from.tv_nsec), events);
  for (int v = 0; v < V; v++) {
    double sum = 0, square = 0;
    for (int i = 0; i < n; i++) sum += out[((size_t)i * T + T - 1) * V + v];
    for (int i = 0; i < n; i++) {
      double d = out[((size_t)i * T + T - 1) * V + v] - sum / n;
      square += d * d;
    }
    printf("%s[%.17g, %.17g]", v ? ", " : "", sum / n, sqrt(square / n));
  }
  printf("]}\n");
  return 0;
}
""")


def program(network: ReactionNetwork) -> str:
    """C source of the direct method for this network and its default time grid."""
    if network.events or any("time" in rates.names(law) for law in network.propensities):
        raise ValueError(f"{network.name}: events and rates that depend on time are not textbook")
    rows = (
        "{" + ", ".join(str(reaction.change.get(name, 0)) for name in network.species) + "}"
        for reaction in network.reactions
    )
    return _PROGRAM.substitute(
        reactions=len(network.reactions),
        species=len(network.species),
        steps=network.points,
        change=", ".join(rows),
        times=", ".join(map(repr, network.times.tolist())),
        rates="\n".join(_rates(network)),
    )


@dataclass(frozen=True)
class TextbookC:
    """The compiled program; the initial states it reads are written beside it."""

    binary: Path

    @classmethod
    def build(cls, network: ReactionNetwork, folder: Path) -> TextbookC:
        compiler = shutil.which("gcc")
        if compiler is None:
            raise RuntimeError("gcc is not installed; the textbook program needs it")
        source = folder / f"{network.name}.c"
        source.write_text(program(network), encoding="utf-8")
        binary = source.with_suffix("")
        subprocess.run([compiler, *FLAGS, "-o", binary, source, "-lm"], check=True)
        return cls(binary)

    def run(self, initial: np.ndarray, seed: int = 0) -> Run:
        """One trajectory from each initial state, shape (samples, species)."""
        states = self.binary.with_suffix(".states")
        np.ascontiguousarray(initial, dtype=np.int32).tofile(states)
        command = [str(self.binary), str(states), str(len(initial)), str(seed)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        result = json.loads(done.stdout)
        means, sds = zip(*result["moments"], strict=True)
        n = len(initial)
        return Run(n, n / result["cpu"], means, sds, result["events"] / n)
