"""The stochastic process that a simulated dataset describes: only what the description proves.

Counts x, reactions j that add ν_j to x at a rate a_j(x), events that set some of x. A law w is
conserved when w·ν_j = 0 for every j and events keep it; its total w·x(0) is known where the
description fixes the start. The rate a_j vanishes with x_i where x_i is a factor of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from constraints.ast.formulas import Compare
from constraints.ast.terms import Apply, Const, Name, Term
from constraints.ast.words import IDENTIFIER
from constraints.errors import FormulaError, unknown
from constraints.language.parser import parse
from constraints.physics.assignments import keep

# the keys that are understood; any other may change the process in unknown ways
_NETWORK_KEYS = {
    "name",
    "title",
    "reference",
    "species",
    "parameters",
    "reactions",
    "rules",
    "events",
}
_NETWORK_KEYS |= {"population", "start", "until", "steps", "points", "time_unit"}
_REACTION_KEYS = {"name", "equation", "rate", "mass_action"}
_EVENT_KEYS = {"name", "trigger", "assignments", "initially", "priority", "persistent"}
_EVENT_KEYS |= {"values_at_trigger"}
_METHOD_PROPERTIES = ("exact", "discrete")
# (exact, discrete) by method, for descriptions that do not record them
_METHODS = {"direct": (True, True), "tau": (False, True), "ode": (False, False)}
MAX_LIMIT_ROUNDS = 10  # passes in which laws derive bounds of species from each other
_REACTANT = re.compile(r"([0-9]{1,9})?\s*\*?\s*([^\W\d]\w*)")


@dataclass(frozen=True)
class Reaction:
    reactants: Mapping[str, int]
    change: Mapping[str, int]
    rate: str | None
    mass_action: bool


@dataclass(frozen=True)
class Event:
    """`sets`: what it assigns, as it is written."""

    name: str
    trigger: str
    sets: Mapping[str, Any]


@dataclass(frozen=True)
class Process:
    """A validated description. `reactions`: None if it does not list them."""

    species: Mapping[str, Any]  # with their initial counts, expressions of parameters
    values: Mapping[str, float]  # parameters that are the same for every trajectory
    ranges: Mapping[str, tuple[float, float]]  # of parameters that each trajectory draws and keeps
    initial: Mapping[str, Any]  # initial counts that replace the network's own
    reactions: tuple[Reaction, ...] | None
    rules: frozenset[str]
    events: tuple[Event, ...]
    assigned: frozenset[str]  # species and parameters that rules or events set
    laws: tuple[Mapping[str, int], ...]
    population: str | None
    start: str
    exact: bool  # trajectories have the law of the jump process
    discrete: bool  # species are whole numbers >= 0

    @cached_property
    def conserved(self) -> tuple[Mapping[str, int], ...]:
        """The laws that provably no reaction or event breaks."""
        if self.reactions is None:
            return ()
        return tuple(
            law
            for law in self.laws
            if self.rules.isdisjoint(law)
            if keep([(event.trigger, event.sets) for event in self.events], law)
            if not any(
                sum(law.get(name, 0) * by for name, by in reaction.change.items())
                for reaction in self.reactions
            )
        )

    @cached_property
    def limits(self) -> dict[str, tuple[float, float]]:
        """The lowest and highest value of each species.

        Σ w_i x_i = total with x >= 0: where w_i > 0, w_i x_i <= total + Σ |w_j| x_j over w_j < 0.
        """
        if not self.discrete:
            return dict.fromkeys(self.species, (-math.inf, math.inf))
        highest = dict.fromkeys(self.species, math.inf)
        totals = [(law, total) for law in self.conserved if (total := self.total(law)) is not None]
        for _ in range(min(len(totals), MAX_LIMIT_ROUNDS)):  # a bound from one law tightens others
            for law, total in totals:
                for sign in (1, -1):
                    signed = {name: sign * weight for name, weight in law.items()}
                    most = sign * total - sum(w * highest[k] for k, w in signed.items() if w < 0)
                    for name, weight in signed.items():
                        if weight > 0 and 0 <= most < math.inf:
                            highest[name] = min(highest[name], float(most // weight))
        return {name: (0.0, high) for name, high in highest.items()}

    @cached_property
    def head_count(self) -> Mapping[str, int]:
        """The longest law with unit weights, which `population` and a uniform start refer to."""
        plain = [law for law in self.laws if len(law) > 1 and set(law.values()) == {1}]
        return max(plain, key=len, default={})

    def total(self, law: Mapping[str, int]) -> int | None:
        """w·x(0), if it is the same for every trajectory."""
        if self.start not in ("fixed", "uniform"):
            return None
        if law == self.head_count and self.population is not None:
            return _whole(self.values.get(self.population))
        given = self.initial
        if self.start == "uniform" or (self.initial and self.population is not None):
            # species of the head count without an initial count of their own share the remainder
            sharing = set(self.head_count) - set(self.initial)
            if not self.head_count or (law != self.head_count and not sharing.isdisjoint(law)):
                return None
            if law == self.head_count and sharing:
                given = {}  # the total is that of the network's own counts
        total = 0.0
        for name, weight in law.items():
            count = value_of(given.get(name, self.species[name]), self.values)
            if count is None:
                return None
            total += weight * count
        return _whole(total)

    def count_at_start(self, name: str) -> float | None:
        """The initial count of a species, if it is the same for every trajectory."""
        if self.start != "fixed" or (self.initial and self.population is not None):
            return None
        return value_of(self.initial.get(name, self.species[name]), self.values)

    def vanishes(self, reaction: Reaction, name: str) -> bool:
        """Whether the rate of the reaction is provably 0 where the species is absent."""
        if reaction.rate is None:
            return False
        mentioned = set(IDENTIFIER.findall(reaction.rate))
        if mentioned.isdisjoint(self.species) and mentioned.isdisjoint(self.rules):
            return reaction.mass_action and name in reaction.reactants
        return _is_zero(_term(reaction.rate), name)


# --- reading a description ------------------------------------------------------------------------


def read(config: Any) -> Process | None:
    """The process described; None without species, or with keys that are not understood."""
    if not isinstance(config, Mapping):
        raise _invalid("the whole", config, "a mapping from names")
    network = _mapping("network", config.get("network"))
    if network.get("species") is None:
        return None
    species = _mapping("species", network["species"])
    rules = _mapping("rules", network.get("rules"))
    written = _listing("reactions", network.get("reactions"))
    events = _listing("events", network.get("events"))
    sets = [_mapping("assignments", event.get("assignments")) for event in events]
    laws = [
        _law(law, species) for law in _listing("conservation_laws", config.get("conservation_laws"))
    ]
    parameters = _mapping("parameters", network.get("parameters"))
    parameters = {**parameters, **_mapping("parameters", config.get("parameters"))}
    assigned = frozenset(rules).union(*sets)
    ranges = {name: _range(value) for name, value in parameters.items() if name not in assigned}
    reactions = tuple(_reaction(each, species) for each in written)
    exact, discrete = _method(config)
    process = Process(
        species=species,
        values={name: float(value) for name, value in parameters.items() if _is_number(value)},
        ranges={name: ends for name, ends in ranges.items() if ends is not None},
        initial=_mapping("initial", config.get("initial")),
        reactions=None if network.get("reactions") is None else reactions,
        rules=frozenset(rules),
        events=tuple(
            Event(str(each.get("name", "")), str(each.get("trigger", "")), own)
            for each, own in zip(events, sets, strict=True)
        ),
        assigned=assigned,
        laws=tuple(laws),
        population=_text("population", network.get("population"), None),
        start=_text("start", config.get("start"), network.get("start") or "fixed"),
        exact=exact,
        discrete=discrete,
    )
    parts = [(network, _NETWORK_KEYS), *((each, _REACTION_KEYS) for each in written)]
    parts += [(each, _EVENT_KEYS) for each in events]
    understood = all(known.issuperset(part) for part, known in parts)
    return process if understood and all("assignments" in event for event in events) else None


def _invalid(what: str, value: Any, expected: str) -> FormulaError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else shown[:77] + "..."
    return FormulaError(
        f"in the description of a network, {what} is {expected}, not {shown}",
        value=value,
        remedy="give the parsed JSON of the attribute surrogate_config of a simulated dataset",
    )


def _mapping(what: str, value: Any) -> Mapping[str, Any]:
    """A mapping from names; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise _invalid(what, value, "a mapping from names")
    return value


