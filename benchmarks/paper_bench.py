"""What the paper's experiments share: a run measured, its distances from an exact law, its row.

D = ½ Σ|p - q| between the histogram of the samples and exact probabilities, for each marginal; its
floor is the same of as many exact draws.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
import report
from rich.console import Console

from surrogate.model import Surrogate, pretrained

FLOORS = 5  # sets of exact draws that the floor is averaged over
NOTHING = "–"
T = TypeVar("T")


class Absent(Exception):
    """What an experiment needs is not here."""


@dataclass
class Cost:
    """What a run took: seconds, and evaluations of the network for each sample."""

    samples: int
    evaluations: float
    cpu: float = 0.0
    wall: float = 0.0

    def plus(self, other: Cost) -> Cost:
        evaluations = self.evaluations + other.evaluations
        return Cost(self.samples, evaluations, self.cpu + other.cpu, self.wall + other.wall)

    def scaled(self, samples: int) -> float:
        """CPU seconds of `samples` samples."""
        return self.cpu * samples / self.samples


@contextmanager
def measured(cost: Cost) -> Iterator[Cost]:
    """Add the time of a block."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield cost
    cost.wall += time.perf_counter() - wall
    cost.cpu += time.process_time() - cpu


@dataclass
class Row:
    """A method's samples: D of each marginal by variable, shares, cost."""

    method: str
    cost: Cost
    distances: dict[str, np.ndarray]  # variable -> (T,)
    floors: dict[str, np.ndarray]
    met: float  # share of samples
    consistent: float | None = None
    log_p: float | None = None
    particles: int = 0  # of ours

    @property
    def excess(self) -> float:
        """Mean D of all marginals relative to that of the floor."""
        mean = [np.concatenate(list(d.values())).mean() for d in (self.distances, self.floors)]
        return float(mean[0] / mean[1])


@dataclass
class Found:
    """What an experiment brought."""

    targets: list[report.Target]
    tables: dict[str, report.Section]
    notes: list[str] = field(default_factory=list)


class Bench:
    """Options, the model, and what earlier experiments of this run have measured."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.samples: int = options.samples
        self.slow: int = options.paper_samples or options.samples
        self.seed: int = options.seed
        self.options = options
        self.console = Console(stderr=True)
        self._known: dict[Hashable, object] = {}

    @cached_property
    def model(self) -> Surrogate:
        folder = self.options.model
        return Surrogate.load(folder) if folder else pretrained("esirs")

    def say(self, text: str) -> None:
        self.console.print(f"{time.strftime('%H:%M:%S')}  {text}", highlight=False, markup=False)

    def progress(self, what: str, total: int) -> Callable[[int], None]:
        """Report progress at every tenth of the steps."""
        done = 0

        def tell(steps: int) -> None:
            nonlocal done
            before, done = done, done + steps
            if total and 10 * before // total < 10 * done // total:
                self.say(f"{what}: {100 * done // total} %")

        return tell

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What was made before under this key, or is made now."""
        if key not in self._known:
            self._known[key] = make()
        found: T = self._known[key]  # type: ignore[assignment]
        return found

    def done(self, row: Row) -> Row:
        """Tell of a finished row at once."""
        distances = ", ".join(f"D({name}) {triple(d)}" for name, d in row.distances.items())
        self.say(f"{row.method}: {distances}; {row.met:.1%} met; {row.cost.cpu:,.0f} s of CPU time")
        return row


# --- distances ------------------------------------------------------------------------------------


def from_law(shares: np.ndarray, law: np.ndarray) -> np.ndarray:
    """D of shares (..., bins) from exact probabilities; what fell into no bin counts as wrong."""
    outside = 1 - shares.sum(-1) + np.abs(1 - law.sum(-1))
    return 0.5 * (np.abs(shares - law).sum(-1) + outside)


def counted(values: np.ndarray, bins: int) -> np.ndarray:
    """Shares of the counts 0 .. bins - 1 at each step: (N, T) to (T, bins)."""
    inside = np.where((values >= 0) & (values < bins), values, bins).astype(int)
    found = [np.bincount(column, minlength=bins + 1)[:bins] for column in inside.T]
    return np.array(found) / len(values)


# --- tables ---------------------------------------------------------------------------------------


def triple(values: np.ndarray) -> str:
    """Median / mean / max."""
    if len(values) == 1:
        return f"{values[0]:.3f}"
    return " / ".join(f"{how(values):.3f}" for how in (np.median, np.mean, np.max))


def share(value: float | None) -> str:
    return NOTHING if value is None else f"{100 * value:.1f} %"


def head(names: Iterable[str]) -> list[str]:
    found = ["method", "samples"]
    for name in names:
        found += [f"D({name}) median / mean / max", "floor"]
    found += ["met", "consistent", "evaluations", "CPU s", "wall s", "CPU / ours", "log P"]
    return found


def cells(row: Row, ours: Row) -> list[str]:
    """A row of a table with `head`; CPU time of fewer samples is scaled to those of ours."""
    cost = row.cost
    found = [row.method, f"{cost.samples:,}"]
    for name, d in row.distances.items():
        found += [triple(d), triple(row.floors[name])]
    found += [share(row.met), share(row.consistent), f"{cost.evaluations:,.0f}"]
    found += [f"{cost.cpu:,.0f}", f"{cost.wall:,.0f}", f"{slower(row, ours):.1f}"]
    return [*found, NOTHING if row.log_p is None else f"{row.log_p:.3f}"]


def slower(row: Row, ours: Row) -> float:
    """CPU time relative to ours, for as many samples."""
    return row.cost.scaled(ours.cost.samples) / ours.cost.cpu


def published(method: str, columns: list[str], **known: str) -> list[str]:
    """A row of figures that others gave: by the name of a column, or of its variable."""
    found = [NOTHING] * len(columns)
    found[0] = method
    for name, text in known.items():
        named = (title == name or title.startswith(f"D({name})") for title in columns)
        found[list(named).index(True)] = text
    return found
