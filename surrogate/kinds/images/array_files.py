"""Arrays of images in files: numpy (.npz, .npy) and IDX, the format of MNIST.

Sizes are read from headers before memory is allocated, so that decompression bombs are refused.
Nothing is unpickled. IDX: two zero bytes, a type, the number of dimensions, those as
32-bit integers with the largest byte first, then the values (LeCun, Cortes & Burges, MNIST).
"""

from __future__ import annotations

import gzip
import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from constraints.errors import Setting
from surrogate.errors import ModelError, unknown_name
from surrogate.io.attributes import json_object
from surrogate.kinds.images.values import MAX_ARRAY_BYTES, Say
from surrogate.kinds.kind import listed

IDX = re.compile(r"(idx\d?(-ubyte)?|ubyte)(\.gz)?$", re.IGNORECASE)
IMAGE_ARRAYS = ("images", "image", "x", "arr_0")  # of the array in .npz, the likeliest first
LABEL_ARRAYS = ("labels", "label", "y", "targets")
MAX_ABOUT_BYTES = 10_000_000  # of the description that we write into a file
UNREADABLE = (OSError, EOFError, RuntimeError, NotImplementedError, ValueError, zlib.error)


@contextmanager
def readable(place: Path, what: str) -> Iterator[None]:
    """Turn errors of reading a file into a ModelError that names it."""
    try:
        yield
    except (ModelError, MemoryError):
        raise
    except FileNotFoundError:
        raise ModelError(f"there is no file {str(place)!r}") from None
    except (*UNREADABLE, zipfile.BadZipFile, SyntaxError, KeyError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise ModelError(f"cannot read {str(place)!r} as {what}: {reason}") from None


# --- arrays of numpy ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Header:
    """The header of an array that has not been read."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def fits(self) -> bool:
        """Whether its shape and dtype can be those of images."""
        numbers = self.dtype.kind in "biuf" and math.prod(self.shape) > 0
        return numbers and len(self.shape) in (3, 4) and min(self.shape[1:3]) > 0

    def __str__(self) -> str:
        return f"{self.name} {self.shape} {self.dtype}"


def _header(file: IO[bytes], name: str) -> Header:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(file)
    return Header(name, tuple(int(size) for size in shape), dtype)


def _check_header(header: Header, place: Path) -> None:
    if header.dtype.hasobject:
        raise ModelError(
            f"{header.name!r} in {str(place)!r} holds Python objects, which are not loaded: "
            "unpickling them could run code",
            value=header.name,
            remedy="save numbers, as in numpy.savez(file, images=numpy.stack(images))",
        )
    if header.bytes > MAX_ARRAY_BYTES:
        raise ModelError(
            f"{header.name!r} in {str(place)!r} would take {header.bytes / 1e9:,.0f} GB (shape "
            f"{header.shape}), more than the {MAX_ARRAY_BYTES / 1e9:.0f} GB that are read",
            value=header.bytes,
            remedy="take fewer images",
        )


def read_npy(place: Path) -> np.ndarray:
    """The array of a .npy file."""
    with readable(place, "an array of numpy (.npy)"):
        with place.open("rb") as file:
            header = _header(file, place.name)
        _check_header(header, place)
        found: np.ndarray = np.load(place, allow_pickle=False)
    return found


@dataclass(frozen=True)
class Packed:
    """The content of a .npz file: images, labels if there are some, and their description.

    `own`: whether we wrote it; then `others` are verdicts and weights, and `about` its attributes.
    """

    images: np.ndarray
    labels: np.ndarray | None
    others: Mapping[str, np.ndarray]
    about: Mapping[str, Any]

    @property
    def own(self) -> bool:
        return "dims" in self.about


def read_npz(place: Path, array: str | None, labels: str | None, say: Say) -> Packed:
    """The images of a .npz file; `array` and `labels` name its arrays, else they are guessed."""
    with readable(place, "arrays of numpy (.npz)"):
        with place.open("rb") as file:
            if file.read(2) != b"PK":
                raise ModelError(
                    f"cannot read {str(place)!r} as arrays of numpy: it is no .npz file, whatever "
                    "its name says",
                    remedy="make one with numpy.savez(file, images=array)",
                )
        with zipfile.ZipFile(place) as packed:
            headers = dict(_headers(packed))
            about = _about(packed, headers)
            chosen = _image_array(place, headers, array, say)
            images = _read_member(packed, headers[chosen], place)
            given = _labels_in(headers, chosen, labels, len(images))
            found = None if given is None else _read_member(packed, headers[given], place)
            others = {}
            if "dims" in about:
                rest = [name for name in headers if name not in (chosen, given, "about")]
                others = {name: _read_member(packed, headers[name], place) for name in rest}
    unused = [name for name in headers if name not in (chosen, given, "about", *others)]
    if unused:
        say(f"left out of {place.name}: {listed(unused)}")
    return Packed(images, found, others, about)


def _headers(packed: zipfile.ZipFile) -> Iterator[tuple[str, Header]]:
    for entry in packed.infolist():
        if entry.filename.endswith(".npy"):
            name = entry.filename.removesuffix(".npy")
            with packed.open(entry) as file:
                yield name, _header(file, name)


def _read_member(packed: zipfile.ZipFile, header: Header, place: Path) -> np.ndarray:
    _check_header(header, place)
    size = packed.getinfo(f"{header.name}.npy").file_size
    if size > header.bytes + 100_000:
        raise ModelError(
            f"{header.name!r} in {str(place)!r} unpacks to {size / 1e6:,.0f} MB, where its shape "
            f"{header.shape} needs {header.bytes / 1e6:,.0f} MB: the file is damaged",
            value=size,
        )
    with packed.open(f"{header.name}.npy") as file:
        found: np.ndarray = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # to its end, where its checksum is compared
    return found


def _about(packed: zipfile.ZipFile, headers: Mapping[str, Header]) -> Mapping[str, Any]:
    """The description that `write_npz` stored with the arrays; empty if there is none."""
    header = headers.get("about")
    if (
        header is None
        or header.shape != ()
        or header.dtype.kind != "U"
        or header.bytes > MAX_ABOUT_BYTES
    ):
        return {}
    with packed.open("about.npy") as file:
        text = str(np.lib.format.read_array(file, allow_pickle=False))
    return json_object(text)


def _image_array(place: Path, headers: Mapping[str, Header], array: str | None, say: Say) -> str:
    """The name of the array that holds images."""
    if array is not None:
        if array not in headers:
            raise unknown_name("array", array, headers, f" in {str(place)!r}")
        return array
    known = [str(each) for each in headers.values()]
    for name in IMAGE_ARRAYS:
        if name in headers and (headers[name].fits or headers[name].dtype.hasobject):
            return name
    fitting = [name for name, header in headers.items() if header.fits]
    if len(fitting) == 1:
        say(f"images from the array {fitting[0]!r}")
        return fitting[0]
    if not headers:
        raise ModelError(
            f"{str(place)!r} holds no arrays",
            remedy="make one with numpy.savez(file, images=array)",
        )
    if not fitting:
        objects = next((each for each in headers.values() if each.dtype.hasobject), None)
        if objects is not None:
            _check_header(objects, place)
        one = next(iter(headers))
        if len(headers) == 1 and headers[one].dtype.kind in "biuf":
            return one  # what is wrong with it is said where arrays are read
        raise ModelError(
            f"{str(place)!r} holds no images but {listed(known)}",
            value=known,
            remedy="images are (N, height, width) or (N, height, width, channels)",
        )
    raise ModelError(
        f"{str(place)!r} holds several arrays that may be images: "
        f"{listed([str(headers[name]) for name in fitting])}",
        remedy=("choose one (", Setting("array", fitting[0]), ")"),
    )


def _labels_in(
    headers: Mapping[str, Header], images: str, labels: str | None, count: int
) -> str | None:
    if labels is not None:
        if labels not in headers:
            raise ModelError(
                f"there are no labels {labels!r}, neither a file nor an array",
                value=labels,
                allowed=headers,
            )
        return labels
    named = images.replace("images", "labels").replace("x", "y", 1)  # x_train, y_train
    for name in (*LABEL_ARRAYS, named):
        header = headers.get(name)
        if header is not None and name != images and header.shape == (count,):
            return name if header.dtype.kind in "iubUS" else None
    return None


# --- IDX ------------------------------------------------------------------------------------------


def is_idx(name: str) -> bool:
    return IDX.search(name) is not None


def read_idx(place: Path, labels: bool = False) -> np.ndarray:
    """The values of an IDX file: images (N, H, W) or (N, H, W, C), or labels (N,)."""
    what = "labels in IDX" if labels else "images in IDX"
    with readable(place, what), _opened_maybe_gzip(place) as file:
        magic = file.read(4)
        if len(magic) < 4 or magic[:2] != b"\0\0" or not 1 <= magic[3] <= 4:
            raise ModelError(
                f"{str(place)!r} is no IDX file: it begins with {magic.hex(' ') or 'nothing'}, "
                "where images have 00 00 08 03 and labels 00 00 08 01",
                value=magic,
            )
        if magic[2] != 8:
            raise ModelError(
                f"{str(place)!r} holds values of type {magic[2]:#x}",
                value=magic[2],
                remedy="save bytes, which are of type 0x8",
            )
        if (magic[3] == 1) != labels:
            have, wanted = ("labels", "images") if magic[3] == 1 else ("images", "labels")
            raise ModelError(
                f"{str(place)!r} holds {have}, not {wanted}",
                value=have,
                remedy=f"files of {wanted} have names like "
                f"train-{wanted}-idx{1 if labels else 3}-ubyte.gz",
            )
        sizes = file.read(4 * magic[3])
        shape = tuple(int(size) for size in np.frombuffer(sizes[: len(sizes) // 4 * 4], ">u4"))
        if len(shape) < magic[3]:
            raise ModelError(
                f"{str(place)!r} is cut short in its header", remedy="download it again"
            )
        wanted_bytes = math.prod(shape)
        if wanted_bytes > MAX_ARRAY_BYTES:
            raise ModelError(
                f"{str(place)!r} says that it holds {shape[0]:,} images of shape {shape[1:]}, "
                f"{wanted_bytes / 1e9:,.0f} GB: it is damaged, or more than can be read",
                value=wanted_bytes,
            )
        content = file.read(wanted_bytes + 1)
    if len(content) < wanted_bytes:
        raise ModelError(
            f"{str(place)!r} is cut short: it says {wanted_bytes:,} bytes of values and has "
            f"{len(content):,}",
            value=len(content),
            remedy="download it again",
        )
    if len(content) > wanted_bytes:
        raise ModelError(
            f"{str(place)!r} is damaged: it has more than the {wanted_bytes:,} bytes that it says",
            remedy="download it again",
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


@contextmanager
def _opened_maybe_gzip(place: Path) -> Iterator[IO[bytes]]:
    with place.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        if not packed:
            yield raw
            return
        with gzip.open(raw) as file:
            yield io.BufferedReader(file)


def labels_beside(place: Path) -> Path | None:
    """train-labels-idx1-ubyte.gz for train-images-idx3-ubyte.gz if it exists, gzipped or not."""
    name = re.sub(r"images([-.])idx3", r"labels\1idx1", place.name)
    bare = name.removesuffix(".gz")
    found = [place.with_name(each) for each in (name, bare, f"{bare}.gz")]
    return next((each for each in found if each.name != place.name and each.is_file()), None)
