"""Files on the command line: checks before the work, the history of outputs, files of rules."""

from __future__ import annotations

import shlex
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from cli.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from surrogate.kinds.kind import Data

MAX_RULE_CHARACTERS = 1_000_000  # in a file of rules


def check_exists(path: str) -> None:
    """Refuse a path where nothing is, before anything is loaded that would read it."""
    from surrogate.io.paths import located

    located(path)


def check_writable(target: Path) -> None:
    """Refuse a folder that cannot be written to, before the work rather than after it."""
    try:
        Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.")).rmdir()
    except OSError as problem:
        raise UsageError(
            f"cannot write to the folder {str(target.parent)!r}: {problem.strerror}",
            value=str(target),
            remedy="choose another with -o",
        ) from None


def write_data(data: Data, *targets: str | Path) -> None:
    """Write data in the format of each target's suffix, with this command in their history."""
    from surrogate.kinds import kind_of

    kind = kind_of(data)
    written = with_history(cast("xr.Dataset", data)) if hasattr(data, "data_vars") else data
    for target in targets:
        kind.write(written, target)


def tables(out: str | None, force: bool) -> list[Path]:
    """Where to write a table, if that was asked for."""
    from surrogate.io.formats import TABLE, endings
    from surrogate.io.paths import check_target

    return [] if out is None else [check_target(out, force, endings((TABLE,)))]


def check_distinct(inputs: Iterable[str | None], targets: Iterable[Path]) -> None:
    """Refuse outputs that would replace what the command reads, or each other."""
    taken = {Path(each).resolve(): "reads" for each in inputs if each is not None}
    for target in targets:
        if (how := taken.get(target.resolve())) is not None:
            raise UsageError(
                f"the command {how} {str(target)!r}, and would write it",
                value=str(target),
                remedy="choose another name for the output",
            )
        taken[target.resolve()] = "writes"


def write_table(table: pd.DataFrame, target: str | Path) -> None:
    """Write a table in the format of the target's suffix."""
    from surrogate.io.formats import TABLE, write

    write(table, target, (TABLE,))


def with_history(data: xr.Dataset) -> xr.Dataset:
    """The dataset with this command added to its history."""
    from simulators.dataset import command_name

    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    line = f"{stamp} {shlex.join([command_name(), *sys.argv[1:]])}"
    before = str(data.attrs.get("history", "")).rstrip()
    return data.assign_attrs(history=f"{before}\n{line}" if before else line)


def read_rules(path: str) -> list[tuple[str, str]]:
    """(place, text) of each rule in a file: a line, with the indented lines that follow it."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read(MAX_RULE_CHARACTERS + 1)
    except FileNotFoundError:
        raise UsageError(
            f"there is no file {path!r} of rules",
            value=path,
            remedy="write one rule on each line of it, or a rule itself: --where 'max(I) <= 20'",
        ) from None
    except UnicodeDecodeError:
        raise UsageError(
            f"{path!r} is not text (UTF-8), so it holds no rules",
            value=path,
            remedy="write one rule on each line of a text file",
        ) from None
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        raise UsageError(
            f"cannot read the rules in {path!r}: {why}",
            value=path,
            remedy="name a text file with a rule on each line",
        ) from None
    if len(text) > MAX_RULE_CHARACTERS:
        raise UsageError(
            f"{path!r} is longer than the {MAX_RULE_CHARACTERS:,} characters of a file of rules",
            value=path,
            remedy="check that it is the right file",
        )
    found: list[tuple[str, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace() and found:
            place, before = found.pop()
            found.append((place, f"{before}\n{line}"))
        else:
            found.append((f"{path}, line {number}", line))
    if not found:
        raise UsageError(f"{path!r} holds no rules", value=path, remedy="write one on each line")
    return found
