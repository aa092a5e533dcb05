"""Comparison of a table of samples with real rows: the marginal of each column, the association of
pairs of columns, a classifier two-sample test, memorisation, and train-on-synthetic-test-on-real.

For a column, D = ½ Σ|p - q| between histograms; words and missing values have bins of their own.
All distances are reported with their noise floors (see `surrogate.evaluation.distances`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from surrogate.evaluation import distances
from surrogate.evaluation.boosting import (
    INSTALL,
    MIN_TREE_ROWS,
    installed,
    two_sample_test,
)
from surrogate.evaluation.distances import Histogram, Measure
from surrogate.evaluation.metrics import (
    Accuracy,
    Classifier,
    Metrics,
    Names,
    Satisfied,
    classifier_card,
    laws_card,
)
from surrogate.evaluation.result import (
    CardRow,
    Distance,
    Evaluation,
    Finding,
    Histograms,
    Scope,
    distance_row,
)
from surrogate.evaluation.verdict import CORRELATION_BOUNDS
from surrogate.evaluation.weights import Array, effective_sample_size
from surrogate.io.rules import rules_in
from surrogate.kinds.laws import laws
from surrogate.kinds.signals import Data, layout_of, tensors_of
from surrogate.kinds.tables.align import Column, Rows, shared_columns
from surrogate.kinds.tables.association import (
    ASSOCIATION_NAMES,
    affordable_rows,
    features,
    numbers_first,
)
from surrogate.kinds.tables.privacy import privacy, privacy_card
from surrogate.kinds.tables.train_on_synthetic import target_column, usefulness
from surrogate.kinds.tables.tree_features import tree_features

ALL_COLUMNS = "all columns"
MIN_BIN_ROWS = 5  # rows of both tables with a word; rarer words share a bin
MAX_SIMPLE_FEATURES = 128  # of the logistic regression

SCOPE = Scope(median_over="columns", pooled="of all columns")


@dataclass(frozen=True)
class Binned(Measure):
    """D of each column from binned values; `starts`: the first bin of each column, of `bins`."""

    starts: tuple[int, ...]
    bins: int

    def sums(self, x: Array, weights: Array) -> Array:
        """The weight in each bin, (bins,), of codes (n, d)."""
        each = np.repeat(weights, x.shape[1])
        return np.bincount(x.ravel().astype(np.int64), each, self.bins).astype(np.float64)

    def between(self, p: Array, q: Array) -> Array:
        """D of each column, (d,)."""
        sizes = np.diff([*self.starts, self.bins])
        total = (np.repeat(np.add.reduceat(each, self.starts), sizes) for each in (p, q))
        apart = np.abs(p / next(total) - q / next(total))
        return np.asarray(np.minimum(0.5 * np.add.reduceat(apart, self.starts), 1.0))


def binned(columns: Sequence[Column]) -> tuple[Binned, Array, Array]:
    """The measure, and bin codes (n, d) and (m, d); empty bins are left out."""
    starts, parts, bins = [], [], 0
    cut = len(columns[0].left)
    for column in columns:
        both = np.concatenate(_codes(column.rescaled()))
        kinds, codes = np.unique(both, return_inverse=True)
        starts.append(bins)
        parts.append(codes + bins)
        bins += len(kinds)
    every: Array = np.stack(parts, 1).astype(np.float64)
    return Binned(tuple(starts), bins), every[:cut], every[cut:]


def _codes(column: Column) -> tuple[np.ndarray, np.ndarray]:
    """Bin codes of both tables, (n,) and (m,); -1 for missing values."""
    if column.kind == "word":
        # words of one or two rows add to D and not to its noise floor
        place = np.where(
            column.word_counts() < MIN_BIN_ROWS, len(column.words), np.arange(len(column.words))
        )
        left, right = (
            np.where(np.isnan(each), -1, place[np.nan_to_num(each, nan=0.0).astype(np.int64)])
            for each in (column.left, column.right)
        )
        return left, right
    known = [each[~np.isnan(each)][:, None] for each in (column.left, column.right)]
    made = [np.full(len(each), -1) for each in (column.left, column.right)]
    one_sided = not all(len(each) for each in known)
    histogram = None if one_sided else Histogram.of(known[0], known[1], whole=column.integral)
    for codes, side, values in zip(made, (column.left, column.right), known, strict=True):
        codes[~np.isnan(side)] = 0 if histogram is None else histogram.codes(values)[:, 0]
    return made[0], made[1]


class Pair:
    """Samples x and real rows y: the `columns` of both, and those that only one has.

    few, weights: the columns with at most as many rows as the association of columns can afford,
    numbers first, and the weights of these rows. target: a column to predict. train: the rows
    that the model learned from, if they are not y.
    """

    def __init__(
        self, data: Data, against: Data, seed: int, target: str | None, train: Data | None
    ) -> None:
        self.x, self.y = Rows(data, "the samples"), Rows(against, "the reference")
        self.attrs = data.attrs, against.attrs
        self.seed, self.target, self.train = seed, target, train
        self.columns, self.unshared = shared_columns(self.x, self.y)
        if target is not None:  # refuse an unknown column before the long part
            target_column(self.columns, target)

    @cached_property
    def _some(self) -> list[np.ndarray]:
        """Rows of each table, drawn at random."""
        most, random = affordable_rows(self.columns), np.random.default_rng([self.seed, 3])
        sides = self.columns[0].sides
        return [np.sort(random.permutation(len(side))[:most]) for side in sides]

    @cached_property
    def few(self) -> list[Column]:
        return numbers_first([each.take(self._some) for each in self.columns])

    @property
    def weights(self) -> list[Array]:
        return [side.weights[rows] for side, rows in zip((self.x, self.y), self._some, strict=True)]

    @cached_property
    def associations(self) -> dict[str, Distance | None]:
        """How far associations of two columns differ, by the names of ASSOCIATION_NAMES."""
        if len(self.columns) == 1:
            return dict.fromkeys(ASSOCIATION_NAMES)
        measure, sides = features(self.few)
        found, floors = distances.with_floor(measure, *sides, *self.weights, seed=self.seed)
        return {
            name: None if np.isnan(found[k]) else Distance.of(found[k], floors[:, k])
            for k, name in enumerate(ASSOCIATION_NAMES)
        }

    @cached_property
    def points(self) -> tuple[Array, Array]:
        """Rows as vectors: standardised numbers and indicators of words, (n, d) and (m, d)."""
        measure, sides = features(self.few)
        words = 1 + measure.numbers + (*measure.starts, sides[0].shape[1])[measure.numbers]
        chosen = [*range(1, 1 + measure.numbers), *range(words, sides[0].shape[1])]
        return distances.standardise(sides[0][:, chosen], sides[1][:, chosen])


METRICS: Metrics[Pair] = Metrics()


def compare(
    data: Data, against: Data, seed: int, target: str | None = None, train: Data | None = None
) -> Evaluation:
    """A table of samples against one of real rows.

    `target`: a column to predict on real rows by trees that learn from the samples. `train`: the
    rows that the model learned from, if they are not the reference: whether samples repeat them.
    """
    pair = Pair(data, against, seed, target, train)
    x, y, columns = pair.x, pair.y, pair.columns
    measure, left, right = binned(columns)
    found, floors = distances.with_floor(measure, left, right, x.weights, y.weights, seed=seed)
    return Evaluation(
        kind="rows",
        samples=x.count,
        effective=effective_sample_size(x.weights),
        reference=y.count,
        reference_effective=effective_sample_size(y.weights),
        variables=tuple(
            Histograms.of(each.name, found[k : k + 1], floors[:, k : k + 1])
            for k, each in enumerate(columns)
        ),
        overall=Histograms.of(ALL_COLUMNS, found, floors, columns[int(found.argmax())].name),
        findings=METRICS.measure(pair),
        scope=SCOPE,
    )


def card_rows(found: Mapping[str, Any]) -> list[CardRow]:
    """Rows of a model's card, from the JSON of an evaluation."""
    overall = found["overall"]
    worst = found["variables"][overall["worst"]]["name"]
    return [
        distance_row("D, median over columns", overall["median"]),
        distance_row(f"D, max over columns ({worst})", overall["max"]),
        *METRICS.card_rows(found),
    ]


