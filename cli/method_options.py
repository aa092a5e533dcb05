"""Options of `surrogate sample` that are made from the settings of the registered methods.

A setting `particles` is the option `--particles`; a flag that is on by default, `consistency`, is
`--no-consistency`. Options that are not given are None.
"""

from __future__ import annotations

from typing import Any

import click

from cli.errors import UsageError
from cli.sections import Command, section_of
from surrogate.guidance.catalogue import Listed, catalogue
from surrogate.guidance.method import AUTO, DEFAULT_METHOD, method_names, methods

WITHOUT_SCENARIO = ("steps",)  # settings that plain draws have too


class MethodCommand(Command):
    """A command with `--method` and an option for each setting of a method."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        fixed = super().get_params(ctx)
        known = {each.name for each in fixed}
        found = [_option(each) for each in catalogue() if each.name not in known]
        # the options of methods follow --method
        first = sum(section_of(each) in ("What", "Scenario", "Output") for each in fixed)
        return [*fixed[:first], _method_option(), *found, *fixed[first:]]


def _method_option() -> click.Option:
    summaries = "; ".join(f"{method.name} - {method.summary}" for method in methods())
    made = click.Option(
        ["--method"],
        type=click.Choice(method_names()),
        default=AUTO,
        show_default=True,
        help=f"How a scenario is sampled. {summaries}.",
    )
    return _placed(made, "Method")


def _option(each: Listed) -> click.Option:
    about = each.option
    words: dict[str, Any] = {
        "default": None,
        "help": f"{each.help}  [default: {each.default_text}]",
    }
    if about.kind is bool:
        words |= {"is_flag": True, "flag_value": not about.default, "help": each.help}
    elif about.choices:
        words["type"] = click.Choice(about.choices)
    else:
        words["type"] = about.kind
        words["metavar"] = about.metavar or None
    if about.kind is bool and about.default:
        words["help"] = f"Turn off: {each.help[0].lower()}{each.help[1:]}"
    made = click.Option([spelled(each), each.name], **words)
    return _placed(made, "Method" if each.common else f"Method: {', '.join(each.owners)}")


def _placed(option: click.Option, name: str) -> click.Option:
    setattr(option, "section", name)  # noqa: B010 - read by cli.sections
    return option


def spelled(each: Listed) -> str:
    """The option of a setting: --particles, --no-consistency."""
    on = each.option.kind is bool and each.option.default
    return f"--no-{each.name}" if on else each.option.option


def settings_given(options: dict[str, Any], scenario: bool) -> dict[str, Any]:
    """The settings among the values of a command's options, with the method.

    UsageError for one that has no effect: of another method, or of no scenario.
    """
    method = options["method"]
    source = click.get_current_context().get_parameter_source("method")
    if not scenario and source == click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--method needs a scenario: add --bridge or --where")
    given: dict[str, Any] = {}
    for each in catalogue():
        value = options.get(each.name)
        if value is None:
            continue
        if not scenario and each.name not in WITHOUT_SCENARIO:
            raise UsageError(f"{spelled(each)} needs a scenario: add --bridge or --where")
        if scenario and (DEFAULT_METHOD if method == AUTO else method) not in each.owners:
            owners = " or ".join(f"--method {name}" for name in each.owners)
            raise UsageError(f"{spelled(each)} belongs to {owners}, not to --method {method}")
        given[each.name] = value
    return {"method": method, **given} if scenario else given
