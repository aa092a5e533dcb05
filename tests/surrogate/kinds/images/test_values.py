"""Images from arrays: shapes, ranges of values, labels."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.images.files import (
    channels_of,
    from_array,
    is_images,
    size_of,
    summary,
    to_array,
)
from tests.surrogate.kinds.images.image_files import pixels


@pytest.mark.parametrize(
    ("shape", "channels", "size"),
    [
        ((5, 8, 6), 1, (6, 8)),
        ((5, 8, 6, 1), 1, (6, 8)),
        ((5, 1, 8, 6), 1, (6, 8)),
        ((5, 8, 6, 3), 3, (6, 8)),
        ((5, 3, 8, 6), 3, (6, 8)),
        ((5, 3, 8, 4), 3, (4, 8)),
        ((5, 4, 8, 3), 3, (8, 4)),
        ((5, 8, 6, 4), 3, (6, 8)),
    ],
)
def test_shapes_of_arrays_are_recognised(
    shape: tuple[int, ...], channels: int, size: tuple[int, int]
) -> None:
    data = from_array(pixels(*shape))
    assert is_images(data)
    assert channels_of(data) == channels
    assert size_of(data) == size
    assert data.sizes["sample"] == 5
    assert data.image.dtype == np.uint8
    assert data.image.dims[-2:] == ("y", "x")


def test_channels_first_and_last_are_equivalent() -> None:
    given = pixels(5, 8, 6, 3)
    xr.testing.assert_identical(from_array(given), from_array(np.moveaxis(given, 3, 1)))
    np.testing.assert_array_equal(to_array(from_array(given)), given)


def test_an_ambiguous_shape_is_reported() -> None:
    said: list[str] = []
    data = from_array(pixels(5, 4, 9, 4), say=said.append)
    assert size_of(data) == (9, 4)
    assert "channels last" in said[0]


def test_transparent_pixels_are_blended_with_white() -> None:
    given = np.zeros((2, 5, 6, 4), np.uint8)
    given[0, ..., 3] = 255
    said: list[str] = []
    made = to_array(from_array(given, say=said.append))
    assert (made[0] == 0).all()
    assert (made[1] == 255).all()
    assert said == ["transparent pixels were put on white"]


@pytest.mark.parametrize(
    ("values", "dtype", "low", "high", "says"),
    [
        (np.array([True, False]), "uint8", 0, 255, ""),
        (np.array([0, 1]), "uint8", 0, 255, "black and white"),
        (np.array([0, 200], np.int64), "uint8", 0, 200, ""),
        (np.array([0, 65535], np.uint16), "float32", 0, 1, "16 bits"),
        (np.array([0.25, 0.5]), "float32", 0.25, 0.5, ""),
        (np.array([-1.0, 1.0]), "float32", 0, 1, "-1 to 1"),
        (np.array([0.0, 255.0]), "uint8", 0, 255, ""),
        (np.array([0.0, 127.5]), "float32", 0, 0.5, "0 to 255"),
    ],
)
def test_ranges_of_values_are_recognised(
    values: np.ndarray, dtype: str, low: float, high: float, says: str
) -> None:
    said: list[str] = []
    data = from_array(np.resize(values, (3, 4, 4)), say=said.append)
    assert data.image.dtype == dtype
    assert (float(data.image.min()), float(data.image.max())) == pytest.approx((low, high))
    assert says in "; ".join(said)
    assert bool(says) == bool(said)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.full((2, 4, 4), np.nan), "2 of 2 images have pixels that are missing"),
        (np.full((2, 4, 4), np.inf), "infinite"),
        (np.full((2, 4, 4), 7.5e6), "rescale"),
        (np.full((2, 4, 4), -3), "0..255"),
        (np.zeros((0, 4, 4)), "no images"),
        (np.zeros((2, 3, 8)), "4 to 512 pixels"),
        (np.zeros((2, 513, 8)), "4 to 512 pixels"),
        (np.zeros((28, 28, 3)), r"array\[None\]"),
        (np.zeros((9, 784)), r"reshape\(-1, 28, 28\)"),
        (np.zeros((28, 28)), r"array\[None\]"),
        (np.zeros((2, 8, 8, 7)), "channels"),
        (np.zeros((2, 2, 2, 8, 8)), "holds no images"),
        (np.array(3.0), "holds no images"),
        (np.array([["a"]]), "no grey levels"),
        (np.array([None, 1], dtype=object), r"numpy\.stack"),
        (np.zeros((2, 4, 4), complex), "complex"),
    ],
)
def test_arrays_that_are_not_images_are_refused(array: np.ndarray, says: str) -> None:
    with pytest.raises(ModelError, match=says):
        from_array(array)


def test_labels_are_integers_or_words() -> None:
    data = from_array(pixels(3, 4, 4), [4, 2, 9])
    assert data.label.values.tolist() == [4, 2, 9]
    assert summary(data) == "3 grey images of 4x4, 0..255, labels 2-9 not learned"
    words = from_array(pixels(3, 5, 4), np.array(["cat", "dog", "cat"]))
    assert summary(words).endswith("of 4x5, 0..255, labels cat, dog not learned")
    with pytest.raises(ModelError, match="one for each"):
        from_array(pixels(3, 4, 4), [1, 2])
    with pytest.raises(ModelError, match="whole numbers or words"):
        from_array(pixels(3, 4, 4), [0.5, 1, 2])
