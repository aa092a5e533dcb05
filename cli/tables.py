"""Tables on the command line: the options that say how one is read, and what is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from cli import reading
from cli.errors import UsageError
from surrogate.io.reading import TableOfRuns, TableOptions, types_in
from surrogate.settings import options_of

if TYPE_CHECKING:
    import xarray as xr

options = reading.options("table", TableOfRuns)
types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=TYPE",
    help=options_of(TableOptions)["types"].help,
)


def refuse(table: Mapping[str, Any], why: str) -> None:
    """Refuse options of tables where there is none."""
    used = [f"--{name}" for name, value in table.items() if value not in (None, False)]
    if used:
        raise UsageError(f"{', '.join(used)} is for tables; {why}")


def open_data(
    path: str,
    table: Mapping[str, Any],
    types: tuple[str, ...],
    image: Mapping[str, Any],
    say: Callable[[str], None],
) -> xr.Dataset:
    """What to learn from; what was understood of it is printed."""
    given = {**table, **image} | ({"types": types_in(types)} if types else {})
    found = reading.opened(path, given, say)
    data = found.kind.learnable(found.data, path, found.options, reading.escaped(say))
    if "columns" not in given:
        reading.hint(found, say)
    return data
