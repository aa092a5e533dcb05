"""Figures of a page, each as a data URI: SVG that follows the page's dark mode, or PNG where SVG
would be large."""

from __future__ import annotations

import base64
import warnings
from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from surrogate.reports.style import AGAINST, REQUIRED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = "#1d2b3a"
LIGHT = {"ink": INK, "soft": AGAINST, "paper": "#ffffff"}
DARK = {"ink": "#e4eaf1", "soft": "#c3ced9", "paper": "#141b22"}
MAX_SVG = 140_000  # characters of an SVG
CONTEXT: Any = {
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.linewidth": 0.7,
    "font.size": 9.5,
    "svg.hashsalt": "surrogate",
    "text.parse_math": False,  # a name from a file is not mathematics, whatever dollars it holds
}


def drawn(draw: Callable[..., Figure], *arguments: Any) -> str:
    """The picture that `draw` makes of the arguments."""
    from matplotlib import rc_context

    with rc_context(CONTEXT), warnings.catch_warnings():
        # letters that the font does not have, names that leave no room
        warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
        figure = draw(*arguments)
        file = BytesIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, metadata=nothing)
        text = file.getvalue().decode()
        if len(text) > MAX_SVG:
            return embedded("png", _pixels(figure))
    for name, colours in (("ink", (INK, REQUIRED)), ("soft", (AGAINST,)), ("paper", ("#ffffff",))):
        for colour in colours:
            text = text.replace(colour, f"var(--{name})")
    style = f"{_root(LIGHT)} @media (prefers-color-scheme: dark) {{ {_root(DARK)} }}</style>"
    return embedded("svg+xml", text.replace("</style>", style, 1).encode())


def _pixels(figure: Figure) -> bytes:
    """A PNG of few colours, which is a third of the size."""
    from PIL import Image  # which matplotlib brings

    full, few = BytesIO(), BytesIO()
    figure.savefig(full, format="png", dpi=144, facecolor="white")
    Image.open(full).convert("RGB").quantize(64).save(few, "png", optimize=True)
    return few.getvalue()


def _root(colours: dict[str, str]) -> str:
    return f":root {{ {' '.join(f'--{name}: {colour};' for name, colour in colours.items())} }}"


def embedded(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def blank(width: float, height: float) -> Figure:
    """An empty picture of that size, in inches."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