def _listing(what: str, value: Any) -> list[Mapping[str, Any]]:
    """A list of mappings; None is an empty one."""
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise _invalid(what, value, "a list")
    return [_mapping(f"each of the {what}", each) for each in value]


def _text(what: str, value: Any, default: Any) -> Any:
    value = default if value is None else value
    if value is not None and not isinstance(value, str):
        raise _invalid(what, value, "text")
    return value


def _method(config: Mapping[str, Any]) -> tuple[bool, bool]:
    """(exact, discrete): whether the simulation method is exact, and whether it is discrete.

    Older descriptions do not record these properties; they follow from the method's name.
    """
    by_name = _METHODS.get(_text("method", config.get("method"), "direct"), (False, False))
    defaults = zip(_METHOD_PROPERTIES, by_name, strict=True)
    found = [config.get(name, value) for name, value in defaults]
    for name, value in zip(_METHOD_PROPERTIES, found, strict=True):
        if not isinstance(value, bool):
            raise _invalid(name, value, "true or false")
    return found[0], found[1]


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and -1e300 < value < 1e300


def _range(value: Any) -> tuple[float, float] | None:
    """The ends of the range that a parameter is drawn from: {"range": [0.5, 3.0]}."""
    ends = value.get("range") if isinstance(value, Mapping) else None
    if not isinstance(ends, (list, tuple)) or len(ends) != 2 or not all(map(_is_number, ends)):
        return None
    low, high = (float(end) for end in ends)
    return (low, high) if low < high else None


