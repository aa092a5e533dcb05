"""`--help` in sections: each option belongs to one, and the options that matter most come first.

@click.command(cls=Command)
@section("Output", out, force)
def command(out, force): ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from cli.errors import UsageError
from constraints.errors import nearest

F = TypeVar("F", bound=Callable[..., Any])

# in the order of --help; "Method: twisted" is a section of its own below "Method"
HELP_SECTIONS = (
    "What",
    "Scenario",
    "Rules",
    "Output",
    "Observed data",
    "Trajectories",
    "Method",
    "Tables",
    "Images",
    "Advanced",
)
DEFAULT_SECTION = HELP_SECTIONS[-1]
_MARK = "section"


def section(name: str, *options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Decorators of click as one, whose options `--help` lists in this section, in this order."""
    if name.partition(":")[0] not in HELP_SECTIONS:
        raise ValueError(f"no section of --help is named {name!r}; have {', '.join(HELP_SECTIONS)}")

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
    return str(getattr(option, _MARK, DEFAULT_SECTION))


class Command(click.Command):
    """A command that lists its options in sections.

    `about_sections`: a text that a section opens with, by the section's name.
    """

    def about_sections(self) -> dict[str, str]:
        return {}

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as problem:
            options = (each for each in self.get_params(ctx) if isinstance(each, click.Option))
            known = [name for each in options if not each.hidden for name in each.opts]
            near = nearest(problem.option_name, known)
            raise UsageError(
                f"unknown option {problem.option_name!r}",
                value=problem.option_name,
                remedy=("" if near is None else f"did you mean {near!r}? ")
                + f"{ctx.command_path} --help lists all",
            ) from None

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
        texts = self.about_sections()
        ranks = {name: i for i, name in enumerate(HELP_SECTIONS)}
        order = sorted(
            {**texts, **found}, key=lambda name: (ranks[name.partition(":")[0]], ":" in name)
        )
        for name in order:
            with formatter.section(name):
                if name in texts:
                    formatter.write_text(texts[name])
                if name in found:
                    formatter.write_dl(found[name])
