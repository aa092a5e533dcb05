"""Figures as tables: targets with their verdicts, on the screen and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

Rows = list[list[str]]
Section = tuple[list[str], Rows]  # head and body


@dataclass
class Target:
    """A figure against what it should be; `measured` is None where it could not be had."""

    name: str
    measured: float | None
    wanted: float
    at_most: bool = False
    unit: str = "×"

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        met = self.measured <= self.wanted if self.at_most else self.measured >= self.wanted
        return "met" if met else "missed"


def target_table(found: list[Target]) -> Section:
    return ["target", "wanted", "measured", "verdict"], [
        [
            target.name,
            f"{'≤' if target.at_most else '≥'} {target.wanted:g}{target.unit}",
            "–" if target.measured is None else f"{_digits(target)}{target.unit}",
            target.verdict,
        ]
        for target in found
    ]


def _digits(target: Target) -> str:
    """Two decimals, or three for what should be below 0.2."""
    return f"{target.measured:.{3 if target.wanted < 0.2 else 2}f}"


def show(sections: dict[str, Section], notes: Sequence[str]) -> None:
    """Print everything, wide enough not to be folded."""
    console = Console()
    console.width = max(console.width, 190)
    for title, (head, body) in sections.items():
        table = Table(*head, title=title)
        for cells in body:
            table.add_row(*cells)
        console.print(table)
    console.print(*notes, sep="\n")


def markdown(heading: str, sections: dict[str, Section], notes: Sequence[str]) -> str:
    """The same as a page."""
    lines = [f"# {heading}", "", *notes]
    for title, (head, body) in sections.items():
        lines += ["", f"## {title}", ""]
        for row in (head, ["---"] * len(head), *body):
            lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"
