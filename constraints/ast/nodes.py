"""Syntax trees: immutable nodes that know their structure (`key`), their children and their depth.

Equality and hashing are structural and go through `key`, a nested tuple, because `==` between
terms builds an equation (see `terms`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from constraints.errors import FormulaError

DEEPEST = 80  # nesting accepted: far beyond what a person writes, far below Python's own limit


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A frozen piece of syntax. `key` identifies it; fields marked compare=False do not count."""

    __array_ufunc__ = None  # numpy leaves `array <= term` to us

    def __post_init__(self) -> None:
        values = [(field.compare, getattr(self, field.name)) for field in fields(self)]
        depth = 1 + max((deepest(value) for _, value in values), default=0)
        if depth > DEEPEST:
            raise FormulaError(
                f"the formula nests more than {DEEPEST} levels deep; write it as several rules"
            )
        key = (type(self).__name__, *(key_of(value) for counts, value in values if counts))
        self.__dict__.update(_depth=depth, _key=key, _hash=hash(key))

    @property
    def depth(self) -> int:
        depth: int = self.__dict__["_depth"]
        return depth

    @property
    def key(self) -> tuple[Any, ...]:
        key: tuple[Any, ...] = self.__dict__["_key"]
        return key

    def __hash__(self) -> int:
        stored: int = self.__dict__["_hash"]
        return stored

    def __str__(self) -> str:
        from constraints.language.printer import text

        return text(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}>"

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one."""
        for field in fields(self):
            value = getattr(self, field.name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Node):
                    yield item


def key_of(value: Any) -> Any:
    """What identifies a field's value: a node by its key, a tuple by those of its items."""
    if isinstance(value, Node):
        return value.key
    if isinstance(value, tuple):
        return tuple(key_of(item) for item in value)
    return value


def deepest(value: Any) -> int:
    if isinstance(value, Node):
        return value.depth
    if isinstance(value, tuple):
        return max((deepest(item) for item in value), default=0)
    return 0
