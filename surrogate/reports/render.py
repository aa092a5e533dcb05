"""A figure as a data URI."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def data_uri(kind: str, content: bytes) -> str:
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"


def rendered(figure: Figure) -> str:
    """A PNG."""
    content = BytesIO()
    figure.savefig(content, format="png", dpi=120, facecolor="white")
    return data_uri("png", content.getvalue())
