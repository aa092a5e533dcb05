"""Options of `surrogate sample` that are made from the settings of the registered methods.

A setting `particles` is the option `--particles`; a flag that is on by default, `consistency`, is
`--no-consistency`. Options that are not given are None.

`--help` lists the settings of all methods below `--method`, those of several methods in a section
of their own, and the others by method.
"""

from __future__ import annotations

from typing import Any

import click

from cli.errors import UsageError
from cli.sections import Command, section_of
from cli.values import Choice
from surrogate.guidance.catalogue import Listed, catalogue
from surrogate.guidance.method import AUTO, DEFAULT_METHOD, Method, method_names, methods

WITHOUT_SCENARIO = ("steps",)  # settings that plain draws have too
MIN_PLAIN_STEPS = 2  # of plain draws
SHARED_SECTION = "Method: several"  # the section of settings that some methods share
NEEDS_SCENARIO = "add --bridge S25=30 or --where 'max(I) <= 20'"


class MethodCommand(Command):
    """A command with `--method` and an option for each setting of a method."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        fixed = super().get_params(ctx)
        known = {each.name for each in fixed}
        found = [_option(each) for each in catalogue() if each.name not in known]
        own = [each for each in fixed if section_of(each) == "Method"]
        others = [each for each in fixed if each not in own]
        return [*others, _method_option(), *own, *found]

    def about_sections(self) -> dict[str, str]:
        return {SHARED_SECTION: "Settings that some of the methods share."} | {
            f"Method: {method.name}": _about(method) for method in methods()
        }


def _about(method: Method[Any]) -> str:
    """What a method does, and which of the shared settings it has."""
    own = [each for each in catalogue() if method.name in each.owners]
    shared = [spelled(each) for each in own if _section(each) == SHARED_SECTION]
    text = f"{method.summary[0].upper()}{method.summary[1:]}."
    return text + (f" Takes {', '.join(shared)}." if shared else "")


def _method_option() -> click.Option:
    made = click.Option(
        ["--method"],
        type=Choice(method_names()),
        default=AUTO,
        show_default=True,
        help="How a scenario is sampled: see the sections below. auto chooses rejection where "
        "plain draws meet the scenario often enough.",
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
        words["type"] = Choice(about.choices)
    else:
        words["type"] = about.kind
        words["metavar"] = about.metavar or None
    if about.kind is bool and about.default:
        words["help"] = f"Turn off: {each.help[0].lower()}{each.help[1:]}"
    made = click.Option([spelled(each), each.name], **words)
    return _placed(made, _section(each))


def _section(each: Listed) -> str:
    if each.common:
        return "Method"
    return SHARED_SECTION if len(each.owners) > 1 else f"Method: {each.owners[0]}"


def _placed(option: click.Option, name: str) -> click.Option:
    setattr(option, "section", name)  # noqa: B010 - read by cli.sections
    return option


def spelled(each: Listed) -> str:
    """The option of a setting: --particles, --no-consistency."""
    on = each.option.kind is bool and each.option.default
    return f"--no-{each.name}" if on else each.option.option


def settings_given(options: dict[str, Any], scenario: bool) -> dict[str, Any]:
    """The settings among the values of a command's options, with the method; values are checked.

    UsageError for one that has no effect: of another method, or without a scenario.
    """
    method = options["method"]
    source = click.get_current_context().get_parameter_source("method")
    if not scenario and source == click.core.ParameterSource.COMMANDLINE:
        raise UsageError("--method needs a scenario", value=method, remedy=NEEDS_SCENARIO)
    used = DEFAULT_METHOD if method == AUTO else method
    given: dict[str, Any] = {}
    for each in catalogue():
        value = options.get(each.name)
        if value is None:
            continue
        if not scenario and each.name not in WITHOUT_SCENARIO:
            raise UsageError(
                f"{spelled(each)} needs a scenario", value=value, remedy=NEEDS_SCENARIO
            )
        if scenario and used not in each.owners:
            raise UsageError(
                f"{spelled(each)} is no setting of --method {method}",
                value=value,
                remedy=f"choose --method {_either(each.owners)}, or leave out {spelled(each)}",
            )
        if scenario:
            each.options[used].check(value, spelled(each))
        elif value < MIN_PLAIN_STEPS:
            raise UsageError(
                f"{spelled(each)} must be a whole number >= {MIN_PLAIN_STEPS}, not {value}",
                value=value,
            )
        given[each.name] = value
    return {"method": method, **given} if scenario else given


def _either(names: list[str]) -> str:
    """a, b or c"""
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
