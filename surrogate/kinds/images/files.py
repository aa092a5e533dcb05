"""Images in files and arrays as datasets, and back.

`read_images` takes what people have: .npz, .npy, IDX, folders of PNG and JPEG, .nc of our own.
`write_images` writes .npz, .nc or a folder of PNG without loss, and .png as a contact sheet.
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.io.model_folder import whole
from surrogate.kinds.images import array_files, picture_files
from surrogate.kinds.images.array_files import readable
from surrogate.kinds.images.values import (
    IMAGE,
    LABEL,
    Say,
    Size,
    checked,
    dataset_of,
    greyed,
    resized,
    silent,
    upright,
)
from surrogate.kinds.images.values import channels_of as channels_of
from surrogate.kinds.images.values import from_array as from_array
from surrogate.kinds.images.values import is_images as is_images
from surrogate.kinds.images.values import size_of as size_of
from surrogate.kinds.images.values import spelled as spelled
from surrogate.kinds.images.values import to_array as to_array
from surrogate.kinds.images.values import told as told

ENDINGS = (".npz", ".png", ".nc")  # that images are written to; a name without one is a folder
TABLE = "labels.csv"  # beside the pictures of a folder
_OURS = re.compile(r"\d+(-\d+)?\.png|labels\.csv")


def names_images(path: str | Path) -> bool:
    """Whether a path is one of images, by its name, or a folder's by what is in it.

    A netCDF file may hold them too, which only looking into it tells.
    """
    place = Path(path)
    if place.is_dir():
        if place.suffix.lower() == ".zarr" or (place / "zarr.json").exists():
            return False
        return bool(picture_files.pictures_in(place))
    return place.suffix.lower() in (".npz", ".npy") or array_files.is_idx(place.name)


def read_images(
    path: str | Path,
    labels: str | Path | None = None,
    *,
    array: str | None = None,
    size: int | Size | None = None,
    grey: bool = False,
    damaged: str = "refuse",
    say: Say = silent,
) -> xr.Dataset:
    """Images from .npz, .npy, IDX (.gz or not), a folder of PNG and JPEG, or netCDF.

    `labels`: a file of them (IDX, .npy), or an array of the .npz; else those found beside. `array`:
    the name of the images in .npz. `size`: scale and cut to a width (and height). `grey`: without
    colours. `damaged`: "refuse" or "skip" pictures of a folder that cannot be read. `say` is told
    what was assumed.
    """
    place = Path(path)
    if damaged not in ("refuse", "skip"):
        raise ModelError(f"damaged is refuse or skip, not {damaged!r}")
    wanted = None if size is None else _size(size)
    if not place.exists():
        raise ModelError(f"there is no file or folder {str(place)!r}")
    if array is not None and place.suffix.lower() != ".npz":
        raise ModelError(f"an array is named in .npz files (array={array}); {place.name} is none")
    if damaged == "skip" and not place.is_dir():
        raise ModelError(
            f'pictures of a folder can be skipped (damaged="skip"); {place.name} is one file'
        )
    data = _read(place, labels, array, wanted, grey, damaged == "skip", say)
    data = greyed(data) if grey else data
    return data if wanted is None else resized(data, wanted)


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
        return _judged(place, found, dataset_of(found.pixels, given))
    if ending == ".npz":
        key = None if labels is None or Path(labels).is_file() else str(labels)
        packed = array_files.read_npz(place, array, key, say)
        if packed.own:
            return _restored(place, packed)
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
        return from_array(images, _beside(place, labels, len(images), say), say)
    raise ModelError(
        f"cannot read {str(place)!r} as images: they are .npz, .npy, IDX (-idx3-ubyte), .nc or a "
        "folder of .png and .jpg"
    )


def _refuse_model(place: Path) -> None:
    if (place / "config.json").exists() and (place / "weights.safetensors").exists():
        raise ModelError(f"{str(place)!r} is the folder of a model, not of pictures")


def _labels_from(path: str | Path) -> np.ndarray:
    """Labels (N,) of a file of their own."""
    place = Path(path)
    if not place.is_file():
        raise ModelError(f"there is no file {str(place)!r} of labels")
    if place.suffix.lower() == ".npy":
        return array_files.read_npy(place)
    if array_files.is_idx(place.name):
        return array_files.read_idx(place, labels=True)
    raise ModelError(f"cannot read labels from {str(place)!r}: they are IDX (-idx1-ubyte) or .npy")


def _beside(place: Path, labels: str | Path | None, count: int, say: Say) -> np.ndarray | None:
    """The labels of an IDX file, which are likely to be beside it."""
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
        if not is_images(data):
            raise ModelError(
                f"{str(place)!r} holds no images: it has no variable image (sample, ..., y, x)"
            )
        return checked(data.load(), say)


# --- what we wrote --------------------------------------------------------------------------------


def _restored(place: Path, packed: array_files.Packed) -> xr.Dataset:
    """The dataset that was written to .npz; a stranger's may only look like it."""
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
    return checked(data)


