"""Options that keep one name and one meaning in every command, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from simulators.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_PAIR = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([^=]+?)\s*")

samples = click.option(
    "--samples", "-n", type=int, default=10_000, show_default=True, help="How many trajectories."
)
seed = click.option(
    "--seed", type=int, default=0, show_default=True, help="Same seed, same result."
)
force = click.option("--force", is_flag=True, help="Replace the output if it exists.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress bar and no messages.")
threads = click.option(
    "--threads", type=int, default=None, help="Threads to use [default: all cores]."
)


def out(default: str | None, text: str) -> Callable[[F], F]:
    """--out with the command's own default."""
    return click.option("--out", "-o", default=default, show_default=default is not None, help=text)


def assignments(texts: tuple[str, ...], option: str) -> dict[str, Any]:
    """`S=95,I=5` or `beta=2..3` (repeatable) as {name: number or (low, high)}."""
    read: dict[str, Any] = {}
    for text in texts:
        for part in text.split(","):
            pair = _PAIR.fullmatch(part)
            if pair is None:
                raise InputError(
                    f"{option} {text!r}: write name=number or name=low..high, not {part!r}"
                )
            name, value = pair[1], pair[2]
            if name in read:
                raise InputError(f"{option}: {name!r} is given twice")
            bounds = [_number(bound, part, option) for bound in value.split("..")]
            if len(bounds) > 2:
                raise InputError(f"{option}: {part!r} has more than two bounds")
            read[name] = bounds[0] if len(bounds) == 1 else tuple(bounds)
    return read


def _number(text: str, part: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"{option}: {text.strip()!r} in {part.strip()!r} is not a number"
        ) from None
