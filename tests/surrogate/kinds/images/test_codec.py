"""Images as tensors and back: nothing is lost, formulas see 0 to 1."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from constraints import compiled, parse
from surrogate.errors import ModelError
from surrogate.kinds.images.codec import ImageCodec


def pictures(count: int = 20, channels: int = 1, side: int = 6, kind: str = "u1") -> xr.Dataset:
    values = np.random.default_rng(0).integers(0, 256, (count, channels, side, side + 1))
    made = values.astype(np.uint8) if kind == "u1" else (values / 255).astype(np.float32)
    if channels == 1:
        return xr.Dataset({"image": (("sample", "y", "x"), made[:, 0])})
    return xr.Dataset({"image": (("sample", "channel", "y", "x"), made)})


def encoded(codec: ImageCodec, data: xr.Dataset) -> torch.Tensor:
    return codec.encode(data, slice(None), torch.Generator())


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("kind", ["u1", "f4"])
def test_encoding_and_decoding_restore_the_images(channels: int, kind: str) -> None:
    data = pictures(channels=channels, kind=kind)
    codec = ImageCodec.fit(data)
    x = encoded(codec, data)
    assert x.shape == (20, channels, 6, 7)
    back = codec.to_dataset(x)
    assert back.image.dtype == data.image.dtype
    assert back.image.dims == data.image.dims
    np.testing.assert_allclose(back.image, data.image, atol=0 if kind == "u1" else 1e-6)


@given(arrays(np.uint8, (3, 4, 5)))
def test_any_bytes_are_restored(values: np.ndarray) -> None:
    codec = ImageCodec((1, 4, 5), (0.3,), (0.2,), True)
    data = xr.Dataset({"image": (("sample", "y", "x"), values)})
    assert np.array_equal(codec.finish(encoded(codec, data))["image"], values)


def test_encoded_images_have_unit_scale_in_every_channel() -> None:
    data = pictures(200, 3)
    x = encoded(ImageCodec.fit(data), data)
    torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(x.std((0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)


@given(st.floats(-30, 30))
def test_within_clamps_to_the_range_of_pixels(value: float) -> None:
    codec = ImageCodec((1, 4, 4), (0.13,), (0.31,), True)
    x = torch.full((1, 1, 4, 4), value, dtype=torch.float64)
    shown = codec.decode(codec.within(x))["image"]
    assert float(shown.min()) >= -1e-12
    assert float(shown.max()) <= 1 + 1e-12
    if 0 <= float(codec.decode(x)["image"][0, 0, 0, 0]) <= 1:
        torch.testing.assert_close(codec.within(x), x)


def test_formulas_see_pixels_from_0_to_1() -> None:
    data = pictures()
    codec = ImageCodec.fit(data)
    x = encoded(codec, data).double()
    seen = codec.signals_of(x)["image"]
    np.testing.assert_allclose(seen[:, 0], data.image.values / 255, atol=1e-12)
    verdict = compiled(parse("mean(image) >= 0.5"), codec.layout()).verdict({"image": seen})
    assert verdict.tolist() == (data.image.values.mean((1, 2)) / 255 >= 0.5).tolist()


def test_the_codec_is_restored_from_json_and_damage_is_refused() -> None:
    codec = ImageCodec.fit(pictures(channels=3))
    kept = json.loads(json.dumps(codec.to_config()))
    again = ImageCodec.from_config(kept)
    assert again.to_config() == codec.to_config()
    for name, bad in (
        ("size", [1, 2]),
        ("size", [3, 6, 10**6]),
        ("scale", [0, 1, 1]),
        ("whole", 1),
    ):
        with pytest.raises(ModelError, match=r"codec|pixels"):
            ImageCodec.from_config({**kept, name: bad})


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (xr.Dataset({"picture": ("sample", [1])}), "one variable 'image'"),
        (xr.Dataset({"image": (("sample", "x", "y"), np.zeros((2, 8, 8), "u1"))}), "transpose"),
        (xr.Dataset({"image": (("sample", "y", "x"), np.zeros((2, 8, 8), "i8"))}), "from_array"),
        (xr.Dataset({"image": (("sample", "y", "x"), np.zeros((2, 2, 8), "u1"))}), "8x2"),
        (xr.Dataset({"image": (("sample", "y", "x"), np.full((2, 8, 8), 7, "u1"))}), "same value"),
        (xr.Dataset({"image": (("sample", "y", "x"), np.full((2, 8, 8), 7.0))}), "0 to 1"),
    ],
)
def test_data_without_images_are_refused(data: xr.Dataset, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        ImageCodec.fit(data)


def test_data_of_another_size_do_not_match() -> None:
    with pytest.raises(ModelError, match=r"7x6 pixels.*8x7 pixels"):
        ImageCodec.fit(pictures()).matches(pictures(side=7))


def test_formulas_may_name_pictures_and_regions() -> None:
    codec = ImageCodec.fit(pictures()).knowing(
        pictures={"target": torch.full((1, 6, 7), 0.5)}, regions={"spot": torch.eye(6, 7).bool()}
    )
    program = compiled(parse("forall p in spot: image(p) = target(p)"), codec.layout())
    images = torch.zeros(2, 1, 6, 7)
    images[1][:, torch.eye(6, 7).bool()] = 0.5
    assert program.verdict({"image": images}).tolist() == [False, True]
    assert codec.knowing().layout().pictures.keys() == {"target"}


def test_pictures_and_regions_may_be_arrays_of_bytes() -> None:
    bytes_of = np.zeros((6, 7), np.uint8)
    bytes_of[0, 0], bytes_of[1, 1] = 255, 10
    codec = ImageCodec.fit(pictures()).knowing(
        pictures={"target": bytes_of, "other": torch.zeros(6, 7)},
        regions={"spot": bytes_of},
        functions={"ink": lambda images: images.sum((1, 2, 3))},
    )
    layout = codec.layout()
    assert float(layout.pictures["target"].max()) == 1
    assert layout.pictures["other"].shape == (1, 6, 7)
    assert layout.regions["spot"].sum() == 1
    program = compiled(parse("ink(image) >= 3"), layout)
    assert program.verdict({"image": torch.full((1, 1, 6, 7), 0.1)}).tolist() == [True]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"pictures": {"t": np.zeros((60, 8, 8))}}, "no picture"),
        ({"pictures": {"t": np.full((6, 7), 40.0)}}, "from 40 to 40"),
        ({"pictures": {"t": np.full((6, 7), np.nan)}}, "nan"),
        ({"pictures": np.zeros((6, 7))}, "by their names"),
        ({"regions": {"eyes": "1:3,2:5"}}, "the region eyes is a mask"),
        ({"classifiers": {"class": "guide"}}, "no classifier: 'guide'"),
        ({"functions": {"ink": 3}}, "no function but 3"),
    ],
)
def test_unusable_pictures_and_regions_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        ImageCodec.fit(pictures()).knowing(**given)
