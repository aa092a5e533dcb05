"""The vocabulary of the language: reserved words, and built-in functions besides aggregates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from constraints.ast.aggregates import aggregates

NOW, END = "now", "end"
_CONNECTIVES = {"and", "or", "not", "xor", "implies", "iff", "in", "true", "false"}
_TEMPORAL_WORDS = {"always", "eventually", "historically", "once", "next", "previous"}
_TEMPORAL_WORDS |= {"until", "weak", "release", "since", "trigger"}
RESERVED_WORDS = frozenset({*_CONNECTIVES, *_TEMPORAL_WORDS, "forall", "exists", END, NOW})
IDENTIFIER = re.compile(r"[^\W\d]\w*")
POINTWISE: Mapping[str, int] = {"abs": 1, "exp": 1, "log": 1, "sqrt": 1, "pow": 2}  # arities
SERIES = ("delta", "cumsum")  # functions from series to series
ARITHMETIC = ("+", "neg", "*", "/", "max", "min", *POINTWISE)  # elementwise operators
REACHES = "reaches"  # the function (condition, step, step) -> formula
PIXEL = "pixel"  # the function (image, row, column) -> number


def built_in() -> tuple[str, ...]:
    """The functions of the language, aggregates included."""
    return (*POINTWISE, *aggregates(), *SERIES)


def is_built_in(name: object) -> bool:
    return name in POINTWISE or name in SERIES or name in aggregates()


def is_variable(name: object) -> bool:
    """Whether a bound variable may have that name."""
    plain = isinstance(name, str) and IDENTIFIER.fullmatch(name) is not None
    return plain and name not in RESERVED_WORDS - {NOW} and not is_built_in(name)