# --- metrics, in the order of the table -----------------------------------------------------------


@METRICS.distance(
    "correlation", "correlation error", "The correlations differ", **CORRELATION_BOUNDS
)
def correlation(pair: Pair) -> Distance | None:
    return pair.associations["correlation"]


@METRICS.distance(
    "correlation_ratio",
    "correlation ratio error, number with word",
    "The association of numbers with words differs",
)
def correlation_ratio(pair: Pair) -> Distance | None:
    return pair.associations["correlation_ratio"]


@METRICS.distance(
    "cramers_v", "Cramér's V error, word with word", "The association of words with words differs"
)
def cramers_v(pair: Pair) -> Distance | None:
    return pair.associations["cramers_v"]


@METRICS.distance(
    "contingency", "D of pairs of columns", "The joint distributions of pairs of columns differ"
)
def contingency(pair: Pair) -> Distance | None:
    return pair.associations["contingency"]


@METRICS.distance("energy", "energy distance", "The samples as a whole differ")
def energy(pair: Pair) -> Distance:
    return Distance.of(*distances.energy_distance(*pair.points, *pair.weights, seed=pair.seed))


@METRICS.finding("classifier", classifier_card)
def classifier(pair: Pair) -> Finding:
    """Trees, where scikit-learn is installed and there are enough rows."""
    x, y = pair.x, pair.y
    if installed() and min(len(x.weights), len(y.weights)) >= MIN_TREE_ROWS:
        judge = "gradient boosting"
        found = two_sample_test(tree_features(pair.columns), x.weights, y.weights, seed=pair.seed)
    else:
        judge = "logistic regression" + ("" if installed() else f"; for a better one: {INSTALL}")
        left, right = pair.points
        some = np.linspace(0, max(left.shape[1] - 1, 0), MAX_SIMPLE_FEATURES).astype(np.int64)
        some = np.unique(some)
        some = some[some < left.shape[1]]
        found = distances.classifier_test(
            left[:, some], right[:, some], *pair.weights, seed=pair.seed
        )
    return Classifier(Accuracy(*found), judge, note=judge, simple=False)


