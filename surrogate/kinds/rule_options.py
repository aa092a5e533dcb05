"""Rules that a training run is given, and those that it ends up with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constraints import Formula

Rule = Formula | str
Where = Rule | Sequence[Rule] | Mapping[str, Rule]


@dataclass(frozen=True)
class RuleOptions:
    """What a person says of the rules of training data.

    declared: rules that all data obey. search: whether other rules are searched for in the data.
    refused: names of found rules that are not to be kept.
    """

    declared: Where | None = None
    search: bool = True
    refused: Sequence[str] = ()


@dataclass(frozen=True)
class StatedRules:
    """Rules besides those of a network, by name: what was declared, and what the data show."""

    declared: Mapping[str, Formula]
    found: Mapping[str, Formula]

    @property
    def texts(self) -> dict[str, str]:
        return {name: str(rule) for name, rule in {**self.found, **self.declared}.items()}


NO_RULES = StatedRules({}, {})
