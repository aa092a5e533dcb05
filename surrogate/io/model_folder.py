"""The folder of a model: its description as JSON, written atomically.

Nothing that is read can run code: no pickle anywhere. `config.json` names the format's version and
the hash of each tensor file, and reading checks both. Tensors are in `surrogate.io.tensors`; this
module loads no torch, so that a folder that cannot be used is reported at once.
"""

from __future__ import annotations

import hashlib
import json
import math
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from constraints.errors import Action
from surrogate.errors import ModelError
from surrogate.io.atomic import atomic_folder, foreign, recover
from surrogate.io.atomic import write_bytes as write_bytes

FORMAT_VERSION = 1
SEAL = "seal"
CONFIG, WEIGHTS, CARD, CURVE = "config.json", "weights.safetensors", "card.md", "training.csv"
FILES = (CONFIG, WEIGHTS, CARD, CURVE)  # of a model's folder
MAX_CONFIG_BYTES = 200_000_000  # bytes
PRETRAINED = Path(__file__).parent.parent / "pretrained"


def bundled() -> dict[str, Path]:
    """The models that come with the package: name -> folder."""
    return {place.name: place for place in sorted(PRETRAINED.iterdir()) if place.is_dir()}


def read_config(folder: str | Path) -> dict[str, Any]:
    """The description of the model in a folder, its version and hash checked."""
    place = Path(folder)
    make_one = Action(python="make one with sg.fit(data)", command="make one: surrogate train")
    if not place.is_dir():  # a process may have been killed while it replaced the folder
        settle(place)
    if not place.is_dir():
        raise ModelError(
            f"there is no model folder {str(folder)!r}",
            value=str(folder),
            remedy=[make_one, f" (with the package come: {', '.join(bundled())})"],
        )
    if not (place / CONFIG).exists():
        raise ModelError(
            f"{str(folder)!r} is no model folder: it has no {CONFIG}",
            value=str(folder),
            remedy=make_one,
        )
    config = read_json(place / CONFIG)
    check_version(config, place / CONFIG)
    check_seal(config, place / CONFIG)
    return config


def owns(name: str) -> bool:
    """Whether a file of this name belongs to a model's folder."""
    return name in FILES


@contextmanager
def model_folder(target: Path) -> Iterator[Path]:
    """A folder to fill that replaces `target` at the end, and is removed on a failure."""
    check_replaceable(target)
    with atomic_folder(target, owns) as part:
        yield part


def settle(target: Path) -> None:
    """Tidy up after a process that was killed while it replaced a model's folder."""
    recover(target, owns)


def check_replaceable(target: Path) -> None:
    """Refuse an unprintable name, a file, and a folder with anything but the files of a model."""
    if not str(target).isprintable() or target.name in ("", ".."):
        raise ModelError(
            f"{str(target)!r} is no name for a model's folder",
            value=str(target),
            remedy="choose another",
        )
    try:
        if (target.exists() or target.is_symlink()) and not target.is_dir():
            raise ModelError(
                f"{str(target)!r} is a file, where a folder is needed: it is left alone",
                value=str(target),
                remedy="choose another",
            )
        others = foreign(target, owns)
    except OSError as problem:
        raise ModelError(f"cannot write to {str(target)!r}: {problem.strerror}") from None
    if others:
        raise ModelError(
            f"{str(target)!r} is a folder with other things in it, such as {others[0]!r}: it is "
            "left alone",
            remedy="choose another",
        )


def write_json(target: Path, content: Mapping[str, Any]) -> None:
    write_bytes(target, (to_json(content, indent=1) + "\n").encode())


def to_json(content: Any, indent: int | None = None) -> str:
    """JSON text; it has no numbers that are not finite, so they become null."""
    return json.dumps(_finite(content), indent=indent, allow_nan=False)


def _finite(content: Any) -> Any:
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, Mapping):
        return {name: _finite(value) for name, value in content.items()}
    return [_finite(each) for each in content] if isinstance(content, (list, tuple)) else content


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """The content with a hash of itself."""
    return {**content, SEAL: _hash_of(content)}


def check_seal(content: Mapping[str, Any], source: Path) -> None:
    """Refuse content that is not what was sealed."""
    rest = {name: value for name, value in content.items() if name != SEAL}
    if content.get(SEAL) != _hash_of(rest):
        raise ModelError(f"{source} was changed after it was written (its hash differs)")


def _hash_of(content: Mapping[str, Any]) -> str:
    return digest(json.dumps(_finite(content), sort_keys=True, allow_nan=False).encode())


def read_json(source: Path) -> dict[str, Any]:
    """A JSON object from a file; ModelError says what is wrong with it."""
    text = read_bytes(source, MAX_CONFIG_BYTES)
    try:
        content = json.loads(text.decode(), parse_float=_number, parse_constant=_number)
    except (ValueError, RecursionError):
        raise ModelError(f"{source} is damaged: it is not JSON") from None
    if not isinstance(content, dict):
        raise ModelError(f"{source} is damaged: it holds no object")
    return content


def _number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is no number in JSON")
    return number


def read_bytes(source: Path, most: float = math.inf) -> bytes:
    """The content of a file of a model; ModelError says why it cannot be read."""
    try:
        about = source.stat()
        if not (stat.S_ISREG(about.st_mode) or stat.S_ISDIR(about.st_mode)):
            raise ModelError(f"{source} is no file")  # a pipe would be waited for
        if about.st_size > most:
            raise ModelError(f"{source} is too large to be a model's description")
        return source.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"there is no {source}") from None
    except OSError as problem:
        raise ModelError(f"cannot read {source}: {problem.strerror}") from None


def check_version(config: Mapping[str, Any], source: Path) -> None:
    """Refuse a description without a version, or from a newer program."""
    version = config.get("version")
    if type(version) is not int or version < 1:
        raise ModelError(f"{source} does not say which version of the format it has")
    if version > FORMAT_VERSION:
        raise ModelError(
            f"{source} has version {version} of the format, and this program reads versions up to "
            f"{FORMAT_VERSION}",
            value=version,
            remedy="update surrogate-toolkit",
        )
