"""How far images are from reference images, by what can be measured of each.

Of every image: its brightness (the mean of its pixels), its contrast (their deviation), the mean of
each of its rows and columns, and its shares of fixed random pictures, ⟨x, r_k⟩ with r_k Gaussian,
which by the theorem of Cramér and Wold tell laws of images apart. For each, D = ½ Σ|p - q| between
histograms, beside its noise floor as in `distances`. Whole images are compared by the correlations
of their pixels (means of blocks where they are many), the energy distance, and by a classifier that
sees principal components.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.evaluation import distances
from surrogate.evaluation.distances import Array
from surrogate.evaluation.result import Evaluation, Measured, histograms, measured
from surrogate.kinds.images.values import channels_of, is_images, size_of, spelled, upright
from surrogate.kinds.trajectories.plot import weights as shares

MOST = 5_000  # images of each side that are compared, drawn at random
PROJECTIONS = 64
FINE = 1_024  # pixels that are compared together
COMPONENTS = 48  # that the classifier sees
CORRELATED = 196  # pixels whose correlations are compared
NOUN = "images"


def compare_images(data: xr.Dataset, against: xr.Dataset, seed: int) -> Evaluation:
    """Samples of images beside reference images of the same size and colours."""
    x, y = _Side(data, "the samples", seed), _Side(against, "the reference", seed)
    _alike(x, y)
    parts = []
    for (name, left), (_, right) in zip(_features(x, seed), _features(y, seed), strict=True):
        measure = distances.Histogram.of(left, right, whole=False)
        found = measure(left, right, x.weights, y.weights)
        floors = distances.floor(measure, right, y.weights, x.worth, seed=seed)
        parts.append((name, found, floors))
    every = [np.concatenate([part[k] for part in parts], -1) for k in (1, 2)]
    pixels = _standardised(x.coarse(), y.coarse())
    energy, null = distances.energy_distance(*pixels, x.weights, y.weights, seed=seed)
    few = _components(*pixels)
    return Evaluation(
        samples=x.count,
        effective=x.worth,
        reference=y.count,
        times=(),
        variables=tuple(histograms(*part) for part in parts),
        overall=histograms("all features", *every),
        correlation=_correlation(*pixels, x, y, seed),
        autocorrelation=None,
        energy=measured(energy, null),
        classifier=distances.classifier_test(*few, x.weights, y.weights, seed=seed),
        consistent=None,
        rules=0,
        satisfied=x.satisfied,
        judge=f"logistic regression on {few[0].shape[1]} principal components",
        noun=NOUN,
    )


class _Side:
    """Pixels (n, D) from 0 to 1 of some images, and their weights (n,)."""

    def __init__(self, data: xr.Dataset, who: str, seed: int) -> None:
        if not is_images(data):
            raise ModelError(f"{who}: there are no images")
        self.data, self.who = data, who
        self.size, self.channels = size_of(data), channels_of(data)
        self.count = int(data.sizes["sample"]) * int(data.sizes.get("instance", 1))
        weight = _weights(data, who)
        values = upright(data)
        per = self.count // len(weight)
        kept = np.flatnonzero(weight > 0)
        if len(kept) * per < 2:
            raise ModelError(f"{who}: at least 2 are needed, not {len(kept) * per}")
        some = np.sort(np.random.default_rng([seed, 3]).permutation(kept)[: max(2, MOST // per)])
        pixels = np.asarray(values.isel(sample=some).values)
        scale = 255.0 if pixels.dtype == np.uint8 else 1.0
        self.pixels: Array = pixels.reshape(len(some) * per, -1) / scale
        if not np.isfinite(self.pixels).all():
            raise ModelError(f"{who}: pixels are missing (NaN) or infinite; drop or repair them")
        self.weights: Array = np.repeat(weight[some], per)
        self.worth = distances.effective(self.weights) * max(1.0, len(kept) / len(some))
        verdicts = data.get("satisfied")
        self.satisfied: float | None = None
        if verdicts is not None and verdicts.dims == ("sample",) and verdicts.dtype.kind in "biuf":
            told = np.asarray(verdicts.values, np.float64)
            self.satisfied = float(np.average(told, weights=weight))

    @property
    def images(self) -> Array:
        """(n, H, W, C)"""
        width, height = self.size
        return self.pixels.reshape(-1, height, width, self.channels)

    def coarse(self) -> Array:
        """Pixels (n, d); means of blocks where there are more than FINE."""
        (width, height), images = self.size, self.images
        side = math.ceil(math.sqrt(self.pixels.shape[1] / FINE))
        if side == 1:
            return self.pixels
        cut = images[:, : height - height % side, : width - width % side]
        blocks = cut.reshape(len(images), height // side, side, width // side, side, -1)
        return np.asarray(blocks.mean((2, 4)).reshape(len(images), -1))


def _weights(data: xr.Dataset, who: str) -> Array:
    """Of the samples, the largest being 1: (N,)."""
    try:
        found = shares(data)
    except ModelError as problem:
        raise ModelError(f"{who}: {problem}") from None
    if found is None:
        return np.ones(data.sizes["sample"])
    return np.asarray(found / found.max())


def _alike(x: _Side, y: _Side) -> None:
    if x.size != y.size:
        raise ModelError(
            f"{x.who} are images of {spelled(x.size)}, {y.who} of {spelled(y.size)}; give both one "
            f"size (size={spelled(x.size)})"
        )
    if x.channels != y.channels:
        kinds = ["grey" if side.channels == 1 else "colour" for side in (x, y)]
        raise ModelError(
            f"{x.who} are {kinds[0]}, {y.who} {kinds[1]}; compare both in grey (grey=True)"
        )


# --- what is measured of an image -----------------------------------------------------------------


def _features(side: _Side, seed: int) -> Iterator[tuple[str, Array]]:
    """Names, and values (n, T)."""
    images = side.images
    yield "brightness", side.pixels.mean(1)[:, None]
    yield "contrast", side.pixels.std(1)[:, None]
    yield "row", images.mean((2, 3))
    yield "column", images.mean((1, 3))
    if side.channels > 1:
        yield "colour", images.mean((1, 2))
    random = np.random.default_rng([seed, 21])
    directions = random.normal(size=(side.pixels.shape[1], PROJECTIONS))
    yield "projection", side.pixels @ (directions / np.linalg.norm(directions, axis=0))


def _standardised(left: Array, right: Array) -> tuple[Array, Array]:
    """Pixels that vary in the reference, in its deviations; others by how far they are off."""
    mean, deviation = right.mean(0), right.std(0)
    usual = float(np.sqrt((deviation**2).mean())) or 1.0
    scale = np.maximum(deviation, 0.05 * usual)  # a pixel that is nearly always 0 is no judge
    return (left - mean) / scale, (right - mean) / scale


def _components(left: Array, right: Array) -> tuple[Array, Array]:
    """Coordinates (n, k) along the directions in which both sides together vary most."""
    both = np.concatenate([left, right])
    count = max(1, min(COMPONENTS, both.shape[1], len(both) // 10))
    values, vectors = np.linalg.eigh(both.T @ both / len(both))
    chosen = vectors[:, np.argsort(-values)[:count]]
    return distances.standardise(left @ chosen, right @ chosen)


def _correlation(left: Array, right: Array, x: _Side, y: _Side, seed: int) -> Measured | None:
    varying = np.flatnonzero(right.std(0) > 0.5)
    if len(varying) < 2:
        return None
    some = varying[np.unique(np.linspace(0, len(varying) - 1, CORRELATED).astype(np.int64))]
    measure = distances.Correlation()
    found = measure(left[:, some], right[:, some], x.weights, y.weights)
    floors = distances.floor(measure, right[:, some], y.weights, x.worth, seed=seed)
    return measured(float(found), floors)
