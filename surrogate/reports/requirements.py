"""The requirements on samples: the conjuncts of the formula that they are labelled with, those that
physics implies apart."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from constraints import Formula, FormulaError, parse
from constraints.ast import formulas as f
from surrogate.io.rules import rules_in


@dataclass(frozen=True)
class Requirement:
    """A conjunct of a formula; `words`: the same as an English phrase, None if there is none."""

    text: str
    words: str | None = None


@dataclass(frozen=True)
class Requirements:
    """The formula that samples had to satisfy, as `text`, and its conjuncts that a person stated.

    physics: the other conjuncts, which follow from the network that the data describe.
    """

    text: str
    parts: tuple[Requirement, ...]
    physics: tuple[str, ...] = ()

    def same_as(self, other: Requirements | None) -> bool:
        """Whether both have the same stated conjuncts."""
        if other is None:
            return False
        return {part.text for part in self.parts} == {part.text for part in other.parts}


def requirements_in(
    attrs: Mapping[Any, Any], describe: Callable[[Formula], Requirement]
) -> Requirements | None:
    """The requirements in the attributes of data, if there are any; `describe` makes one from a
    conjunct."""
    text = attrs.get("surrogate_constraint")
    if not isinstance(text, str) or not text.strip():
        return None
    try:
        whole = parse(text)
        implied = set(rules_in(attrs).values())
    except FormulaError:  # of another version, or by a stranger
        return Requirements(text, (Requirement(text),))
    conjuncts = whole.parts if isinstance(whole, f.And) else (whole,)
    own = [each for each in conjuncts if each not in implied] or list(conjuncts)
    return Requirements(
        text,
        tuple(describe(each) for each in own),
        tuple(str(each) for each in conjuncts if each not in own),
    )
