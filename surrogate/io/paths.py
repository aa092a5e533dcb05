"""Paths that a person names: whether something can be read there, or written without a loss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from constraints.errors import Action, Setting
from surrogate.errors import ModelError

MAKERS = {  # default names of data files, and how to make one
    "samples": Action("model.sample(1_000)", "surrogate sample"),
    "reference": Action("simulators.simulate(models.esirs())", "surrogate reference esirs"),
    "trajectories": Action("simulators.simulate(models.esirs())", "surrogate simulate esirs"),
}


def located(path: str | Path) -> Path:
    """The path of a file or folder that exists; pipes and devices are none, they would block."""
    place = Path(path)
    try:
        found = place.is_file() or place.is_dir()
        other = not found and place.exists()
    except (OSError, ValueError) as problem:
        raise ModelError(f"there is no file {str(path)!r}: {problem}", value=path) from None
    if other:
        raise ModelError(f"{str(path)!r} is neither a file nor a folder", value=path)
    if not found:
        maker = MAKERS.get(place.stem)
        raise ModelError(
            f"there is no file {str(path)!r}",
            value=path,
            remedy=() if maker is None else ("make one with: ", maker),
        )
    return place


def check_target(path: str | Path, force: bool, suffixes: Sequence[str]) -> Path:
    """The path, if a file with one of the suffixes may be written there."""
    target = Path(path)
    check_name(target)
    if not has_ending(path, suffixes):
        raise unknown_ending(path, suffixes)
    if target.suffix.lower() == ".zarr" and target.is_file():
        raise ModelError(
            f"{str(path)!r} is a file, not a Zarr folder: it is left alone",
            value=path,
            remedy="choose another name",
        )
    check_parent(target)
    if (target.exists() or target.is_symlink()) and not force:
        raise exists(path)
    if target.is_dir() and not (target / "zarr.json").exists() and any(target.iterdir()):
        raise ModelError(
            f"{str(path)!r} is a folder that holds something else: it is left alone",
            value=path,
            remedy="choose another name",
        )
    return target


def has_ending(path: str | Path, suffixes: Sequence[str]) -> bool:
    """Whether a name ends in one of the suffixes; "/" is that of a folder, a name without any."""
    text = str(path).lower()
    folder = "/" in suffixes and (text.endswith("/") or not Path(text).suffix)
    return folder or text.endswith(tuple(suffixes))


def check_name(target: Path) -> None:
    """Refuse names with characters that cannot be shown."""
    if not str(target).isprintable():
        raise ModelError(
            f"{str(target)!r} is not a file name: it has unprintable characters", value=target
        )


def check_parent(target: Path) -> None:
    """Refuse a target in a folder that does not exist."""
    if not target.parent.is_dir():
        raise ModelError(
            f"there is no folder {str(target.parent)!r} to write {target.name!r} in",
            value=target,
            remedy="make the folder first",
        )


def unknown_ending(path: str | Path, suffixes: Sequence[str]) -> ModelError:
    """The error for a target whose suffix is not one of those that can be written."""
    return ModelError(
        f"cannot write {str(path)!r}",
        value=path,
        remedy=f"the name must end in {' or '.join(suffixes)}",
    )


def exists(path: str | Path) -> ModelError:
    """The error for a target that would be overwritten."""
    return ModelError(
        f"{str(path)!r} exists",
        value=path,
        remedy=("choose another name, or replace it with ", Setting("force", True)),
    )
