"""Images on the command line: how they are read and written, and what formulas may name of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.markup import escape

from cli import files
from simulators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from torch import Tensor

    from constraints import Layout

F = TypeVar("F", bound=Callable[..., Any])

KIND = "images"  # of such a model
CLASS = "class"  # what rules call a classifier: class(image, 3)
SAMPLES = 64
FORMATS = (".png", ".pdf")  # of contact sheets
DEFAULT = ("samples.png", "samples.npz")
_NAMES = ("array", "labels", "size", "grey", "skip_damaged")
_PYTHON = re.compile(r'\((array|size)=("?)([^()"]*)\2\)')
_SIZE = re.compile(r"(\d+)(?:x(\d+))?", re.IGNORECASE)
_OPTIONS = [
    click.option(
        "--array",
        "image_array",
        metavar="KEY",
        help="Of images in .npz: the array that holds them.",
    ),
    click.option(
        "--labels",
        "image_labels",
        metavar="FILE",
        help="Of images: what they show, IDX or .npy, or an array of the .npz [default: as found].",
    ),
    click.option(
        "--size",
        "image_size",
        metavar="32|WxH",
        help="Of images: scale them and cut them around their middle.",
    ),
    click.option("--grey", "image_grey", is_flag=True, help="Of images: without colours."),
    click.option(
        "--skip-damaged",
        "image_skip_damaged",
        is_flag=True,
        help="Of a folder of images: leave out those that cannot be read.",
    ),
]
_SCENERY = [
    click.option(
        "--picture",
        "named_pictures",
        multiple=True,
        metavar="NAME=FILE",
        help="Of images: a picture (.png, .jpg, .npy) that rules call NAME; repeatable.",
    ),
    click.option(
        "--region",
        "named_regions",
        multiple=True,
        metavar="NAME=ROWS,COLUMNS",
        help="Of images: pixels that rules call NAME, eyes=8:14,4:28 or eyes=mask.png (where it "
        "is white); repeatable.",
    ),
    click.option(
        "--classifier",
        "named_classifiers",
        multiple=True,
        metavar="[NAME=]FOLDER",
        help="Of images: a classifier that rules call NAME [default: class]; repeatable.",
    ),
]


def options(command: F) -> F:
    """How to read images, handed to the command as one argument: `image`."""

    @wraps(command)
    def gathered(**words: Any) -> Any:
        return command(image={name: words.pop(f"image_{name}") for name in _NAMES}, **words)

    made: F = _with(gathered, _OPTIONS)
    return made


def scenery(command: F) -> F:
    """What rules may name besides the image, handed to the command as one argument: `named`."""

    @wraps(command)
    def gathered(**words: Any) -> Any:
        kinds = ("pictures", "regions", "classifiers")
        return command(named={kind: words.pop(f"named_{kind}") for kind in kinds}, **words)

    made: F = _with(gathered, _SCENERY)
    return made


def _with(command: Any, wanted: list[Any]) -> Any:
    for option in reversed(wanted):
        command = option(command)
    return command


def is_images(data: Any) -> bool:
    """Whether data that were opened are images."""
    from surrogate.kinds.images.values import is_images

    return is_images(data)


def refuse(image: Mapping[str, Any], why: str) -> None:
    """Refuse options of images where there are none."""
    used = [f"--{n.replace('_', '-')}" for n in _NAMES if image.get(n) not in (None, False)]
    if used:
        raise InputError(f"{', '.join(used)} is for images; {why}")


# --- reading --------------------------------------------------------------------------------------


def opened(path: str, image: Mapping[str, Any], say: Callable[[str], None]) -> xr.Dataset | None:
    """The images at a path, read; None if it holds something else. What was assumed is said."""
    if not _are_images(path):
        refuse(image, f"{path!r} holds none")
        return None
    from surrogate.errors import ModelError
    from surrogate.kinds.images.files import read_images, told

    try:
        found = read_images(
            path,
            image.get("labels"),
            array=image.get("array"),
            size=_size(image.get("size")),
            grey=bool(image.get("grey")),
            damaged="skip" if image.get("skip_damaged") else "refuse",
            say=lambda text: say(escape(spoken(text))),
        )
    except ModelError as problem:
        raise InputError(spoken(f"{problem}")) from None
    say(escape(told(found)))
    return found


def _are_images(path: str) -> bool:
    from surrogate.kinds.images.files import names_images

    place = files.located(path)
    if names_images(place):
        return True
    if place.suffix.lower() not in (".nc", ".nc4", ".cdf") or not place.is_file():
        return False
    import netCDF4

    try:
        with netCDF4.Dataset(place) as file:
            return "image" in file.variables and {"y", "x"} <= {*file["image"].dimensions}
    except (OSError, RuntimeError, ValueError):  # what is wrong with it is said by who reads it
        return False


def _size(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None or len(text) > 12:
        raise InputError(f"--size is a side, 32, or a width and a height, 32x24, not {text!r}")
    return int(found[1]), int(found[2] or found[1])


def spoken(text: str) -> str:
    """Python's words in those of the command."""
    plain = text.replace("(grey=True)", "(--grey)").replace('(damaged="skip")', "(--skip-damaged)")
    return _PYTHON.sub(lambda m: f"(--{m[1]} {m[3]})", plain)


