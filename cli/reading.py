"""Reading options on the command line, made from the fields of each kind's reading options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.markup import escape

from cli.values import Choice
from constraints.errors import SurrogateError
from surrogate.errors import ModelError
from surrogate.settings import Option, options_of

if TYPE_CHECKING:
    from surrogate.kinds.opening import Opened

F = TypeVar("F", bound=Callable[..., Any])


def options(argument: str, *readings: type, without: tuple[str, ...] = ()) -> Callable[[F], F]:
    """The options of these readings; those that are used come to the command as one argument."""
    known = {name: each for reading in readings for name, each in options_of(reading).items()}
    known = {name: each for name, each in known.items() if name not in without}

    def decorate(command: F) -> F:
        @wraps(command)
        def gathered(**words: Any) -> Any:
            values = {name: words.pop(f"{argument}_{name}") for name in known}
            used = {n: _parsed(known[n], v) for n, v in values.items() if not _unused(v)}
            return command(**{argument: words.pop(argument, {}) | used}, **words)

        made: Any = gathered
        for name, each in reversed(known.items()):
            made = _option(f"{argument}_{name}", each)(made)
        return made  # type: ignore[no-any-return]

    return decorate


def _unused(value: Any) -> bool:
    return value is None or value is False or value == ()


def _option(name: str, about: Option) -> Callable[[Any], Any]:
    if about.default is False:
        return click.option(about.option, name, is_flag=True, help=about.help)
    kind = Choice(about.choices) if about.choices else about.type
    return click.option(
        about.option,
        name,
        type=kind,
        metavar=about.metavar or None,
        multiple=about.repeatable,
        help=about.help,
    )


def _parsed(about: Option, value: Any) -> Any:
    if about.parse is None:
        return value
    try:
        return about.parse(value)
    except ModelError as problem:
        raise problem.at(about.option) from None


def opened(
    path: str, given: Mapping[str, Any], say: Callable[[str], None], *, shared: bool = False
) -> Opened:
    """The data at a path; what was assumed about them is printed, and files are closed at the end
    of the command. `shared`: the options are given for several files."""
    from surrogate.kinds.opening import open_file

    found = open_file(path, given, escaped(say), shared=shared)
    context = click.get_current_context(silent=True)
    if context is not None:
        context.call_on_close(found.close)
    return found


def escaped(say: Callable[[str], None]) -> Callable[[str], None]:
    """The same for texts that are no markup."""
    return lambda text: say(escape(text))


def hint(found: Opened, say: Callable[[str], None]) -> None:
    """Print another way to read these data, if there is one."""
    parts = found.kind.hint(found.data)
    if parts:
        text = SurrogateError("", remedy=parts).render("command").removeprefix("; ")
        say(escape(text))
