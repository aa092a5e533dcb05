"""What the assignments of events keep: S + V, for V := V + floor(S/2) and S := S - floor(S/2).

An assignment is a linear combination of quantities: names, products, and calls of functions, of
which the same text has the same value. A sum of species is kept where the coefficient of each
quantity in its change is 0.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from constraints.ast.formulas import Compare
from constraints.ast.terms import Apply, Const, Term
from constraints.errors import FormulaError
from constraints.language.parser import parse

_CALL = re.compile(r"\b[^\W\d]\w*\s*\(")
_TIMED = re.compile(r"time >=? ([0-9.]+(?:e[+-]?[0-9]+)?)")
_ONE = "1"


def keep(sets: Sequence[tuple[str, Mapping[str, Any]]], law: Mapping[str, int]) -> bool:
    """Whether events, each a trigger and its assignments, leave Σ weight·species as it is.

    Assignments may be computed when a trigger turns true, and carried out after those of another
    event: of events that set the same member of the law, no two may fire at once.
    """
    own = [(trigger, values) for trigger, values in sets if not values.keys().isdisjoint(law)]
    setting = Counter(name for _, values in own for name in values if name in law)
    times = {_time(trigger) for trigger, _ in own}
    apart = None not in times and len(times) == len(own)
    if not apart and max(setting.values(), default=0) > 1:
        return False
    return all(_keeps(values, law) for _, values in own)


def _time(trigger: str) -> float | None:
    """The time at which a trigger turns true for good, if that is known."""
    found = _TIMED.fullmatch(trigger.strip())
    return None if found is None else float(found[1])


def _keeps(values: Mapping[str, Any], law: Mapping[str, int]) -> bool:
    change: dict[str, Fraction] = {}
    for name, weight in law.items():
        if name in values:
            found = linear(str(values[name]))
            if found is None:
                return False
            for quantity, by in (*found.items(), (name, Fraction(-1))):
                change[quantity] = change.get(quantity, Fraction(0)) + weight * by
    return not any(change.values())


def linear(text: str) -> dict[str, Fraction] | None:
    """Quantity -> coefficient, numbers under "1"; None if the text is no expression."""
    if text.count("(") != text.count(")"):
        return None
    plain, calls = _without_calls(text)
    try:
        read = parse(f"{plain} = 0")
    except FormulaError:
        return None
    if not isinstance(read, Compare) or len(read.terms) != 2:
        return None
    found = _linear(read.terms[0])
    return {calls.get(quantity, quantity): by for quantity, by in found.items() if by}


def _without_calls(text: str) -> tuple[str, dict[str, str]]:
    """The text with a name in place of each call of a function, and what the names stand for."""
    calls: dict[str, str] = {}
    while (start := _CALL.search(text)) is not None:
        end, depth = start.end(), 1
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        name = f"called_{len(calls)}_"
        name = next((k for k, call in calls.items() if call == text[start.start() : end]), name)
        calls[name] = text[start.start() : end]
        text = f"{text[: start.start()]}{name}{text[end:]}"
    return text, calls


def _linear(node: Term) -> dict[str, Fraction]:
    match node:
        case Const(value):
            return {_ONE: Fraction(value)}
        case Apply("+", parts):
            found: dict[str, Fraction] = {}
            for part in parts:
                for quantity, by in _linear(part).items():
                    found[quantity] = found.get(quantity, Fraction(0)) + by
            return found
        case Apply("neg", (part,)):
            return {quantity: -by for quantity, by in _linear(part).items()}
        case Apply("*", (Const(factor), part)) | Apply("*", (part, Const(factor))):
            return {quantity: Fraction(factor) * by for quantity, by in _linear(part).items()}
    return {str(node): Fraction(1)}
