"""Words that the language reserves, and the functions it has besides aggregates."""

from __future__ import annotations

import re
from collections.abc import Mapping

from constraints.ast.aggregates import aggregates

NOW, END = "now", "end"
WORDS = frozenset({"and", "or", "not", "xor", "implies", "iff", "in", "true", "false", END, NOW})
WORDS |= {"forall", "exists", "always", "eventually", "historically", "once", "next", "previous"}
WORDS |= {"until", "weak", "release", "since", "trigger"}
IDENTIFIER = re.compile(r"[^\W\d]\w*")
POINTWISE: Mapping[str, int] = {"abs": 1, "exp": 1, "log": 1, "sqrt": 1, "pow": 2}  # arities
SERIES = ("delta", "cumsum")  # series in, series out
ARITHMETIC = ("+", "neg", "*", "/", "max", "min", *POINTWISE)  # place by place
PIXEL = "pixel"  # (image, row, column): one number


def built_in() -> tuple[str, ...]:
    """The functions of the language, aggregates included."""
    return (*POINTWISE, *aggregates(), *SERIES)


def is_built_in(name: object) -> bool:
    return name in POINTWISE or name in SERIES or name in aggregates()


def is_variable(name: object) -> bool:
    """Whether a bound variable may have that name."""
    plain = isinstance(name, str) and IDENTIFIER.fullmatch(name) is not None
    return plain and name not in WORDS - {NOW} and not is_built_in(name)
