"""Data to show or to compare, and the samples of a reference that satisfy rules."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.markup import escape

from cli import options, reading, tables
from cli.errors import UsageError

if TYPE_CHECKING:
    from surrogate.evaluation.result import Evaluation
    from surrogate.kinds.kind import Data
    from surrogate.kinds.opening import Opened

MIN_REFERENCE = 10  # samples that others can be compared with


def opened_file(
    path: str,
    table: dict[str, Any],
    image: dict[str, Any],
    say: Callable[[str], None],
    shared: bool = True,
) -> Opened:
    """A file opened; a table holds rows unless an option says that they are steps.

    Of two files, options for tables apply to the one that is a table; of two tables, not to the one
    that holds samples, with a row for each step of each. `shared`: whether there are two.
    """
    given = {**(table if is_table_file(path) else {}), **image}
    found = reading.opened(path, given, say, shared=shared)
    if "columns" not in given:
        reading.hint(found, say)
    return found


def opened(
    path: str,
    table: dict[str, Any],
    image: dict[str, Any],
    say: Callable[[str], None],
    shared: bool = True,
) -> Data:
    """Data of a file as they are: see `opened_file`."""
    given = table if is_table_file(path) else {}
    found = opened_file(path, table, image, say, shared)
    if "missing" in given:
        return found.kind.as_read(found.data, found.options)
    return found.data


def check_tables(table: dict[str, Any], *paths: str) -> None:
    """Refuse options for tables where no file is one."""
    if not any(is_table_file(path) for path in paths):
        tables.refuse(table, "none of these files is one")


def is_table_file(path: str) -> bool:
    """Whether a file holds a table, by its name."""
    from surrogate.io.formats import TABLE, format_of
    from surrogate.kinds import kinds  # whose formats are registered

    return bool(kinds()) and format_of(path).holds == TABLE


def warn_unconditioned(found: Evaluation | None, say: Callable[[str], None]) -> None:
    """Print that samples of a scenario are compared with data that do not satisfy it."""
    values = {} if found is None else found.values
    if "scenario" not in values:
        return
    share, rules = values["scenario_share"], values["scenario"]
    met = "cannot be judged in it" if share is None else f"are met by {100 * share:.3g} % of it"
    chosen = " ".join(f"--where {shlex.quote(rule)}" for rule in rules)
    say(
        "[yellow]warning: the samples are of a scenario and the reference is not (its rules "
        f"{met}): the two are not comparable; compare with what meets them: {escape(chosen)}"
        "[/yellow]"
    )


def meeting(
    path: str, reference: Data, where: tuple[str, ...], say: Callable[[str], None], samples: Data
) -> Data:
    """The samples of a reference that satisfy all rules, as `samples` of a scenario do."""
    if not where:
        return reference
    from surrogate.kinds.kind import kind_of
    from surrogate.kinds.labels import label
    from surrogate.kinds.scenario_share import reference_layout
    from surrogate.kinds.signals import samples_of

    layout = reference_layout(samples, reference)
    rules = options.formulas(where, (), layout)
    judged = label(reference, rules, layout=layout)
    met = np.flatnonzero(np.asarray(judged["satisfied"]))
    say(f"{len(met):,} of {samples_of(reference):,} samples of {escape(path)} meet --where")
    if len(met) < MIN_REFERENCE:
        raise UsageError(
            f"{len(met)} samples of {path!r} meet --where, and a comparison needs {MIN_REFERENCE}",
            value=len(met),
            remedy="relax --where, or give more reference data with --against",
        )
    return kind_of(reference).chosen(reference, met)
