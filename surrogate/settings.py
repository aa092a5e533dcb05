"""Settings as dataclass fields that carry their own help, bounds and choices.

A guidance method and a reader of files both declare their settings as a dataclass of `option`s.
From these fields come the keywords of the Python function, the options of the command line with
their help, and the check of values; there is no second list. This module imports no torch.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any, TypeVar

from constraints.errors import misspelt
from surrogate.errors import ModelError

S = TypeVar("S")

KEY = "surrogate option"  # of the metadata of a field


@dataclass(frozen=True)
class Option:
    """A setting: what it does, and which values it takes.

    `low` and `high` belong to the allowed values, `above` does not. `flag` is the name on the
    command line where that is not the field's own. `parse` turns the text of the command line into
    the value; a `repeatable` option hands it a tuple of texts. `shown` is the default in words,
    where the value itself does not say it.
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
    above: float | None = None
    shown: str = ""

    @property
    def kind(self) -> Any:
        """The type of values: bool, int, float or str."""
        return self.type or (str if self.default is None else self.default.__class__)

    @property
    def default_text(self) -> str:
        """The default in words."""
        if self.shown or isinstance(self.default, (bool, str)):
            return self.shown or str(self.default)
        return f"{self.default:,}" if isinstance(self.default, int) else f"{self.default:g}"

    @property
    def option(self) -> str:
        """The option of the command line: --skip-damaged."""
        return self.flag or "--" + self.name.replace("_", "-")

    def check(self, value: Any, name: str = "") -> None:
        """ModelError for a value out of bounds or not among the choices; None is always fine.

        `name`: what the error calls the setting, by default its own name.
        """
        name = name or self.name
        if value is None:
            return
        if self.choices and value not in self.choices:
            choices = [*map(str, self.choices)]
            raise ModelError(misspelt(name, str(value), choices), value=value, allowed=choices)
        if self.kind is bool and not isinstance(value, bool):
            raise ModelError(f"{name} must be True or False, not {value!r}", value=value)
        if self.low is None and self.high is None and self.above is None:
            return
        number = isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
        if self.kind is int:
            number = number and isinstance(value, Integral)
        if number and self._within(float(value)):
            return
        what = "a whole number" if self.kind is int else "a finite number"
        raise ModelError(f"{name} must be {what} {self._bounds}, not {value!r}", value=value)

    def _within(self, value: float) -> bool:
        return (
            (self.low is None or value >= self.low)
            and (self.high is None or value <= self.high)
            and (self.above is None or value > self.above)
        )

    @property
    def _bounds(self) -> str:
        """from 3 to 10,000"""
        if self.above is not None:
            return f"> {self.above:g}" + ("" if self.high is None else f", at most {self.high:,}")
        if self.low is not None and self.high is not None:
            return f"from {self.low:,} to {self.high:,}"
        return f"of at most {self.high:,}" if self.low is None else f">= {self.low:,}"


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
    above: float | None = None,
    shown: str = "",
) -> Any:
    """A field of a settings dataclass. `type` is what the command line reads where the default is
    None: int, float or str."""
    about = Option(
        "",
        default,
        help,
        low,
        high,
        tuple(choices),
        metavar,
        flag,
        parse,
        type,
        repeatable,
        above,
        shown,
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
