"""How far trajectories are from reference trajectories, beside how far data are from themselves.

For each variable and step, D = ½ Σ|p - q| between histograms; for whole trajectories the errors of
correlations and autocorrelations, the energy distance and a classifier's accuracy. Each comes with
its noise floor (see `surrogate.evaluation.distances`): a ratio of 1 is as close as these numbers of
samples can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
import xarray as xr

from surrogate.evaluation import distances
from surrogate.evaluation.boosting import (
    MAX_TREE_WORDS,
    MIN_TREE_ROWS,
    TREE_FOLDS,
    Features,
    installed,
    two_sample_test,
)
from surrogate.evaluation.metrics import (
    Accuracy,
    Classifier,
    Detail,
    Metrics,
    Names,
    Satisfied,
    TreeAccuracy,
    TreeTest,
    classifier_card,
    laws_card,
    tree_card,
)
from surrogate.evaluation.result import (
    CardRow,
    Distance,
    Evaluation,
    Finding,
    Histograms,
    distance_row,
    pooled,
)
from surrogate.evaluation.verdict import CORRELATION_BOUNDS
from surrogate.evaluation.weights import Array, effective_sample_size
from surrogate.io.attributes import OVERLAP, number
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.laws import laws
from surrogate.kinds.signals import samples_of
from surrogate.kinds.trajectories.align import Side, align, columns, values
from surrogate.reports.wording import moment

MAX_CORRELATED = 256  # columns whose correlations are compared; of more, evenly spaced ones
MAX_CLASSIFIED_COLUMNS = 128
MAX_COMPARED = 50_000  # trajectories in multivariate metrics; histograms use all
ALL_VARIABLES = "all variables"
MAX_TREE_FEATURES = 400  # levels and increments that trees see: some seconds
TREES_SEE = "values and changes"
STRETCH = 5  # windows that share no step, in a stretch of a series that is one fold


class Pair:
    """Samples x and a reference y; v and w are at most MAX_COMPARED of each, drawn at random.

    left, right: all variables and steps of v and w as standardised columns, (n, d) and (m, d).
    """

    def __init__(self, data: xr.Dataset, against: xr.Dataset, seed: int) -> None:
        self.x, self.y, self.seed = Side(data, "the samples"), Side(against, "the reference"), seed
        align(self.x, self.y)
        self.names = self.y.order()
        self.v, self.w = (side.subsample(MAX_COMPARED, seed) for side in (self.x, self.y))

    @cached_property
    def standardised(self) -> tuple[Array, Array]:
        return distances.standardise(*columns(self.v, self.w))

    def some_columns(self, most: int) -> tuple[Array, Array]:
        """At most `most` of the standardised columns, evenly spaced."""
        left, right = self.standardised
        count = left.shape[1]
        some = np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
        return left[:, some], right[:, some]

    def with_floor(
        self, measure: distances.Measure, left: Array, right: Array, x: Side, y: Side
    ) -> tuple[Array, Array]:
        return distances.with_floor(measure, left, right, x.weights, y.weights, seed=self.seed)


METRICS: Metrics[Pair] = Metrics()


def compare(data: xr.Dataset, against: xr.Dataset, seed: int) -> Evaluation:
    """Trajectories against reference trajectories of the same variables and times."""
    pair = Pair(data, against, seed)
    parts = []
    for name in pair.names:
        left, right, whole = values(pair.x, pair.y, name)
        measure = distances.Histogram.of(left, right, whole=whole)
        parts.append(pair.with_floor(measure, left, right, pair.x, pair.y))
    return Evaluation(
        kind="trajectories",
        samples=samples_of(data),
        effective=effective_sample_size(pair.x.weights),
        reference=samples_of(against),
        reference_effective=effective_sample_size(pair.y.weights),
        variables=tuple(
            _histograms(name, *part, pair) for name, part in zip(pair.names, parts, strict=True)
        ),
        overall=pooled(ALL_VARIABLES, parts),
        findings=METRICS.measure(pair),
    )


def _histograms(name: str, found: Array, floors: Array, pair: Pair) -> Histograms:
    worst, grid = int(found.argmax()), np.asarray(pair.y.layout.times)
    if len(found) == 1:
        return Histograms.of(name, found, floors)
    dates = pair.y.layout.dates
    place = f"step {worst} ({dates[worst] if dates else f'time {grid[worst]:.4g}'})"
    return Histograms.of(name, found, floors, place, f"{name} at {moment(grid, worst)}")


def card_rows(found: Mapping[str, Any]) -> list[CardRow]:
    """Rows of a model's card, from the JSON of an evaluation."""
    over_steps = [
        distance_row(f"D({each['name']}), {statistic} over steps", each[statistic])
        for each in found["variables"]
        for statistic in ("median", "max")
    ]
    return over_steps + METRICS.card_rows(found)


# --- metrics, in the order of the table -----------------------------------------------------------


@METRICS.finding("times")
def times(pair: Pair) -> Finding:
    return Detail((("times", pair.y.layout.times),))