# --- writing --------------------------------------------------------------------------------------


def targets(out: str | None, force: bool) -> list[Path]:
    """Where images are to be written: a sheet and an array unless it is said."""
    from simulators.storage import check_target
    from surrogate.errors import ModelError
    from surrogate.kinds.images.files import ENDINGS, check_folder, named_folder

    if out is None:
        return [check_target(name, force, ENDINGS) for name in DEFAULT]
    if not named_folder(out):
        if Path(out).suffix.lower() not in ENDINGS:
            raise InputError(
                f"cannot write images to {out!r}: the name must end in {' or '.join(ENDINGS)}, or "
                "in / for a folder of pictures"
            )
        return [check_target(out, force, ENDINGS)]
    target = Path(out)
    try:
        check_folder(target)
    except ModelError as problem:
        raise InputError(str(problem)) from None
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {str(target.parent)!r} to put {target.name!r} in")
    if target.is_dir() and any(target.iterdir()) and not force:
        raise InputError(f"{out!r} exists: choose another name, or replace it with --force")
    return [target]


def write(data: xr.Dataset, places: list[Path]) -> None:
    """Images in the format of each place's name."""
    from surrogate.kinds.images.files import write_images

    told = files.with_history(data)
    for place in places:
        try:
            write_images(told, place)
        except OSError as problem:
            raise InputError(
                f"cannot write {str(place)!r}: {problem.strerror or problem}; choose another with "
                "-o"
            ) from None


# --- what rules may name --------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenery:
    """Pictures (C, h, w) from 0 to 1, masks (H, W) and classifiers, by the names that rules use."""

    pictures: dict[str, Tensor] = field(default_factory=dict)
    regions: dict[str, Tensor] = field(default_factory=dict)
    classifiers: dict[str, Any] = field(default_factory=dict)

    def extended(self, layout: Layout) -> Layout:
        """A layout in which rules know these names."""
        if not self.given:
            return layout
        return replace(
            layout,
            pictures={**layout.pictures, **self.pictures},
            regions={**layout.regions, **self.regions},
            classifiers={**layout.classifiers, **self.classifiers},
        )

    @property
    def given(self) -> dict[str, Any]:
        """As arguments of `Surrogate.knowing`, those that there are."""
        kinds = ("pictures", "regions", "classifiers")
        return {kind: getattr(self, kind) for kind in kinds if getattr(self, kind)}


def read_scenery(named: Mapping[str, tuple[str, ...]], layout: Layout) -> Scenery:
    """What the options name, checked against the image that a model or data have."""
    used = [f"--{kind.removesuffix('s')}" for kind, texts in named.items() if texts]
    if not used:
        return Scenery()
    shapes = [signal.shape for signal in layout.signals if signal.kind == "image"]
    if not shapes:
        have = ", ".join(layout.names[:6])
        raise InputError(f"{', '.join(used)} is for models of images; this one is of {have}")
    found = Scenery()
    for text in named["pictures"]:
        name, value = _pair(text, "--picture", "target=face.png")
        _put(found.pictures, name, _picture(name, value, shapes[0]), "--picture")
    for text in named["regions"]:
        name, mask = _region(text, shapes[0])
        _put(found.regions, name, mask, "--region")
    for text in named["classifiers"]:
        name, value = _classifier_name(text)
        _put(found.classifiers, name, _classifier(value, shapes[0]), "--classifier")
    found.extended(layout)  # names that something else has are refused here
    return found


def _put(into: dict[str, Any], name: str, value: Any, option: str) -> None:
    if name in into:
        raise InputError(f"{option}: {name!r} is given twice")
    into[name] = value


