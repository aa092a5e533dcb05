"""Options that keep one name and one meaning in every command, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli import files
from simulators.errors import InputError

if TYPE_CHECKING:
    from constraints import Formula, Layout

F = TypeVar("F", bound=Callable[..., Any])

_PAIR = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([^=]+?)\s*")

samples = click.option(
    "--samples", "-n", type=int, default=10_000, show_default=True, help="How many to draw."
)
seed = click.option(
    "--seed", type=int, default=0, show_default=True, help="Same seed, same result."
)
force = click.option("--force", is_flag=True, help="Replace the output if it exists.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
quiet = click.option("--quiet", "-q", is_flag=True, help="No progress bar and no messages.")
MOST_THREADS = 1024

threads = click.option(
    "--threads", type=int, default=None, help="Threads to use [default: all cores]."
)
where = click.option(
    "--where",
    multiple=True,
    metavar="RULE",
    help='A rule, "forall t: I(t) <= 20" or "alcohol >= 12 and colour = red", or @file with a rule '
    "a line; repeatable.",
)
meeting = click.option(
    "--where",
    multiple=True,
    metavar="RULE",
    help="Compare with those samples of the reference that meet it, as DATA of a scenario do.",
)
bridge = click.option(
    "--bridge",
    multiple=True,
    metavar="S0=95,S25=30",
    help="Values at steps: S25=30, S(25)=30, S@2.5=30, S25=30+-2 or S25=28..32.",
)
end = click.option(
    "--end",
    type=click.Choice(["clip", "weak", "strong"]),
    help="Where a rule reads past the last step: only steps that exist, met, or not met "
    "[default: refuse].",
)
device = click.option("--device", default="cpu", show_default=True, help="cpu or cuda.")


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


def formulas(
    where: tuple[str, ...], bridges: tuple[str, ...], layout: Layout
) -> dict[str, Formula]:
    """The rules of --where and --bridge under their text, each once."""
    from constraints import FormulaError, bridge, parse
    from constraints.ast.walk import spelled_out

    series = [signal.name for signal in layout.signals if signal.kind == "series"]
    if bridges and not series:
        raise InputError(
            "--bridge is for trajectories, values at steps; of rows: --where 'COLUMN = 11'"
        )
    found: list[Formula] = []
    for text in where:
        written = files.read_rules(text[1:]) if text.startswith("@") else [("--where", text)]
        for place, rule in written:
            try:
                found.append(spelled_out(parse(rule), layout))
            except FormulaError as problem:
                raise FormulaError(f"{place}: {problem}") from None
    for text in bridges:
        try:
            found.append(bridge(text, series))
        except FormulaError as problem:
            raise FormulaError(f"--bridge: {problem}") from None
    return {str(rule): rule for rule in found}


def compute_on(device: str, threads: int | None) -> None:
    """Check --device, and keep torch to --threads."""
    import torch

    kinds = ("cpu", "cuda", "mps")
    if device.split(":")[0] not in kinds:
        raise InputError(f"--device is {', '.join(kinds)} (or cuda:1), not {device!r}")
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise InputError(f"--device {device}: {reason}") from None
    if threads is not None:
        if not 1 <= threads <= MOST_THREADS:
            raise InputError(f"--threads must be 1 to {MOST_THREADS}, not {threads}")
        torch.set_num_threads(threads)
