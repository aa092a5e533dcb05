"""How far samples are from the truth, averaged until the noise of measuring is small.

D(t) = ½ Σ|p - q| compares a variable's histograms at step t; the correlation error is the mean
|r - s| over pairs of columns. Both are averaged over all pairs of a sample set and a reference set
of n trajectories each. The floor is the same average with exact sets in place of the samples, and
`again` is one more such average: what the truth itself would score.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import report
import xarray as xr

from simulators import ReactionNetwork, simulate
from surrogate.evaluation import distances

REFERENCES = 5  # exact sets that others are compared with
SETS = 3  # sets of samples that are compared, and exact ones in their place
FLOOR = 12  # exact sets of which the floor is made
SEED = 777_001  # of the truth: no training run has it
Summary = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Distances:
    """Distances of pairs of sets at each step, (pairs, T): of samples, and twice of the truth; each
    set is compared with so many references."""

    name: str
    references: int
    found: np.ndarray
    floor: np.ndarray
    again: np.ndarray

    def ratio(self, how: Summary = np.median) -> float:
        """A summary over the steps, such as the median, relative to that of the floor."""
        return how(self.found.mean(0)) / how(self.floor.mean(0))

    def truth(self, how: Summary = np.median) -> float:
        """The ratio that the truth reaches."""
        return how(self.again.mean(0)) / how(self.floor.mean(0))

    def noise(self) -> float:
        """Standard error of the median ratio, from how single sets of exact draws scatter."""
        each = self.floor.reshape(-1, self.references, self.floor.shape[1]).mean(1)
        medians = np.median(each, axis=1) / np.median(self.floor.mean(0))
        sets = len(self.again) / self.references
        return float(medians.std(ddof=1) * np.sqrt(1 / sets + 1 / len(each)))

    def row(self) -> list[str]:
        found, floor = self.found.mean(0), self.floor.mean(0)
        cells = [self.name]
        for how in (np.median, np.mean, np.max) if len(found) > 1 else (np.mean,):
            cells.append(f"{how(found):.4f} / {how(floor):.4f} = {how(found) / how(floor):.3f}")
        cells += ["–"] * (4 - len(cells))
        return [*cells, f"{self.truth():.3f} ± {self.noise():.3f}"]


HEAD = ["", "median / floor", "mean / floor", "max / floor", "truth / floor, median"]


def table(found: Sequence[Distances]) -> report.Section:
    return HEAD, [each.row() for each in found]


@dataclass(frozen=True)
class Truth:
    """Exact sets of n trajectories: references, and others to set the floor and to check it."""

    names: tuple[str, ...]  # variables that are compared
    references: Sequence[xr.Dataset]
    floor: Sequence[xr.Dataset]
    again: Sequence[xr.Dataset]

    @classmethod
    def of(cls, network: ReactionNetwork, names: Sequence[str], n: int) -> Truth:
        """Fresh simulations."""
        made = [
            simulate(network, samples=n, seed=SEED, first=k * n)
            for k in range(REFERENCES + FLOOR + SETS)
        ]
        return cls(tuple(names), made[:REFERENCES], made[REFERENCES:-SETS], made[-SETS:])

    def histograms(self, samples: Sequence[xr.Dataset]) -> list[Distances]:
        """D of every variable."""
        return [self._compared(name, samples, _values(name), _histogram) for name in self.names]

    def correlation(self, samples: Sequence[xr.Dataset]) -> Distances:
        """The error of correlations between all variables and steps, as of a single step."""
        places = [_values(name)(self.references[0]) for name in self.names]
        columns = np.concatenate(places, 1)
        mean, deviation = columns.mean(0), columns.std(0)
        scale = np.where(deviation > 0, deviation, 1.0)
        measure = distances.Correlation()

        def moments(data: xr.Dataset) -> np.ndarray:
            values = np.concatenate([_values(name)(data) for name in self.names], 1)
            return measure.sums((values - mean) / scale, np.ones(len(values)))

        def error(p: np.ndarray, q: np.ndarray) -> np.ndarray:
            return measure.between(p, q).reshape(1)

        return self._compared("correlations", samples, moments, error)

    def _compared(
        self,
        name: str,
        samples: Sequence[xr.Dataset],
        prepare: Callable[[xr.Dataset], np.ndarray],
        distance: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> Distances:
        references = [prepare(each) for each in self.references]
        sides = (samples, self.floor, self.again)
        ready = ([prepare(each) for each in sets] for sets in sides)
        return compared(name, references, *ready, distance=distance)


def compared(
    name: str,
    references: Sequence[np.ndarray],
    samples: Sequence[np.ndarray],
    floor: Sequence[np.ndarray],
    again: Sequence[np.ndarray],
    *,
    distance: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> Distances:
    """Distances (T,) of every set of each kind from every reference."""
    sides = (samples, floor, again)
    found = [np.stack([distance(x, y) for x in sets for y in references]) for sets in sides]
    return Distances(name, len(references), *found)


def _values(name: str) -> Callable[[xr.Dataset], np.ndarray]:
    return lambda data: data[name].transpose("sample", "time").values.astype(np.float64)


def _histogram(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return distances.histogram_distance(x, y, whole=True)


def consistent(samples: Sequence[xr.Dataset], total: int) -> float:
    """The share of trajectories whose species are never negative and always sum to `total`."""
    shares = []
    for data in samples:
        values = np.stack([data[name].values.astype(np.int64) for name in data.data_vars])
        right = (values >= 0).all((0, 2)) & (values.sum(0) == total).all(1)
        shares.append(right.mean())
    return float(np.mean(shares))
