"""Comparison of images with reference images by features of each image.

Features: brightness (mean of the pixels), contrast (their standard deviation), the mean of each row
and column, and random projections ⟨x, r_k⟩ with r_k Gaussian, which determine a distribution
(Cramér & Wold). For each feature, D = ½ Σ|p - q| between histograms, with its noise floor (see
`surrogate.evaluation.distances`). Whole images are compared by the correlations of their pixels
(block means where there are many), the energy distance, and a classifier two-sample test on
principal components.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property

import numpy as np
import xarray as xr

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.evaluation import distances
from surrogate.evaluation.metrics import (
    Accuracy,
    Classifier,
    Metrics,
    Satisfied,
    classifier_card,
)
from surrogate.evaluation.result import Distance, Evaluation, Finding, Histograms, Scope, pooled
from surrogate.evaluation.verdict import CORRELATION_BOUNDS
from surrogate.evaluation.weights import Array, effective_sample_size, relative_weights
from surrogate.kinds.images.values import channels_last, channels_of, is_images, size_of, size_text

MAX_COMPARED_IMAGES = 5_000  # of each dataset that are compared, drawn at random
RANDOM_PROJECTIONS = 64
MAX_COMPARED_PIXELS = 1_024  # that are compared together
MAX_COMPONENTS = 48  # principal ones, that the classifier sees
MAX_CORRELATED_PIXELS = 196
ALL_FEATURES = "all features"

SCOPE = Scope("all that is measured of an image", "of all that is measured of images")


class Pair:
    """Samples x and a reference y; left, right: their pixels (n, d), (m, d), standardised."""

    def __init__(self, data: xr.Dataset, against: xr.Dataset, seed: int) -> None:
        self.x, self.y = Side(data, "the samples", seed), Side(against, "the reference", seed)
        self.seed = seed
        _check_alike(self.x, self.y)

    @cached_property
    def pixels(self) -> tuple[Array, Array]:
        return _standardised(self.x.coarse(), self.y.coarse())

    def with_floor(
        self, measure: distances.Measure, left: Array, right: Array
    ) -> tuple[Array, Array]:
        x, y = self.x, self.y
        size = x.effective
        return distances.with_floor(
            measure, left, right, x.weights, y.weights, seed=self.seed, n=size
        )


METRICS: Metrics[Pair] = Metrics()


def compare(data: xr.Dataset, against: xr.Dataset, seed: int) -> Evaluation:
    """Images against reference images of the same size and colours."""
    pair = Pair(data, against, seed)
    names, parts = [], []
    for (name, left), (_, right) in zip(
        _features(pair.x, seed), _features(pair.y, seed), strict=True
    ):
        measure = distances.Histogram.of(left, right, whole=False)
        names.append(name)
        parts.append(pair.with_floor(measure, left, right))
    owners = np.repeat(names, [len(found) for found, _ in parts])
    furthest = str(owners[np.concatenate([found for found, _ in parts]).argmax()])
    return Evaluation(
        kind="images",
        samples=pair.x.count,
        effective=pair.x.effective,
        reference=pair.y.count,
        reference_effective=pair.y.effective,
        variables=tuple(_histograms(n, *part) for n, part in zip(names, parts, strict=True)),
        overall=pooled(ALL_FEATURES, parts, furthest),
        findings=METRICS.measure(pair),
        scope=SCOPE,
    )


def _histograms(name: str, found: Array, floors: Array) -> Histograms:
    if len(found) == 1:
        return Histograms.of(name, found, floors)
    place = f"{name} {int(found.argmax())}"
    return Histograms.of(name, found, floors, place, place)


# --- metrics, in the order of the table -----------------------------------------------------------


@METRICS.distance(
    "correlation", "correlation error", "The correlations differ", **CORRELATION_BOUNDS
)
def correlation(pair: Pair) -> Distance | None:
    left, right = pair.pixels
    varying = np.flatnonzero(right.std(0) > 0.5)
    if len(varying) < 2:
        return None
    spaced = np.linspace(0, len(varying) - 1, MAX_CORRELATED_PIXELS).astype(np.int64)
    some = varying[np.unique(spaced)]
    found, floors = pair.with_floor(distances.Correlation(), left[:, some], right[:, some])
    return Distance.of(float(found), floors)


@METRICS.distance("energy", "energy distance", "The samples as a whole differ")
def energy(pair: Pair) -> Distance:
    weights = pair.x.weights, pair.y.weights
    return Distance.of(*distances.energy_distance(*pair.pixels, *weights, seed=pair.seed))


@METRICS.finding("classifier", classifier_card)
def classifier(pair: Pair) -> Finding:
    few = _components(*pair.pixels)
    judge = f"logistic regression on {few[0].shape[1]} principal components"
    weights = pair.x.weights, pair.y.weights
    found = distances.classifier_test(*few, *weights, seed=pair.seed)
    return Classifier(Accuracy(*found), judge, note=judge)


@METRICS.finding("satisfied")
def satisfied(pair: Pair) -> Finding:
    return Satisfied(pair.x.satisfied)


# --- images as arrays -----------------------------------------------------------------------------


class Side:
    """Pixels (n, D) from 0 to 1 of some images, and their weights (n,)."""

    def __init__(self, data: xr.Dataset, who: str, seed: int) -> None:
        if not is_images(data):
            raise ModelError(f"{who}: there are no images")
        self.data, self.who = data, who
        self.size, self.channels = size_of(data), channels_of(data)
        self.count = int(data.sizes["sample"]) * int(data.sizes.get("instance", 1))
        weight = relative_weights(data, who)
        values = channels_last(data)
        per = self.count // len(weight)
        kept = np.flatnonzero(weight > 0)
        if len(kept) * per < 2:
            raise ModelError(f"{who}: at least 2 are needed, not {len(kept) * per}")
        some = np.sort(
            np.random.default_rng([seed, 3]).permutation(kept)[: max(2, MAX_COMPARED_IMAGES // per)]
        )
        pixels = np.asarray(values.isel(sample=some).values)
        scale = 255.0 if pixels.dtype == np.uint8 else 1.0
        self.pixels: Array = pixels.reshape(len(some) * per, -1) / scale
        if not np.isfinite(self.pixels).all():
            raise ModelError(
                f"{who}: pixels are missing (NaN) or infinite", remedy="drop or repair them"
            )
        self.weights: Array = np.repeat(weight[some], per)
        self.effective = effective_sample_size(self.weights) * max(1.0, len(kept) / len(some))
        verdicts = data.get("satisfied")
        self.satisfied: float | None = None
        if verdicts is not None and verdicts.dims == ("sample",) and verdicts.dtype.kind in "biuf":
            met = np.asarray(verdicts.values, np.float64)
            self.satisfied = float(np.average(met, weights=weight))

    @property
    def images(self) -> Array:
        """(n, H, W, C)"""
        width, height = self.size
        return self.pixels.reshape(-1, height, width, self.channels)

    def coarse(self) -> Array:
        """Pixels (n, d); block means if there are more than MAX_COMPARED_PIXELS."""
        (width, height), images = self.size, self.images
        side = math.ceil(math.sqrt(self.pixels.shape[1] / MAX_COMPARED_PIXELS))
        if side == 1:
            return self.pixels
        cut = images[:, : height - height % side, : width - width % side]
        blocks = cut.reshape(len(images), height // side, side, width // side, side, -1)
        return np.asarray(blocks.mean((2, 4)).reshape(len(images), -1))


def _check_alike(x: Side, y: Side) -> None:
    if x.size != y.size:
        raise ModelError(
            f"{x.who} are images of {size_text(x.size)}, {y.who} of {size_text(y.size)}",
            value=x.size,
            remedy=("give both one size (", Setting("size", size_text(x.size)), ")"),
        )
    if x.channels != y.channels:
        kinds = ["grey" if side.channels == 1 else "colour" for side in (x, y)]
        raise ModelError(
            f"{x.who} are {kinds[0]}, {y.who} {kinds[1]}",
            remedy=("compare both in grey (", Setting("grey", True), ")"),
        )


# --- features -------------------------------------------------------------------------------------


def _features(side: Side, seed: int) -> Iterator[tuple[str, Array]]:
    """Names, and values (n, T)."""
    images = side.images
    yield "brightness", side.pixels.mean(1)[:, None]
    yield "contrast", side.pixels.std(1)[:, None]
    yield "row", images.mean((2, 3))
    yield "column", images.mean((1, 3))
    if side.channels > 1:
        yield "colour", images.mean((1, 2))
    random = np.random.default_rng([seed, 21])
    directions = random.normal(size=(side.pixels.shape[1], RANDOM_PROJECTIONS))
    yield "projection", side.pixels @ (directions / np.linalg.norm(directions, axis=0))


def _standardised(left: Array, right: Array) -> tuple[Array, Array]:
    """Pixels standardised by the reference, with a lower bound on its standard deviation."""
    mean, deviation = right.mean(0), right.std(0)
    usual = float(np.sqrt((deviation**2).mean())) or 1.0
    scale = np.maximum(deviation, 0.05 * usual)  # nearly constant pixels would dominate
    return (left - mean) / scale, (right - mean) / scale


def _components(left: Array, right: Array) -> tuple[Array, Array]:
    """The first k principal components of both datasets together, (n, k) and (m, k)."""
    both = np.concatenate([left, right])
    count = max(1, min(MAX_COMPONENTS, both.shape[1], len(both) // 10))
    values, vectors = np.linalg.eigh(both.T @ both / len(both))
    chosen = vectors[:, np.argsort(-values)[:count]]
    return distances.standardise(left @ chosen, right @ chosen)
