"""The scenario that samples are labelled with: its parts, and which of them physics implies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from constraints import Formula, FormulaError, parse
from constraints.ast import formulas as f
from constraints.physics.rules import from_network
from surrogate.io.attributes import simulation


@dataclass(frozen=True)
class Part:
    """A conjunct of a formula; `words`: in plain language, None where that would not do."""

    text: str
    words: str | None = None


@dataclass(frozen=True)
class Asked:
    """What samples were asked to satisfy: the whole `text`, and its parts that a person stated.

    physics: the other parts, which follow from the network that the data describe.
    """

    text: str
    parts: tuple[Part, ...]
    physics: tuple[str, ...] = ()

    def same_as(self, other: Asked | None) -> bool:
        """Whether both ask the same, as far as a person stated it."""
        if other is None:
            return False
        return {part.text for part in self.parts} == {part.text for part in other.parts}


def asked(attrs: Mapping[Any, Any], part: Callable[[Formula], Part]) -> Asked | None:
    """The scenario in the attributes of data, if there is one; `part` describes a conjunct."""
    text = attrs.get("surrogate_constraint")
    if not isinstance(text, str) or not text.strip():
        return None
    try:
        whole = parse(text)
        implied = set(from_network(simulation(attrs)).values())
    except FormulaError:  # of another version, or by a stranger
        return Asked(text, (Part(text),))
    conjuncts = whole.parts if isinstance(whole, f.And) else (whole,)
    own = [each for each in conjuncts if each not in implied] or list(conjuncts)
    return Asked(
        text,
        tuple(part(each) for each in own),
        tuple(str(each) for each in conjuncts if each not in own),
    )
