"""Samples of a table's model compared with rejection from the same model.

Rejection is exact for the model, and two sets of its samples give the floor: the distance of a law
from itself. D = ½ Σ|p - q| of each column: whole numbers have unit bins (wide ones are binned like
real numbers), real numbers ⌊√n⌋ equal bins over the joint range, words one for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from paper_bench import Bench, Cost, Row, measured
from paper_table_models import Case, Trained

from surrogate.guidance.method import AUTO, method_named
from surrogate.guidance.sampler import sample
from surrogate.kinds.tables.schema import to_frame

SPLITS = 10


def distances(left: pd.DataFrame, right: pd.DataFrame) -> np.ndarray:
    """D of each column."""
    return np.array([distance(left[name], right[name]) for name in left.columns])


def distance(left: pd.Series, right: pd.Series) -> float:
    if not pd.api.types.is_numeric_dtype(left.dtype):
        p, q = (side.value_counts(normalize=True) for side in (left, right))
        return float(0.5 * p.sub(q, fill_value=0).abs().sum())
    x, y = (np.asarray(side, np.float64) for side in (left, right))
    low, high = min(x.min(), y.min()), max(x.max(), y.max())
    whole = bool((x == np.rint(x)).all() and (y == np.rint(y)).all())
    if whole and high - low < 1_000:
        edges = np.arange(low - 0.5, high + 1)
    else:
        edges = np.linspace(low, high, int(np.sqrt(min(len(x), len(y)))) + 1)
    p, q = (np.histogram(side, edges)[0] / len(side) for side in (x, y))
    return float(0.5 * np.abs(p - q).sum())


def correlations(frame: pd.DataFrame) -> np.ndarray:
    numbers = frame.select_dtypes("number")
    upper = np.triu_indices(numbers.shape[1], 1)
    found: np.ndarray = np.corrcoef(numbers.to_numpy(np.float64).T)[upper]
    return found


def columns_of(data: xr.Dataset, table: pd.DataFrame) -> pd.DataFrame:
    """The columns of the table alone; instances side by side, a column for each."""
    frame = to_frame(data)
    if "instance" not in data.sizes:
        return frame[list(table.columns)]
    parts = [
        frame[frame["instance"] == i][list(table.columns)].add_suffix(f"[{i}]").reset_index(drop=1)
        for i in data["instance"].values
    ]
    return pd.concat(parts, axis=1)


@dataclass
class Reference:
    """Samples by rejection, twice as many as are compared, and the estimate of log P.

    A distance is the mean over SPLITS random splits into two sets: that of a single pair is noisy.
    """

    pool: pd.DataFrame
    log_p: float
    error: float
    cost: Cost

    def splits(self, count: int) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
        """Random pairs of disjoint sets of `count` samples."""
        random = np.random.default_rng(0)
        orders = [random.permutation(len(self.pool)) for _ in range(SPLITS)]
        return [(self.pool.iloc[o[:count]], self.pool.iloc[o[count : 2 * count]]) for o in orders]

    def floor(self, count: int) -> np.ndarray:
        """D of each column between two sets of `count` samples: the noise floor."""
        return np.mean([distances(*pair) for pair in self.splits(count)], 0)

    def distances_to(self, frame: pd.DataFrame) -> np.ndarray:
        """D of each column from as many samples."""
        return np.mean([distances(frame, one) for one, _ in self.splits(len(frame))], 0)

    def correlation_error(self, frame: pd.DataFrame) -> float:
        """The mean error of the correlations."""
        own = correlations(frame)
        found = [np.abs(own - correlations(one)).mean() for one, _ in self.splits(len(frame))]
        return float(np.mean(found))


def rejected(case: Case, given: Trained, bench: Bench) -> Reference:
    """Twice as many samples as requested, drawn once for all experiments that need them."""
    return bench.once((case.name, "rejection"), lambda: _rejected(case, given, bench))


def _rejected(case: Case, given: Trained, bench: Bench) -> Reference:
    bench.say("rejection")
    cost = Cost(2 * bench.samples, 0)
    with measured(cost):
        made = sample(
            given.model,
            2 * bench.samples,
            case.where,
            seed=bench.seed + 100,
            method="rejection",
            steps=bench.options.rejection_steps,
        )
    found = made.diagnostics
    cost.evaluations = found.evaluations / cost.samples
    frame = columns_of(made.dataset, given.table)
    log_p, error = found.log_probability, found.log_probability_error
    bench.say(f"rejection: log P {log_p:.3f} ± {error:.3f}; {cost.cpu:,.0f} s of CPU time")
    return Reference(frame, log_p, error, cost)


def conditional(
    case: Case,
    given: Trained,
    reference: Reference,
    bench: Bench,
    settings: dict[str, Any],
    name: str,
) -> tuple[Row, float]:
    """A row about the samples of a method, and the error of their correlations."""
    slow = settings["method"] != AUTO and method_named(settings["method"]).guided
    count = bench.slow if slow else bench.samples
    cost = Cost(count, 0)
    with measured(cost):
        made = sample(given.model, count, case.where, seed=bench.seed, **settings)
    found = made.diagnostics
    cost.evaluations = found.evaluations / count
    frame = columns_of(made.dataset, given.table)
    row = Row(
        f"{name}: {found.method}",
        cost,
        {"column": reference.distances_to(frame)},
        {"column": reference.floor(count)},
        float(made.dataset.satisfied.mean()),
        log_p=found.log_probability,
        particles=0 if slow else found.particles,
    )
    return bench.done(row), reference.correlation_error(frame)
