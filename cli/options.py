"""Options that keep one name and one meaning in every command, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli import complete, files
from cli.errors import UsageError
from cli.sections import section
from cli.values import Choice, Device, Whole

if TYPE_CHECKING:
    from constraints import Formula, Layout

F = TypeVar("F", bound=Callable[..., Any])

_PAIR = re.compile(r"\s*([^\W\d]\w*)\s*=\s*([^=]+?)\s*")

MAX_THREADS = 1024

samples = section(
    "What",
    click.option(
        "--samples",
        "-n",
        type=Whole(1),
        default=10_000,
        show_default=True,
        help="Number of samples to draw.",
    ),
)
seed = section(
    "What",
    click.option(
        "--seed",
        type=Whole(0),
        default=0,
        show_default=True,
        help="Seed of the random numbers: same seed, same result.",
    ),
)
force = section(
    "Output", click.option("--force", is_flag=True, help="Replace the output if it exists.")
)
as_json = section(
    "Output", click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
)
quiet = section(
    "Output",
    click.option("--quiet", "-q", is_flag=True, help="Print no progress bar and no messages."),
)
threads = section(
    "Advanced",
    click.option(
        "--threads",
        type=Whole(1, MAX_THREADS),
        default=None,
        help="Threads to use [default: all cores].",
    ),
)
device = section(
    "Advanced",
    click.option(
        "--device",
        type=Device(),
        default="cpu",
        show_default=True,
        help="Compute on cpu, cuda or mps.",
    ),
)
where = section(
    "Scenario",
    click.option(
        "--where",
        multiple=True,
        metavar="RULE",
        shell_complete=complete.files,
        help='Rule to satisfy, "forall t: I(t) <= 20" or "alcohol >= 12 and colour = red", or '
        "@file with a rule on each line; repeatable.",
    ),
)
meeting = section(
    "Scenario",
    click.option(
        "--where",
        multiple=True,
        metavar="RULE",
        shell_complete=complete.files,
        help="Compare with those reference samples that satisfy this rule; repeatable.",
    ),
)
bridge = section(
    "Scenario",
    click.option(
        "--bridge",
        multiple=True,
        metavar="S0=95,S25=30",
        help="Values at steps: S25=30, S(25)=30, S@2.5=30, S25=30+-2 or S25=28..32; parameters: "
        "beta=1.5.",
    ),
)
end = section(
    "Advanced",
    click.option(
        "--end",
        type=Choice(["clip", "weak", "strong"]),
        help="Rules that read past the last step: clip to the grid, satisfied there, or violated "
        "there [default: refuse].",
    ),
)


def against(text: str, required: bool = False) -> Callable[[F], F]:
    """--against, the reference data."""
    option = click.option(
        "--against", metavar="DATA", required=required, shell_complete=complete.files, help=text
    )
    return section("What", option)


def out(default: str | None, text: str) -> Callable[[F], F]:
    """--out with the command's own default."""
    option = click.option(
        "--out",
        "-o",
        default=default,
        show_default=default is not None,
        shell_complete=complete.files,
        help=text,
    )
    return section("Output", option)


def assignments(texts: tuple[str, ...], option: str) -> dict[str, Any]:
    """`S=95,I=5` or `beta=2..3` (repeatable) as {name: number or (low, high)}."""
    read: dict[str, Any] = {}
    for text in texts:
        for part in text.split(","):
            pair = _PAIR.fullmatch(part)
            if pair is None:
                raise UsageError(
                    f"{option} {text!r}: {part!r} is no assignment",
                    value=part,
                    remedy="write name=number or name=low..high, separated by commas",
                )
            name, value = pair[1], pair[2]
            if name in read:
                raise UsageError(
                    f"{option}: {name!r} is given twice", value=name, remedy="give it once"
                )
            bounds = [_number(bound, part, option) for bound in value.split("..")]
            if len(bounds) > 2:
                raise UsageError(
                    f"{option}: {part!r} has more than two bounds",
                    value=part,
                    remedy="write name=low..high",
                )
            read[name] = bounds[0] if len(bounds) == 1 else tuple(bounds)
    return read


def _number(text: str, part: str, option: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"{option}: {text.strip()!r} in {part.strip()!r} is not a number",
            value=text.strip(),
            remedy="write name=number or name=low..high, without units",
        ) from None


def formulas_in(texts: tuple[str, ...], option: str) -> dict[str, Formula]:
    """The rules of an option, those of files included, under their text."""
    from constraints import parse

    found = [_placed(place, parse, text) for place, text in _written(texts, option)]
    return {str(rule): rule for rule in found}


def check_syntax(where: tuple[str, ...], bridges: tuple[str, ...]) -> None:
    """Refuse rules that cannot be parsed, before a model or data are loaded."""
    import constraints

    for place, rule in _written(where):
        _placed(place, constraints.parse, rule)
    for text in bridges:
        _placed("--bridge", constraints.bridge, text)


def formulas(
    where: tuple[str, ...], bridges: tuple[str, ...], layout: Layout
) -> dict[str, Formula]:
    """The rules of --where and --bridge under their text, each once."""
    from constraints import bridge, parse
    from constraints.compile.names import with_explicit_steps

    series = [signal.name for signal in layout.signals if signal.kind == "series"]
    columns = [signal.name for signal in layout.signals if signal.kind == "column"]
    if bridges and not series:
        raise UsageError(
            "--bridge states values at steps of trajectories, and these data have no steps",
            value=bridges,
            remedy="use --where 'COLUMN = 11'",
        )
    found = [
        _placed(place, lambda text: with_explicit_steps(parse(text), layout), rule)
        for place, rule in _written(where)
    ]
    found += [
        _placed("--bridge", lambda text: bridge(text, series, columns), text) for text in bridges
    ]
    return {str(rule): rule for rule in found}


def _written(where: tuple[str, ...], option: str = "--where") -> list[tuple[str, str]]:
    """(place, text) of each rule, those of files included."""
    every: list[tuple[str, str]] = []
    for text in where:
        every += files.read_rules(text[1:]) if text.startswith("@") else [(option, text)]
    return every


def _placed(place: str, read: Callable[[str], Formula], text: str) -> Formula:
    """A rule as `read` understands it; its errors name the place it was written in."""
    from constraints import FormulaError

    try:
        return read(text)
    except FormulaError as problem:
        raise problem.at(place) from None


def compute_on(device: str, threads: int | None) -> None:
    """Check that --device is there, and keep torch to --threads."""
    import torch

    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError) as problem:
        reason = str(problem).splitlines()[0]
        raise UsageError(
            f"--device {device}: {reason}", value=device, remedy="use --device cpu"
        ) from None
    if threads is not None:
        torch.set_num_threads(threads)
