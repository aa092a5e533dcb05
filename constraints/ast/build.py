"""Functions that build formulas in Python: `forall(t)(I[t] <= 20)`, `always(I <= 20)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from constraints.ast.formulas import (
    Compare,
    Formula,
    Quantifier,
    Reaches,
    check_window,
    disjunction,
    formula,
    half_window,
)
from constraints.ast.terms import Apply, Count, Name, Step, Term, step, term
from constraints.ast.words import END, NOW, is_variable
from constraints.errors import FormulaError


def signals(names: str | Sequence[str]) -> Any:
    """Signals by name: `S, I = signals("S I")`; a single name gives a single signal."""
    words = names.replace(",", " ").split() if isinstance(names, str) else list(names)
    found = tuple(Name(word) for word in words)
    if not found:
        raise FormulaError("no signal is named", value=names, remedy='write signals("S I")')
    return found[0] if len(found) == 1 else found


def time(name: str) -> Step:
    """A time variable to bind with forall or exists: `t = time("t")`."""
    if not is_variable(name):
        raise FormulaError(
            f"{name!r} cannot name a time variable", value=name, remedy="use a word such as t"
        )
    return Step(name)


end = Step(END)
now = Step(NOW)


def minimum(first: Any, second: Any, *more: Any) -> Term:
    """The smallest of several terms."""
    return Apply("min", tuple(term(part) for part in (first, second, *more)))


def maximum(first: Any, second: Any, *more: Any) -> Term:
    """The largest of several terms."""
    return Apply("max", tuple(term(part) for part in (first, second, *more)))


def call(function: str, *arguments: Any) -> Apply:
    """A function registered with the layout, by its name."""
    if not is_variable(function):
        raise FormulaError(
            f"{function!r} cannot name a function of the layout",
            value=function,
            remedy="use a word that is neither reserved nor a built-in function",
        )
    if not arguments:
        raise FormulaError(
            f"{function} is called without arguments",
            value=function,
            remedy=f'give one or more, as in call("{function}", S[0])',
        )
    return Apply(function, tuple(term(argument) for argument in arguments))


def _quantify(
    kind: str, variable: Step, first: Any, last: Any, region: str | None
) -> Callable[[Formula], Formula]:
    if not isinstance(variable, Step) or variable.base in (None, END) or variable.offset:
        raise FormulaError(
            f"{kind} binds a time variable, not {variable!r}",
            value=variable,
            remedy=f't = time("t"), then {kind}(t)(...)',
        )
    name = str(variable.base)
    if first is None and last is None:
        return lambda body: Quantifier(kind, name, None, None, formula(body), region)
    ends = step(0 if first is None else first), Step(END) if last is None else step(last)
    return lambda body: Quantifier(kind, name, *ends, formula(body), region)


def forall(
    variable: Step, first: Any = None, last: Any = None, *, region: str | None = None
) -> Callable[[Formula], Formula]:
    """`forall(t)(I[t] <= 20)`, `forall(t, 0, 10)(...)`; the window is closed."""
    return _quantify("forall", variable, first, last, region)


def exists(
    variable: Step, first: Any = None, last: Any = None, *, region: str | None = None
) -> Callable[[Formula], Formula]:
    """`exists(u, t, t + 5)(I[u] > 10)`."""
    return _quantify("exists", variable, first, last, region)


def _ahead(kind: str, body: Formula, first: int, last: int | None) -> Formula:
    check_window("always" if kind == "forall" else "eventually", first, last)
    far = Step(END) if last is None else Step(NOW, int(last))
    return Quantifier(kind, NOW, Step(NOW, int(first)), far, formula(body))


def _behind(kind: str, body: Formula, first: int, last: int | None) -> Formula:
    check_window("historically" if kind == "forall" else "once", first, last)
    far = Step(None, 0) if last is None else Step(NOW, -int(last))
    return Quantifier(kind, NOW, far, Step(NOW, -int(first)), formula(body))


def always(body: Formula, first: int = 0, last: int | None = None) -> Formula:
    """`body` at every step first..last from now."""
    return _ahead("forall", body, first, last)


def eventually(body: Formula, first: int = 0, last: int | None = None) -> Formula:
    """`body` at some step first..last from now."""
    return _ahead("exists", body, first, last)


def historically(body: Formula, first: int = 0, last: int | None = None) -> Formula:
    """`body` at every step, first..last steps ago."""
    return _behind("forall", body, first, last)


def once(body: Formula, first: int = 0, last: int | None = None) -> Formula:
    """`body` at some step, first..last steps ago."""
    return _behind("exists", body, first, last)


def count(body: Formula, first: Any = None, last: Any = None) -> Count:
    """The number of steps (of first..last) at which `body` holds: `count(I > 10) >= 3`."""
    if (first is None) != (last is None):
        raise half_window("count", first, last)
    if first is None:
        return Count(formula(body))
    return Count(formula(body), step(first), step(last))


def reaches(condition: Formula, first: Any = None, last: Any = None) -> Reaches:
    """`condition` holds at some moment between the steps, also between the times of the grid."""
    if (first is None) != (last is None):
        raise half_window("reaches", first, last)
    if first is None:
        return Reaches(formula(condition))
    return Reaches(formula(condition), step(first), step(last))


def one_of(subject: Any, *values: Any) -> Formula:
    """Membership in a set of numbers or categories."""
    return disjunction(*(Compare((term(subject), term(value)), ("=",)) for value in values))
