"""Images <-> normalised tensors (B, C, H, W).

Image data are one variable `image(sample, [channel,] y, x)`, bytes 0 to 255 or real numbers 0 to 1.
Formulas see values from 0 to 1 in either case. A channel is normalised by one mean and one scale
for all of its pixels, so that normalisation is translation invariant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from constraints import Function, Layout, Signal
from constraints.layout.functions import Classifier
from constraints.layout.image_operators import CHANNELS, standard_regions
from surrogate.errors import ModelError
from surrogate.kinds.codec import NONE, Codec, Samples
from surrogate.kinds.images.values import IMAGE, check_sides

WHITE = 255  # a byte that is as bright as can be
MAX_FITTED_IMAGES = 20_000  # images that the scale is measured with


@dataclass(frozen=True, eq=False)
class ImageCodec(Codec):
    """The codec of one dataset's images. Made by `fit`."""

    size: tuple[int, int, int]  # channels, height, width
    mean: tuple[float, ...]  # of each channel, from 0 to 1
    scale: tuple[float, ...]
    whole: bool  # the data are bytes
    known: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # see `knowing`

    kind = "images"
    noun = "images"

    @classmethod
    def fit(cls, data: xr.Dataset, rows: np.ndarray | None = None) -> ImageCodec:
        """Codec of a dataset, with the mean and scale of `rows`."""
        size, whole = described(data)
        count = data.sizes["sample"]
        chosen = np.arange(count) if rows is None else rows
        chosen = chosen[:: max(1, math.ceil(len(chosen) / MAX_FITTED_IMAGES))]
        values = _values(data, chosen).reshape(len(chosen), size[0], -1)
        mean, scale = values.mean((0, 2), dtype=np.float64), values.std((0, 2), dtype=np.float64)
        if not (np.isfinite(mean).all() and (scale > 1e-6).all()):
            raise ModelError("all pixels have the same value: there is nothing to learn from them")
        return cls(size, tuple(mean.tolist()), tuple(scale.tolist()), whole)

    # --- description ------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int, int]:
        return self.size

    @property
    def affine(self) -> bool:
        return True

    @property
    def learned(self) -> str:
        return images_of_size(self.size)

    @cached_property
    def _layout(self) -> Layout:
        # equality has a tolerance of 1/1000 of the span: about half a byte, as rounding needs
        span = 2.0 if self.whole else 1.0
        signal = Signal(IMAGE, "image", self.size, low=0.0, high=1.0, span=span)
        known: dict[str, Any] = dict(self.known)
        known["regions"] = {**standard_regions(*self.size[1:]), **known.get("regions", {})}
        return Layout((signal,), **known)

    def layout(self) -> Layout:
        return self._layout

    def knowing(  # type: ignore[override]
        self,
        pictures: Mapping[str, Any] = NONE,
        regions: Mapping[str, Any] = NONE,
        classifiers: Mapping[str, Any] = NONE,
        functions: Mapping[str, Any] = NONE,
    ) -> ImageCodec:
        """The same, with more that formulas may name: constant images, (C, h, w) from 0 to 1 or as
        data have them; masks (H, W), white where they are bytes; classifiers (what
        `surrogate.kinds.images.classifier` makes, or `constraints.Classifier`); functions of whole
        images.
        """
        for each in (pictures, regions, classifiers, functions):
            if not isinstance(each, Mapping):
                raise ModelError(
                    "pictures, regions, classifiers and functions are given by their names, not "
                    f"as {type(each).__name__}",
                    value=each,
                    remedy="give a dict, {'name': ...}",
                )
        more: dict[str, Mapping[str, Any]] = {
            "pictures": {name: picture(value, name) for name, value in pictures.items()},
            "regions": {name: mask(value, name) for name, value in regions.items()},
            "classifiers": {name: classifier(value, name) for name, value in classifiers.items()},
            "functions": {name: function(value, name) for name, value in functions.items()},
        }
        known = {name: {**self.known.get(name, {}), **given} for name, given in more.items()}
        return replace(self, known={name: given for name, given in known.items() if given})

    def _affine_map(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and scale as (C, 1, 1)."""
        mean, scale = like.new_tensor(self.mean), like.new_tensor(self.scale)
        return mean[:, None, None], scale[:, None, None]

    # --- encoding and decoding --------------------------------------------------------------------

    def encode(
        self,
        data: xr.Dataset,
        samples: Samples,
        generator: torch.Generator,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        values = torch.from_numpy(_values(data, samples)).reshape(-1, *self.size).to(dtype)
        mean, scale = self._affine_map(values)
        return (values - mean) / scale

    def decode(self, x: Tensor) -> dict[str, Tensor]:
        """`image` (B, C, H, W), 0 to 1 where x is within."""
        if x.ndim != 4 or tuple(x.shape[1:]) != self.size:
            sizes = ", ".join(map(str, self.size))
            raise ModelError(f"encoded images have shape (B, {sizes}), not {tuple(x.shape)}")
        mean, scale = self._affine_map(x)
        return {IMAGE: mean + scale * x}

    @torch.no_grad()
    def finish(self, x: Tensor) -> dict[str, np.ndarray]:
        exact = self.decode(x.detach().to("cpu", torch.float64))[IMAGE].clamp(0, 1).numpy()
        if not np.isfinite(exact).all():
            raise ModelError("an image has diverged: it is not finite")
        made = exact[:, 0] if self.size[0] == 1 else exact
        if self.whole:
            return {IMAGE: np.rint(made * WHITE).astype(np.uint8)}
        return {IMAGE: made.astype(np.float32)}

    def signals_of(self, x: Tensor) -> dict[str, Tensor]:
        made = self.finish(x)[IMAGE]
        values = torch.from_numpy(made.astype(np.float64)).reshape(-1, *self.size)
        return {IMAGE: values / WHITE if self.whole else values}

    def to_dataset(self, x: Tensor, attrs: Mapping[str, Any] = NONE) -> xr.Dataset:
        made = self.finish(x)[IMAGE]
        coords: dict[str, Any] = {"sample": np.arange(len(made))}
        if self.size[0] > 1:
            coords["channel"] = list(CHANNELS)
        dims = ("sample", *(["channel"] if self.size[0] > 1 else []), "y", "x")
        return xr.Dataset({IMAGE: (dims, made)}, coords, dict(attrs))

    def within(self, x: Tensor) -> Tensor:
        mean, scale = self._affine_map(x)
        return torch.minimum(torch.maximum(x, -mean / scale), (1 - mean) / scale)

    # --- compatibility and storage ----------------------------------------------------------------

    def matches(self, data: xr.Dataset) -> None:
        found, _ = described(data)
        if found != self.size:
            raise ModelError(
                f"the model is of {images_of_size(self.size)}, and the data are "
                f"{images_of_size(found)}",
                value=found,
                remedy="give images of the size of the model",
            )

    def to_config(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "size": list(self.size),
            "mean": list(self.mean),
            "scale": list(self.scale),
            "whole": self.whole,
        }

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> ImageCodec:
        """The codec that `to_config` described; ModelError says what is wrong."""
        if not isinstance(config, Mapping) or config.get("kind") != cls.kind:
            raise ModelError("this is no codec of images")
        size, whole = config.get("size"), config.get("whole")
        if not (isinstance(size, list) and len(size) == 3 and all(type(n) is int for n in size)):
            raise ModelError(f"in the codec, size is three whole numbers, not {size!r}")
        check_size(tuple(size))
        if type(whole) is not bool:
            raise ModelError(f"in the codec, whole is true or false, not {whole!r}")
        known = {}
        for name in ("mean", "scale"):
            values = config.get(name)
            if not (isinstance(values, list) and len(values) == size[0]) or not all(
                type(v) in (int, float) and math.isfinite(v) and (v > 0 or name == "mean")
                for v in values
            ):
                raise ModelError(f"in the codec, {name} is a number for each of {size[0]} channels")
            known[name] = tuple(float(v) for v in values)
        return cls((size[0], size[1], size[2]), known["mean"], known["scale"], whole)


def picture(value: Any, name: str = "picture") -> Tensor:
    """One image as (C, h, w) from 0 to 1: of bytes or of such numbers, (h, w), (h, w, 3) or
    (C, h, w)."""
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.ndim == 3 and array.shape[-1] == len(CHANNELS) and array.shape[0] not in (1, 3):
        array = array.transpose(2, 0, 1)
    array = array[None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[0] not in (1, len(CHANNELS)) or array.dtype.kind not in "uf":
        raise ModelError(
            f"{name} is no picture: {array.shape} of {array.dtype}",
            remedy="give bytes or numbers from 0 to 1, of the shape (height, width), "
            "(height, width, 3) or (channels, height, width)",
        )
    scaled = array.astype(np.float64) / (WHITE if array.dtype.kind == "u" else 1)
    if not (np.isfinite(scaled).all() and scaled.min() >= -1e-6 and scaled.max() <= 1 + 1e-6):
        low, high = scaled.min(), scaled.max()
        raise ModelError(
            f"{name} has values from {low:g} to {high:g}, and pixels count from 0 to 1",
            remedy="scale it",
        )
    return torch.from_numpy(scaled)


def mask(value: Any, name: str = "region") -> Tensor:
    """Which pixels a region has, (H, W); of bytes or numbers those nearer to white than black."""
    array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
    if array.ndim != 2 or array.dtype.kind not in "bufi":
        raise ModelError(
            f"the region {name} is a mask of the shape (height, width), not {array.dtype} of "
            f"{array.shape}",
            remedy="constraints.box makes one of rows and columns",
        )
    top = 1.0 if array.dtype.kind in "bf" or array.max(initial=0) <= 1 else float(WHITE)
    return torch.from_numpy(np.asarray(array > top / 2))


def classifier(value: Any, name: str = "class") -> Classifier:
    """A classifier for formulas, from one or from what can be converted into one."""
    made = value.as_atom() if hasattr(value, "as_atom") else value
    if not isinstance(made, Classifier):
        raise ModelError(
            f"{name} is no classifier: {value!r}",
            remedy="load one with surrogate.kinds.images.classifier.Classifier.load, or make one "
            "of torch code with constraints.Classifier(call, classes)",
        )
    return made


def function(value: Any, name: str = "function") -> Function:
    """A function for formulas; a plain callable maps images (B, C, H, W) to numbers (B,)."""
    if isinstance(value, Function):
        return value
    if not callable(value):
        raise ModelError(
            f"{name} is no function but {value!r}", remedy="give torch code, or a Function"
        )
    return Function(value, 1, whole=True)


def images_of_size(size: tuple[int, ...]) -> str:
    """A size (C, H, W) in words."""
    return f"{'grey' if size[0] == 1 else 'colour'} images of {size[2]}x{size[1]} pixels"


def check_size(size: tuple[int, ...]) -> None:
    """ModelError unless a picture may have this size (C, H, W)."""
    channels, height, width = size
    if channels not in (1, 3):
        raise ModelError(
            f"an image has 1 channel (grey) or 3 (red, green, blue), not {channels}",
            value=channels,
        )
    check_sides((width, height))


def described(data: xr.Dataset) -> tuple[tuple[int, int, int], bool]:
    """The size (C, H, W) of a dataset's images, and whether they are bytes."""
    if IMAGE not in data.data_vars:
        raise ModelError(
            f"this dataset has no variable '{IMAGE}'",
            allowed=[str(name) for name in data.data_vars],
            remedy=f"image data are one variable '{IMAGE}' over (sample, [channel,] y, x)",
        )
    array = data[IMAGE]
    dims = tuple(str(name) for name in array.dims)
    if dims not in (("sample", "y", "x"), ("sample", "channel", "y", "x")):
        raise ModelError(
            f"an image has the dimensions (sample, [channel,] y, x), not ({', '.join(dims)})",
            remedy="transpose or rename them",
        )
    size = (array.sizes.get("channel", 1), array.sizes["y"], array.sizes["x"])
    check_size(size)
    if array.dtype == np.uint8 or array.dtype.kind == "f":
        return size, bool(array.dtype == np.uint8)
    raise ModelError(
        f"pixels are bytes (uint8) or real numbers from 0 to 1, not {array.dtype}",
        remedy="surrogate.kinds.images.files.from_array converts them",
    )


def _values(data: xr.Dataset, samples: Samples) -> np.ndarray:
    """Pixels from 0 to 1, float32, like the data."""
    array = np.asarray(data[IMAGE].isel(sample=samples).values)
    if array.dtype == np.uint8:
        return array.astype(np.float32) / WHITE
    if not (np.isfinite(array).all() and array.min(initial=0) >= 0 and array.max(initial=0) <= 1):
        raise ModelError(
            "real-valued pixels are numbers from 0 to 1",
            remedy="surrogate.kinds.images.files.from_array rescales them",
        )
    return array.astype(np.float32)
