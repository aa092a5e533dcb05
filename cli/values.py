"""Types of option values: choices, whole numbers and finite numbers, checked while they are parsed.

A bad value is refused before a command runs, with the option, the value and the legal values. The
nearest choice is named.
"""

from __future__ import annotations

import math
from typing import Any

import click

from cli.errors import UsageError, unknown

DEVICES = ("cpu", "cuda", "mps")


class Choice(click.Choice[str]):
    """One of several words; the error for any other names the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value not in self.choices:
            raise unknown(_spelled(param), str(value), self.choices)
        return str(value)


class Whole(click.ParamType[int]):
    """A whole number from `low` to `high`."""

    name = "integer"

    def __init__(self, low: int, high: int | None = None) -> None:
        self.low, self.high = low, high

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            number = int(value)
        except ValueError:
            number = None
        if number is None or number < self.low or (self.high is not None and number > self.high):
            legal = f">= {self.low}" if self.high is None else f"from {self.low} to {self.high:,}"
            shown = repr(value) if number is None else value
            raise UsageError(
                f"{_spelled(param)} must be a whole number {legal}, not {shown}", value=value
            )
        return number


class Positive(click.ParamType[float]):
    """A finite number > 0."""

    name = "float"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not 0 < number < math.inf:
            raise UsageError(
                f"{_spelled(param)} must be a finite number > 0, not {value!r}", value=value
            )
        return number


class Device(click.ParamType[str]):
    """A device of torch: cpu, cuda, cuda:1 or mps; whether it is there is found out by torch."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        kind, _, number = str(value).partition(":")
        if kind not in DEVICES or (number and not number.isdigit()):
            raise unknown(_spelled(param), str(value), (*DEVICES, "cuda:1"))
        return str(value)


def _spelled(param: click.Parameter | None) -> str:
    """--method; shell, for an argument SHELL."""
    if param is None:
        return "value"
    return max(param.opts, key=len)
