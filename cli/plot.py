"""surrogate plot DATA"""

from __future__ import annotations

import shlex
from pathlib import Path

import click
from rich.markup import escape

from cli import console, files, options
from simulators.errors import InputError, unknown

FORMATS = (".png", ".svg", ".pdf")
MOST_PANELS = 24


@click.command()
@click.argument("data", default="trajectories.nc")
@click.option("--species", metavar="S,I", help="Which variables to draw [default: all].")
@click.option("--against", metavar="DATA", help="A second dataset, drawn as dashed quantiles.")
@click.option(
    "--trajectories", type=int, default=40, show_default=True, help="Single ones to show."
)
@click.option(
    "--no-constraints",
    "constraints",
    flag_value=False,
    default=True,
    help="Leave out the scenario that DATA is labelled with.",
)
@click.option("--title", help="Heading of the picture.")
@options.out(None, "Picture: .png, .svg or .pdf [default: the data's name with .png].")
@options.force
@options.quiet
def command(
    data: str,
    species: str | None,
    against: str | None,
    trajectories: int,
    constraints: bool,
    title: str | None,
    out: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Draw the trajectories in DATA as a fan chart, one panel per species.

    Of a scenario, required values are dots and what it forbids is hatched.
    """
    if trajectories < 0:
        raise InputError(f"--trajectories must be >= 0, not {trajectories}")
    for path in (data, against):
        if path is not None and files.is_table(path):
            again = f"surrogate report {shlex.quote(path)}"
            raise InputError(f"plot draws netCDF files and Zarr folders; of a table: {again}")
    source = files.open_trajectories(data)
    target = Path(out) if out is not None else Path(data).with_suffix(".png")

    from simulators.storage import check_target, replacing
    from surrogate.plots import fan_chart, series

    check_target(target, force, FORMATS)
    have = series(source)
    names = [name.strip() for name in species.split(",")] if species else have[:MOST_PANELS]
    for name in names:
        if name not in have:
            raise unknown("species", name, have)
    if not names:
        raise InputError(f"{data!r} has no variables over (sample, time)")
    other = files.open_trajectories(against) if against else None
    if other is not None and not set(names) & set(series(other)):
        raise InputError(f"{against!r} has none of {', '.join(names)}: nothing to compare")
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
        raise InputError(f"cannot read {data!r}: {problem}") from None
    with replacing(target) as part:
        figure.savefig(part, dpi=150, format=target.suffix[1:].lower())
    say = console.messages(quiet)
    say.print(f"[bold]{escape(str(target))}[/bold]  {escape(', '.join(names))}")
    if species is None and len(have) > MOST_PANELS:
        say.print(f"the first {MOST_PANELS} of {len(have)} variables; choose others with --species")
