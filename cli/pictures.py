"""Images on the command line: how they are read, and what formulas may name of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cli import files, reading
from cli.errors import UsageError
from surrogate.io.reading import ImageOptions, SceneryOptions

if TYPE_CHECKING:
    from constraints import Layout
    from surrogate.kinds.images.scenery import Scenery


options = reading.options("image", ImageOptions)
scenery = reading.options("named", SceneryOptions)


def refuse(image: Mapping[str, Any], why: str) -> None:
    """Refuse options of images where there are none."""
    used = [f"--{name.replace('_', '-')}" for name in image]
    if used:
        raise UsageError(
            f"{', '.join(used)} is for images; {why}",
            value=used,
            remedy=f"leave out {', '.join(used)}",
        )


def check_scenery(named: Mapping[str, tuple[str, ...]]) -> None:
    """Refuse files that are missing, without loading torch."""
    for text in named.get("pictures", ()):
        _, equals, path = text.partition("=")
        if equals:
            files.check_exists(path.strip())
    for text in named.get("regions", ()):
        _, equals, value = (part.strip() for part in text.partition("="))
        if equals and ":" not in value and not Path(value).is_file():
            raise UsageError(
                f"--region {text!r}: {value!r} is neither ROWS,COLUMNS nor a picture",
                value=value,
                remedy="write --region eyes=8:14,4:28 or --region eyes=mask.png",
            )


def read_scenery(named: Mapping[str, tuple[str, ...]], layout: Layout) -> Scenery | None:
    """What the options name, if they are used."""
    if not named:
        return None
    from surrogate.kinds.images import scenery

    return scenery.read_scenery(named, layout)