@METRICS.distance(
    "correlation", "correlation error", "The correlations differ", **CORRELATION_BOUNDS
)
def correlation(pair: Pair) -> Distance | None:
    left, right = pair.some_columns(MAX_CORRELATED)
    if left.shape[1] < 2:
        return None
    found, floors = pair.with_floor(distances.Correlation(), left, right, pair.v, pair.w)
    return Distance.of(float(found), floors)


@METRICS.distance(
    "autocorrelation",
    "autocorrelation error",
    "The autocorrelations differ",
    **CORRELATION_BOUNDS,
)
def autocorrelation(pair: Pair) -> Distance | None:
    """The mean over the variables."""
    x, y = pair.v, pair.w
    names = [name for name in y.order() if y.signal(name).kind == "series"]
    if not names or len(y.layout.times) < 3:
        return None
    measure = distances.Autocorrelation.of(len(y.layout.times))
    left, right = (
        np.concatenate([measure.products(side.values(name)[:, None]) for name in names], 1)
        for side in (x, y)
    )
    found, floors = pair.with_floor(measure, left, right, x, y)
    return Distance.of(found.mean(), floors.mean(1))


@METRICS.distance("energy", "energy distance", "The samples as a whole differ")
def energy(pair: Pair) -> Distance:
    left, right = pair.standardised
    weights = pair.v.weights, pair.w.weights
    return Distance.of(*distances.energy_distance(left, right, *weights, seed=pair.seed))


@METRICS.finding("classifier", classifier_card)
def classifier(pair: Pair) -> Finding:
    left, right = pair.some_columns(MAX_CLASSIFIED_COLUMNS)
    weights = pair.v.weights, pair.w.weights
    found = distances.classifier_test(left, right, *weights, seed=pair.seed)
    return Classifier(Accuracy(*found), "logistic regression")


@METRICS.finding("trees", tree_card(TREES_SEE))
def trees(pair: Pair) -> Finding | None:
    """Gradient-boosted trees see rough increments, which the levels alone do not show; logistic
    regression stays beside them because it needs no scikit-learn and sees sums of all columns."""
    weights = pair.v.weights, pair.w.weights
    if not installed() or min(map(len, weights)) < MIN_TREE_ROWS:
        return None
    groups = _groups(pair.v), _groups(pair.w)
    if any(own is not None and own.max() + 1 < TREE_FOLDS for own in groups):
        return None  # windows of one stretch share their values: no fold is independent of another
    found = two_sample_test(tree_features(pair), *weights, groups=groups, seed=pair.seed)
    return TreeTest(TreeAccuracy(*found), TREES_SEE)


def tree_features(pair: Pair) -> Features:
    """Levels and increments of every series at the same steps, evenly spaced where there are many,
    and the columns beside them."""
    parts: list[tuple[Array, Array]] = []
    words: list[bool] = []
    x, y = pair.v, pair.w
    series = [name for name in pair.names if y.signal(name).kind == "series"]
    count, most = len(y.layout.times), MAX_TREE_FEATURES // max(1, 2 * len(series))
    steps = np.unique(np.linspace(0, count - 1, min(count, max(2, most))).astype(np.int64))
    before = steps[steps < count - 1]
    for name in pair.names:
        left, right, _ = values(x, y, name)
        words_ = bool(y.signal(name).categories) and max(left.max(), right.max()) < MAX_TREE_WORDS
        if name in series:
            parts.append((left[:, steps], right[:, steps]))
            left, right = (side[:, before + 1] - side[:, before] for side in (left, right))
            words += [False] * len(steps)
        parts.append((left, right))
        words += [words_] * left.shape[1]
    sides = tuple(np.concatenate(side, 1) for side in zip(*parts, strict=True))
    return Features(sides, tuple(words))


def _groups(side: Side) -> np.ndarray | None:
    """The number of a stretch of windows for each of them, (n,); None if windows share no step."""
    shared = number(side.data.attrs.get(OVERLAP))
    if shared is None or shared < 1:
        return None
    return np.asarray(np.arange(len(side.weights)) // (STRETCH * (int(shared) + 1)))


@METRICS.finding("consistent", laws_card)
def consistency(pair: Pair) -> Finding:
    """The rules that the samples, or the reference, carry; none is added."""
    x, y = pair.x, pair.y
    return laws(x.data.attrs, y.data.attrs, x.layout, x.tensors, x.weights)


@METRICS.finding("satisfied")
def satisfied(pair: Pair) -> Finding:
    return Satisfied(pair.x.share(pair.x.satisfied()))


def _unjudged_card(found: Mapping[str, Any]) -> list[CardRow]:
    return [("not judged", ", ".join(found["unjudged"]), "", "")] if found.get("unjudged") else []


@METRICS.finding("unjudged", _unjudged_card)
def unjudged(pair: Pair) -> Finding:
    """Variables over (sample, time) that no metric compares: categories over time."""
    known = {*pair.names, *LABELS}
    names = [
        str(name)
        for name, array in pair.y.data.data_vars.items()
        if name not in known and set(array.dims) == {"sample", "time"}
    ]
    return Names("unjudged", "not judged", tuple(names))
