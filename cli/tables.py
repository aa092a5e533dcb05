"""Tables on the command line: options for reading them, and for comparing them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli import complete, reading
from cli.errors import UsageError
from surrogate.io.reading import TableOfRuns, TableOptions, types_in
from surrogate.settings import options_of

if TYPE_CHECKING:
    import xarray as xr

F = TypeVar("F", bound=Callable[..., Any])

options = reading.options("table", TableOfRuns)
types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=TYPE",
    help=options_of(TableOptions)["types"].help,
)


def comparison(command: F) -> F:
    """--target and --train: a table is compared with real rows by what can be learned from it."""
    target = click.option(
        "--target",
        metavar="COLUMN",
        help="Predict this column of real rows, after learning from DATA.",
    )
    train = click.option(
        "--train",
        metavar="TABLE",
        shell_complete=complete.files,
        help="Rows that the model was trained on [default: the reference].",
    )
    return target(train(command))


def refuse(table: Mapping[str, Any], why: str) -> None:
    """Refuse options of tables where there is none."""
    used = [f"--{name}" for name, value in table.items() if value not in (None, False)]
    if used:
        raise UsageError(
            f"{', '.join(used)} is for tables; {why}",
            value=used,
            remedy=f"leave out {', '.join(used)}",
        )


def open_data(
    path: str,
    table: Mapping[str, Any],
    types: tuple[str, ...],
    image: Mapping[str, Any],
    say: Callable[[str], None],
) -> xr.Dataset:
    """Training data; what was assumed about them is printed."""
    given = {**table, **image} | ({"types": types_in(types)} if types else {})
    found = reading.opened(path, given, say)
    data = found.kind.learnable(found.data, path, found.options, reading.escaped(say))
    if "columns" not in given:
        reading.hint(found, say)
    return data
