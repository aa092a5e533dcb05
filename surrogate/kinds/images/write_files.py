"""Writing images: arrays (.npz), a folder of PNG files, a contact sheet (.png)."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.io.atomic import foreign
from surrogate.kinds.images.plot import contact_sheet
from surrogate.kinds.images.values import IMAGE, LABEL, channels_last, to_array

LABELS_FILE = "labels.csv"  # beside the pictures of a folder
_OURS = re.compile(r"\d+(-\d+)?\.png|labels\.csv")


def owns(name: str) -> bool:
    """Whether a file of this name is one that `write_folder` writes."""
    return _OURS.fullmatch(name) is not None


def check_folder(target: Path) -> None:
    """Refuse a folder that holds anything but pictures that `write_folder` wrote."""
    if target.is_file():
        raise ModelError(f"{str(target)!r} is a file, where a folder is needed: it is left alone")
    others = foreign(target, owns)
    if others:
        raise ModelError(
            f"{str(target)!r} is a folder with other things in it, such as {others[0]!r}: it is "
            "left alone",
            remedy="choose another",
        )


def write_npz(data: xr.Dataset, place: Path) -> None:
    """Arrays of numpy, without loss."""
    with place.open("wb") as file:
        np.savez_compressed(file, **_packed(data))


def write_sheet(data: xr.Dataset, place: Path) -> None:
    """A contact sheet: all images on one picture, for people."""
    contact_sheet(data).save(place, format="PNG", optimize=True)


def _packed(data: xr.Dataset) -> dict[str, Any]:
    """Arrays by name: `images` (N, H, W[, 3]), `labels`, verdicts, weights and `about`, as JSON."""
    image = channels_last(data)
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


def write_folder(data: xr.Dataset, part: Path) -> None:
    """A PNG file each, and a table with their labels, verdicts and weights."""
    from PIL import Image

    pixels = to_array(data)
    several = "instance" in data[IMAGE].dims
    digits = max(4, len(str(len(pixels) - 1)))
    columns = {
        str(name): array.values
        for name, array in data.data_vars.items()
        if array.dims == ("sample",) and name != IMAGE
    }
    with (part / LABELS_FILE).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["file", *columns])
        for k, each in enumerate(pixels):
            for i, picture in enumerate(each if several else [each]):
                name = f"{k:0{digits}}{f'-{i + 1}' * several}.png"
                Image.fromarray(picture).save(part / name)
                rows.writerow([name, *(values[k] for values in columns.values())])