def _judged(place: Path, found: picture_files.Folder, data: xr.Dataset) -> xr.Dataset:
    """The verdicts and weights that stand in the table of a folder of ours."""
    table = place / TABLE
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
    """Write .npz, .nc or a folder of PNG (a name without an ending), which lose nothing, or .png,
    a contact sheet; whole or not at all.

    Images of real numbers are bytes in a folder and on a sheet.
    """
    target = Path(path)
    ending = target.suffix.lower()
    if ending not in (*ENDINGS, ""):
        raise ModelError(
            f"cannot write images to {str(target)!r}: the name ends in {', '.join(ENDINGS)}, or in "
            "nothing for a folder of pictures"
        )
    if ending == "":
        with _folder(target) as part:
            _write_folder(data, part)
        return

    with whole(target) as part:
        if ending == ".npz":
            with part.open("wb") as file:
                np.savez_compressed(file, **_packed(data))
        elif ending == ".nc":
            _write_netcdf(data, part)
        else:
            from surrogate.kinds.images.plot import contact_sheet

            contact_sheet(data).save(part, format="PNG", optimize=True)


def _packed(data: xr.Dataset) -> dict[str, Any]:
    """Arrays by name: `images` (N, H, W[, 3]), `labels`, verdicts, weights and `about`, as JSON."""
    image = upright(data)
    others = {str(k): v for k, v in data.data_vars.items() if k not in (IMAGE, LABEL)}
    made = {name: _plain(array.values) for name, array in others.items()}
    if LABEL in data:
        made["labels"] = _plain(data[LABEL].values)
    about = {
        "order": [str(dim) for dim in image.dims],
        "dims": {name: [str(dim) for dim in array.dims] for name, array in others.items()},
        "coords": {"rule": [str(r) for r in data["rule"].values]} if "rule" in data.coords else {},
        "attrs": data.attrs,
    }
    return {"images": image.values, **made, "about": np.array(json.dumps(about, default=str))}


def _plain(values: np.ndarray) -> np.ndarray:
    """Words of a type that needs no pickle."""
    return values.astype(str) if values.dtype == object else values


def _write_netcdf(data: xr.Dataset, part: Path) -> None:
    numbers = [name for name, array in data.variables.items() if array.dtype.kind in "iufb"]
    packing = {"zlib": True, "complevel": 1, "shuffle": True, "_FillValue": None}
    encoding = {name: packing for name in numbers if data[name].ndim}
    data.drop_encoding().to_netcdf(part, engine="netcdf4", format="NETCDF4", encoding=encoding)


def _write_folder(data: xr.Dataset, part: Path) -> None:
    from PIL import Image

    pixels = to_array(data)
    several = "instance" in data[IMAGE].dims
    digits = max(4, len(str(len(pixels) - 1)))
    columns = {
        str(name): array.values
        for name, array in data.data_vars.items()
        if array.dims == ("sample",) and name != IMAGE
    }
    with (part / TABLE).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["file", *columns])
        for k, each in enumerate(pixels):
            for i, picture in enumerate(each if several else [each]):
                name = f"{k:0{digits}}{f'-{i + 1}' * several}.png"
                Image.fromarray(picture).save(part / name)
                rows.writerow([name, *(values[k] for values in columns.values())])


def check_folder(target: Path) -> None:
    """Refuse a folder that holds anything but pictures of ours."""
    if target.is_file():
        raise ModelError(f"{str(target)!r} is a file, where a folder is needed: it is left alone")
    others = [] if not target.is_dir() else [each.name for each in target.iterdir()]
    foreign = sorted(name for name in others if not _OURS.fullmatch(name))
    if foreign:
        raise ModelError(
            f"{str(target)!r} is a folder with other things in it, such as {foreign[0]!r}: it is "
            "left alone; choose another"
        )


@contextmanager
def _folder(target: Path) -> Iterator[Path]:
    """A folder to fill that takes the place of `target` when all went well, and vanishes if not."""
    check_folder(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    part, old = beside / "new", beside / "old"
    try:
        part.mkdir()
        yield part
        if target.exists():
            target.rename(old)
        try:
            part.rename(target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def named_folder(path: str | Path) -> bool:
    """Whether a path is one of a folder of pictures: `out/`, or a name without an ending."""
    return str(path).endswith("/") or not Path(path).suffix
