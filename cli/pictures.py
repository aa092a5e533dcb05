"""Images on the command line: how they are read, and what formulas may name of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli import reading
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


def read_scenery(named: Mapping[str, tuple[str, ...]], layout: Layout) -> Scenery | None:
    """What the options name, if they are used."""
    if not named:
        return None
    from surrogate.kinds.images import scenery

    return scenery.read_scenery(named, layout)
