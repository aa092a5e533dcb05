"""`--help` in sections: each option belongs to one, and the options that matter most come first.

@click.command(cls=Command)
@section("Output", out, force)
def command(out, force): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

# in the order of --help; "Method: twisted" is a section of its own below "Method"
SECTIONS = ("What", "Scenario", "Output", "Method", "Tables", "Images", "Advanced")
LAST = SECTIONS[-1]
_MARK = "section"


def section(name: str, *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Decorators of click as one, whose options `--help` lists in this section, in this order."""
    if name.partition(":")[0] not in SECTIONS:
        raise ValueError(f"no section of --help is named {name!r}; have {', '.join(SECTIONS)}")

    def decorate(command: F) -> F:
        made: Any = command
        for option in reversed(options):
            made = option(made)
        for each in made.__click_params__:
            if not hasattr(each, _MARK):
                setattr(each, _MARK, name)
        return made  # type: ignore[no-any-return]

    return decorate


def section_of(option: click.Parameter) -> str:
    """The section in which `--help` lists an option."""
    return str(getattr(option, _MARK, LAST))


class Command(click.Command):
    """A command that lists its options in sections."""

    def get_help_option(self, ctx: click.Context) -> click.Option | None:
        found = super().get_help_option(ctx)
        if found is not None:
            setattr(found, _MARK, "Output")
        return found

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        found: dict[str, list[tuple[str, str]]] = {}
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx)
            if record is not None and isinstance(option, click.Option):
                found.setdefault(section_of(option), []).append(record)
        ranks = {name: i for i, name in enumerate(SECTIONS)}
        for name in sorted(found, key=lambda name: ranks[name.partition(":")[0]]):
            with formatter.section(name.replace(":", "")):
                formatter.write_dl(found[name])
