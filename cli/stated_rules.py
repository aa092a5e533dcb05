"""Options about the rules of training data: declared ones, and those that train finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape

from cli import complete
from cli.options import formulas_in
from cli.sections import section

if TYPE_CHECKING:
    from constraints import Formula
    from surrogate.kinds.rule_options import StatedRules

options = section(
    "Rules",
    click.option(
        "--rule",
        multiple=True,
        metavar="RULE",
        shell_complete=complete.files,
        help='Rule that all data obey and samples shall, "Low <= Close" (at every step), or @file '
        "with a rule on each line; repeatable.",
    ),
    click.option(
        "--no-rule",
        multiple=True,
        metavar="NAME",
        help="Refuse a rule that train found in the data and lists by this name; repeatable.",
    ),
    click.option(
        "--no-found-rules",
        is_flag=True,
        help="Search the data for no rules: orders (A <= B), variables that only rise or fall, "
        "linear identities (count = casual + registered).",
    ),
)


def declared(texts: tuple[str, ...]) -> dict[str, Formula] | None:
    """The rules of --rule, those of files included, under their text."""
    return formulas_in(texts, "--rule") or None


def tell(rules: StatedRules, say: Console) -> None:
    """List the rules besides those of a network, how found ones are refused and likely ones
    declared."""
    if rules.declared:
        say.print(escape(f"declared: {'; '.join(rules.declared)}"))
    if rules.found:
        say.print(escape(f"found in the data: {'; '.join(rules.found)}"))
        say.print("refuse one with --no-rule NAME, all with --no-found-rules")
    if hint := rules.hint("command"):
        say.print(escape(hint), soft_wrap=True)
