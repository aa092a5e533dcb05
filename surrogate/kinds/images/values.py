"""Images as data: one variable `image` over (sample, [channel,] y, x).

Values are uint8 in 0..255, or float32 in [0, 1] where the source has real numbers. Grey images have
no `channel`; colour has red, green and blue. Several pictures that make a sample have a dimension
`instance` after `sample`. A variable `label` (sample,) says what a picture shows, if that is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np
import xarray as xr

from constraints.errors import Setting
from constraints.layout.image_operators import CHANNELS, LUMA_WEIGHTS
from surrogate.errors import ModelError
from surrogate.io.formats import Say as Say
from surrogate.io.formats import silent as silent
from surrogate.io.reading import Size as Size

IMAGE, LABEL = "image", "label"
MIN_SIDE, MAX_SIDE = 4, 512  # pixels
MAX_ARRAY_BYTES = 4_000_000_000  # of an array that is read
RANGE_TOLERANCE = 1e-5  # by which values may lie outside 0 and 1


def is_images(data: Any) -> TypeGuard[xr.Dataset]:
    """Whether data are images: a dataset with a variable `image` over (sample, ..., y, x)."""
    return (
        isinstance(data, xr.Dataset)
        and IMAGE in data.data_vars
        and {"sample", "y", "x"} <= set(data[IMAGE].dims)
        and "time" not in data.dims
    )


def size_of(data: xr.Dataset) -> Size:
    """Width and height."""
    return int(data[IMAGE].sizes["x"]), int(data[IMAGE].sizes["y"])


def channels_of(data: xr.Dataset) -> int:
    """1 of grey images, 3 of colour."""
    return int(data[IMAGE].sizes.get("channel", 1))


def size_text(size: Size) -> str:
    """28x28, or 32x24 for a width of 32 and a height of 24."""
    return f"{size[0]}x{size[1]}"


def summary(data: xr.Dataset) -> str:
    """60,000 grey images of 28x28, 0..255, labels 0-9 not learned"""
    count, several = data.sizes["sample"], data.sizes.get("instance", 1)
    kind = "grey" if channels_of(data) == 1 else "colour"
    values = "0..255" if data[IMAGE].dtype == np.uint8 else "real numbers in [0, 1]"
    many = f"{count:,} times {several}" if several > 1 else f"{count:,}"
    said = (
        f"{many} {kind} image{'s' * (count * several != 1)} of {size_text(size_of(data))}, {values}"
    )
    return said + (
        f", labels {_label_range(data[LABEL].values)} not learned" if LABEL in data else ""
    )


def _label_range(labels: np.ndarray) -> str:
    """0-9, or cat, dog and 8 more."""
    known = np.unique(labels)
    if known.dtype.kind in "iu":
        low, high = int(known[0]), int(known[-1])
        return str(low) if low == high else f"{low}-{high}"
    words = [str(word) for word in known[:4]]
    return ", ".join(words) + (f" and {len(known) - 4} more" if len(known) > 4 else "")


# --- arrays ---------------------------------------------------------------------------------------


def from_array(array: Any, labels: Any = None, say: Say = silent) -> xr.Dataset:
    """A dataset of images (N, H, W), (N, H, W, 1 or 3 or 4) or (N, 1 or 3 or 4, H, W).

    Integers are 0..255 (or 0 and 1, or 16 bits); real numbers are in [0, 1], [-1, 1] or 0..255.
    `say` receives what was assumed. `labels`: (N,).
    """
    given = np.asarray(array)
    _check_numbers(given)
    turned = _channels_last(given, say)
    _check_finite(turned)
    made = _grey_or_colour(_scaled(turned, say), say)
    return dataset_of(made, labels)


def dataset_of(pixels: np.ndarray, labels: Any = None) -> xr.Dataset:
    """A dataset of checked images (N, H, W) or (N, H, W, 3), uint8 or float32."""
    colour = pixels.ndim == 4
    values = np.ascontiguousarray(np.moveaxis(pixels, 3, 1)) if colour else pixels
    dims = ("sample", "channel", "y", "x") if colour else ("sample", "y", "x")
    made = xr.Dataset({IMAGE: (dims, values)})
    if colour:
        made = made.assign_coords(channel=("channel", np.array(CHANNELS, dtype=object)))
    return (
        made if labels is None else made.assign({LABEL: ("sample", _labels(labels, len(values)))})
    )


def _labels(given: Any, count: int) -> np.ndarray:
    labels = np.asarray(given)
    if labels.shape != (count,):
        raise ModelError(
            f"labels of shape {labels.shape} for {count:,} images",
            value=labels.shape,
            remedy="give one for each",
        )
    if labels.dtype.kind in "SU":
        return np.asarray(np.char.decode(labels) if labels.dtype.kind == "S" else labels, object)
    whole = labels.dtype.kind == "f" and bool(np.isfinite(labels).all() & (labels % 1 == 0).all())
    if labels.dtype.kind in "iub" or whole:
        return np.asarray(labels, np.int64)
    if labels.dtype == object and all(isinstance(each, str) for each in labels):
        return labels
    raise ModelError(
        f"labels are whole numbers or words, not {labels.dtype}", value=str(labels.dtype)
    )


def _check_numbers(array: np.ndarray) -> None:
    if array.dtype == object:
        raise ModelError(
            "the array holds Python objects, not numbers",
            remedy="make one of images of one size: numpy.stack(images)",
        )
    if array.dtype.kind not in "biuf":
        raise ModelError(
            f"the array holds {array.dtype}, which are no grey levels or colours",
            value=str(array.dtype),
            remedy="give bytes or real numbers",
        )
    if array.size == 0:
        raise ModelError(
            f"there are no images in an array of shape {array.shape}", value=array.shape
        )


def _check_finite(array: np.ndarray) -> None:
    if array.dtype.kind != "f":
        return
    bad = ~np.isfinite(array).reshape(len(array), -1).all(1)
    if bad.any():
        raise ModelError(
            f"{int(bad.sum()):,} of {len(array):,} images have pixels that are missing (NaN) "
            f"or infinite, first image {int(bad.argmax())}",
            remedy="drop or repair them",
        )


def _channels_last(array: np.ndarray, say: Say) -> np.ndarray:
    """(N, H, W) or (N, H, W, C), C of 1, 3 or 4; channels may have come first."""
    shape = array.shape
    if array.ndim == 3:
        single = shape[2] in (3, 4) and shape[0] >= MIN_SIDE
        check_sides((shape[2], shape[1]), "; one colour image is array[None]" * single)
        return array
    if array.ndim != 4:
        raise ModelError(
            f"an array of shape {shape} holds no images", value=shape, remedy=_reshaped(shape)
        )
    last = shape[3] in (1, 3, 4) and min(shape[1:3]) >= MIN_SIDE
    first = shape[1] in (1, 3, 4) and min(shape[2:]) >= MIN_SIDE
    if not (last or first):
        raise ModelError(
            f"an array of shape {shape} holds no images",
            value=shape,
            remedy="images are (N, height, width), (N, height, width, channels) or (N, channels, "
            f"height, width), with 1 or 3 channels and {MIN_SIDE} to {MAX_SIDE} pixels a side",
        )
    if last and first:
        say(
            f"shape {shape}: taken as images of {shape[2]}x{shape[1]} with {shape[3]} channels "
            "last; if they come first: numpy.moveaxis(array, 1, 3)"
        )
    turned = array if last else np.moveaxis(array, 1, 3)
    check_sides((turned.shape[2], turned.shape[1]))
    return turned


def _reshaped(shape: tuple[int, ...]) -> str:
    """A remedy: how to make images of rows of pixels, or of a single image."""
    side = math.isqrt(shape[-1]) if len(shape) == 2 else 0
    if side >= MIN_SIDE and side * side == shape[-1] and shape[0] != shape[1]:
        return f"rows of {shape[-1]} pixels become images by array.reshape(-1, {side}, {side})"
    if len(shape) == 2:
        return "a single image is array[None]"
    return "images are (N, height, width) or (N, height, width, channels)"


def check_sides(size: Size, hint: str = "") -> None:
    """Refuse sides that no model is made for; `hint` is added to the remedy."""
    if not (min(size) >= MIN_SIDE and max(size) <= MAX_SIDE):
        raise ModelError(
            f"images of {size_text(size)} cannot be learned: each side has {MIN_SIDE} to "
            f"{MAX_SIDE} pixels",
            value=size,
            remedy=("give them another size (", Setting("size", 32), f"){hint}"),
        )


def _scaled(array: np.ndarray, say: Say) -> np.ndarray:
    """uint8 in 0..255, or float32 in [0, 1]."""
    if array.dtype == bool:
        return array.astype(np.uint8) * np.uint8(255)
    low, high = array.min().item(), array.max().item()
    if array.dtype.kind in "iu":
        return _scaled_integers(array, low, high, say)
    if low >= -RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE:
        return np.clip(array.astype(np.float32), 0, 1)
    if low >= -1 - RANGE_TOLERANCE and high <= 1 + RANGE_TOLERANCE:
        say("values from -1 to 1 were brought to [0, 1]")
        return np.clip((array.astype(np.float32) + 1) / 2, 0, 1)
    if low >= 0 and high <= 255:
        if bool((array == np.rint(array)).all()):
            return array.astype(np.uint8)
        say("real numbers from 0 to 255 were brought to [0, 1]")
        return np.asarray(array, np.float32) / np.float32(255)
    raise ModelError(
        f"real numbers from {low:.4g} to {high:.4g} are no pixels",
        value=(low, high),
        remedy="rescale them to [0, 1], [-1, 1] or 0..255",
    )


def _scaled_integers(array: np.ndarray, low: int, high: int, say: Say) -> np.ndarray:
    if low < 0 or high > 65535:
        raise ModelError(
            f"whole numbers from {low} to {high} are no pixels",
            value=(low, high),
            remedy="rescale them to 0..255",
        )
    if high > 255:
        say(f"numbers of 16 bits (up to {high}) were brought to [0, 1]")
        return array.astype(np.float32) / np.float32(65535)
    if high == 1:
        say("0 and 1 were taken as black and white")
        return array.astype(np.uint8) * np.uint8(255)
    return array.astype(np.uint8, copy=False)


def _grey_or_colour(pixels: np.ndarray, say: Say) -> np.ndarray:
    """(N, H, W) or (N, H, W, 3)."""
    if pixels.ndim == 3:
        return pixels
    if pixels.shape[3] == 4:
        top = 255 if pixels.dtype == np.uint8 else 1
        say("transparent pixels were put on white" if pixels[..., 3].min() < top else OPAQUE_NOTE)
        pixels = on_white(pixels)
    return pixels[..., 0] if pixels.shape[3] == 1 else pixels


OPAQUE_NOTE = "a fourth channel that makes nothing transparent was left out"


def on_white(pixels: np.ndarray) -> np.ndarray:
    """RGBA (..., 4) blended with a white background: RGB (..., 3)."""
    top = np.float32(255 if pixels.dtype == np.uint8 else 1)
    share = pixels[..., 3:].astype(np.float32) / top
    mixed = share * pixels[..., :3] + (1 - share) * top
    made = np.rint(mixed) if pixels.dtype == np.uint8 else mixed
    return np.asarray(made, pixels.dtype)


# --- back to arrays -------------------------------------------------------------------------------


def to_array(data: xr.Dataset) -> np.ndarray:
    """uint8 (N, H, W) or (N, H, W, 3); several instances follow the sample: (N, instances, ...)."""
    image = channels_last(data)
    values = np.asarray(image.values)
    if values.dtype == np.uint8:
        return values
    return np.rint(np.clip(values.astype(np.float32), 0, 1) * 255).astype(np.uint8)


def channels_last(data: xr.Dataset) -> xr.DataArray:
    """`image` over (sample, [instance,] y, x[, channel])."""
    if not is_images(data):
        raise ModelError("the data hold no images: there is no variable image (sample, ..., y, x)")
    image = data[IMAGE]
    order = [dim for dim in ("sample", "instance", "y", "x", "channel") if dim in image.dims]
    odd = [str(dim) for dim in image.dims if dim not in order]
    if odd or image.sizes.get("channel", 3) not in (1, 3):
        raise ModelError(
            f"image has the dimensions {dict(image.sizes)}",
            value=dict(image.sizes),
            remedy="give (sample, [channel,] y, x), with three channels: red, green, blue",
        )
    if image.sizes.get("channel") == 1:
        image = image.isel(channel=0, drop=True)
        order = [dim for dim in order if dim != "channel"]
    return image.transpose(*order)


def checked_images(data: xr.Dataset, say: Say = silent) -> xr.Dataset:
    """A dataset that was read, with its images in the form that this module describes."""
    image = channels_last(data)
    check_sides(size_of(data))
    values = np.asarray(image.values)
    if values.dtype != np.uint8:  # whose 0 and 1 are very dark greys
        flat = values.reshape(-1, *image.shape[1 + ("instance" in image.dims) :])
        values = channels_last(from_array(flat, say=say)).values.reshape(values.shape)
    dims = [str(dim) for dim in image.dims]
    order = [dim for dim in ("sample", "instance", "channel", "y", "x") if dim in dims]
    turned = xr.Variable(dims, values).transpose(*order)
    kept = data.drop_vars([IMAGE, "channel"], errors="ignore")
    found = kept.assign({IMAGE: (order, np.ascontiguousarray(turned.values))})
    return found.assign_coords(channel=list(CHANNELS)) if "channel" in dims else found


# --- other sizes and colours ----------------------------------------------------------------------


def resized(data: xr.Dataset, size: Size) -> xr.Dataset:
    """The images scaled to cover a width and height, and cropped around the middle."""
    check_sides(size)
    return data if size == size_of(data) else _changed(data, lambda x: _fit(x, size))


def to_grey(data: xr.Dataset) -> xr.Dataset:
    """Colour as grey levels."""
    if channels_of(data) == 1:
        return data
    return _changed(data, _grey)


def _changed(data: xr.Dataset, how: Callable[[np.ndarray], np.ndarray]) -> xr.Dataset:
    """The dataset with pixels (N, H, W[, 3]) mapped by `how`."""
    if "instance" in data[IMAGE].dims:
        raise ModelError(
            "samples of several images keep their size and colours",
            remedy=("leave out ", Setting("size"), " and ", Setting("grey")),
        )
    made = dataset_of(how(channels_last(data).values))
    others = data.drop_vars([IMAGE, "channel", "y", "x"], errors="ignore")
    return others.assign_coords(made.coords).assign({IMAGE: made[IMAGE]})


def _grey(pixels: np.ndarray) -> np.ndarray:
    mixed = pixels.astype(np.float32) @ np.array(LUMA_WEIGHTS, np.float32)
    return np.rint(mixed).astype(np.uint8) if pixels.dtype == np.uint8 else mixed.clip(0, 1)


def _fit(pixels: np.ndarray, size: Size) -> np.ndarray:
    from PIL import Image, ImageOps

    if pixels.dtype == np.uint8:
        made = [np.asarray(ImageOps.fit(Image.fromarray(each), size)) for each in pixels]
        return np.stack(made)
    planes = pixels[..., None] if pixels.ndim == 3 else pixels
    fitted = [
        np.stack([np.asarray(ImageOps.fit(Image.fromarray(p), size)) for p in each], -1)
        for each in np.moveaxis(planes, 3, 1)
    ]
    found = np.asarray(np.clip(np.stack(fitted), 0, 1), np.float32)
    return found if pixels.ndim == 4 else found[..., 0]