def _whole(value: float | None) -> int | None:
    """The whole number nearest to a sum of counts; None if it is not one."""
    if value is None or not 0 <= abs(value) <= 2**53 or abs(value - round(value)) > 1e-6:
        return None
    return round(value)


def _law(law: Mapping[str, Any], species: Mapping[str, Any]) -> dict[str, int]:
    for name, weight in law.items():
        if name not in species:
            raise unknown("species", name, species, where=" in a conservation law")
        if isinstance(weight, bool) or not isinstance(weight, int) or not weight:
            raise _invalid(f"the weight of {name} in a conservation law", weight, "a whole number")
    if not law:
        raise _invalid("a conservation law", dict(law), "name: weight pairs")
    return dict(law)


def _reaction(written: Mapping[str, Any], species: Mapping[str, Any]) -> Reaction:
    equation = _text("equation", written.get("equation"), "")
    sides: list[dict[str, int]] = []
    for side in equation.split("->"):
        counts: dict[str, int] = {}
        for part in [] if side.strip() in ("", "0") else side.split("+"):
            found = _REACTANT.fullmatch(part.strip())
            if found is None:
                raise _invalid("an equation", equation, "text such as S + I -> 2 I")
            if found[2] not in species:
                where = f" in the equation {equation}"
                raise unknown("species", found[2], species, where=where)
            counts[found[2]] = counts.get(found[2], 0) + int(found[1] or 1)
        sides.append(counts)
    if len(sides) != 2:
        raise _invalid("an equation", equation, "text such as S + I -> 2 I")
    before, after = sides
    rate = written.get("rate")
    rate = str(rate) if _is_number(rate) else _text("rate", rate, None)
    return Reaction(
        before,
        {name: after.get(name, 0) - before.get(name, 0) for name in {**before, **after}},
        rate,
        written.get("mass_action", True) is True,
    )


# --- rate laws and initial counts, which are terms ------------------------------------------------


def _term(text: str) -> Term | None:
    """The text as a term; None if it is not one in the language of formulas."""
    try:
        read = parse(f"{text} = 0")
    except FormulaError:
        return None
    return read.terms[0] if isinstance(read, Compare) and len(read.terms) == 2 else None


def _is_zero(node: Term | None, name: str) -> bool:
    """Whether a term is 0 where the named one is: the latter is a factor of every summand."""
    match node:
        case Name(found):
            return found == name
        case Apply("*", parts):
            return any(_is_zero(part, name) for part in parts)
        case Apply("+", parts):
            return all(_is_zero(part, name) for part in parts)
        case Apply("/" | "neg" | "abs" | "sqrt", (part, *_)):
            return _is_zero(part, name)
        case Apply("pow", (part, Const(power))):
            return power > 0 and _is_zero(part, name)
    return False


def value_of(count: Any, values: Mapping[str, float]) -> float | None:
    """A number, as an initial count or an event states it, if it is the same for every
    trajectory."""
    if _is_number(count):
        return float(count)
    return _value(_term(count), values) if isinstance(count, str) else None


def _value(node: Term | None, values: Mapping[str, float]) -> float | None:
    match node:
        case Const(value):
            return value
        case Name(name):
            return values.get(name)
        case Apply("+" | "*" | "/" | "neg" as function, parts):
            found = [_value(part, values) for part in parts]
            known = [value for value in found if value is not None]
            if len(known) < len(found):
                return None
            match function:
                case "+":
                    return sum(known)
                case "*":
                    return known[0] * known[1]
                case "/":
                    return known[0] / known[1] if known[1] else None
            return -known[0]
    return None
