"""Data to be looked at or compared: trajectories, or a table of rows, which stays one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.markup import escape

from cli import files, options, pictures, shapes, tables
from simulators.errors import InputError, unknown

if TYPE_CHECKING:
    from surrogate.kinds.signals import Data

FEWEST = 10  # samples that others can be compared with
OF_ROWS = ("--columns", "--missing")  # options that do not say that there are runs


def opened(
    path: str, table: dict[str, Any], image: dict[str, Any], say: Callable[[str], None]
) -> Data:
    """A table is one of rows unless an option tells how it holds trajectories."""
    import pandas as pd

    images = pictures.opened(path, image, say)
    if images is not None:
        tables.refuse(table, f"{path!r} holds images")
        return images
    used = tables.given(table)
    runs = [option for option in used if option not in OF_ROWS]
    if runs and files.is_table(path):
        return tables.open_trajectories(path, table, say)
    found = files.open_dataset(path, lambda text: say(escape(text)))
    rows = isinstance(found, pd.DataFrame) or "time" not in found.dims
    if not rows:
        return found
    if "--missing" in used:
        raise InputError(
            f"--missing is for tables of runs (--id, --time); {path!r} holds rows, and values that "
            "are missing there are compared as such"
        )
    if isinstance(found, pd.DataFrame) and (hint := shapes.hint(found)):
        say(escape(hint))
    return found if table["columns"] is None else _chosen(path, found, table["columns"])


def meeting(path: str, reference: Data, where: tuple[str, ...], say: Callable[[str], None]) -> Data:
    """Those samples of a reference that meet all rules: what samples of a scenario are beside."""
    if not where:
        return reference
    import pandas as pd

    from surrogate.kinds.labels import label
    from surrogate.kinds.signals import layout_of, samples_of

    rules = options.formulas(where, (), layout_of(reference))
    judged = label(reference, rules)
    met = np.asarray(judged["satisfied"])
    say(f"{int(met.sum()):,} of {samples_of(reference):,} samples of {escape(path)} meet --where")
    if met.sum() < FEWEST:
        raise InputError(
            f"{int(met.sum())} samples of {path!r} meet --where; at least {FEWEST} are needed to "
            "compare with"
        )
    if isinstance(reference, pd.DataFrame):
        return reference[met].reset_index(drop=True)
    return reference.isel(sample=np.flatnonzero(met))


def _chosen(path: str, data: Data, columns: Sequence[str]) -> Data:
    """The columns that were asked for, and the labels."""
    from surrogate.kinds.tables.align import columns_of, frame_of, labels_of

    have = columns_of(data, frame_of(data, path))
    for name in columns:
        if name not in have:
            raise InputError(f"{path}: {unknown('column', name, have)}")
    known = [str(name) for name in data]
    kept = [
        name for name in known if name in columns or name not in have or name in labels_of(data)
    ]
    return data[kept]
