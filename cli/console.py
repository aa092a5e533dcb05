"""Messages and progress bars on stderr; stdout is for data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

LEVEL_COLOURS = {"good": "green", "care": "yellow", "poor": "red"}
SECONDS_BETWEEN_LINES = 20.0  # of progress, where the output is no terminal


def messages(quiet: bool) -> Console:
    """The console for messages, on stderr."""
    return Console(stderr=True, quiet=quiet, highlight=False, soft_wrap=True)


@contextmanager
def bar(console: Console, what: str, total: int) -> Iterator[Callable[..., None]]:
    """A progress bar; yields a function that advances it, with a note: advance(1, "loss 0.6").

    Nothing is shown where stderr is no terminal.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(compact=True),
    )
    off = console.quiet or not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=off) as progress:
        task = progress.add_task(what, total=total)

        def advance(count: int, note: str = "") -> None:
            label = f"{what}  {note}" if note else what
            progress.update(task, advance=count, description=label)

        yield advance


class Percent:
    """Shares of the work as percent of a bar, which starts again with every run."""

    def __init__(self, advance: Callable[[int], None]) -> None:
        self.advance, self.done = advance, 0

    def __call__(self, share: float) -> None:
        step = round(100 * min(share, 1.0)) - self.done
        if step > 0:
            self.advance(step)
            self.done += step

    def named(self, what: str, share: float) -> None:
        """The same for work in several passes: a bar that falls back is another pass."""
        if round(100 * share) < self.done:
            self.restart()
        self(share)

    def restart(self) -> None:
        self.advance(-self.done)
        self.done = 0


def verdict(found: Mapping[str, Any]) -> Iterator[str]:
    """Lines, with markup, of a verdict as `Verdict.to_dict` gives it: its words, and what speaks
    against the samples."""
    colour = LEVEL_COLOURS.get(str(found["level"]), "default")
    yield f"verdict: [{colour}]{escape(str(found['words']))}[/{colour}]"
    for reason in found["against"]:
        yield f"  {escape(str(reason))}"


def size(count: int) -> str:
    """Bytes in a readable unit: 0.6 MB."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
