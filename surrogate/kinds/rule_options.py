"""Rules that a training run is given, and those that it ends up with."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from constraints import Formula
from constraints.errors import Action, Edge

MAX_LISTED = 5  # rules in a hint
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
    """Rules besides those of a network, by name: what was declared, and what the data show.

    unproved: texts of rules that hold in all `values` values of each variable, too few to take
    them as rules.
    """

    declared: Mapping[str, Formula]
    found: Mapping[str, Formula]
    unproved: Sequence[str] = ()
    values: int = 0

    @property
    def texts(self) -> dict[str, str]:
        return {name: str(rule) for name, rule in {**self.found, **self.declared}.items()}

    def hint(self, edge: Edge = "python") -> str:
        """Which rules may hold and are not kept, and how to declare them; "" if there are none."""
        if not self.unproved:
            return ""
        first, more = self.unproved[0], len(self.unproved) - MAX_LISTED
        listed = ", ".join(self.unproved[:MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
        option = shlex.quote(first) if set(first) & set('"$`\\!') else f'"{first}"'
        declare = Action(f"rules=[{first!r}]", f"--rule {option}").render(edge)
        return (
            f"hold in all {self.values:,} values, too few to be taken as rules: {listed}; "
            f"declare them with {declare}"
        )


NO_RULES = StatedRules({}, {})
