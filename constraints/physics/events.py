"""What events prove: a parameter has the value that an event set while the event's trigger holds.

An event fires when its trigger turns true and sets p to c. While the trigger stays true, p = c,
unless another event sets p in the meantime:

    I(t) > 150 implies beta(t) = 0.1

at every step, if the trigger is false at the start and no event that sets p to another value can
fire while it is true. Triggers that compare one count with a number are understood.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from constraints.ast.formulas import Compare
from constraints.errors import FormulaError
from constraints.language.parser import parse
from constraints.physics.description import Event, Process, value_of

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Threshold:
    """Counts of a species from `low` to `high`, whole numbers or infinite."""

    species: str
    low: float
    high: float

    def holds(self, count: float) -> bool:
        return self.low <= count <= self.high

    def excludes(self, other: Threshold) -> bool:
        """Whether the two cannot both hold."""
        apart = max(self.low, other.low) > min(self.high, other.high)
        return self.species == other.species and apart


@dataclass(frozen=True)
class Setting:
    """A parameter is `value` while `trigger` holds."""

    event: str
    trigger: Threshold
    parameter: str
    value: float


def settings(process: Process) -> Iterator[Setting]:
    """The values of parameters that triggers prove."""
    for event in process.events:
        trigger = threshold(process, event)
        if trigger is None or not _false_at_start(process, trigger):
            continue
        for name, written in event.sets.items():
            value = value_of(written, _constants(process))
            if value is None or name in process.species or name in process.rules:
                continue
            others = [each for each in process.events if each is not event and name in each.sets]
            if all(_apart(process, trigger, each) for each in others):
                yield Setting(event.name, trigger, name, value)


def threshold(process: Process, event: Event) -> Threshold | None:
    """The counts at which a trigger holds; None if it does not compare one count with a number."""
    try:
        read = parse(event.trigger)
    except FormulaError:
        return None
    if not isinstance(read, Compare) or len(read.terms) != 2 or read.relations[0] not in _MIRRORED:
        return None
    left, right = (str(each) for each in read.terms)
    relation = read.relations[0]
    if left not in process.species:
        left, right, relation = right, left, _MIRRORED[relation]
    limit = value_of(right, _constants(process))
    if left not in process.species or limit is None:
        return None
    match relation:
        case ">":
            return Threshold(left, math.floor(limit) + 1, math.inf)
        case ">=":
            return Threshold(left, math.ceil(limit), math.inf)
        case "<":
            return Threshold(left, -math.inf, math.ceil(limit) - 1)
    return Threshold(left, -math.inf, math.floor(limit))


def _constants(process: Process) -> dict[str, float]:
    """The parameters that no event and no rule sets."""
    return {name: x for name, x in process.values.items() if name not in process.assigned}


def _false_at_start(process: Process, trigger: Threshold) -> bool:
    count = process.count_at_start(trigger.species)
    return count is not None and not trigger.holds(count)


def _apart(process: Process, trigger: Threshold, other: Event) -> bool:
    """Whether another event cannot fire while a trigger holds: their thresholds exclude each other,
    and only reactions, one at a time, move the count between them."""
    found = threshold(process, other)
    return found is not None and found.excludes(trigger) and found.species not in process.assigned
