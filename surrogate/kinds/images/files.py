"""Reading and writing images, and their file formats.

`read_images` reads .npz, .npy, IDX, folders of PNG and JPEG, and netCDF; `write_images` writes
.npz, .nc and folders of PNG without loss, and .png as a contact sheet.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.io import formats
from surrogate.io.formats import DATASET, IMAGES, Format
from surrogate.kinds.images import array_files, picture_files, write_files
from surrogate.kinds.images.array_files import readable
from surrogate.kinds.images.values import (
    IMAGE,
    LABEL,
    Say,
    Size,
    checked_images,
    dataset_of,
    resized,
    silent,
    to_grey,
)
from surrogate.kinds.images.values import channels_of as channels_of
from surrogate.kinds.images.values import from_array as from_array
from surrogate.kinds.images.values import is_images as is_images
from surrogate.kinds.images.values import size_of as size_of
from surrogate.kinds.images.values import size_text as size_text
from surrogate.kinds.images.values import summary as summary
from surrogate.kinds.images.values import to_array as to_array


def is_picture_folder(place: Path) -> bool:
    """Whether a path is a folder of pictures."""
    if not place.is_dir() or place.suffix.lower() == ".zarr" or (place / "zarr.json").exists():
        return False
    return bool(picture_files.pictures_in(place))


def read_images(
    path: str | Path,
    labels: str | Path | None = None,
    *,
    array: str | None = None,
    size: int | Size | None = None,
    grey: bool = False,
    skip_damaged: bool = False,
    say: Say = silent,
) -> xr.Dataset:
    """Images from .npz, .npy, IDX (.gz or not), a folder of PNG and JPEG, or netCDF.

    The settings are those of `surrogate.io.reading.ImageOptions`; `say` receives what was assumed.
    """
    place = Path(path)
    wanted = None if size is None else _size(size)
    if not place.exists():
        raise ModelError(f"there is no file or folder {str(place)!r}", value=place)
    if array is not None and place.suffix.lower() != ".npz":
        raise _one_file(place, "only .npz files have arrays with names", Setting("array", array))
    if skip_damaged and not place.is_dir():
        raise _one_file(place, "it is one file, no folder", Setting("skip_damaged", True))
    return adapted(_read(place, labels, array, wanted, grey, skip_damaged, say), grey, wanted)


def _one_file(place: Path, why: str, setting: Setting) -> ModelError:
    return ModelError(f"{place.name}: {why}", remedy=("leave out ", setting))


def adapted(data: xr.Dataset, grey: bool, size: int | Size | None) -> xr.Dataset:
    """Images in grey and of another size, if that is requested."""
    data = to_grey(data) if grey else data
    return data if size is None else resized(data, _size(size))


def _size(size: int | Size) -> Size:
    return (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))


def _read(
    place: Path,
    labels: str | Path | None,
    array: str | None,
    size: Size | None,
    grey: bool,
    skip: bool,
    say: Say,
) -> xr.Dataset:
    ending = place.suffix.lower()
    if place.is_dir():
        _refuse_model(place)
        found = picture_files.read_folder(place, size, grey, skip, say)
        given = found.labels if labels is None else _labels_from(labels)
        return _with_labels(place, found, dataset_of(found.pixels, given))
    if ending == ".npz":
        key = None if labels is None or Path(labels).is_file() else str(labels)
        packed = array_files.read_npz(place, array, key, say)
        if packed.own:
            return _from_own_npz(place, packed)
        outside = labels is not None and key is None
        given = _labels_from(labels) if labels is not None and outside else packed.labels
        return from_array(packed.images, given, say)
    if ending == ".nc":
        return _netcdf(place, say)
    if ending == ".npy":
        given = None if labels is None else _labels_from(labels)
        return from_array(array_files.read_npy(place), given, say)
    if array_files.is_idx(place.name):
        images = array_files.read_idx(place)
        return from_array(images, _idx_labels(place, labels, len(images), say), say)
    raise ModelError(
        f"cannot read {str(place)!r} as images",
        value=place,
        remedy="give .npz, .npy, IDX (-idx3-ubyte), .nc or a folder of .png and .jpg",
    )


def _refuse_model(place: Path) -> None:
    if (place / "config.json").exists() and (place / "weights.safetensors").exists():
        raise ModelError(f"{str(place)!r} is the folder of a model, not of pictures")


def _labels_from(path: str | Path) -> np.ndarray:
    """Labels (N,) from a file."""
    place = Path(path)
    if not place.is_file():
        raise ModelError(f"there is no file {str(place)!r} of labels", value=place)
    if place.suffix.lower() == ".npy":
        return array_files.read_npy(place)
    if array_files.is_idx(place.name):
        return array_files.read_idx(place, labels=True)
    raise ModelError(
        f"cannot read labels from {str(place)!r}",
        value=place,
        remedy="give IDX (-idx1-ubyte) or .npy",
    )


def _idx_labels(place: Path, labels: str | Path | None, count: int, say: Say) -> np.ndarray | None:
    """The labels of an IDX file of images: given, or in the file of labels beside it."""
    if labels is not None:
        return _labels_from(labels)
    found = array_files.labels_beside(place)
    if found is None:
        return None
    read = array_files.read_idx(found, labels=True)
    if len(read) != count:
        say(f"left out {found.name}: {len(read):,} labels for {count:,} images")
        return None
    return read


def _netcdf(place: Path, say: Say) -> xr.Dataset:
    with readable(place, "netCDF"), xr.open_dataset(place, engine="netcdf4", cache=False) as data:
        return loaded(data, str(place), say)


def loaded(data: xr.Dataset, path: str, say: Say) -> xr.Dataset:
    """The images of a dataset that was opened lazily, loaded into memory and checked."""
    if not is_images(data):
        raise ModelError(
            f"{path!r} holds no images: it has no variable image (sample, ..., y, x)", value=path
        )
    with readable(Path(path), "images"):
        return checked_images(data.load(), say)


# --- files that `write_images` wrote --------------------------------------------------------------


def _from_own_npz(place: Path, packed: array_files.Packed) -> xr.Dataset:
    """The dataset that `write_npz` wrote; ModelError if the file only looks like one."""
    dims, about = packed.about.get("dims"), packed.about
    try:
        shapes = {str(k): tuple(map(str, v)) for k, v in dict(dims or {}).items()}
        made = {name: (shapes[name], values) for name, values in packed.others.items()}
        images = packed.images
        order = ("sample", *(("instance",) * ("instance" in about["order"])), "y", "x")
        order += ("channel",) * (images.ndim == len(order) + 1)
        coords = {str(k): np.array(v, dtype=object) for k, v in about["coords"].items()}
        data = xr.Dataset({IMAGE: (order, images), **made}, coords, dict(about["attrs"]))
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise ModelError(f"{str(place)!r} does not hold what it says: {problem}") from None
    if packed.labels is not None:
        data = data.assign({LABEL: ("sample", packed.labels)})
    return checked_images(data)


def _with_labels(place: Path, found: picture_files.Folder, data: xr.Dataset) -> xr.Dataset:
    """The data with the labels and weights of labels.csv, which `write_folder` wrote."""
    table = place / write_files.LABELS_FILE
    if not table.is_file() or "label" in data:
        return data
    with readable(table, "a table"), table.open(newline="", encoding="utf-8") as file:
        rows = {row.get("file"): row for row in csv.DictReader(file)}
    own = [rows.get(each.name) for each in found.files]
    kinds: dict[str, Any] = {"satisfied": bool, "robustness": np.float32, "log_weight": np.float64}
    made: dict[str, Any] = {}
    for name in (LABEL, *kinds):
        values = [None if row is None else row.get(name) for row in own]
        if any(each is None for each in values):
            continue
        texts = [str(each) for each in values]
        try:
            if name == "satisfied":
                made[name] = ("sample", np.array([each == "True" for each in texts]))
            elif name in kinds:
                made[name] = ("sample", np.array(texts, dtype=kinds[name]))
            else:
                whole = all(re.fullmatch(r"-?\d{1,18}", each) for each in texts)
                made[name] = ("sample", np.array(texts, dtype=np.int64 if whole else object))
        except ValueError:
            continue
    return data.assign(made)


# --- writing --------------------------------------------------------------------------------------


def write_images(data: xr.Dataset, path: str | Path) -> None:
    """Write .npz, .nc or a folder of PNG (a name without a suffix), which lose nothing, or .png, a
    contact sheet; atomically. Real numbers become bytes in a folder and on a sheet."""
    if formats.format_for(path, (IMAGES, DATASET)).folder:
        write_files.check_folder(Path(path))
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    formats.write(data, path, (IMAGES, DATASET))


# --- formats --------------------------------------------------------------------------------------


def _read_any(place: Path, options: Mapping[str, Any], say: Say) -> xr.Dataset:
    return read_images(place, **options, say=say)


formats.register(Format("npz", (".npz",), IMAGES, read=_read_any, write=write_files.write_npz))
formats.register(Format("npy", (".npy",), IMAGES, read=_read_any))
formats.register(Format("PNG sheet", (".png",), IMAGES, write=write_files.write_sheet))
formats.register(
    Format(
        "IDX", (), IMAGES, read=_read_any, recognises=lambda place: array_files.is_idx(place.name)
    )
)
formats.register(
    Format(
        "folder of pictures",
        (),
        IMAGES,
        read=_read_any,
        write=write_files.write_folder,
        written=("/",),
        folder=True,
        owns=write_files.owns,
        recognises=is_picture_folder,
    )
)
