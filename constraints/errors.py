"""Errors that a person can act on: what is wrong, which values are allowed, what to do.

`SurrogateError` is the base of every error of the toolkit, that of `simulators` and `surrogate`
included: it lives here because both other packages may import this module, and it imports none. An
error carries its parts; `str(error)` renders them for Python callers, `error.render("command")`
for the command line, where a setting is an option and a function a command.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, Literal, Self

Edge = Literal["python", "command"]  # who reads a message
MAX_LISTED = 40  # allowed values in a message


@dataclass(frozen=True)
class Setting:
    """An argument in Python, `particles=8000`; an option on the command line, `--particles 8000`.

    A `value` of None leaves the value open: `particles=...`, `--particles`.
    """

    name: str
    value: object = None

    def render(self, edge: Edge) -> str:
        option = "--" + self.name.replace("_", "-")
        if edge == "python":
            return f"{self.name}={'...' if self.value is None else repr(self.value)}"
        if self.value is False:
            return "--no-" + option[2:]
        return option if self.value is None or self.value is True else f"{option} {self.value}"


@dataclass(frozen=True)
class Action:
    """What to call in Python, and what to type on the command line, for the same thing."""

    python: str
    command: str

    def render(self, edge: Edge) -> str:
        return self.python if edge == "python" else self.command


Remedy = str | Setting | Action | Sequence[str | Setting | Action]


class SurrogateError(Exception):
    """A problem that a person can act on.

    problem: what is wrong, with the bad value in it. value: that value itself. allowed: the legal
    values. remedy: what to do, as text with `Setting` and `Action` parts where Python and the
    command line spell it differently.
    """

    exit_code: ClassVar[int] = 1  # of the command line: see `surrogate --help`

    def __init__(
        self,
        problem: str,
        *,
        value: object = None,
        allowed: Iterable[str] = (),
        remedy: Remedy = (),
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.value = value
        self.allowed = tuple(allowed)
        single = isinstance(remedy, (str, Setting, Action))
        self.remedy: tuple[str | Setting | Action, ...] = (remedy,) if single else tuple(remedy)  # type: ignore[arg-type, assignment]

    def render(self, edge: Edge = "python") -> str:
        """The whole message, for Python callers or for the command line."""
        parts = [self.problem]
        if self.allowed:
            parts.append(f" (have: {_comma_separated(self.allowed)})")
        if self.remedy:
            rendered = (
                part if isinstance(part, str) else part.render(edge) for part in self.remedy
            )
            parts.append(f"; {''.join(rendered)}")
        return "".join(parts)

    def __str__(self) -> str:
        return self.render()

    def at(self, place: str) -> Self:
        """The same error with a location before its problem: a file, a formula, an option."""
        return type(self)(
            f"{place}: {self.problem}", value=self.value, allowed=self.allowed, remedy=self.remedy
        )


class ConstraintError(SurrogateError, ValueError):
    """Base of the errors of `constraints`."""

    exit_code = 2


class FormulaError(ConstraintError):
    """A formula that cannot be parsed, or that has no meaning for these signals.

    `place`: the text and the position of the problem in it; the line is shown below the message
    with a caret.
    """

    place: tuple[str, int] | None = None

    def pointing(self, text: str, position: int) -> Self:
        """This error, with a caret at a position of the text unless it already has one."""
        if self.place is None:
            self.place = text, position
        return self

    def at(self, place: str) -> Self:
        found = super().at(place)
        found.place = self.place
        return found

    def render(self, edge: Edge = "python") -> str:
        message = super().render(edge)
        return message if self.place is None else f"{message}\n{_line_with_caret(*self.place)}"


class ImpossibleError(FormulaError):
    """A formula that no data within the known bounds can satisfy."""

    exit_code = 3


class DataError(FormulaError):
    """Data on which a formula cannot be evaluated: missing signals, wrong shapes, NaN."""


def unknown(
    kind: str, name: str, known: Iterable[str], remedy: Remedy = (), where: str = ""
) -> FormulaError:
    """Error for an unknown name, with the nearest known one.

    `where`: the context, such as " in a conservation law".
    """
    names = list(known)
    problem = misspelt(kind, name, names) + where
    if not names:
        return FormulaError(f"{problem} (have: none)", value=name, remedy=remedy)
    allowed = [quoted(each) for each in sorted(names)]
    return FormulaError(problem, value=name, allowed=allowed, remedy=remedy)


def misspelt(kind: str, name: str, known: Iterable[str]) -> str:
    """The problem of an unknown name: `unknown signal 'Q'; did you mean 'q'?`."""
    near = nearest(name, known)
    shown = repr(near) if near is not None and near.isidentifier() else f'"{near}"'
    hint = "" if near is None else f"; did you mean {shown}?"
    return f"unknown {kind} {name!r}{hint}"


def nearest(name: str, known: Iterable[str], similarity: float = 0.5) -> str | None:
    """The known name most similar to `name`, ignoring case; None if none reaches `similarity`."""
    lower = {candidate.lower(): candidate for candidate in sorted(known)}
    near = get_close_matches(name.lower(), lower, n=1, cutoff=similarity)
    return lower[near[0]] if near else None


def quoted(name: str) -> str:
    """A name as formulas write it: in quotation marks unless it is an identifier."""
    return name if name.isidentifier() else f'"{name}"'


def _comma_separated(names: Sequence[str]) -> str:
    return ", ".join(names[:MAX_LISTED]) + ", ..." * (len(names) > MAX_LISTED)


def caret(
    text: str, position: int, problem: str, remedy: Remedy = (), *, value: object = None
) -> FormulaError:
    """An error about a position of `text`: its line is shown with a caret below the position."""
    return FormulaError(problem, value=value, remedy=remedy).pointing(text, position)


def _line_with_caret(text: str, position: int) -> str:
    """The line of `text` that holds `position`, and a caret below the position."""
    position = min(max(position, 0), len(text))
    start = text.rfind("\n", 0, position) + 1
    stop = text.find("\n", position)
    line = text[start : stop if stop >= 0 else len(text)]
    column = position - start
    if len(line) > 100:  # show a window around the position
        left = max(0, column - 60)
        line, column = ("..." if left else "") + line[left : left + 94], column - left
        column += 3 if left else 0
    shown = "".join(c if c.isprintable() else " " for c in line)
    return f"  {shown}\n  {' ' * column}^"
