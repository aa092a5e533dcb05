"""surrogate evaluate DATA"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cli import complete, console, files, options, pictures, tables
from cli.compared import check_tables, meeting, opened, warn_unconditioned
from cli.sections import Command, section

if TYPE_CHECKING:
    from surrogate.evaluation.result import Evaluation


@click.command(cls=Command)
@click.argument("data", default="samples.nc", shell_complete=complete.files)
@options.against("Reference data of the same kind.", required=True)
@options.seed
@options.meeting
@section("Tables", tables.options, tables.comparison)
@section("Images", pictures.options)
@options.as_json
@options.quiet
def command(
    data: str,
    against: str,
    target: str | None,
    train: str | None,
    where: tuple[str, ...],
    table: dict[str, Any],
    image: dict[str, Any],
    seed: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Measure how far DATA (trajectories, a table or images) is from reference data.

    Each distance stands beside its noise floor: what it is between two samples of the reference's
    own law. A ratio of 1 is the noise of these numbers of samples. The verdict says whether DATA
    is good, usable with care or not usable, and why. For tables the result also shows whether DATA
    copies training rows, and how well a column is predicted from it.

    \b
    surrogate evaluate samples.nc --against trajectories.nc
    surrogate evaluate rows.csv --against wine.csv --target quality
    surrogate evaluate strong.csv --against wine.csv --where "alcohol >= 12"
    surrogate evaluate samples.nc --against runs.csv --id run --time day
    surrogate evaluate samples.npz --against t10k-images-idx3-ubyte.gz
    """
    options.check_syntax(where, ())
    for path in filter(None, (data, against, train)):
        files.check_exists(path)
    say = console.messages(quiet)
    check_tables(table, data, against)
    source, reference = (opened(path, table, image, say.print) for path in (data, against))
    learned = None if train is None else opened(train, table, image, say.print)
    reference = meeting(against, reference, where, say.print, source)

    from surrogate.data import evaluate

    with say.status("measuring"):
        options_ = {"target": target, "train": learned}
        given = {name: each for name, each in options_.items() if each is not None}
        found = evaluate(source, reference, seed=seed, **given)
    if as_json:
        click.echo(json.dumps({"data": data, "against": against, "seed": seed, **found.to_dict()}))
    else:
        _show(found)
    say.print(f"{found.samples:,} samples against {found.reference:,}")
    warn_unconditioned(found, say.print)


def _show(found: Evaluation) -> None:
    """A coloured table on a terminal, else lines of plain text."""
    from surrogate.evaluation.result import HEADER

    screen = Console(highlight=False)
    if not screen.is_terminal:
        click.echo(found.table())
        for line in console.verdict(found.verdict.to_dict()):
            click.echo(Text.from_markup(line).plain)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for i, name in enumerate(HEADER):
        table.add_column(name, justify="right" if 0 < i < 4 else "left", no_wrap=i > 0)
    for name, value, floor, ratio, note in found.rows():
        table.add_row(Text(name), Text(value), Text(floor), Text(ratio, _colour(ratio)), Text(note))
    screen.print(table)
    for line in console.verdict(found.verdict.to_dict()):
        screen.print(line)


def _colour(ratio: str) -> str:
    """Green within the noise of a typical floor, red from three times it on."""
    far = float(ratio) if ratio else math.nan
    return "green" if far <= 1.25 else "red" if far >= 3 else "yellow" if ratio else ""
