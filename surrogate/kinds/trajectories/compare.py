"""How far trajectories are from reference trajectories, beside how far data are from themselves.

For each variable and step, D = ½ Σ|p - q| between histograms; for whole trajectories the errors of
correlations and autocorrelations, the energy distance and a classifier's accuracy. Each comes with
its noise floor (see `surrogate.evaluation.distances`): a ratio of 1 is as close as these numbers of
samples can tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import FormulaError, Program, compiled
from constraints.explanation import chunk_size, percent
from surrogate.evaluation import distances
from surrogate.evaluation.metrics import (
    Accuracy,
    Classifier,
    Detail,
    Metrics,
    Names,
    Satisfied,
    classifier_card,
)
from surrogate.evaluation.result import (
    CardRow,
    Distance,
    Evaluation,
    Finding,
    Histograms,
    Row,
    distance_row,
    pooled,
)
from surrogate.evaluation.verdict import Reason
from surrogate.evaluation.weights import Array, effective_sample_size
from surrogate.io.rules import rules_in
from surrogate.kinds.label_names import LABELS
from surrogate.kinds.signals import described, samples_of
from surrogate.kinds.trajectories.align import Side, align, columns, values
from surrogate.reports.wording import moment

MAX_CORRELATED = 256  # columns whose correlations are compared; of more, evenly spaced ones
MAX_CLASSIFIED_COLUMNS = 128
MAX_COMPARED = 50_000  # trajectories in multivariate metrics; histograms use all
ALL_VARIABLES = "all variables"


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
    place = f"step {worst} (time {grid[worst]:.4g})"
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


@METRICS.distance("correlation", "correlation error", "The correlations differ")
def correlation(pair: Pair) -> Distance | None:
    left, right = pair.some_columns(MAX_CORRELATED)
    if left.shape[1] < 2:
        return None
    found, floors = pair.with_floor(distances.Correlation(), left, right, pair.v, pair.w)
    return Distance.of(float(found), floors)


@METRICS.distance("autocorrelation", "autocorrelation error", "The autocorrelations differ")
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


@dataclass(frozen=True)
class Consistency(Finding):
    """The share of samples that obey the rules that the data carry.

    network: whether the rules are those of a network that the data describe.
    """

    share: float | None
    rules: int
    network: bool = True

    def values(self) -> Mapping[str, Any]:
        stated = {} if self.network else {"rules_of": "the data"}
        return {"consistent": self.share, "rules": self.rules, **stated}

    def rows(self) -> Iterator[Row]:
        if self.share is not None:
            note = f"{self.rules} rule{'s' * (self.rules > 1)} {_owner(self.values())}"
            yield "consistent", percent(self.share), "", "", note

    def reasons(self) -> Iterator[Reason]:
        if self.share is not None and self.share < 1:
            broken = percent(1 - self.share)
            yield Reason("care", f"{broken} of the samples break a law {_owner(self.values())}.")


def _owner(found: Mapping[str, Any]) -> str:
    return f"of {found.get('rules_of', 'the network')}"


def _consistency_card(found: Mapping[str, Any]) -> list[CardRow]:
    if found.get("consistent") is None:
        return []
    name = f"obey the {found['rules']} rules {_owner(found)}"
    return [(name, f"{found['consistent']:.2%}", "", "")]


@METRICS.finding("consistent", _consistency_card)
def consistency(pair: Pair) -> Finding:
    """The rules that the network of the samples, or of the reference, implies; none is added."""
    x = pair.x
    rules = rules_in(x.data.attrs) or rules_in(pair.y.data.attrs)
    programs: list[Program] = []
    for rule in rules.values():
        try:
            programs.append(compiled(rule, x.layout))
        except FormulaError:  # about a species that the data leave out
            continue
    if not programs:
        return Consistency(None, 0)
    verdicts: list[Tensor] = []
    with torch.no_grad():
        for start in range(0, len(x.weights), size := chunk_size(programs)):
            batch = {name: value[start : start + size] for name, value in x.tensors.items()}
            verdicts.append(torch.stack([each.verdict(batch) for each in programs]).all(0))
    share = x.share(torch.cat(verdicts).double().numpy())
    network = bool(described(x.data) or described(pair.y.data))
    return Consistency(share, len(programs), network)


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
