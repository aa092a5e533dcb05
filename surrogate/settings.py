"""Settings as dataclass fields that carry their own help, bounds and choices.

A guidance method and a reader of files both declare their settings as a dataclass of `option`s.
From these fields come the keywords of the Python function, the options of the command line with
their help, and the check of values; there is no second list. This module imports no torch.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, TypeVar

from surrogate.errors import ModelError

S = TypeVar("S")

KEY = "surrogate option"  # of the metadata of a field


@dataclass(frozen=True)
class Option:
    """A setting: what it does, and which values it takes.

    `flag` is the name on the command line where that is not the field's own. `parse` turns the text
    of the command line into the value; a `repeatable` option hands it a tuple of texts.
    """

    name: str
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    metavar: str = ""
    flag: str = ""
    parse: Callable[[Any], Any] | None = None
    type: type | None = None
    repeatable: bool = False

    @property
    def option(self) -> str:
        """The option of the command line: --skip-damaged."""
        return self.flag or "--" + self.name.replace("_", "-")

    def check(self, value: Any) -> None:
        """ModelError for a value out of bounds or not among the choices; None is always fine."""
        if value is None:
            return
        if self.choices and value not in self.choices:
            raise ModelError(
                f"{self.name} is not {value!r}", value=value, allowed=map(str, self.choices)
            )
        if self.low is None and self.high is None:
            return
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        low = -float("inf") if self.low is None else self.low
        high = float("inf") if self.high is None else self.high
        if not number or not low <= value <= high:
            if self.high is None:
                bounds = f"{self.low:g} or more"
            elif self.low is None:
                bounds = f"at most {self.high:g}"
            else:
                bounds = f"{self.low:g} to {self.high:g}"
            raise ModelError(f"{self.name} must be {bounds}, not {value!r}", value=value)


def option(
    default: Any,
    *,
    help: str,
    low: float | None = None,
    high: float | None = None,
    choices: Iterable[str] = (),
    metavar: str = "",
    flag: str = "",
    parse: Callable[[Any], Any] | None = None,
    type: type | None = None,
    repeatable: bool = False,
) -> Any:
    """A field of a settings dataclass. `type` is what the command line reads where the default is
    None: int, float or str."""
    about = Option(
        "", default, help, low, high, tuple(choices), metavar, flag, parse, type, repeatable
    )
    return dataclasses.field(default=default, metadata={KEY: about})


def options_of(settings: type) -> dict[str, Option]:
    """The options that a settings dataclass declares, by name."""
    return {
        field.name: dataclasses.replace(field.metadata[KEY], name=field.name)
        for field in dataclasses.fields(settings)
        if KEY in field.metadata
    }


def made(settings: type[S], given: Mapping[str, Any], what: str) -> S:
    """Settings from keywords; ModelError for one that `what` does not have, with the nearest."""
    known = options_of(settings)
    for name, value in given.items():
        if name not in known:
            near = get_close_matches(name, known, n=1)
            raise ModelError(
                f"{what} has no setting {name!r}",
                value=name,
                allowed=known,
                remedy=f"did you mean {near[0]!r}?" if near else (),
            )
        known[name].check(value)
    return settings(**given)
