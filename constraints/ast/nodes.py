"""Syntax trees: immutable nodes that know their structure (`key`), their children and their depth.

Equality and hashing are structural and use `key`, a nested tuple, because `==` between terms
builds an equation (see `terms`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import singledispatch
from html import escape
from math import isfinite
from typing import TYPE_CHECKING, Any, ClassVar

from constraints.errors import FormulaError

if TYPE_CHECKING:
    from constraints.ast.formulas import Formula

MAX_DEPTH = 80  # levels of nesting: more than a person writes, below Python's recursion limit
REPR_LENGTH = 180  # characters of a formula in its repr


@singledispatch
def as_text(node: object) -> str:
    """The text of a node; `printer` registers how, when the package `ast` is loaded."""
    raise TypeError(f"{type(node).__name__} is not a node that prints")


@dataclass(frozen=True, eq=False, repr=False)
class Node:
    """A frozen piece of syntax. `key` identifies it; fields marked compare=False do not count."""

    __array_ufunc__ = None  # numpy leaves `array <= term` to us
    observation: ClassVar[bool] = False  # a factor of the likelihood, without a verdict
    joins_observations: ClassVar[bool] = False  # whether observations may stand below it

    def __post_init__(self) -> None:
        values = [(field.compare, getattr(self, field.name)) for field in fields(self)]
        depth = 1 + max((deepest(value) for _, value in values), default=0)
        if depth > MAX_DEPTH:
            raise FormulaError(
                f"the formula nests more than {MAX_DEPTH} levels deep",
                value=depth,
                remedy="write it as several rules",
            )
        key = (type(self).__name__, *(key_of(value) for counts, value in values if counts))
        factor = next((each for _, value in values for each in observations_in(value)), None)
        if factor is not None and not self.joins_observations:
            raise misplaced_observation(factor)
        observes = self.observation or factor is not None
        self.__dict__.update(_depth=depth, _key=key, _hash=hash(key), _observes=observes)

    @property
    def depth(self) -> int:
        depth: int = self.__dict__["_depth"]
        return depth

    @property
    def key(self) -> tuple[Any, ...]:
        key: tuple[Any, ...] = self.__dict__["_key"]
        return key

    @property
    def observes(self) -> bool:
        """Whether it is an observation, or a conjunction of which some parts are."""
        observes: bool = self.__dict__["_observes"]
        return observes

    def __hash__(self) -> int:
        stored: int = self.__dict__["_hash"]
        return stored

    def __str__(self) -> str:
        """Text that parses back to the node."""
        return as_text(self)

    def __repr__(self) -> str:
        """Short: the middle of a long formula is left out; `str` gives all of it."""
        return f"<{type(self).__name__} {elided(str(self), REPR_LENGTH)}>"

    def _repr_html_(self) -> str:
        return f"<code>{escape(str(self))}</code>"

    def as_formula(self) -> Formula:
        """The node as a formula; terms raise, except calls that are statements by themselves."""
        raise FormulaError(
            f"the term {self} stands where a formula is wanted",
            value=self,
            remedy="compare it with something",
        )

    def number(self) -> float:
        """The value of a constant."""
        raise FormulaError(f"{self} is not a plain number", value=self)

    def children(self) -> Iterator[Node]:
        """The nodes directly below this one."""
        for field in fields(self):
            value = getattr(self, field.name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Node):
                    yield item


def key_of(value: Any) -> Any:
    """The key of a field's value: of a node its own, of a tuple those of its items."""
    if isinstance(value, Node):
        return value.key
    if isinstance(value, tuple):
        return tuple(key_of(item) for item in value)
    return value


def deepest(value: Any) -> int:
    """The depth of a field's value: of a node, or the greatest of a tuple of nodes."""
    if isinstance(value, Node):
        return value.depth
    if isinstance(value, tuple):
        return max((deepest(item) for item in value), default=0)
    return 0


def observations_in(value: Any) -> Iterator[Node]:
    """The nodes with observations in a field's value."""
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, Node) and item.observes:
            yield item


def misplaced_observation(factor: Node) -> FormulaError:
    """Error for an observation that stands elsewhere than by itself or under `and`."""
    while not factor.observation:
        factor = next(child for child in factor.children() if child.observes)
    return FormulaError(
        f"{elided(str(factor), REPR_LENGTH)} has a likelihood and no verdict: an observation is "
        "neither negated, nor an alternative, nor quantified, nor weighted",
        value=factor,
        remedy="state it as a rule of its own, or join it to others with `and`; observations at "
        "several steps are one statement each",
    )


def plain_number(value: Any) -> float:
    """A finite number from a `Const` or a Python number."""
    if isinstance(value, Node):
        return value.number()
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        raise FormulaError(f"{value!r} is neither a term nor a number", value=value) from None
    if not isfinite(found):
        raise FormulaError(f"{value} is not a finite number", value=value)
    return found


def elided(text: str, length: int) -> str:
    """The text, its middle replaced by ... where it is longer."""
    if len(text) <= length:
        return text
    head = (length - 5) * 2 // 3
    return f"{text[:head]} ... {text[len(text) - (length - 5 - head) :]}"
