"""A figure of data, ready to be written: what it shows, and what it leaves out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 150


@dataclass(frozen=True)
class Drawing:
    """`save(path, format)` writes the figure; `caption` names what it shows, `notes` what not."""

    save: Callable[[Path, str], None]
    caption: str
    notes: tuple[str, ...] = ()


def drawing_of(figure: Figure, caption: str, notes: tuple[str, ...] = ()) -> Drawing:
    """The drawing of a matplotlib figure."""

    def save(path: Path, form: str) -> None:
        with warnings.catch_warnings():
            # letters that the font does not have, names that leave no room
            warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
            figure.savefig(path, dpi=DOTS_PER_INCH, format=form)

    return Drawing(save, caption, notes)
