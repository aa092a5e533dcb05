"""Names in formulas about images besides the image: pictures, regions and classifiers.

On the command line they are given as texts, NAME=FILE; in Python `model.knowing` takes the values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from constraints import FormulaError, Layout
from constraints.ast.words import is_variable
from constraints.errors import Action
from constraints.layout.image_operators import region_from_text
from surrogate.errors import ModelError
from surrogate.io.paths import located
from surrogate.kinds.images.array_files import read_npy
from surrogate.kinds.images.classifier import Classifier
from surrogate.kinds.images.codec import images_of_size
from surrogate.kinds.images.picture_files import is_coloured, read_picture
from surrogate.kinds.images.values import channels_last, from_array

DEFAULT_CLASSIFIER = "class"  # what rules call a classifier without a name: class(image, 3)


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
    """Pictures, regions and classifiers from texts NAME=FILE, checked against the image size of a
    layout."""
    used = [kind for kind, texts in named.items() if texts]
    if not used:
        return Scenery()
    shapes = [signal.shape for signal in layout.signals if signal.kind == "image"]
    if not shapes:
        have = ", ".join(layout.names[:6])
        raise ModelError(
            f"{' and '.join(used)} can be named for images, and the data are {have}",
            value=used,
            remedy="leave them out",
        )
    found = Scenery()
    for text in named.get("pictures", ()):
        name, value = _pair(text, "picture", "target=face.png")
        _put(found.pictures, name, _picture(name, value, shapes[0]), "picture")
    for text in named.get("regions", ()):
        name, mask = _region(text, shapes[0])
        _put(found.regions, name, mask, "region")
    for text in named.get("classifiers", ()):
        name, value = _classifier_name(text)
        _put(found.classifiers, name, _classifier(value, shapes[0]), "classifier")
    found.extended(layout)  # names that something else has are refused here
    return found


def _put(into: dict[str, Any], name: str, value: Any, what: str) -> None:
    if name in into:
        raise ModelError(
            f"the {what} {name!r} is given twice", value=name, remedy="rename one of them"
        )
    into[name] = value


def _pair(text: str, what: str, example: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not value or not is_variable(name):
        raise ModelError(
            f"{text!r} is no {what}",
            value=text,
            remedy=f"give a name and what it means, as in {example}",
        )
    return name, value


def _picture(name: str, path: str, shape: tuple[int, ...]) -> Tensor:
    """(C, h, w) from 0 to 1: as large as the model's images, or smaller by a whole number."""
    pixels = _pixels(path, "picture")
    height, width = pixels.shape[:2]
    wanted = f"{shape[2]}x{shape[1]}"
    times = shape[1] // height if height else 0
    if times < 1 or (height * times, width * times) != tuple(shape[1:]):
        raise ModelError(
            f"picture {name}: {path!r} is {width}x{height}, and the images are {wanted} (or that "
            "divided by 2, 3, ... where a rule is about a reduced image)",
            remedy="make one of that size, as in: python -c "
            f"\"from PIL import Image, ImageOps; ImageOps.fit(Image.open('{path}'), "
            f"({shape[2]}, {shape[1]})).save('{name}.png')\"",
        )
    if pixels.ndim == 3 and shape[0] == 1:
        if bool((pixels != pixels[..., :1]).any()):
            raise ModelError(
                f"picture {name}: {path!r} is in colour, and the images are grey",
                remedy='make it grey, as in: python -c "from PIL import Image; '
                f"Image.open('{path}').convert('L').save('{name}.png')\"",
            )
        pixels = pixels[..., 0]
    planes = pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)
    return torch.from_numpy(np.ascontiguousarray(planes, np.float32))


def _pixels(path: str, what: str) -> Any:
    """(H, W) or (H, W, 3) from 0 to 1."""
    place = located(path)
    try:
        if place.suffix.lower() == ".npy":
            array = read_npy(place)
            single = array.ndim == 2 or (array.ndim == 3 and array.shape[2] in (1, 3, 4))
            found = channels_last(from_array(array[None] if single else array)).values
            if len(found) != 1:
                raise ModelError(
                    f"{path!r} holds {len(found)} images", value=len(found), remedy="give one"
                )
            pixels = found[0]
        else:
            pixels = read_picture(place, colour=is_coloured(place))
    except ModelError as problem:
        raise problem.at(what) from None
    return pixels / np.float32(255) if pixels.dtype == np.uint8 else pixels


def _region(text: str, shape: tuple[int, ...]) -> tuple[str, Tensor]:
    """Name and mask (H, W)."""
    name, value = _pair(text, "region", "eyes=8:14,4:28 or eyes=mask.png")
    if ":" in value and not Path(value).is_file():
        try:
            return region_from_text(text, shape[1], shape[2])
        except FormulaError as problem:
            raise ModelError(
                f"region: {problem.problem}",
                value=problem.value,
                allowed=problem.allowed,
                remedy=problem.remedy,
            ) from None
    pixels = _pixels(value, "region")
    if pixels.shape[:2] != tuple(shape[1:]):
        raise ModelError(
            f"region {name}: {value!r} is {pixels.shape[1]}x{pixels.shape[0]}, and the images are "
            f"{shape[2]}x{shape[1]}",
            remedy="a mask is as large as they are, white where the region is",
        )
    bright = pixels.mean(2) if pixels.ndim == 3 else pixels
    mask = torch.from_numpy(bright > 0.5)
    if not bool(mask.any()):
        raise ModelError(
            f"region {name}: {value!r} is black all over", remedy="paint the region white"
        )
    return name, mask


def _classifier_name(text: str) -> tuple[str, str]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not is_variable(name):
        name, value = DEFAULT_CLASSIFIER, text.strip()
    return name, value


def _classifier(folder: str, shape: tuple[int, ...]) -> Any:
    """A classifier that was trained before, for images of this shape."""
    try:
        found = Classifier.load(folder)
    except ModelError as problem:
        raise problem.at("classifier") from None
    if found.size != tuple(shape):
        raise ModelError(
            f"classifier: {folder!r} is of {images_of_size(found.size)}, and these are "
            f"{images_of_size(shape)}",
            value=found.size,
            remedy=(
                "make one for them: ",
                Action("fit_classifier(images)", "surrogate classifier DATA"),
            ),
        )
    return found.as_atom()