def _pair(text: str, option: str, example: str) -> tuple[str, str]:
    from constraints.ast.words import is_variable

    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not value or not is_variable(name):
        raise InputError(f"{option} is a name and what it means, as in {example}, not {text!r}")
    return name, value


def _picture(name: str, path: str, shape: tuple[int, ...]) -> Tensor:
    """(C, h, w) from 0 to 1: as large as the model's images, or smaller by a whole number."""
    import numpy as np
    import torch

    pixels = _pixels(path, "--picture")
    height, width = pixels.shape[:2]
    wanted = f"{shape[2]}x{shape[1]}"
    times = shape[1] // height if height else 0
    if times < 1 or (height * times, width * times) != tuple(shape[1:]):
        raise InputError(
            f"--picture {name}: {path!r} is {width}x{height}, and the images are {wanted} (or that "
            f"divided by 2, 3, ... where a rule is about a reduced image); make one of that size, "
            f'as in: python -c "from PIL import Image, ImageOps; ImageOps.fit(Image.open('
            f"'{path}'), ({shape[2]}, {shape[1]})).save('{name}.png')\""
        )
    if pixels.ndim == 3 and shape[0] == 1:
        if bool((pixels != pixels[..., :1]).any()):
            raise InputError(
                f"--picture {name}: {path!r} is in colour, and the images are grey; make it grey, "
                f"as in: python -c \"from PIL import Image; Image.open('{path}').convert('L')"
                f".save('{name}.png')\""
            )
        pixels = pixels[..., 0]
    planes = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
    return torch.from_numpy(np.ascontiguousarray(planes, np.float32))


def _pixels(path: str, option: str) -> Any:
    """(H, W) or (H, W, 3) from 0 to 1."""
    import numpy as np

    from surrogate.errors import ModelError
    from surrogate.kinds.images.array_files import read_npy
    from surrogate.kinds.images.picture_files import is_coloured, read_picture
    from surrogate.kinds.images.values import from_array, upright

    place = files.located(path)
    if not place.is_file():
        raise InputError(f"{option}: there is no file {path!r}")
    try:
        if place.suffix.lower() == ".npy":
            array = read_npy(place)
            single = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))
            found = upright(from_array(array[None] if single else array)).values
            if len(found) != 1:
                raise ModelError(f"{path!r} holds {len(found)} images; give one")
            pixels = found[0]
        else:
            pixels = read_picture(place, colour=is_coloured(place))
    except ModelError as problem:
        raise InputError(f"{option}: {spoken(str(problem))}") from None
    return pixels / np.float32(255) if pixels.dtype == np.uint8 else pixels


def _region(text: str, shape: tuple[int, ...]) -> tuple[str, Tensor]:
    """Name and mask (H, W)."""
    import torch

    name, value = _pair(text, "--region", "eyes=8:14,4:28 or eyes=mask.png")
    if ":" in value and not Path(value).is_file():
        from constraints import FormulaError
        from constraints.layout.image_operators import region_from_text

        try:
            return region_from_text(text, shape[1], shape[2])
        except FormulaError as problem:
            raise InputError(f"--region: {problem}") from None
    pixels = _pixels(value, "--region")
    if pixels.shape[:2] != tuple(shape[1:]):
        raise InputError(
            f"--region {name}: {value!r} is {pixels.shape[1]}x{pixels.shape[0]}, and the images "
            f"are {shape[2]}x{shape[1]}; a mask is as large as they are, white where the region is"
        )
    bright = pixels.mean(2) if pixels.ndim == 3 else pixels
    mask = torch.from_numpy(bright > 0.5)
    if not bool(mask.any()):
        raise InputError(f"--region {name}: {value!r} is black all over: paint the region white")
    return name, mask


def _classifier_name(text: str) -> tuple[str, str]:
    from constraints.ast.words import is_variable

    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not is_variable(name):
        name, value = CLASS, text.strip()
    return name, value


def _classifier(folder: str, shape: tuple[int, ...]) -> Any:
    """A classifier that was trained before, for images of this shape."""
    from surrogate.errors import ModelError
    from surrogate.kinds.images.classifier import Classifier
    from surrogate.kinds.images.codec import told

    try:
        found = Classifier.load(folder)
    except ModelError as problem:
        raise InputError(f"--classifier: {problem}") from None
    if found.size != tuple(shape):
        raise InputError(
            f"--classifier: {folder!r} is of {told(found.size)}, and these are {told(shape)}; make "
            "one for them: surrogate classifier DATA"
        )
    return found.as_atom()
