"""surrogate plot DATA"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
from rich.markup import escape

from cli import complete, console, files, options, pictures, reading
from cli.errors import UsageError, unknown
from cli.sections import Command, section

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure
    from rich.console import Console

    from surrogate.kinds.kind import Data
    from surrogate.kinds.opening import Opened

FORMATS = (".png", ".svg", ".pdf")
MOST_PANELS = 24
MOST_IMAGES = 100


@click.command(cls=Command)
@click.argument("data", default="trajectories.nc", shell_complete=complete.files)
@section(
    "What",
    click.option("--species", metavar="S,I", help="Variables or columns to plot [default: all]."),
)
@options.against("Second dataset, plotted as dashed quantiles.")
@section(
    "What",
    click.option(
        "--trajectories",
        type=int,
        default=40,
        show_default=True,
        help="Number of single trajectories to show.",
    ),
    click.option("--title", help="Heading of the figure."),
    click.option(
        "--no-constraints",
        "constraints",
        flag_value=False,
        default=True,
        help="Leave out the scenario that DATA is labelled with.",
    ),
)
@section("Images", pictures.options)
@options.out(None, "Figure: .png, .svg or .pdf [default: the data's name with .png].")
@options.force
@options.quiet
def command(
    data: str,
    species: str | None,
    against: str | None,
    trajectories: int,
    constraints: bool,
    title: str | None,
    image: dict[str, Any],
    out: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Draw the trajectories in DATA as a fan chart, one panel per species.

    Of a scenario, required values are dots and what it forbids is hatched. Of a table, a panel for
    each column shows how its values are spread; --species A,B chooses columns. Images are shown
    side by side, those that do not meet what was asked of them in a red frame.
    """
    if trajectories < 0:
        raise UsageError(f"--trajectories must be >= 0, not {trajectories}")
    for path in filter(None, (data, against)):
        files.check_exists(path)
    say = console.messages(quiet)
    opened = reading.opened(data, image, say.print)
    found = opened.data
    target = Path(out) if out is not None else _named(data)
    if opened.kind.name == "images":
        _draw_images(cast("xr.Dataset", found), against, species, title, target, force, say)
        return

    from simulators.storage import check_target
    from surrogate.kinds.tables.align import is_table

    check_target(target, force, FORMATS)
    if is_table(found):
        _draw_table(found, _like(against, opened, say), species, title, target, say)
        return
    source = cast("xr.Dataset", found)

    from surrogate.kinds.trajectories.plot import fan_chart, series

    have = series(source)
    names = [name.strip() for name in species.split(",")] if species else have[:MOST_PANELS]
    for name in names:
        if name not in have:
            raise unknown("species", name, have)
    if not names:
        raise UsageError(f"{data!r} has no variables over (sample, time)")
    other = _like(against, opened, say)
    if other is not None and not set(names) & set(series(other)):
        raise UsageError(f"{against!r} has none of {', '.join(names)}: nothing to compare")
    try:
        figure = fan_chart(
            source,
            names,
            against=other,
            trajectories=trajectories,
            title=title,
            marks=None if constraints else (),
        )
    except (OSError, RuntimeError) as problem:  # a damaged file opens, and fails when it is read
        raise UsageError(f"cannot read {data!r}: {problem}") from None
    _write(figure, target, names, say)
    if species is None and len(have) > MOST_PANELS:
        say.print(f"the first {MOST_PANELS} of {len(have)} variables; choose others with --species")


def _like(against: str | None, opened: Opened, say: Console) -> Any:
    """A second dataset of the same kind, if there is one."""
    if against is None:
        return None
    other = reading.opened(against, {}, say.print)
    if other.kind is not opened.kind:
        raise UsageError(
            f"{against!r} holds {other.kind.name}, and {opened.path!r} {opened.kind.name}: draw "
            "two of a kind"
        )
    return other.data


def _named(data: str) -> Path:
    """rows.png for rows.csv.gz"""
    place = Path(data)
    return (place.with_suffix("") if place.suffix.lower() == ".gz" else place).with_suffix(".png")


def _write(figure: Figure, target: Path, names: Sequence[str], say: Console) -> None:
    from simulators.storage import replacing

    with warnings.catch_warnings(), replacing(target) as part:
        # letters that the font does not have, names that leave no room
        warnings.filterwarnings("ignore", "Glyph|constrained_layout", UserWarning)
        figure.savefig(part, dpi=150, format=target.suffix[1:].lower())
    say.print(f"[bold]{escape(str(target))}[/bold]  {escape(', '.join(names))}")


def _draw_images(
    data: xr.Dataset,
    against: str | None,
    species: str | None,
    title: str | None,
    target: Path,
    force: bool,
    say: Console,
) -> None:
    """A contact sheet of the first images, with their labels."""
    from simulators.storage import check_target, replacing
    from surrogate.kinds.images.plot import contact_sheet

    for option, given in (("--species", species), ("--against", against)):
        if given is not None:
            raise UsageError(
                f"{option} is not for images: draw each dataset by itself; surrogate evaluate "
                "compares two"
            )
    check_target(target, force, pictures.FORMATS)
    some = data.isel(sample=slice(MOST_IMAGES))
    captions = [str(label) for label in some["label"].values] if "label" in some else None
    sheet = contact_sheet(some, captions=captions, title=title)
    with replacing(target) as part:
        sheet.save(part, format=target.suffix[1:].upper())
    count = data.sizes["sample"]
    shown = f"the first {MOST_IMAGES} of " * (count > MOST_IMAGES)
    say.print(f"[bold]{escape(str(target))}[/bold]  {shown}{count:,} images")


def _draw_table(
    data: Data,
    against: Data | None,
    species: str | None,
    title: str | None,
    target: Path,
    say: Console,
) -> None:
    """A panel for each column, with a second table as outlines."""
    from surrogate.kinds.tables.align import Rows, shared
    from surrogate.kinds.tables.plot import small_multiples

    sides = [Rows(data, "the data", least=1)]
    if against is not None:
        sides.append(Rows(against, "the other data", least=1))
    columns, lone = shared(*sides)
    have = [each.name for each in columns]
    names = [name.strip() for name in species.split(",")] if species else have[:MOST_PANELS]
    for name in names:
        if name not in have:
            raise unknown("column", name, have)
    if title is None:
        title = f"{sides[0].count:,} rows"
        title += "" if against is None else f"; outlines: {sides[1].count:,} other rows"
    chosen = [columns[have.index(name)] for name in names]
    figure = small_multiples(chosen, [side.weights for side in sides], title=title)
    _write(figure, target, names, say)
    if lone:
        say.print(f"only on one side, and so not drawn: {escape(', '.join(lone))}")
    if species is None and len(have) > MOST_PANELS:
        say.print(f"the first {MOST_PANELS} of {len(have)} columns; choose others with --species")
