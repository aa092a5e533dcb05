"""surrogate plot DATA"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.markup import escape

from cli import complete, console, files, options, pictures, reading, tables
from cli import observing as observed_data
from cli.compared import check_tables, opened_file
from cli.errors import UsageError
from cli.sections import Command, section
from cli.values import Whole

if TYPE_CHECKING:
    from rich.console import Console

    from surrogate.kinds.opening import Opened


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
        type=Whole(0),
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
@section(
    "What",
    click.option(
        "--observed",
        metavar="DATA",
        shell_complete=complete.files,
        help="Plot these points over a fan chart: a table with a column of times.",
    ),
    click.option(
        "--map",
        "observed_columns",
        multiple=True,
        metavar="COLUMN=VARIABLE",
        help="Plot a column of --observed over this variable [default: as DATA was conditioned on "
        "it, or the same name]; repeatable.",
    ),
)
@section("Tables", tables.options)
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
    observed: str | None,
    observed_columns: tuple[str, ...],
    table: dict[str, Any],
    image: dict[str, Any],
    out: str | None,
    force: bool,
    quiet: bool,
) -> None:
    """Draw the trajectories in DATA as a fan chart, one panel per species.

    Values that a scenario requires are dots, values that it forbids are hatched. A table has a
    panel for each column with the distribution of its values; --species A,B chooses columns. Images
    are shown side by side, those that violate the scenario in a red frame.

    \b
    surrogate plot samples.nc --against trajectories.nc
    surrogate plot cases.csv --time week --columns cases --window 52
    surrogate plot samples.csv --against cases.csv --time week --columns cases --window 52
    """
    for path in filter(None, (data, against, observed)):
        files.check_exists(path)
    say = console.messages(quiet)
    table, observing = observed_data.shared_time(table, observed, data, against)
    check_tables(table, data, against or data)
    opened = opened_file(data, table, image, say.print, shared=against is not None)

    from surrogate.io.atomic import atomic_file
    from surrogate.io.paths import check_target

    kind = opened.kind
    if species is not None and kind.names_option is None:
        raise UsageError(f"--species is not for {kind.name}", value=species, remedy="leave it out")
    target = check_target(_named(data) if out is None else out, force, kind.figure_suffixes)
    files.check_writable(target)

    from surrogate.data import check_options
    from surrogate.io.reading import pairs_in

    wanted = _given("trajectories", "constraints", "title")
    if species is not None and kind.names_option is not None:
        wanted[kind.names_option] = [name.strip() for name in species.split(",")]
    if observed_columns and observed is None:
        raise UsageError(
            "--map is about observed data, and there are none",
            value=observed_columns,
            remedy="add --observed FILE",
        )
    if observed_columns:
        wanted["observed_columns"] = pairs_in(observed_columns)
    check_options(kind, wanted, "plot_options")
    if observed is not None and "time" in observing:
        wanted["observed_time"] = observing["time"]
    points = None if observed is None else reading.opened(observed, {}, say.print).data
    drawing = kind.drawing(opened.data, _like(against, opened, table, say), points, **wanted)
    with atomic_file(target) as part:
        drawing.save(part, target.suffix[1:].lower())
    say.print(f"[bold]{escape(str(target))}[/bold]  {escape(drawing.caption)}")
    for note in drawing.notes:
        say.print(escape(note))


def _given(*names: str) -> dict[str, Any]:
    """Options that were typed: a kind refuses those that it does not have."""
    context = click.get_current_context()
    typed = (n for n in names if context.get_parameter_source(n) is ParameterSource.COMMANDLINE)
    return {name: context.params[name] for name in typed}


def _like(against: str | None, opened: Opened, table: dict[str, Any], say: Console) -> Any:
    """A second dataset of the same kind, if there is one."""
    if against is None:
        return None
    other = opened_file(against, table, {}, say.print)
    if other.kind is not opened.kind:
        raise UsageError(
            f"{against!r} holds {other.kind.name}, and {opened.path!r} {opened.kind.name}",
            value=against,
            remedy=f"give --against {opened.kind.name}",
        )
    return other.data


def _named(data: str) -> Path:
    """rows.png for rows.csv.gz"""
    place = Path(data)
    return (place.with_suffix("") if place.suffix.lower() == ".gz" else place).with_suffix(".png")
