"""Terms: real-valued expressions over signals.

A signal is a series (one value a step), a column (one value) or an image. A term reads one with
`At(signal, step)`, combines readings with arithmetic, and folds them over time with aggregates.
A series where a number is wanted is read at the step called `now`, which the temporal operators
move: `always[0,5](I <= 20)` is `forall now in [now, now + 5]: I(now) <= 20`.

Comparing terms (`I[t] <= 20`, `S[25] == 30`) builds a formula; it never yields True or False.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from constraints.ast.aggregates import aggregates
from constraints.ast.dates import canonical_date, is_date
from constraints.ast.formulas import Compare, Formula, Holds, half_window
from constraints.ast.nodes import Node, plain_number
from constraints.ast.words import ARITHMETIC, PIXEL, is_built_in
from constraints.errors import FormulaError, unknown

STEP_FORMS = "a whole number, a bound variable, `end`, or one of these plus or minus a whole number"
MAX_STEP = 10**9  # no grid is longer


class Term(Node):
    """An expression with one number for each sample, or, of a series, for each step."""

    def __add__(self, other: Any) -> Term:
        return add(self, term(other))

    def __radd__(self, other: Any) -> Term:
        return add(term(other), self)

    def __sub__(self, other: Any) -> Term:
        return add(self, negative(term(other)))

    def __rsub__(self, other: Any) -> Term:
        return add(term(other), negative(self))

    def __mul__(self, other: Any) -> Term:
        return Apply("*", (self, term(other)))

    def __rmul__(self, other: Any) -> Term:
        return Apply("*", (term(other), self))

    def __truediv__(self, other: Any) -> Term:
        return Apply("/", (self, term(other)))

    def __rtruediv__(self, other: Any) -> Term:
        return Apply("/", (term(other), self))

    def __pow__(self, other: Any) -> Term:
        return Apply("pow", (self, term(other)))

    def __rpow__(self, other: Any) -> Term:
        return Apply("pow", (term(other), self))

    def __neg__(self) -> Term:
        return negative(self)

    def __abs__(self) -> Term:
        return Apply("abs", (self,))

    def __le__(self, other: Any) -> Compare:
        return _compare(self, "<=", other)

    def __lt__(self, other: Any) -> Compare:
        return _compare(self, "<", other)

    def __ge__(self, other: Any) -> Compare:
        return _compare(self, ">=", other)

    def __gt__(self, other: Any) -> Compare:
        return _compare(self, ">", other)

    def __eq__(self, other: Any) -> Compare:  # type: ignore[override]
        return _compare(self, "=", other)

    def __ne__(self, other: Any) -> Compare:  # type: ignore[override]
        return _compare(self, "!=", other)

    __hash__ = Node.__hash__

    def __bool__(self) -> bool:
        raise TypeError(f"the term {self} has no truth value; compare it: {self} > 0")

    def __getitem__(self, when: Any) -> Term:
        if isinstance(when, tuple):  # image[3, 4]
            return Apply(PIXEL, (self, *(term(each) for each in when)))
        return At(self, step(when))

    def __call__(self, *when: Any) -> Term:
        return self[when[0] if len(when) == 1 else when]

    def __iter__(self) -> Any:
        raise TypeError(f"the term {self} is not a sequence; read it at a step: {self}[0]")

    def at_time(self, when: float | str | date) -> At:
        """The value at model time `when`, or on a date, which must lie on the grid."""
        day = isinstance(when, (str, date))
        return At(self, Step(None, 0, canonical_date(when) if day else term(when).number()))

    def exp(self) -> Term:
        return Apply("exp", (self,))

    def log(self) -> Term:
        return Apply("log", (self,))

    def sqrt(self) -> Term:
        return Apply("sqrt", (self,))

    def max(self, first: Any = None, last: Any = None) -> Aggregate:
        return aggregate("max", self, first, last)

    def min(self, first: Any = None, last: Any = None) -> Aggregate:
        return aggregate("min", self, first, last)

    def mean(self, first: Any = None, last: Any = None) -> Aggregate:
        return aggregate("mean", self, first, last)

    def sum(self, first: Any = None, last: Any = None) -> Aggregate:
        return aggregate("sum", self, first, last)

    def integral(self, first: Any = None, last: Any = None) -> Aggregate:
        """Trapezoidal integral over model time."""
        return aggregate("integral", self, first, last)

    def argmax(self, first: Any = None, last: Any = None) -> Aggregate:
        """The first step with the largest value."""
        return aggregate("argmax", self, first, last)

    def argmin(self, first: Any = None, last: Any = None) -> Aggregate:
        return aggregate("argmin", self, first, last)

    def median(self, first: Any = None, last: Any = None) -> Aggregate:
        return aggregate("median", self, first, last)

    def quantile(self, level: float, first: Any = None, last: Any = None) -> Aggregate:
        """The value that a share `level` of the steps does not exceed."""
        return aggregate("quantile", self, first, last, parameters=(level,))

    def delta(self) -> Term:
        """The change since the previous step; 0 at the first."""
        return Apply("delta", (self,))

    def cumsum(self) -> Term:
        return Apply("cumsum", (self,))

    def between(self, low: Any, high: Any) -> Compare:
        """low <= self <= high"""
        return Compare((term(low), self, term(high)), ("<=", "<="))

    def equals(self, other: Any, tolerance: float | None = None) -> Compare:
        """Equality whose verdict allows a deviation of `tolerance`."""
        return Compare((self, term(other)), ("=",), tolerance)


@dataclass(frozen=True, eq=False, repr=False)
class Const(Term):
    value: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", float(self.value))
        if not math.isfinite(self.value):
            raise FormulaError(f"{self.value} is not a finite number", value=self.value)
        super().__post_init__()

    def number(self) -> float:
        return self.value


@dataclass(frozen=True, eq=False, repr=False)
class Name(Term):
    """The name of a signal, a parameter, a category or a region: the layout decides which."""

    name: str
    instance: int | None = None
    quoted: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise FormulaError(
                f"a name is a text that is not empty, not {self.name!r}", value=self.name
            )
        if '"' in self.name or not self.name.isprintable():
            raise FormulaError(
                f"{self.name!r} cannot be a name",
                value=self.name,
                remedy="leave out quotation marks and characters that do not print",
            )
        if self.instance is not None and not (
            isinstance(self.instance, int) and self.instance >= 1
        ):
            raise FormulaError(
                f"{self.name}[{self.instance}]: an instance is a whole number >= 1",
                value=self.instance,
                remedy=f"write {self.name}[1] for the first",
            )
        super().__post_init__()

    def of(self, instance: int) -> Name:
        """This signal of one of several instances: `alcohol[1]`."""
        return Name(self.name, instance, self.quoted)


@dataclass(frozen=True, eq=False, repr=False)
class Step(Term):
    """A grid step: `offset` from `base` (a bound variable, `now`, `end`; None is step 0).

    `time` is a model time or the text of a date instead, to be looked up on the grid. As a term it
    is the step's number.
    """

    base: str | None
    offset: int = 0
    time: float | str | None = None

    def __post_init__(self) -> None:
        if self.offset != int(self.offset) or abs(self.offset) > MAX_STEP:
            raise FormulaError(
                f"step {self.offset} is not on any grid",
                value=self.offset,
                remedy=f"steps are whole numbers up to {MAX_STEP:,}",
            )
        if isinstance(self.time, str):
            object.__setattr__(self, "time", canonical_date(self.time))
        elif self.time is not None and not math.isfinite(self.time):
            raise FormulaError(f"the time {self.time} is not a finite number", value=self.time)
        super().__post_init__()

    def shifted(self, by: int) -> Step:
        return Step(self.base, self.offset + by)


@dataclass(frozen=True, eq=False, repr=False)
class At(Term):
    """A series read at a step, or an image at a pixel."""

    series: Term
    step: Step


@dataclass(frozen=True, eq=False, repr=False)
class Apply(Term):
    """An operator or function on its arguments; `+` takes any number of them.

    Functions that are not built in are looked up in the layout when the formula is compiled.
    """

    function: str
    arguments: tuple[Term, ...]

    def as_formula(self) -> Formula:
        """A call of a function of the layout, whose sign decides; built-in functions raise."""
        own = is_built_in(self.function) or self.function in (*ARITHMETIC, PIXEL)
        return super().as_formula() if own else Holds(self)


@dataclass(frozen=True, eq=False, repr=False)
class Aggregate(Term):
    """An aggregate of `body` over the steps first..last (all of them, or a region, where None).

    `kind` is a name in the table of `aggregates`; `parameters` are its numbers besides the body.
    """

    kind: str
    body: Term
    first: Step | None = None
    last: Step | None = None
    region: str | Node | None = None
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in aggregates() or aggregates()[self.kind].of_formula:
            raise unknown("aggregate", self.kind, aggregates())
        checked = aggregates()[self.kind].check(self.parameters)
        object.__setattr__(self, "parameters", checked)
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Count(Term):
    """The number of steps first..last at which `body` holds."""

    body: Formula
    first: Step | None = None
    last: Step | None = None


def term(value: Any) -> Term:
    """A term from a term, a number, a name or a date."""
    if isinstance(value, Term):
        return value
    if isinstance(value, str):
        return Name(value, quoted=True)
    if isinstance(value, date):  # or a datetime: as its text
        return Name(value.isoformat(), quoted=True)
    if isinstance(value, Node):
        raise FormulaError(f"{value} is a formula where a number is wanted", value=value)
    try:
        return Const(float(value))
    except (TypeError, ValueError):
        raise FormulaError(f"{value!r} is neither a term nor a number", value=value) from None
    except OverflowError:
        raise FormulaError(
            "the number is too large", value=value, remedy="numbers go up to 1.7e308"
        ) from None


def step(value: Any) -> Step:
    """A step from a Step, a whole number or a date."""
    if isinstance(value, Step):
        return value
    if isinstance(value, Name) and value.quoted and value.instance is None:
        value = value.name
    if isinstance(value, (str, date)) and is_date(value):
        return Step(None, 0, canonical_date(value))
    if isinstance(value, Const):
        value = value.value
    if not isinstance(value, Term) and hasattr(value, "__index__"):  # numpy integers and the like
        value = operator.index(value)
    if not isinstance(value, (int, float)):
        raise FormulaError(f"{value!s} is not a step", value=value, remedy=f"write {STEP_FORMS}")
    if not math.isfinite(value) or value != int(value):
        raise FormulaError(
            f"step {value:g} is not a whole number",
            value=value,
            remedy=f"for the model time {value:g} write @{value:g}",
        )
    return Step(None, int(value))


def add(*parts: Term) -> Term:
    """A sum, flat; a step plus whole numbers is a step."""
    flat: list[Term] = []
    for part in parts:
        flat.extend(part.arguments if isinstance(part, Apply) and part.function == "+" else [part])
    steps = [part for part in flat if isinstance(part, Step)]
    rest = [part for part in flat if not isinstance(part, Step)]
    whole = [part.value for part in rest if isinstance(part, Const) and part.value.is_integer()]
    if len(steps) == 1 and len(whole) == len(rest) and steps[0].time is None:
        by = math.fsum(whole) if all(abs(each) < 1e12 for each in whole) else math.inf
        return steps[0].shifted(int(min(by, 1e12)))
    return Apply("+", tuple(flat)) if len(flat) > 1 else flat[0]


def negative(part: Term) -> Term:
    if isinstance(part, Const):
        return Const(-part.value) if part.value else part
    return Apply("neg", (part,))


def aggregate(
    kind: str,
    body: Term,
    first: Any = None,
    last: Any = None,
    region: str | None = None,
    parameters: tuple[float, ...] = (),
) -> Aggregate:
    """An aggregate over all steps, or over first..last."""
    if (first is None) != (last is None):
        raise half_window(kind, first, last)
    numbers = tuple(plain_number(each) for each in parameters)
    if first is None:
        return Aggregate(kind, body, region=region, parameters=numbers)
    return Aggregate(kind, body, step(first), step(last), parameters=numbers)


def _compare(left: Term, relation: str, right: Any) -> Compare:
    return Compare((left, term(right)), (relation,))