@METRICS.finding("privacy", privacy_card)
def memorisation(pair: Pair) -> Finding:
    """Whether samples repeat the training rows."""
    if pair.train is None:
        return privacy(pair.columns, pair.x.weights, held_out=False, seed=pair.seed)
    three, _ = shared_columns(pair.x, pair.y, Rows(pair.train, "the training rows"))
    return privacy(three, pair.x.weights, held_out=True, seed=pair.seed)


@METRICS.finding("usefulness")
def train_on_synthetic(pair: Pair) -> Finding | None:
    if pair.target is None:
        return None
    weights = pair.x.weights, pair.y.weights
    return usefulness(pair.columns, pair.target, *weights, seed=pair.seed)


@METRICS.finding("consistent", laws_card)
def consistency(pair: Pair) -> Finding | None:
    """The rules that the samples, or the reference, carry; none is added."""
    if not any(map(rules_in, pair.attrs)):
        return None
    frame = pair.x.frame
    layout = layout_of(frame)
    return laws(*pair.attrs, layout, tensors_of(frame, layout), pair.x.weights)


@METRICS.finding("satisfied")
def satisfied(pair: Pair) -> Finding:
    return Satisfied(pair.x.satisfied)


@METRICS.finding("lone")
def lone(pair: Pair) -> Finding:
    return Names("lone", "only on one side", pair.unshared)
