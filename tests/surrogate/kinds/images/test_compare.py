"""Distances of images: 1 floor between samples of one law, far more between others."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from surrogate.data import evaluate
from surrogate.errors import ModelError
from surrogate.kinds.images.files import from_array


def blobs(count: int, seed: int, bright: float = 200.0, side: int = 10) -> np.ndarray:
    """Round spots at random places."""
    random = np.random.default_rng(seed)
    at = np.arange(side)
    y, x = random.uniform(2, side - 3, (2, count))
    square = (at[None, :, None] - y[:, None, None]) ** 2 + (at[None, None] - x[:, None, None]) ** 2
    noise = random.normal(0, 4, (count, side, side))
    return np.clip(bright * np.exp(-square / 4) + 20 + noise, 0, 255).astype(np.uint8)


def data(*words: object, **more: object) -> xr.Dataset:
    return from_array(blobs(*words, **more))  # type: ignore[arg-type]


def test_samples_of_one_distribution_are_at_the_noise_floor() -> None:
    found = evaluate(data(600, 1), data(800, 2))
    assert 0.85 < found.overall.median.ratio < 1.15
    assert 0.85 < found.overall.mean.ratio < 1.15
    assert found.correlation is not None
    assert found.correlation.ratio < 1.3
    accuracy, error = found.classifier
    assert abs(accuracy - 0.5) < 4 * error
    assert found.kind == "images"
    names = [each.name for each in found.variables]
    assert names == ["brightness", "contrast", "row", "column", "projection"]


@pytest.mark.parametrize("other", [blobs(600, 1, 150.0), blobs(600, 1)[:, ::-1] // 2])
def test_samples_of_another_distribution_are_above_the_noise_floor(other: np.ndarray) -> None:
    found = evaluate(from_array(other), data(800, 2))
    assert found.overall.median.ratio > 1.5
    assert found.classifier[0] > 0.8


def test_content_missing_on_one_side_is_detected_at_equal_brightness() -> None:
    """Half of the spots are missing on the left."""
    given = blobs(1200, 1)
    right = given[given[:, :, :5].sum((1, 2)) < given[:, :, 5:].sum((1, 2))]
    found = {each.name: each for each in evaluate(from_array(right), data(800, 2)).variables}
    assert found["brightness"].median.ratio < 1.6
    assert found["column"].median.ratio > 3


def test_weights_turn_one_distribution_into_another() -> None:
    """Weights that undo a bias bring samples back to the floor."""
    mixed = np.concatenate([blobs(600, 1), blobs(600, 3, 100.0)])
    biased = from_array(mixed)
    logs = np.repeat([0.0, -30.0], 600)
    weighted = biased.assign(log_weight=("sample", logs))
    plain, put_right = (evaluate(each, data(800, 2)) for each in (biased, weighted))
    assert plain.overall.median.ratio > 1.5
    assert put_right.overall.median.ratio < 1.2
    assert put_right.effective == pytest.approx(600)


def test_colour_instances_and_large_images_are_compared() -> None:
    colour = np.stack([blobs(200, k, side=40) for k in range(3)], -1)
    found = evaluate(from_array(colour[:100]), from_array(colour[100:]))
    assert "colour" in [each.name for each in found.variables]
    assert found.table()
    pairs = xr.Dataset({"image": (("sample", "instance", "y", "x"), blobs(200, 1)[:, None])})
    both = xr.concat([pairs, pairs], "instance")
    assert evaluate(both, data(300, 2)).samples == 400


def test_images_that_cannot_be_compared_are_refused() -> None:
    with pytest.raises(ModelError, match=r"of 12x12, the reference of 10x10.*\(size='12x12'\)"):
        evaluate(data(20, 1, side=12), data(20, 1))
    colour = from_array(np.repeat(blobs(20, 1)[..., None], 3, -1))
    with pytest.raises(ModelError, match=r"are colour, the reference grey.*\(grey=True\)"):
        evaluate(colour, data(20, 1))
    with pytest.raises(ModelError, match="at least 2"):
        evaluate(data(1, 1), data(20, 1))
