"""Formulas: comparisons of terms, connectives, quantifiers over steps or pixels, and `until`.

Everything else is syntactic sugar over these nodes: `always[a,b](f)` is a `Quantifier` that moves
`now`. Formulas are immutable and hashable and print as text that parses back to them. They have no
truth value: `__bool__` raises, so that Python's `and`, `or`, `not` and chained comparisons do not
silently drop parts of a formula.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from constraints.ast.nodes import Node, plain_number
from constraints.errors import FormulaError

if TYPE_CHECKING:
    from constraints.ast.terms import Step, Term

RELATIONS = ("<=", "<", ">=", ">", "=", "!=")
QUANTIFIERS = ("forall", "exists")
NUMBER_DOMAIN = "#"  # the region of a quantifier over plain numbers, not steps


def unknown_quantifier(kind: str) -> FormulaError:
    return FormulaError(f"unknown quantifier {kind!r}", value=kind, allowed=QUANTIFIERS)


def half_window(what: str, first: object, last: object) -> FormulaError:
    """Error for a window of which only one end is given."""
    return FormulaError(
        f"{what} has a window of which only one end is given",
        value=last if first is None else first,
        remedy="give both ends, or neither",
    )


class Formula(Node):
    """A statement that each sample satisfies or not."""

    def __and__(self, other: Formula) -> Formula:
        return conjunction(self, formula(other))

    def __or__(self, other: Formula) -> Formula:
        return disjunction(self, formula(other))

    def __invert__(self) -> Formula:
        return Not(self)

    def __xor__(self, other: Formula) -> Formula:
        return Xor(self, formula(other))

    def implies(self, other: Formula) -> Formula:
        return Implies(self, formula(other))

    def iff(self, other: Formula) -> Formula:
        return Iff(self, formula(other))

    def until(self, other: Formula, first: int = 0, last: int | None = None) -> Formula:
        """`other` holds at a step in first..last from now, and self at every step before it."""
        return Until("exists", self, formula(other), first, last)

    def weak_until(self, other: Formula, first: int = 0, last: int | None = None) -> Formula:
        """Until, or self throughout."""
        return Until("exists", self, formula(other), first, last, weak=True)

    def release(self, other: Formula, first: int = 0, last: int | None = None) -> Formula:
        """`other` holds up to and including the step at which self does."""
        return Until("forall", self, formula(other), first, last)

    def since(self, other: Formula, first: int = 0, last: int | None = None) -> Formula:
        """`other` held first..last steps ago, and self at every step after that."""
        return Until("exists", self, formula(other), first, last, past=True)

    def given(self, k: float | None = None, weight: float | None = None) -> Formula:
        """The same formula with its own hardness `k` or weight."""
        return Annotated(self, k, weight)

    def as_formula(self) -> Formula:
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.key == other.key

    __hash__ = Node.__hash__

    def __bool__(self) -> NoReturn:
        raise TypeError(
            f"the formula ({self}) has no truth value of its own. In place of `and`, `or`, `not` "
            "write &, |, ~ with parentheses; in place of a < x < b write x.between(a, b) or "
            "(a < x) & (x < b); to judge data, compile it and evaluate"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Compare(Formula):
    """A chain of comparisons, `a <= b <= c`: all of its links hold.

    `tolerance`: how far an equality may be off and still count as met; None is exact for integer
    data and a small share of the range for real data.
    """

    terms: tuple[Term, ...]
    relations: tuple[str, ...]
    tolerance: float | None = None

    def __post_init__(self) -> None:
        if len(self.terms) != len(self.relations) + 1 or not self.relations:
            raise FormulaError(
                f"a comparison of {len(self.terms)} terms needs one relation less than terms, not "
                f"{len(self.relations)}",
                value=self.relations,
            )
        for relation in self.relations:
            if relation not in RELATIONS:
                raise FormulaError(
                    f"unknown relation {relation!r}", value=relation, allowed=RELATIONS
                )
        if self.tolerance is not None:
            object.__setattr__(self, "tolerance", plain_number(self.tolerance))
            if self.tolerance < 0:
                raise FormulaError(
                    f"a tolerance is a number >= 0, not {self.tolerance:g}", value=self.tolerance
                )
            if self.relations not in {("=",), ("!=",)}:
                raise FormulaError(
                    f"a comparison with {', '.join(self.relations)} has no tolerance",
                    value=self.tolerance,
                    remedy="only a single = or != has one; state two inequalities",
                )
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Holds(Formula):
    """A call that is a statement by itself: the class of an image, or a function >= 0."""

    call: Term


@dataclass(frozen=True, eq=False, repr=False)
class Not(Formula):
    body: Formula


def _flat(kind: type[And] | type[Or], parts: tuple[Formula, ...]) -> tuple[Formula, ...]:
    flat: list[Formula] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, kind) and part.parts else [part])
    return tuple(flat)


@dataclass(frozen=True, eq=False, repr=False)
class And(Formula):
    """All of its parts, flat; of none, true."""

    joins_observations: ClassVar[bool] = True

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(And, self.parts))
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Or(Formula):
    """At least one of its parts, flat; of none, false."""

    parts: tuple[Formula, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", _flat(Or, self.parts))
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Implies(Formula):
    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False, repr=False)
class Iff(Formula):
    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False, repr=False)
class Xor(Formula):
    left: Formula
    right: Formula


@dataclass(frozen=True, eq=False, repr=False)
class Quantifier(Formula):
    """`body` for all (or some) values of `variable`: the steps first..last, or the pixels of a
    region; everywhere where neither is given."""

    kind: str
    variable: str
    first: Step | None
    last: Step | None
    body: Formula
    region: str | Node | None = None

    def __post_init__(self) -> None:
        if self.kind not in QUANTIFIERS:
            raise unknown_quantifier(self.kind)
        if (self.first is None) != (self.last is None):
            raise half_window(self.kind, self.first, self.last)
        if self.first is not None and self.region not in (None, NUMBER_DOMAIN):
            raise FormulaError(
                f"{self.kind} has a window of steps and a region",
                value=self.region,
                remedy="give one of them",
            )
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Reaches(Formula):
    """The state meets `body` at some moment between the steps first and last, on the grid or not;
    between its ends where neither is given."""

    body: Formula
    first: Step | None = None
    last: Step | None = None

    def __post_init__(self) -> None:
        if (self.first is None) != (self.last is None):
            raise half_window("reaches", self.first, self.last)
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Until(Formula):
    """exists: `right` at some u, first..last steps from now, and `left` at every step before u.

    forall is its dual (release): `right` at every such u unless `left` held before it. `past`
    looks back: "before u" becomes "after u". `last` None: to the end, or back to the start.
    `weak`: or `left` at every step, with no u (kind "exists", not past).
    """

    kind: str
    left: Formula
    right: Formula
    first: int = 0
    last: int | None = None
    past: bool = False
    weak: bool = False

    def __post_init__(self) -> None:
        if self.kind not in QUANTIFIERS:
            raise unknown_quantifier(self.kind)
        check_window("until", self.first, self.last)
        object.__setattr__(self, "first", int(self.first))
        object.__setattr__(self, "last", None if self.last is None else int(self.last))
        super().__post_init__()


@dataclass(frozen=True, eq=False, repr=False)
class Annotated(Formula):
    """A formula with its own hardness `k` (for its atoms) or weight (of its log-value)."""

    body: Formula
    k: float | None = None
    weight: float | None = None

    def __post_init__(self) -> None:
        for name in ("k", "weight"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, plain_number(value))
                if not getattr(self, name) > 0:
                    raise FormulaError(f"{name} must be positive, not {value:g}", value=value)
        if self.k is None and self.weight is None:
            raise FormulaError(
                "a formula is annotated with neither k nor weight", remedy="give k, weight or both"
            )
        super().__post_init__()


TRUE, FALSE = And(()), Or(())


def formula(value: Any) -> Formula:
    """A formula from a formula, or from a call that is a statement by itself."""
    if isinstance(value, Node):
        return value.as_formula()
    raise FormulaError(
        f"{value!r} stands where a formula is wanted",
        value=value,
        remedy="compare a term with something",
    )


def conjunction(*parts: Formula) -> Formula:
    """The flat conjunction; a single part stands for itself."""
    checked = tuple(formula(part) for part in parts)
    return checked[0] if len(checked) == 1 else And(checked)


def disjunction(*parts: Formula) -> Formula:
    """The flat disjunction; a single part stands for itself."""
    checked = tuple(formula(part) for part in parts)
    return checked[0] if len(checked) == 1 else Or(checked)


def implies(left: Formula, right: Formula) -> Formula:
    return Implies(formula(left), formula(right))


def iff(left: Formula, right: Formula) -> Formula:
    return Iff(formula(left), formula(right))


def check_window(name: str, first: int, last: int | None) -> None:
    """Reject a window relative to now that is not in whole steps, or that is reversed."""
    for bound in (first, last):
        if bound is not None and (isinstance(bound, bool) or not hasattr(bound, "__index__")):
            raise FormulaError(
                f"{name}: a window is given in whole steps, not {bound!r}", value=bound
            )
    if first < 0 or (last is not None and last < first):
        raise FormulaError(
            f"{name}[{first},{'end' if last is None else last}] is negative or reversed",
            value=(first, last),
            remedy="a window runs from a step >= 0 up to the same or a later one",
        )
