"""A reaction network: species, parameters, reactions, rules and events. Pure data, checked once.

x(t) in N^V,   reaction j fires at rate a_j(x, t) and adds ν_j to x.

ReactionNetwork(
    name="sir",
    species={"S": "N - I0", "I": "I0", "R": 0},
    parameters={"beta": 1.5, "gamma": 0.5, "N": 100, "I0": 5},
    reactions=[
        Reaction("infection", "S + I -> 2 I", "beta*S*I/N"),
        Reaction("recovery", "I -> R", "gamma"),      # a constant alone is mass action
    ],
)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np

from simulators import display, rates
from simulators.conservation import ConservationLaw, conservation_laws
from simulators.errors import InputError, unknown
from simulators.event_changes import event_changes, fixed_time
from simulators.rates import Expression, Number
from simulators.reactions import Event, Reaction, as_expression, mass_action

MIN_POINTS, MAX_POINTS = 2, 10_000_000  # of an even time grid
AS_NUMBER = "write piecewise(1, condition, 0)"
STARTS = ("fixed", "uniform")
_VARIABLE_NAME = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, repr=False)
class ReactionNetwork:
    """Species with their initial counts (numbers or expressions of parameters), and what they do.

    `population` names the parameter that is the head count of a conserved total: changing it
    changes the initial state with it. `start="uniform"` draws the start uniformly over all states
    with that total. The default time grid has `points` times from 0 to `until`.
    """

    name: str
    species: Mapping[str, int | str | Expression]
    parameters: Mapping[str, float] = field(default_factory=dict)
    reactions: Sequence[Reaction] = ()
    rules: Mapping[str, str | Expression] = field(default_factory=dict)
    events: Sequence[Event] = ()
    population: str | None = None
    start: str = "fixed"
    until: float = 10.0
    points: int = 30
    time_unit: str = "1"
    title: str = ""
    reference: str = ""

    def __post_init__(self) -> None:
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        self._check_names()
        keep("species", MappingProxyType({k: _initial(k, v) for k, v in self.species.items()}))
        keep("parameters", MappingProxyType({k: _real(k, v) for k, v in self.parameters.items()}))
        keep("reactions", tuple(self.reactions))
        keep("events", tuple(self.events))
        keep("rules", MappingProxyType({k: as_expression(v) for k, v in self.rules.items()}))
        self._check_rules()
        self._check_reactions()
        self._check_events()
        self._check_start()

    # --- what it means ----------------------------------------------------------------------------

    @cached_property
    def inlined_rules(self) -> dict[str, Expression]:
        """Rules with other rules written out, so that only species and parameters remain."""
        done: dict[str, Expression] = {}
        waiting = {name: as_expression(rule) for name, rule in self.rules.items()}
        while waiting:
            ready = [k for k, rule in waiting.items() if not rates.names(rule) & waiting.keys()]
            if not ready:
                raise InputError(
                    f"rules depend on each other in a circle: {', '.join(waiting)}",
                    value=tuple(waiting),
                    remedy="compute one of them without the others",
                )
            for name in ready:
                done[name] = rates.substitute(waiting.pop(name), done)
        return done

    @cached_property
    def propensities(self) -> tuple[Expression, ...]:
        """Rate of each reaction over species, parameters and `time`."""
        return tuple(self._law(reaction, falling=True) for reaction in self.reactions)

    @cached_property
    def mean_field(self) -> tuple[Expression, ...]:
        """The same for large counts: mass action as powers, X²/2 in place of X(X-1)/2."""
        return tuple(self._law(reaction, falling=False) for reaction in self.reactions)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """What a trajectory carries: the species, then parameters that events change."""
        changed = {name for event in self.events for name in event.assignments}
        return (*self.species, *(name for name in self.parameters if name in changed))

    @cached_property
    def conservation_laws(self) -> tuple[ConservationLaw, ...]:
        """Laws that every reaction and every event leaves alone."""
        changes: list[Mapping[str, int | Fraction]] = [each.change for each in self.reactions]
        return conservation_laws(tuple(self.species), [*changes, *self._event_changes()])

    def _event_changes(self) -> Iterator[Mapping[str, int | Fraction]]:
        """How events change species; what may have been computed before another event set a
        species, in any way."""
        setting = Counter(name for event in self.events for name in event.assignments)
        times = [fixed_time(as_expression(event.trigger)) for event in self.events]
        apart = None not in times and len(set(times)) == len(times)
        for event in self.events:
            sets = {k: as_expression(v) for k, v in event.assignments.items() if k in self.species}
            if apart or all(setting[name] == 1 for name in sets):
                yield from event_changes(sets)
            else:
                yield from ({name: 1} for name in sets)

    @cached_property
    def total(self) -> ConservationLaw | None:
        """The conserved head count that `population` or a uniform start refers to."""
        totals = [law for law in self.conservation_laws if law.is_total]
        return max(totals, key=lambda law: len(law.coefficients), default=None)

    @property
    def times(self) -> np.ndarray:
        """The default time grid, shape (points,)."""
        return even_times(self.until, self.points)

    def initial_counts(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Initial value of each species for these parameter values (scalars or arrays)."""
        return {
            name: rates.evaluate(as_expression(count), parameters)
            for name, count in self.species.items()
        }

    # --- as data ----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON-ready description; `from_dict` gives an equal network back."""
        return {
            "name": self.name,
            "title": self.title,
            "reference": self.reference,
            "species": {name: str(count) for name, count in self.species.items()},
            "parameters": dict(self.parameters),
            "reactions": [
                {
                    "name": reaction.name,
                    "equation": reaction.equation,
                    "rate": str(as_expression(reaction.rate)),
                    "mass_action": reaction.mass_action,
                }
                for reaction in self.reactions
            ],
            "rules": {name: str(rule) for name, rule in self.rules.items()},
            "events": [
                {
                    "name": event.name,
                    "trigger": str(as_expression(event.trigger)),
                    "assignments": {
                        name: str(as_expression(value)) for name, value in event.assignments.items()
                    },
                    "initially": event.initially,
                    "priority": event.priority,
                    "persistent": event.persistent,
                    "values_at_trigger": event.values_at_trigger,
                }
                for event in self.events
            ],
            "population": self.population,
            "start": self.start,
            "until": self.until,
            "points": self.points,
            "time_unit": self.time_unit,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ReactionNetwork:
        """Network from `to_dict`; files written before `points` was named so call it `steps`."""
        data = {"points" if key == "steps" else key: value for key, value in data.items()}
        try:
            reactions = [Reaction(**reaction) for reaction in data["reactions"]]
            events = [Event(**event) for event in data["events"]]
            return cls(**{**data, "reactions": reactions, "events": events})
        except (KeyError, TypeError) as problem:
            raise InputError(
                f"not a description of a reaction network: {problem}",
                value=data,
                remedy="give what ReactionNetwork.to_dict returns",
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return ReactionNetwork.from_dict, (self.to_dict(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReactionNetwork) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.species), self.propensities))

    def __str__(self) -> str:
        return display.text(self)

    def __repr__(self) -> str:
        return display.line(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    # --- checks -----------------------------------------------------------------------------------

    def _law(self, reaction: Reaction, *, falling: bool) -> Expression:
        given = rates.substitute(as_expression(reaction.rate), self.inlined_rules)
        if not reaction.mass_action or rates.names(given) & self.species.keys():
            return given
        return mass_action(given, reaction.sides[0], falling=falling)

    def _check_names(self) -> None:
        if not self.species:
            raise InputError(
                f"network {self.name!r} has no species",
                value=self.name,
                remedy='name them with their initial counts: species={"S": 95}',
            )
        seen: set[str] = set()
        for name in (*self.species, *self.parameters, *self.rules):
            if not isinstance(name, str) or not _VARIABLE_NAME.fullmatch(name):
                raise InputError(
                    f"{name!r} is not a name", value=name, remedy="use letters, digits and _ only"
                )
            if name in rates.RESERVED or name in ("sample", "step"):
                raise InputError(
                    f"the name {name!r} is reserved",
                    value=name,
                    remedy=f"call it {name}_ or the like",
                )
            if name in seen:
                raise InputError(
                    f"the name {name!r} is used twice", value=name, remedy="rename one of them"
                )
            seen.add(name)
        for parts in (self.reactions, self.events):
            for label, count in Counter(part.name for part in parts).items():
                if count > 1:
                    raise InputError(
                        f"two reactions or two events are named {label!r}",
                        value=label,
                        remedy="rename one of them",
                    )

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset({*self.species, *self.parameters, *self.rules, "time"})

    def _known(self, expression: Expression, where: str) -> None:
        for name in sorted(rates.names(expression) - self._names):
            raise unknown("name", name, sorted(self._names)).at(where)

    def _check_rules(self) -> None:
        for name, text in self.rules.items():
            rule = as_expression(text)
            self._known(rule, f"rule {name!r}")
            if rates.kind(rule) != "real":
                raise InputError(
                    f"rule {name!r} is a condition, not a number: {rule}",
                    value=str(rule),
                    remedy=AS_NUMBER,
                )
        _ = self.inlined_rules

    def _check_reactions(self) -> None:
        for reaction in self.reactions:
            where = f"reaction {reaction.name!r}"
            for name in (*reaction.sides[0], *reaction.sides[1]):
                if name not in self.species:
                    raise unknown("species", name, self.species).at(where)
            law = as_expression(reaction.rate)
            self._known(law, where)
            if rates.kind(law) != "real":
                raise InputError(
                    f"{where}: the rate is a condition, not a number: {law}",
                    value=str(law),
                    remedy=AS_NUMBER,
                )
        _ = self.propensities

    def _check_events(self) -> None:
        for event in self.events:
            where = f"event {event.name!r}"
            trigger = as_expression(event.trigger)
            self._known(trigger, where)
            if rates.kind(trigger) != "bool":
                raise InputError(
                    f"{where}: the trigger is not a condition: {trigger}",
                    value=str(trigger),
                    remedy="compare it with something, as in I > 20",
                )
            for name, value in event.assignments.items():
                if name not in self.species and name not in self.parameters:
                    raise unknown("species or parameter", name, [*self.species, *self.parameters])
                self._known(as_expression(value), where)

    def _check_start(self) -> None:
        if self.start not in STARTS:
            raise unknown("start", str(self.start), STARTS)
        if self.population is not None and self.population not in self.parameters:
            raise unknown("parameter", self.population, self.parameters)
        if (self.population or self.start == "uniform") and self.total is None:
            raise InputError(
                f"network {self.name!r} conserves no total of its species",
                value=self.name,
                remedy='leave out population, and use start="fixed"',
            )
        for name, count in self.species.items():
            where = f"initial count of {name!r}"
            extra = rates.names(as_expression(count)) - self.parameters.keys()
            if extra:
                raise InputError(
                    f"{where}: {sorted(extra)[0]!r} is no parameter",
                    value=sorted(extra)[0],
                    allowed=self.parameters,
                    remedy="write it with parameters and numbers only",
                )
        _check_even(self.until, self.points)


def even_times(until: float, points: int) -> np.ndarray:
    """A grid of evenly spaced times from 0 to `until`, shape (points,)."""
    _check_even(until, points)
    return np.linspace(0.0, until, points)


def _check_even(until: float, points: int) -> None:
    if isinstance(until, bool) or not isinstance(until, Real) or not 0 < until < float("inf"):
        raise InputError(f"until must be a number > 0, not {until!r}", value=until)
    whole = isinstance(points, int | np.integer) and not isinstance(points, bool)
    if not whole or not MIN_POINTS <= points <= MAX_POINTS:
        raise InputError(
            f"points must be a whole number from {MIN_POINTS} to {MAX_POINTS:,}, not {points!r}",
            value=points,
        )


def _initial(name: str, count: int | str | Expression) -> Expression:
    expression = as_expression(count)
    if isinstance(expression, Number):
        value = expression.value
        if value < 0 or value != int(value):
            raise InputError(
                f"initial count of {name!r} must be a whole number >= 0, not {count}", value=count
            )
    return expression


def _real(name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise InputError(f"parameter {name!r} must be a finite number, not {value!r}", value=value)
    return number
