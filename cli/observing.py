"""Observed data on the command line: --observe FILE, and how it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import click

from cli import complete, reading
from cli.errors import UsageError
from cli.sections import section
from constraints.ast.dates import canonical_date
from surrogate.io.reading import ObservationOptions

if TYPE_CHECKING:
    from constraints import Layout
    from surrogate.kinds import Kind
    from surrogate.kinds.observed import Observed

options = section(
    "Observed data",
    click.option(
        "--observe",
        metavar="FILE",
        shell_complete=complete.files,
        help="Condition on the numbers in this file (CSV, Parquet, netCDF): samples are from the "
        "posterior p(x | data).",
    ),
    reading.options("observing", ObservationOptions),
)

dates = section(
    "Trajectories",
    click.option(
        "--start",
        metavar="DATE",
        help="Date of the first step: puts dates on the time axis, for rules such as "
        "'cases@\"1948-03-01\" >= 100', and for observed dates.",
    ),
    click.option("--unit", help="Unit of the model's times, where its data do not say: day, week."),
)


def refuse_unit(start: str | None, unit: str | None) -> None:
    """Refuse a unit of dates where there are none."""
    if start is None and unit is not None:
        raise UsageError(
            "--unit is about dates, and there is no first one", value=unit, remedy="add --start"
        )


def refuse(observe: str | None, observing: Mapping[str, Any], option: str = "--observe") -> None:
    """Refuse options about observed data where there are none."""
    if observe is None and observing:
        name = next(iter(observing))
        flag = {"columns": "--map"}.get(name, f"--{name}")
        raise UsageError(
            f"{flag} is about observed data, and there are none",
            value=observing[name],
            remedy=f"add {option} FILE",
        )


def opened(observe: str | None, say: Callable[[str], None]) -> Any:
    """The data in the file; None without one."""
    return None if observe is None else reading.opened(observe, {}, say).data


def beginning(
    kind: Kind, start: str | None, unit: str | None, data: Any, observing: Mapping[str, Any]
) -> dict[str, Any]:
    """What says on which date samples begin: --start, or else dates of the observed data."""
    refuse_unit(start, unit)
    if start is not None and "start" not in kind.formula_names:
        raise UsageError(
            f"--start is the date of the first step, and {kind.name} have no steps",
            value=start,
            remedy="leave it out",
        )
    found: dict[str, Any] = {} if start is None else {"start": start, "unit": unit}
    if data is not None and "observed" in kind.formula_names:
        found["observed"] = data, ObservationOptions(**observing)
    return found


def started(
    kind: Kind, config: dict[str, Any], begun_by: Mapping[str, Any], say: Callable[[str], None]
) -> dict[str, Any]:
    """The description of a model with dates on the time axis, where these are known."""
    codec = config.get("codec")
    if not begun_by or not isinstance(codec, Mapping):
        return config
    made = kind.config_knowing(codec, **begun_by)
    dates = made["layout"].get("dates")
    if dates and "start" not in begun_by and not codec["layout"].get("dates"):
        say(f"first step: {canonical_date(dates[0])}, as first observed (--start says otherwise)")
    return {**config, "codec": made}


def shared_time(
    table: Mapping[str, Any], observed: str | None, *paths: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of tables, and of observed data: --time names the column of times of both, and is
    only about observed data where none of the other files is a table."""
    from cli.compared import is_table_file

    if observed is None or "time" not in table:
        return dict(table), {}
    if any(path is not None and is_table_file(path) for path in paths):
        return dict(table), {}
    rest = {name: value for name, value in table.items() if name != "time"}
    return rest, {"time": table["time"]}


def observed(
    observe: str | None,
    observing: Mapping[str, Any],
    kind: Kind,
    layout: Layout,
    say: Callable[[str], None],
    data: Any = None,
) -> Observed | None:
    """What was observed; what was understood of the file is printed. `data`: what it holds, if it
    was read before."""
    data = opened(observe, say) if data is None else data
    if data is None:
        return None
    found = kind.observed(data, layout, ObservationOptions(**observing))
    for note in found.notes:
        reading.escaped(say)(note)
    return found
