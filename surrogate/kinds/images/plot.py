"""Contact sheets: many images in one picture.

Tiles are enlarged by integer factors, so that a pixel stays a square. Instances of one sample share
a frame, which is red if the sample violates the scenario.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from surrogate.errors import ModelError
from surrogate.kinds.drawing import Drawing
from surrogate.kinds.images.values import IMAGE, is_images, to_array

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

MAX_FILE_IMAGES = 100  # of a sheet in a file
SHEET_WIDTH = 800  # pixels that a sheet is about as wide as
MAX_SHEET_SAMPLES = 256  # samples on a sheet
SHEET_MARGIN = 14
BACKGROUND, FRAME_COLOUR, TITLE_COLOUR, CAPTION_COLOUR, VIOLATION_COLOUR = (
    "#ffffff",
    "#cfcfcf",
    "#2b2b2b",
    "#8a8a8a",
    "#c62828",
)
MAX_TILE_SCALE = 12
TEXT_HEIGHT = 13  # height of letters


def contact_sheet(
    images: Any,
    columns: int | None = None,
    scale: int | None = None,
    captions: Sequence[str] | None = None,
    group: int | None = None,
    *,
    title: str | None = None,
    most: int = MAX_SHEET_SAMPLES,
) -> Image:
    """A grid of images: a dataset, or uint8 (N, H, W) or (N, H, W, 3).

    `columns` and `scale` (pixels a pixel becomes) are chosen so that the sheet is about 800 wide.
    `captions`: a line below each sample. `group`: so many images in a row belong together; in a
    dataset a dimension `instance` tells that. A dataset's samples that are not `satisfied` have a
    red frame, if there are some. `most`: samples that are shown, the first ones.
    """
    tiles, wrong = _tiles(images, group)
    count, several, height, width = tiles.shape[:4]
    tiles, wrong = tiles[:most], None if wrong is None else wrong[:most]
    if captions is not None and len(captions) != count:
        raise ModelError(
            f"{len(captions)} captions for {count} samples",
            value=len(captions),
            remedy="give one for each",
        )
    shown = len(tiles)
    columns = columns or _columns(shown, several * width, height)
    if columns < 1 or (scale is not None and scale < 1):
        raise ModelError(
            f"columns and scale are 1 or more, not {columns} and {scale}", value=(columns, scale)
        )
    columns = min(columns, shown)
    times = scale or _scale(columns * several * width)
    under = TEXT_HEIGHT + 6 if captions is not None else 0
    gap = max(5, min(12, times * 2)) + (6 if several > 1 else 0)
    w, h = several * width * times, height * times
    rows = math.ceil(shown / columns)
    above = TEXT_HEIGHT + 14 if title else 0
    size = (
        2 * SHEET_MARGIN + columns * (w + gap) - gap,
        2 * SHEET_MARGIN + rows * (h + under + gap) - gap + above,
    )
    sheet, draw = _blank_sheet(size)
    if title:
        _write(
            draw,
            (SHEET_MARGIN, SHEET_MARGIN - 2),
            title,
            size[0] - 2 * SHEET_MARGIN,
            TITLE_COLOUR,
            TEXT_HEIGHT + 2,
        )
    for k, tile in enumerate(tiles):
        row, column = divmod(k, columns)
        left = SHEET_MARGIN + column * (w + gap)
        top = SHEET_MARGIN + above + row * (h + under + gap)
        _paste_tile(sheet, draw, tile, (left, top), times, bool(wrong is not None and wrong[k]))
        if captions is not None:
            _write(draw, (left, top + h + 3), captions[k], w, CAPTION_COLOUR)
    return sheet


def plot(
    data: Any, ax: Any = None, *, captions: Sequence[str] | None = None, title: str | None = None
) -> Any:
    """A contact sheet on new Axes, or on `ax`."""
    sheet = contact_sheet(data, captions=captions, title=title)
    if ax is None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(sheet.width / 100, sheet.height / 100), layout="constrained")
        FigureCanvasAgg(figure)
        ax = figure.subplots()
    ax.imshow(np.asarray(sheet), interpolation="nearest")
    ax.set_axis_off()
    return ax


def drawing(data: Any, *, title: str | None = None, **options: Any) -> Drawing:
    """A contact sheet of the first images for a file, with their labels as captions."""
    some = data.isel(sample=slice(MAX_FILE_IMAGES))
    if "label" in some:
        options.setdefault("captions", [str(label) for label in some["label"].values])
    sheet = contact_sheet(some, title=title, **options)
    count = data.sizes["sample"]
    shown = f"the first {MAX_FILE_IMAGES} of " * (count > MAX_FILE_IMAGES)
    return Drawing(lambda path, form: sheet.save(path, format=form), f"{shown}{count:,} images")


def before_after(
    columns: Mapping[str, Any], rows: Sequence[str] = (), scale: int | None = None
) -> Image:
    """Images column by column under their captions, {"truth": (N, H, W[, 3]), "given": ...}, a row
    for each of the N, with captions of their own if there are some."""
    if not columns:
        raise ModelError("there are no columns of images to set side by side")
    sides = {name: _tiles(images, None)[0][:, 0] for name, images in columns.items()}
    shapes = {name: tiles.shape[:3] for name, tiles in sides.items()}
    count, height, width = next(iter(shapes.values()))
    if len(set(shapes.values())) > 1:
        have = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ModelError(
            f"columns hold as many images of one size, not {have}", value=list(shapes.values())
        )
    if rows and len(rows) != count:
        raise ModelError(
            f"{len(rows)} captions for {count} rows", value=len(rows), remedy="give one for each"
        )
    times = scale or _scale(len(sides) * width)
    w, h, gap = width * times, height * times, max(6, 2 * times)
    beside = max((_text_width(text) for text in rows), default=0)
    beside = min(beside, 200) + 12 * bool(rows)
    above = TEXT_HEIGHT + 8
    size = (
        2 * SHEET_MARGIN + beside + len(sides) * (w + gap) - gap,
        2 * SHEET_MARGIN + above + count * (h + gap) - gap,
    )
    sheet, draw = _blank_sheet(size)
    for j, (name, tiles) in enumerate(sides.items()):
        left = SHEET_MARGIN + beside + j * (w + gap)
        _write(draw, (left, SHEET_MARGIN - 2), name, w, TITLE_COLOUR)
        for k, tile in enumerate(tiles):
            _paste_tile(
                sheet, draw, tile[None], (left, SHEET_MARGIN + above + k * (h + gap)), times, False
            )
    for k, text in enumerate(rows):
        middle = SHEET_MARGIN + above + k * (h + gap) + (h - TEXT_HEIGHT) // 2
        _write(draw, (SHEET_MARGIN, middle), text, beside - 12, TITLE_COLOUR)
    return sheet


# --- tiles ----------------------------------------------------------------------------------------


def _tiles(images: Any, group: int | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Colours (N, instances, H, W, 3), and which samples violate the scenario (N,), if any."""
    wrong = None
    if isinstance(images, xr.Dataset):
        if not is_images(images):
            raise ModelError("the data hold no images to show")
        wrong = _violations(images)
        pixels = to_array(images)
        several = "instance" in images[IMAGE].dims
    else:
        pixels, several = np.asarray(images), False
    if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4, 5) or not pixels.size:
        raise ModelError(
            f"a sheet shows bytes (N, height, width[, 3]), not {pixels.dtype} {pixels.shape}",
            value=pixels.shape,
            remedy="make them with surrogate.kinds.images.files.from_array",
        )
    grey = pixels.ndim == 3 + several
    if not grey and pixels.shape[-1] == 1:
        pixels, grey = pixels[..., 0], True
    colours = np.repeat(pixels[..., None], 3, -1) if grey else pixels
    if colours.shape[-1] != 3:
        raise ModelError(
            f"images have 1 or 3 channels, not {colours.shape[-1]}", value=colours.shape[-1]
        )
    if several:
        return colours, wrong
    together = group or 1
    if together < 1 or len(colours) % together:
        raise ModelError(
            f"{len(colours)} images cannot be divided into groups of {together}",
            value=together,
            remedy=f"give a divisor of {len(colours)}",
        )
    return colours.reshape(-1, together, *colours.shape[1:]), wrong


