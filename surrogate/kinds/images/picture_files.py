"""PNG and JPEG files: single pictures, and folders of pictures of one size.

The size of a picture is read from its header before it is decoded; too large ones are refused.
"""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from constraints.errors import Setting
from surrogate.errors import ModelError
from surrogate.kinds.images.array_files import UNREADABLE, readable
from surrogate.kinds.images.values import Say, Size, check_sides, on_white, size_text
from surrogate.kinds.kind import listed

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg")
MAX_PICTURE_PIXELS = 60_000_000  # of a picture
GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")  # modes of Pillow


@dataclass(frozen=True)
class Folder:
    """Pictures of one size, (N, H, W) or (N, H, W, 3), their files, and labels (N,) if these are
    the names of subfolders."""

    pixels: np.ndarray
    files: tuple[Path, ...]
    labels: np.ndarray | None


def pictures_in(place: Path) -> list[Path]:
    """PNG and JPEG files of a folder and its subfolders, sorted by name."""
    with readable(place, "a folder of pictures"):
        own = sorted(each for each in place.iterdir() if not each.name.startswith("."))
        found = [each for each in own if _is_picture(each)]
        for folder in own:
            if folder.is_dir():
                found += sorted(each for each in folder.iterdir() if _is_picture(each))
    return found


def _is_picture(place: Path) -> bool:
    hidden = place.name.startswith(".")
    return place.suffix.lower() in PICTURE_SUFFIXES and not hidden and place.is_file()


def read_folder(place: Path, size: Size | None, grey: bool, skip: bool, say: Say) -> Folder:
    """All pictures of a folder; subfolders are labels if every picture is in one."""
    files = pictures_in(place)
    if not files:
        kinds = sorted({each.suffix for each in place.iterdir() if each.is_file()} - {""})
        have = f" (it has files {listed(kinds)})" if kinds else ""
        raise ModelError(
            f"there are no pictures in the folder {str(place)!r} or in its subfolders{have}",
            value=kinds,
            remedy="give a folder with .png or .jpg files",
        )
    damaged: list[tuple[Path, str]] = []
    headers = {}
    for file in files:
        try:
            headers[file] = _read_header(file, size)
        except ModelError as problem:
            _skip_or_raise(problem, file, damaged, skip)
    if not headers:
        raise ModelError(f"every picture in {str(place)!r} is damaged: {damaged[0][1]}")
    usual = size or _common_size(place, headers)
    check_sides(usual)
    colour = not grey and any(coloured for _, coloured in headers.values())
    mixed = colour and not all(coloured for _, coloured in headers.values())
    kept, read = [], []
    for file in headers:
        try:
            read.append(read_picture(file, usual, colour))
            kept.append(file)
        except ModelError as problem:
            _skip_or_raise(problem, file, damaged, skip)
    if damaged:
        names = sorted(str(file.relative_to(place)) for file, _ in damaged)
        say(f"skipped {len(damaged):,} damaged of {len(files):,} pictures: {listed(names)}")
    if not kept:
        raise ModelError(f"every picture in {str(place)!r} is damaged: {damaged[0][1]}")
    if mixed:
        say("grey pictures among colour were taken as colour")
    if size is not None and any(own != size for own, _ in headers.values()):
        say(f"pictures were scaled and cropped around the middle to {size_text(size)}")
    below = all(file.parent != place for file in kept)
    if not below and any(file.parent != place for file in kept):
        say("some pictures are in folders and some are not, so folders are no labels")
    labels = np.array([file.parent.name for file in kept], dtype=object) if below else None
    return Folder(np.stack(read), tuple(kept), labels)


def _skip_or_raise(
    problem: ModelError, file: Path, damaged: list[tuple[Path, str]], skip: bool
) -> None:
    if not skip:
        raise ModelError(
            str(problem),
            remedy=(
                "repair or remove it, or leave out such files (",
                Setting("skip_damaged", True),
                ")",
            ),
        ) from None
    damaged.append((file, str(problem)))


def _common_size(place: Path, headers: Mapping[Path, tuple[Size, bool]]) -> Size:
    """The size that all pictures have."""
    sizes = Counter(own for own, _ in headers.values())
    usual = sizes.most_common(1)[0][0]
    odd = [file for file, (own, _) in headers.items() if own != usual]
    if odd:
        own = headers[odd[0]][0]
        width = max(min(usual), 4)
        raise ModelError(
            f"the pictures in {str(place)!r} have different sizes: {odd[0].relative_to(place)!s}"
            f" is {size_text(own)} where {sizes[usual]:,} of {len(headers):,} are "
            f"{size_text(usual)}",
            remedy=(
                "scale them and crop them around the middle to one size (",
                Setting("size", min(width, 512)),
                ")",
            ),
        )
    return usual


@contextmanager
def _picture(place: Path) -> Iterator[Image]:
    """An opened picture that is not decoded yet; ModelError if it is none."""
    from PIL import Image, UnidentifiedImageError

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd metadata; sizes are looked at here
        try:
            with Image.open(place, formats=("PNG", "JPEG")) as found:
                if math.prod(found.size) > MAX_PICTURE_PIXELS:
                    raise ModelError(
                        f"{str(place)!r} has {size_text(found.size)} pixels, more than "
                        f"{MAX_PICTURE_PIXELS / 1e6:.0f} million",
                        value=found.size,
                        remedy="make it smaller first",
                    )
                yield found
        except ModelError:
            raise
        except UnidentifiedImageError:
            raise ModelError(f"{str(place)!r} is no PNG or JPEG, or a damaged one") from None
        except Image.DecompressionBombError:
            raise ModelError(
                f"{str(place)!r} has too many pixels", remedy="make it smaller first"
            ) from None
        except FileNotFoundError:
            raise ModelError(f"there is no picture {str(place)!r}") from None
        except (*UNREADABLE, SyntaxError) as problem:
            raise ModelError(f"the picture {str(place)!r} is damaged: {problem}") from None


def _read_header(place: Path, size: Size | None) -> tuple[Size, bool]:
    """Width and height, and whether it has colours."""
    with _picture(place) as found:
        turned = found.getexif().get(0x0112, 1) in (5, 6, 7, 8)  # a camera held upright
        own = (found.height, found.width) if turned else (found.width, found.height)
        if size is None:
            check_sides(own, f"; {str(place)!r} is the first")
        return own, found.mode not in GREY_MODES


def is_coloured(place: Path) -> bool:
    with _picture(place) as found:
        return found.mode not in GREY_MODES


def read_picture(place: Path, size: Size | None = None, colour: bool = True) -> np.ndarray:
    """uint8 (H, W), or (H, W, 3) with `colour`; scaled and cropped to `size` if it is given."""
    from PIL import Image, ImageOps

    with _picture(place) as found:
        upright = ImageOps.exif_transpose(found)
        if upright.mode in ("I;16", "I", "F"):
            grey = np.asarray(upright, np.float64)
            scale = 257 if grey.max() > 255 else 1
            upright = Image.fromarray(np.clip(np.rint(grey / scale), 0, 255).astype(np.uint8))
        if upright.has_transparency_data:
            upright = Image.fromarray(on_white(np.asarray(upright.convert("RGBA"))))
        plain = upright.convert("RGB" if colour else "L")
        if size is not None and plain.size != size:
            plain = ImageOps.fit(plain, size)
        return np.asarray(plain)
