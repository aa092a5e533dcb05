"""Observed numbers as statements about samples: y ~ p(· | x), or x = y where they are exact.

A kind says where its observed numbers stand (a step of a series, a column of a row); each becomes
an observation of the constraint language, `76 ~ poisson(0.9*I(3))`, or an equation, `I(3) = 76`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from constraints import Formula, FormulaError, conjunction, parse
from constraints.ast.families import Distribution, Observation
from constraints.ast.formulas import Compare
from constraints.ast.nodes import Node
from constraints.ast.terms import Name, Term
from constraints.ast.walk import names as names_in
from constraints.errors import Action
from surrogate.errors import ModelError

RECORD = "surrogate_observed"  # the attribute of samples
MAP_REMEDY = Action(
    "say what a column observes: columns={'B': 'I'}", "say what a column observes: --map B=I"
)
Place = Callable[[Node], Node]  # a term or distribution, read at one place of a sample


@dataclass(frozen=True)
class Observed:
    """Statements by the column that they come from, and what was understood, in sentences."""

    statements: Mapping[str, Formula]
    notes: tuple[str, ...]
    record: Mapping[str, object]  # how the data were read, which samples carry as an attribute


@dataclass(frozen=True)
class Expected:
    """What is to be observed before there are numbers, in place of data: each stands as 1."""

    columns: tuple[str, ...]
    steps: tuple[int, ...] = ()
    """Of series."""
    once: tuple[str, ...] = ()
    """Columns that have one number, whatever the steps."""

    def rows(self) -> dict[str, list[float]]:
        """A table with the steps in a column."""
        single = [1.0] + [math.nan] * (len(self.steps) - 1)
        numbers = {c: single if c in self.once else [1.0] * len(self.steps) for c in self.columns}
        return {"step": [float(step) for step in self.steps], **numbers}

    def row(self) -> dict[str, float]:
        """One number of each column."""
        return dict.fromkeys(self.columns, 1.0)


@dataclass(frozen=True)
class Source:
    """What a column observes: a term, with a distribution about it or exactly."""

    column: str
    term: Term
    noise: Distribution | None

    def statement(self, value: float, place: Place, where: str) -> Formula:
        """One observed number as a formula; `where` names its place in errors."""
        try:
            if self.noise is not None:
                moved = place(self.noise)
                assert isinstance(moved, Distribution)
                return Observation(value, moved)
            term = place(self.term)
            assert isinstance(term, Term)
            return term.equals(value)
        except FormulaError as problem:
            raise problem.at(f"{self.column} {where}") from None

    def __str__(self) -> str:
        about = f"= {self.term}" if self.noise is None else f"~ {self.noise}"
        return f"{self.column} {about}"


def sources(
    columns: Sequence[str],
    mapping: Mapping[str, str],
    noise: Sequence[str],
    known: Collection[str],
) -> list[Source]:
    """What the columns of observed data observe; `known` are the variables of the model. Columns of
    the same names are meant unless others are mapped; with distributions, those that they name."""
    for column in mapping:
        if column not in columns:
            raise ModelError(
                f"the observed data have no column {column!r}", value=column, allowed=list(columns)
            )
    for text in noise:
        column, tilde, _ = (part.strip() for part in text.partition("~"))
        if tilde and column not in columns:
            raise ModelError(
                f"the observed data have no column {column!r}, which {text!r} is about",
                value=column,
                allowed=list(columns),
            )
    terms = {column: _term(text) for column, text in mapping.items()}
    if not mapping or noise:
        meant = set(columns) if not noise else set().union(*map(_mentioned, noise))
        same = [c for c in columns if c in known and c in meant and c not in terms]
        covered = set[str]().union(*map(names_in, terms.values()))
        terms |= {c: Name(c) for c in same if c not in covered}
    if not terms:
        raise ModelError(
            "no column of the observed data has the name of a variable",
            value=list(columns),
            allowed=list(known),
            remedy=MAP_REMEDY,
        )
    for column, term in terms.items():
        _check_names(column, term, known)
    found: dict[str, Distribution] = {}
    for text in noise:
        for column in _columns_of(text, terms):
            if column in found:
                raise ModelError(f"two distributions are given for {column}", value=text)
            found[column] = _distribution(text)
            _check_names(column, found[column], known)
    return [Source(column, term, found.get(column)) for column, term in terms.items()]


def joined(statements: Mapping[str, Sequence[Formula]]) -> dict[str, Formula]:
    """One formula for each column that was observed at least once."""
    return {column: conjunction(*every) for column, every in statements.items() if every}


def _mentioned(text: str) -> set[str]:
    """The columns that a distribution may be about: the one that it names, or the variables."""
    column, tilde, _ = (part.strip() for part in text.partition("~"))
    return {column} if tilde else names_in(_distribution(text))


def _columns_of(text: str, terms: Mapping[str, Term]) -> list[str]:
    """The columns that a distribution is about: the one it names, the only one there is, or those
    that observe a variable which it names."""
    column, tilde, _ = (part.strip() for part in text.partition("~"))
    if tilde:
        if column not in terms:
            raise ModelError(
                f"{column!r} in {text!r} is no observed column", value=column, allowed=list(terms)
            )
        return [column]
    if len(terms) == 1:
        return list(terms)
    names = names_in(_distribution(text))
    found = [column for column, term in terms.items() if names_in(term) & names]
    if not found:
        raise ModelError(
            f"{text} names none of the observed variables",
            value=text,
            allowed=[str(term) for term in terms.values()],
            remedy=f"write 'COLUMN ~ {text}'",
        )
    return found


def _distribution(text: str) -> Distribution:
    """poisson(0.9*I), or what follows ~ in it."""
    written = text.rpartition("~")[2].strip()
    try:
        read = parse(f"1 ~ {written}")
    except FormulaError as problem:
        raise problem.at(f"noise {text!r}") from None
    if not isinstance(read, Observation):
        raise ModelError(
            f"{text!r} is no distribution",
            value=text,
            remedy="write poisson(0.9*I) or normal(x, 2)",
        )
    return read.distribution


def _term(text: str) -> Term:
    try:
        read = parse(f"{text} = 0")
    except FormulaError as problem:
        raise problem.at(f"map {text!r}") from None
    if not isinstance(read, Compare) or len(read.terms) != 2:
        raise ModelError(f"{text!r} is no term", value=text, remedy="write I, or 0.5*I")
    return read.terms[0]


def _check_names(column: str, node: Node, known: Collection[str]) -> None:
    for name in sorted(names_in(node)):
        if name not in known:
            raise ModelError(
                f"{column} observes {node}, and the model has no {name!r}",
                value=name,
                allowed=list(known),
                remedy=MAP_REMEDY,
            )
