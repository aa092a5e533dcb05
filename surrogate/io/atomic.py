"""Atomic writing: a file or a folder takes its final name only when it is complete.

Content goes to a hidden path beside the target and is renamed at the end; an error or an interrupt
leaves the target as it was. A file is replaced in one step. A folder takes two renames: `recover`
tidies up after a process that was killed between them. `simulators.atomic` has its own writer,
because simulators do not import this package and stream blocks into an open file.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from surrogate.errors import SurrogateError, WritingError

Owns = Callable[[str], bool]  # whether a file of this name is one that we write into such a folder


@contextmanager
def atomic_file(target: Path) -> Iterator[Path]:
    """A path to write to that becomes `target` at the end, and vanishes on any failure."""
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    part = Path(name)
    try:
        yield part
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        part.chmod(0o644)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(target: Path, owns: Owns) -> Iterator[Path]:
    """A folder to fill that takes the place of `target` at the end, and vanishes on any failure.

    `owns` says which names such a folder holds: leftovers with other names in them are kept.
    """
    target = Path(os.path.realpath(target))  # a link stays a link
    recover(target, owns)
    part, old = _beside(target)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        yield part
        if target.exists():
            target.rename(old)
        try:
            part.rename(target)
        finally:
            if old.exists() and not target.exists():
                old.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def recover(target: Path, owns: Owns) -> None:
    """Tidy up after a process that was killed while it replaced a folder.

    Killed between the two renames, the old folder is back under its name after this.
    """
    target = Path(os.path.realpath(target))
    if not target.name:
        return
    part, old = _beside(target)
    with suppress(OSError):
        if old.is_dir() and not target.exists():
            old.rename(target)
        for left in (part, old):
            if left.is_dir() and not foreign(left, owns):
                shutil.rmtree(left, ignore_errors=True)


def foreign(folder: Path, owns: Owns) -> list[str]:
    """Names in a folder that are not ours, sorted; none where there is no folder."""
    if not folder.is_dir():
        return []
    return sorted(each.name for each in folder.iterdir() if not owns(each.name))


def _beside(target: Path) -> tuple[Path, Path]:
    return target.with_name(f".{target.name}.new"), target.with_name(f".{target.name}.old")


def write_bytes(target: Path, content: bytes) -> None:
    with atomic_file(target) as part:
        part.write_bytes(content)


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Turn a full disk and the like into a WritingError that names the target."""
    try:
        yield
    except (OSError, RuntimeError) as problem:
        if isinstance(problem, SurrogateError):
            raise
        with suppress(OSError):
            free = shutil.disk_usage(target.parent).free
            raise WritingError(
                f"cannot write {str(target)!r} ({getattr(problem, 'strerror', None) or problem}; "
                f"{free / 1e6:.0f} MB free there): nothing was changed"
            ) from problem
        raise
