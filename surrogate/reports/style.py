"""Colours that figures of all kinds share, and names cut to the room there is."""

from __future__ import annotations

COLOURS = ("#2d6a9f", "#c8553d", "#4b8f5c", "#8a5a9e", "#b8862b", "#4a4a4a")
AGAINST = "#3a3a3a"  # of a reference
REQUIRED = "#1b1b1b"  # of what a scenario requires
OBSERVED = "#111111"
NAME_ROOM = 14  # letters of a name beside a panel


def short(name: str, most: int) -> str:
    """A name that leaves room for the figure."""
    return name if len(name) <= most else name[: most - 1] + "…"
