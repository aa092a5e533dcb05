"""Tables on the command line: the options that say how one is to be read as trajectories."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.markup import escape

from cli import files
from simulators.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

F = TypeVar("F", bound=Callable[..., Any])

_PYTHON = re.compile(r'\((\w+)=("?)([^()"]*)\2\)')  # (missing="drop")
_NAMES = ("time", "id", "columns", "window", "stride", "pool", "missing")
_OPTIONS = [
    click.option("--time", "table_time", metavar="COLUMN", help="Of a table: the time."),
    click.option("--id", "table_id", metavar="COLUMN", help="Of a long table: which run."),
    click.option(
        "--columns",
        "table_columns",
        metavar="A,B",
        help="Of a table: what to look at [default: the rest].",
    ),
    click.option(
        "--window",
        "table_window",
        type=int,
        help="Cut one long series into windows of so many steps.",
    ),
    click.option(
        "--stride",
        "table_stride",
        type=int,
        help="Steps from one window to the next [default: --window].",
    ),
    click.option(
        "--pool",
        "table_pool",
        metavar="NAME",
        help="The columns are runs of one variable of that name.",
    ),
    click.option(
        "--missing",
        "table_missing",
        type=click.Choice(["refuse", "drop"]),
        default="refuse",
        show_default=True,
        help="Of a table: what to do about runs or windows with missing values.",
    ),
]


def options(command: F) -> F:
    """All of them, handed to the command as one argument: `table`."""

    @wraps(command)
    def gathered(**words: Any) -> Any:
        table = {name: words.pop(f"table_{name}") for name in _NAMES}
        if table["columns"] is not None:
            table["columns"] = [name.strip() for name in table["columns"].split(",")]
        return command(table=table, **words)

    made: Any = gathered
    for option in reversed(_OPTIONS):
        made = option(made)
    return made  # type: ignore[no-any-return]


def given(table: dict[str, Any]) -> list[str]:
    """The options that were used."""
    return [f"--{name}" for name, value in table.items() if value not in (None, "refuse")]


def refuse(table: dict[str, Any], why: str) -> None:
    """Refuse options of tables where there is none."""
    if given(table):
        raise InputError(f"{', '.join(given(table))} is for tables; {why}")


def open_trajectories(path: str, table: dict[str, Any], say: Callable[[str], None]) -> xr.Dataset:
    """Trajectories from a file; a table is turned into them, and what was understood is said."""
    import pandas as pd

    found = files.open_dataset(path)
    if not isinstance(found, pd.DataFrame):
        refuse(table, f"{path!r} holds trajectories")
        return found

    from surrogate.errors import ModelError
    from surrogate.tables import trajectories_from_table

    try:
        data, understood = trajectories_from_table(found, **table)
    except ModelError as problem:  # in the words of the command
        said = _PYTHON.sub(r"(--\1 \3)", str(problem))
        raise InputError(f"{path}: {said}") from None
    say(escape(understood))
    return data