def _violations(data: xr.Dataset) -> np.ndarray | None:
    """Which samples violate the scenario, (N,); None if none do or there is no scenario."""
    if "satisfied" not in data or data["satisfied"].dims != ("sample",):
        return None
    found = np.asarray(data["satisfied"].values).astype(bool)
    return None if found.all() else ~found


def _columns(count: int, width: int, height: int) -> int:
    """Columns of a nearly square sheet, if possible with a full last row."""
    ideal = math.sqrt(count * height / width)
    some = range(max(1, math.floor(0.8 * ideal)), math.ceil(1.4 * ideal) + 1)
    return min(some, key=lambda columns: (-count % columns > 0, abs(columns - ideal)))


def _scale(width: int) -> int:
    return max(1, min(MAX_TILE_SCALE, round((SHEET_WIDTH - 2 * SHEET_MARGIN) / width)))


# --- drawing --------------------------------------------------------------------------------------


def _blank_sheet(size: tuple[int, int]) -> tuple[Image, ImageDraw]:
    from PIL import Image, ImageDraw

    sheet = Image.new("RGB", size, BACKGROUND)
    return sheet, ImageDraw.Draw(sheet)


def _paste_tile(
    sheet: Image,
    draw: ImageDraw,
    tile: np.ndarray,
    corner: tuple[int, int],
    times: int,
    wrong: bool,
) -> None:
    """The images (instances, H, W, 3) of a sample side by side, in a frame."""
    from PIL import Image

    several, height, width = tile.shape[:3]
    left, top = corner
    whole = np.concatenate(list(tile), axis=1)
    picture = Image.fromarray(np.ascontiguousarray(whole))
    if times > 1:
        picture = picture.resize(
            (width * several * times, height * times), Image.Resampling.NEAREST
        )
    sheet.paste(picture, corner)
    right, bottom = left + picture.width, top + picture.height
    for i in range(1, several):  # a thin line between what belongs together
        x = left + i * width * times
        draw.line([(x, top), (x, bottom - 1)], fill=BACKGROUND, width=1)
    edge, thick = (VIOLATION_COLOUR, 3) if wrong else (FRAME_COLOUR, 2 if several > 1 else 1)
    draw.rectangle(
        (left - thick, top - thick, right + thick - 1, bottom + thick - 1),
        outline=edge,
        width=thick,
    )


def _write(
    draw: ImageDraw,
    corner: tuple[int, int],
    text: str,
    room: int,
    ink: str,
    size: int = TEXT_HEIGHT,
) -> None:
    """A line of text, truncated to `room` pixels."""
    font = _font(size)
    line = " ".join(text.split())
    if font.getlength(line) > room:
        while line and font.getlength(line + "…") > room:
            line = line[:-1]
        line += "…"
    draw.text(corner, line, fill=ink, font=font)


def _text_width(text: str) -> int:
    return math.ceil(_font(TEXT_HEIGHT).getlength(text))


@cache
def _font(size: int) -> FreeTypeFont:
    """DejaVu Sans, the font of the other figures; it comes with matplotlib."""
    from matplotlib import get_data_path
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(get_data_path(), "fonts/ttf/DejaVuSans.ttf")), size)
