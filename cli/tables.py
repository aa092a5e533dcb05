"""Tables on the command line: the options that say how one is to be read, and what is read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.markup import escape

from cli import files, shapes
from simulators.errors import InputError, unknown

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

F = TypeVar("F", bound=Callable[..., Any])

_PYTHON = re.compile(r'\((\w+)=("?)([^()"]*)\2\)')  # (missing="drop")
_TYPES = re.compile(r'\(types=\{"(.*?)": "(\w+)"\}\)', re.DOTALL)
_NAMES = ("time", "id", "wide", "columns", "window", "stride", "pool", "missing")
_SERIES = ("time", "id", "wide", "window", "stride", "pool")  # that tell trajectories from rows
_OPTIONS = [
    click.option("--time", "table_time", metavar="COLUMN", help="Of a table: the time."),
    click.option("--id", "table_id", metavar="COLUMN", help="Of a long table: which run."),
    click.option(
        "--wide",
        "table_wide",
        is_flag=True,
        help="A table with a run in each row, its steps in columns: S0, S1, S2.",
    ),
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
        type=click.Choice(["refuse", "drop", "model"]),
        help="Of a table: what to do about missing values [default: model them in rows, refuse "
        "them in runs].",
    ),
]
types = click.option(
    "--type",
    "types",
    multiple=True,
    metavar="COLUMN=KIND",
    help="Of a table of rows: learn COLUMN as number, integer, category, boolean or date, or "
    "ignore it [default: by its values]; repeatable.",
)


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
    return [f"--{name}" for name, value in table.items() if value not in (None, False)]


def refuse(table: dict[str, Any], why: str) -> None:
    """Refuse options of tables where there is none."""
    if given(table):
        raise InputError(f"{', '.join(given(table))} is for tables; {why}")


def open_trajectories(path: str, table: dict[str, Any], say: Callable[[str], None]) -> xr.Dataset:
    """Trajectories from a file; a table is turned into them, and what was understood is said."""
    import pandas as pd

    found = files.open_dataset(path, lambda text: say(escape(text)))
    if not isinstance(found, pd.DataFrame):
        refuse(table, f"{path!r} holds trajectories")
        return files.open_trajectories(path) if "time" not in found.dims else found
    return _trajectories(path, found, table, say)


def open_data(
    path: str, table: dict[str, Any], types: tuple[str, ...], say: Callable[[str], None]
) -> xr.Dataset:
    """What to learn from: trajectories (sample, time) or rows (sample,), and it is said which.

    A table is one of rows unless an option tells how it holds trajectories.
    """
    import xarray as xr

    found = files.open_dataset(path, lambda text: say(escape(text)))
    if isinstance(found, xr.Dataset) and "time" in found.dims:
        refuse({**table, "type": types or None}, f"{path!r} holds trajectories")
        return found
    if isinstance(found, xr.Dataset):
        from surrogate.kinds.tables.schema import to_frame

        used = [option for option in given(table) if option[2:] in _SERIES]
        if used:
            raise InputError(f"{', '.join(used)} is for tables of runs; {path!r} holds rows")
        if "instance" in found.dims:
            raise InputError(
                f"{path!r} holds several rows in each sample; write them one by one: "
                "surrogate sample MODEL -o rows.csv"
            )
        return _rows(path, to_frame(found), table, types, say)
    if any(table[name] not in (None, False) for name in _SERIES):
        if types:
            raise InputError(
                "--type is for tables of rows, and this is said to be one of runs "
                f"({', '.join(f'--{n}' for n in _SERIES if table[n] not in (None, False))})"
            )
        return _trajectories(path, found, table, say)
    return _rows(path, found, table, types, say)


def _trajectories(
    path: str, found: pd.DataFrame, table: dict[str, Any], say: Callable[[str], None]
) -> xr.Dataset:
    from surrogate.errors import ModelError
    from surrogate.kinds.trajectories.from_table import trajectories_from_table

    if table["missing"] == "model":
        raise InputError("--missing model is for tables of rows; of runs: refuse or drop")
    asked = {name: value for name, value in table.items() if name != "wide"}
    asked["missing"] = asked["missing"] or "refuse"
    if table.get("wide"):
        _check_wide(path, found, table)
    try:
        data, understood = trajectories_from_table(found, **asked)
    except ModelError as problem:  # in the words of the command
        raise InputError(f"{path}: {_spoken(problem)}") from None
    say(escape(understood))
    return data


def _check_wide(path: str, found: pd.DataFrame, table: dict[str, Any]) -> None:
    others = [name for name in _SERIES if name != "wide" and table[name] is not None]
    if others:
        raise InputError(f"--wide tells where the steps are: leave out --{others[0]}")
    names = [str(name) for name in found.columns]
    if not shapes.steps_in(table["columns"] or names):
        raise InputError(
            f"{path}: --wide needs columns that are steps, such as S0, S1, S2; have "
            f"{', '.join(names[:12])}"
        )


def _rows(
    path: str,
    found: pd.DataFrame,
    table: dict[str, Any],
    types: tuple[str, ...],
    say: Callable[[str], None],
) -> xr.Dataset:
    from surrogate.errors import ModelError
    from surrogate.kinds.tables.schema import understand

    columns = table["columns"]
    if columns is not None:
        names = [str(name) for name in found.columns]
        for name in columns:
            if name not in names:
                raise InputError(f"{path}: {unknown('column', name, names)}")
        if len(set(columns)) < len(columns):
            raise InputError(f"--columns are different names, not {','.join(columns)}")
        found = found[columns]
    try:
        understood = understand(found, _kinds(types), table["missing"] or "model")
    except ModelError as problem:
        raise InputError(f"{path}: {_spoken(problem)}") from None
    for line in understood.lines():
        say(escape(line))
    hint = shapes.hint(found) if columns is None else ""
    if hint:
        say(escape(hint))
    return understood.data


def _kinds(given: tuple[str, ...]) -> dict[str, str]:
    """The words of --type as {column: kind}; a column's name may hold an equals sign itself."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, kind = (part.strip() for part in text.rpartition("="))
        if not equals or not name or not kind:
            raise InputError(f"--type is COLUMN=KIND, as in quality=category, not {text!r}")
        if found.get(name, kind) != kind:
            raise InputError(f"--type: {name!r} is said to be {found[name]} and {kind}")
        found[name] = kind
    return found


def _spoken(problem: Exception) -> str:
    """An error of Python's in the words of the command."""
    named = _TYPES.sub(lambda m: f"(--type {shlex.quote(f'{m[1]}={m[2]}')})", str(problem))
    return _PYTHON.sub(r"(--\1 \3)", named)
