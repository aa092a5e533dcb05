"""Consistency rules: formulas that every trajectory of a stochastic process satisfies.

A process has counts x >= 0, and reaction j adds ν_j to x at a rate a_j(x). So, for every step t:

S(t) >= 0                        a count
w·x(t) = w·x(0)                  w·ν_j = 0 for every j: `S(t) + I(t) + R(t) = 100`
S(t) <= S(t - 1)                 no ν_j raises S
S(t) + E(t) <= S(t - 1) + E(t - 1)   no ν_j raises S + E
I(t - 1) = 0 implies I(t) = 0    a_j = 0 at I = 0 for every j that raises I: 0 is final
I(t - 1) = 0 implies S(t) = S(t - 1)    0 is final, and a_j = 0 there for every j that changes S
I(t) > 150 implies beta(t) = 0.1    an event that fires at I > 150 sets beta (`events`)

`from_network` derives them from the description in a dataset's attributes, and only those that the
description proves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from typing import Any

from constraints.ast.formulas import Compare, Formula, Implies, Quantifier, conjunction
from constraints.ast.printer import number
from constraints.ast.terms import Apply, At, Const, Name, Step, Term, add, negative, term
from constraints.ast.words import END
from constraints.errors import FormulaError, unknown
from constraints.physics.description import Process, Reaction, read
from constraints.physics.events import settings

_T = "t"
_DIRECTIONS = {"increasing": ">=", "decreasing": "<="}
MAX_COMBINED = 3  # species in a combination that only rises or falls
MAX_COMBINED_SPECIES = 20  # of a network whose combinations are searched


# --- rules by name --------------------------------------------------------------------------------


def non_negative(*names: str) -> Formula:
    """forall t: S(t) >= 0, for each name."""
    if not names:
        raise FormulaError("no series is named", remedy='write non_negative("S", "I")')
    return conjunction(*(bounds(name, 0) for name in names))


def conserved_total(
    weights: str | Iterable[str] | Mapping[str, float], total: float | str
) -> Formula:
    """forall t: S(t) + 2 * P(t) = total, a number or the name of a parameter.

    `weights`: names ("S I R" or a list), or name -> weight.
    """
    value = Name(total) if isinstance(total, str) else _number(total, "a total")
    return _forall(Compare((_weighted(_weights(weights), Step(_T)), value), ("=",)))


def bounds(name: str, low: float | None = None, high: float | None = None) -> Formula:
    """forall t: low <= S(t) <= high; None leaves a side open."""
    here, what = _at(name), f"a bound of {name}"
    if low is None and high is None:
        raise FormulaError(
            f"{name} has neither a low nor a high bound", remedy="give low, high or both"
        )
    if high is None:
        return _forall(here >= _number(low, what))
    if low is None:
        return _forall(here <= _number(high, what))
    ends = _number(low, what), _number(high, what)
    if ends[0].value > ends[1].value:
        raise FormulaError(
            f"the bounds of {name}, [{ends[0]}, {ends[1]}], are empty",
            value=(ends[0].value, ends[1].value),
            remedy="give low <= high",
        )
    return _forall(here.between(*ends))


def monotone(name: str, direction: str) -> Formula:
    """forall t in [1, end]: S(t) >= S(t - 1), or <=."""
    if direction not in _DIRECTIONS:
        raise unknown("direction", str(direction), _DIRECTIONS)
    return _forall(Compare((_at(name), _at(name, -1)), (_DIRECTIONS[direction],)), first=1)


def max_step(name: str, size: float) -> Formula:
    """forall t: abs(delta(S)(t)) <= size."""
    limit = _number(size, f"the largest step of {name}")
    if limit.value < 0:
        raise FormulaError(
            f"the largest step of {name} is a number >= 0, not {limit}", value=limit.value
        )
    return _forall(abs(At(Apply("delta", (Name(name),)), Step(_T))) <= limit)


def absorbing(name: str, value: float = 0.0) -> Formula:
    """forall t in [1, end]: S(t - 1) = value implies S(t) = value."""
    level = _number(value, f"the level of {name}")
    return _forall(Implies(_at(name, -1).equals(level), _at(name).equals(level)), first=1)


def _forall(body: Formula, first: int | None = None) -> Formula:
    if first is None:
        return Quantifier("forall", _T, None, None, body)
    return Quantifier("forall", _T, Step(None, first), Step(END), body)


def _number(value: Any, what: str) -> Const:
    if isinstance(value, str) or not isinstance(found := term(value), Const):
        raise FormulaError(f"{what} is a number, not {value!r}", value=value)
    return found


def _at(name: str, offset: int = 0) -> At:
    return At(Name(name), Step(_T, offset))


def _weights(given: str | Iterable[str] | Mapping[str, float]) -> dict[str, float]:
    """name -> weight, none of them 0."""
    if isinstance(given, Mapping):
        found = {name: _number(w, f"the weight of {name}").value for name, w in given.items()}
    else:
        words = given.replace(",", " ").split() if isinstance(given, str) else list(given)
        found = dict.fromkeys(words, 1.0)
        if len(found) < len(words):
            raise FormulaError(
                f"a name occurs twice in the total of {', '.join(words)}",
                value=words,
                remedy='give weights, as in {"S": 1, "P": 2}',
            )
    if not found or 0 in found.values():
        raise FormulaError(
            f"a total needs names with weights other than 0, not {given!r}", value=given
        )
    return found


def _weighted(weights: Mapping[str, float], when: Step | None) -> Term:
    """S(t) + 2 * P(t) - E(t); without a step, S + 2 * P - E."""
    parts: list[Term] = []
    for name, weight in weights.items():
        value: Term = Name(name) if when is None else At(Name(name), when)
        if abs(weight) != 1:
            value = Apply("*", (Const(abs(weight)), value))
        parts.append(value if weight > 0 else negative(value))
    return add(*parts)


# --- rules of a network ---------------------------------------------------------------------------


def from_network(config: Mapping[str, Any]) -> dict[str, Formula]:
    """Rules of a process, each under a short name such as "S >= 0" or "S + I + R = 100".

    `config` is the description of a simulated dataset: its network, parameters, initial state,
    conservation laws and method. A conserved total is a number if it is the same for every
    trajectory, else its value at step 0. Signs are stated for discrete methods; consequences of
    single reactions (monotone series, absorbing states) for exact ones. Missing keys have the
    simulators' defaults.
    """
    process = read(config)
    if process is None:
        return {}
    found: dict[str, Formula] = {}
    if process.discrete:
        found |= {f"{name} >= 0": non_negative(name) for name in process.species}
    for law in process.conserved:
        text, total = str(_weighted(law, None)), process.total(law)
        if total is None:
            sides = _weighted(law, Step(_T)), _weighted(law, Step(None, 0))
            found[f"{text} is constant"] = _forall(Compare(sides, ("=",)))
        else:
            found[f"{text} = {total}"] = conserved_total(law, total)
    for name, (_, high) in process.limits.items():
        if math.isfinite(high):
            found[f"{name} <= {number(high)}"] = bounds(name, None, high)
    if process.exact:
        for name in process.species:
            found |= _monotonicity(process, name)
        found |= _combined(process)
        for name in process.species:
            found |= _extinct(process, name)
        found |= dict(_set_by_events(process))
    return found


def limits(config: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """The least and the greatest value of each species, and of each parameter that is drawn, that
    the description proves."""
    process = read(config)
    return {} if process is None else {**process.limits, **process.ranges}


def _monotonicity(process: Process, name: str) -> dict[str, Formula]:
    """Monotonicity of a species, and whether 0 is absorbing."""
    if name in process.assigned or process.reactions is None:
        return {}
    up, down = _changing(process, name)
    if down and not up:  # which implies that 0 is absorbing
        return {f"{name} never rises": monotone(name, "decreasing")}
    found = {}
    if up and not down:
        found[f"{name} never falls"] = monotone(name, "increasing")
    if up and all(process.vanishes(reaction, name) for reaction in up):
        found[f"{name} stays 0"] = absorbing(name)
    return found


def _changing(process: Process, name: str) -> tuple[list[Reaction], list[Reaction]]:
    """The reactions that raise a species, and those that lower it."""
    every = process.reactions or ()
    up = [reaction for reaction in every if reaction.change.get(name, 0) > 0]
    return up, [reaction for reaction in every if reaction.change.get(name, 0) < 0]


def _extinct(process: Process, name: str) -> dict[str, Formula]:
    """What is still or one-sided as soon as there are none of a species, where that is final."""
    if name in process.assigned or process.reactions is None:
        return {}
    up, down = _changing(process, name)
    if not (up or down) or not all(process.vanishes(each, name) for each in up):
        return {}
    found = {}
    for other in process.species:
        if other == name or other in process.assigned:
            continue
        sides = _changing(process, other)
        left = [[r for r in side if not process.vanishes(r, name)] for side in sides]
        ends = [bool(side) and not rest for side, rest in zip(sides, left, strict=True)]
        words, relation = "is constant", "="
        if any(left):
            words, relation = ("never rises", "<=") if ends[0] else ("never falls", ">=")
        if any(ends):
            change = Compare((_at(other), _at(other, -1)), (relation,))
            rule = _forall(Implies(_at(name, -1).equals(0), change), first=1)
            found[f"{other} {words} once {name} = 0"] = rule
    return found


def _set_by_events(process: Process) -> Iterator[tuple[str, Formula]]:
    """The values of parameters while the triggers of events hold."""
    for each in settings(process):
        limits = each.trigger
        relation, limit = (">=", limits.low) if math.isinf(limits.high) else ("<=", limits.high)
        trigger = Compare((_at(limits.species), Const(limit)), (relation,))
        words = f"while {limits.species} {relation} {number(limit)}"
        name = f"{each.parameter} = {number(each.value)} {words}"
        yield name, _forall(Implies(trigger, _at(each.parameter).equals(each.value)))


def _combined(process: Process) -> dict[str, Formula]:
    """Combinations of species that only fall or rise, such as S + E, where none of fewer reactions
    does.

    With e_j >= 0 how often reaction j fired, a·x changes by Σ_j (a·ν_j) e_j. Of the combinations
    with a·ν_j >= 0 for every j (or <= 0), those in which fewest reactions matter imply the others.
    """
    free = [name for name in process.species if name not in process.assigned]
    if not process.reactions or len(free) > MAX_COMBINED_SPECIES:
        return {}
    known: list[set[int]] = []
    found: dict[str, Formula] = {}
    for weights, changes in sorted(_one_sided(process, free), key=lambda each: _cost(*each)):
        moved = {j for j, change in enumerate(changes) if change}
        if any(other <= moved for other in known):
            continue
        known.append(moved)
        if len(weights) > 1:
            falls = min(changes) < 0
            ends = _weighted(weights, Step(_T)), _weighted(weights, Step(_T, -1))
            rule = _forall(Compare(ends, ("<=" if falls else ">=",)), first=1)
            words = "never rises" if falls else "never falls"
            found[f"{_weighted(weights, None)} {words}"] = rule
    return found


def _one_sided(
    process: Process, free: list[str]
) -> Iterator[tuple[dict[str, float], tuple[float, ...]]]:
    """Combinations with weights ±1 and their changes a·ν_j, all >= 0 or all <= 0, not all 0."""
    for size in range(1, MAX_COMBINED + 1):
        for names in combinations(free, size):
            for signs in product((1.0, -1.0), repeat=size - 1):
                weights = dict(zip(names, (1.0, *signs), strict=True))
                changes = tuple(
                    sum(weight * reaction.change.get(name, 0) for name, weight in weights.items())
                    for reaction in process.reactions or ()
                )
                if any(changes) and (min(changes) >= 0 or max(changes) <= 0):
                    yield weights, changes


def _cost(weights: Mapping[str, float], changes: tuple[float, ...]) -> tuple[int, int, int]:
    """Combinations that fewer reactions change come first, then plain and short ones."""
    negative_weights = sum(weight < 0 for weight in weights.values())
    return sum(change != 0 for change in changes), len(weights), negative_weights
