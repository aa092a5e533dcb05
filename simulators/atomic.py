"""Atomic writing: a file or folder appears under its name only when it is complete."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from simulators.errors import SimulationError

_OWNER = f"{uuid.getnode():x}"  # other machines may write to the same folder
_PART_NUMBERS = itertools.count()


@contextmanager
def replacing(target: Path) -> Iterator[Path]:
    """A path to write to that takes the target's place at the end, or disappears on any failure."""
    _sweep(target)
    part = target.with_name(f".{target.name}.{_OWNER}-{os.getpid()}-{next(_PART_NUMBERS)}.part")
    old = part.with_suffix(".old.part")
    try:
        yield part
        if target.is_dir():  # a folder cannot be replaced in one step
            target.rename(old)
        try:
            os.replace(part, target)
        except OSError:
            if old.exists():
                old.rename(target)
            raise
        remove(old)
    except (OSError, RuntimeError) as problem:
        if isinstance(problem, SimulationError):
            raise
        free = shutil.disk_usage(target.parent).free
        raise SimulationError(
            f"cannot write {str(target)!r} ({problem}; {free / 1e6:.0f} MB free there): "
            "nothing was changed",
            value=str(target),
            remedy="free some space there, or choose another place",
        ) from problem
    finally:
        remove(part)


def _sweep(target: Path) -> None:
    """Remove partial files left by runs on this machine that were killed."""
    for left in target.parent.glob(f".{glob.escape(target.name)}.{_OWNER}-*.part"):
        pid = left.name.split(f"{_OWNER}-")[1].split("-")[0]
        if pid.isdigit() and Path("/proc/self").exists() and not Path(f"/proc/{pid}").exists():
            if ".old." in left.name and not target.exists():
                left.rename(target)  # killed between the two steps of replacing a folder
            else:
                remove(left)


def remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
