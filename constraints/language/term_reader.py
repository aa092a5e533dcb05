"""Parse trees of terms turned into nodes, given the variables that are bound around them.

`TermReader` has one method for each rule of the grammar, called by the rule's name; `parser` adds
the rules of formulas. Errors show the line with a caret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lark import Token, Tree

from constraints.ast import formulas as f
from constraints.ast.aggregates import Aggregation, aggregates
from constraints.ast.nodes import MAX_DEPTH, misplaced_observation
from constraints.ast.terms import (
    Aggregate,
    Apply,
    At,
    Const,
    Count,
    Name,
    Step,
    Term,
    add,
    negative,
    step,
)
from constraints.ast.words import END, NOW, PIXEL, POINTWISE, REACHES, SERIES, is_built_in
from constraints.errors import FormulaError, Remedy, caret

MAX_PARSE_DEPTH = MAX_DEPTH + 2  # nested parse trees; a signed number is two trees and one node
MAX_SHOWN_LENGTH = 60  # characters of a formula or term that an error shows

Tree_ = Tree[Token]
Piece = Term | f.Formula


class TermReader:
    """Turns parse trees into nodes; `scope` holds the variables bound around a tree."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nesting = 0

    def formula(self, tree: Tree_ | Token, scope: frozenset[str], remedy: str = "") -> f.Formula:
        """The tree as a formula; `remedy`: advice for a term where a formula is expected."""
        piece = self.read(tree, scope)
        if piece.observes:
            raise misplaced_observation(piece).pointing(self.text, position(tree))
        return piece if isinstance(piece, f.Formula) else self.as_formula(tree, piece, remedy)

    def as_formula(self, tree: Tree_ | Token, piece: Term, remedy: str = "") -> f.Formula:
        """A call that is a statement by itself; other terms raise."""
        shown = brief(piece)
        try:
            return piece.as_formula()
        except FormulaError:
            problem = f"{shown} is a number where a formula is wanted"
            remedy = remedy or f"compare it with something, as in {shown} <= 1"
            raise self.error(tree, problem, remedy) from None

    def factor(self, tree: Tree_ | Token, scope: frozenset[str]) -> f.Formula:
        """The tree as a formula, or as an observation, where one may stand."""
        piece = self.read(tree, scope)
        return piece if isinstance(piece, f.Formula) else self.as_formula(tree, piece)

    def term(self, tree: Tree_ | Token, scope: frozenset[str], remedy: str = "") -> Term:
        """The tree as a term; `remedy`: advice for a comparison where a term is expected."""
        piece = self.read(tree, scope)
        if isinstance(piece, Term):
            return piece
        advice: Remedy = remedy if remedy and isinstance(piece, f.Compare) else ()
        problem = f"{brief(piece)} is a formula where a number is wanted"
        raise self.error(tree, problem, advice)

    def read(self, tree: Tree_ | Token, scope: frozenset[str]) -> Piece:
        """The tree as a term or a formula, by the method of its grammar rule."""
        assert isinstance(tree, Tree)
        self.nesting += 1
        if self.nesting > MAX_PARSE_DEPTH:
            raise self.error(
                tree,
                f"the formula nests more than {MAX_DEPTH} levels deep",
                "write it as several rules",
            )
        try:
            piece: Piece = getattr(self, f"_{tree.data}")(tree, tree.children, scope)
        except FormulaError as problem:
            raise problem.pointing(self.text, position(tree)) from None
        self.nesting -= 1
        return piece

    def error(self, place: Tree_ | Token, problem: str, remedy: Remedy = ()) -> FormulaError:
        """An error with a caret at the tree or token."""
        return caret(self.text, position(place), problem, remedy)

    # terms

    def _sum(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        """Added from the left, as in Python; a step plus a whole number is a step."""
        terms = [self.term(parts[0], scope)]
        for sign, part in zip(parts[1::2], parts[2::2], strict=True):
            value = self.term(part, scope)
            terms.append(negative(value) if str(sign) == "-" else value)
        start = next((i for i, each in enumerate(terms) if not isinstance(each, Const)), 0)
        found = add(*terms[: start + 1])
        for i, value in enumerate(terms[start + 1 :], start + 1):
            if not isinstance(found, Step):
                return add(found, *terms[i:])
            found = add(found, value)
        return found

    def _product(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        found = self.term(parts[0], scope)
        for symbol, part in zip(parts[1::2], parts[2::2], strict=True):
            found = Apply(str(symbol), (found, self.term(part, scope)))
        return found

    def _sign(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        value = self.term(parts[1], scope)
        return negative(value) if str(parts[0]) == "-" else value

    def _power(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return Apply("pow", (self.term(parts[0], scope), self.term(parts[2], scope)))

    def _number(self, tree: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return Const(self.number(parts))

    def _name(self, tree: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        name = parts[0]
        if len(parts) == 2:
            number = self.number(parts[1:])
            if not number.is_integer() or not 1 <= number < 1e9:
                raise self.error(
                    parts[1],
                    f"an instance is a whole number >= 1, not {parts[1]}",
                    f"for a step write {name}({parts[1]})",
                )
            return Name(unquoted(name), int(number), name.type == "QUOTED")
        if name.type == "NAME" and str(name) in scope:
            return Step(str(name))
        return Name(unquoted(name), quoted=name.type == "QUOTED")

    def _step(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return Step(END if parts[0] == "end" else NOW)

    def _clock(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return Step(None, 0, self.number(parts[0].children))

    def _at_time(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return At(self.term(parts[0], scope), Step(None, 0, self.number(parts[1].children)))

    def _at_date(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return At(self.term(parts[0], scope), Step(None, 0, unquoted(parts[1])))

    def _date(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return Step(None, 0, unquoted(parts[0]))

    def _call(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        head, *inside = parts
        word = head.children[0] if head.data == "name" and len(head.children) == 1 else None
        if isinstance(word, Token) and word.type == "NAME" and is_built_in(word):
            return self.built_in(tree, str(word), inside, scope)
        if isinstance(word, Token) and word.type == "NAME" and str(word) == REACHES:
            return self.reaches(tree, inside, scope)
        callee = self.term(head, scope)
        if isinstance(callee, Step):
            raise self.error(
                head, f"{callee} is a step, not a signal", "a signal is read at a step, as in S(0)"
            )
        arguments = [self.term(part, scope) for part in inside]
        read = len(arguments) == 1 and isinstance(arguments[0], (Step, Const))
        if read and not (isinstance(callee, Name) and _signed(inside[0], "+")):
            return At(callee, self.bound(inside[0], arguments[0]))
        if isinstance(callee, Name) and callee.instance is None and arguments:
            return Apply(callee.name, tuple(arguments))
        if len(arguments) == 2 and not isinstance(callee, Const):
            return Apply(PIXEL, (callee, *arguments))
        shown = brief(callee)
        raise self.error(tree, f"{shown} is read at one step", f"write {shown}(0)")

    def built_in(self, tree: Tree_, name: str, inside: list[Tree_], scope: frozenset[str]) -> Piece:
        """A function of the language on its arguments."""
        if name in aggregates():
            return self.aggregate(tree, aggregates()[name], inside, scope)
        arguments = [self.term(part, scope) for part in inside]
        wanted = 1 if name in SERIES else POINTWISE[name]
        if len(arguments) != wanted:
            names = ", ".join("xyz"[:wanted])
            raise self.error(
                tree,
                f"{name} takes {wanted} argument(s), not {len(arguments)}",
                f"write {name}({names})",
            )
        return Apply(name, tuple(arguments))

    def reaches(self, tree: Tree_, inside: list[Tree_], scope: frozenset[str]) -> Piece:
        """A condition on the state at some moment of a window."""
        if len(inside) not in (1, 3):
            raise self.error(
                tree,
                f"{REACHES} takes a condition, or a condition and two steps, not {len(inside)} "
                "arguments",
                f"write {REACHES}(X >= 80, 0, 100)",
            )
        return f.Reaches(
            self.formula(inside[0], scope), *(self.step(part, scope) for part in inside[1:])
        )

    def aggregate(
        self, tree: Tree_, entry: Aggregation, inside: list[Tree_], scope: frozenset[str]
    ) -> Piece:
        """An aggregate of a term or a formula, with its parameters and a window or a region."""
        name, lead = entry.name, 1 + len(entry.parameters)
        if entry.of_formula:
            if len(inside) not in (1, 3):
                raise self.error(
                    tree,
                    f"{name} takes a formula, or a formula and two steps, not {len(inside)} "
                    "arguments",
                    f"write {entry.signature}",
                )
            window = [self.step(part, scope) for part in inside[1:]]
            return Count(self.formula(inside[0], scope), *window)
        arguments = [self.term(part, scope) for part in inside]
        several = entry.extreme is not None  # max(a, b, c) is a function of numbers
        numbers = tuple(map(self.plain, inside[1:lead], arguments[1:lead]))
        rest = list(zip(inside[lead:], arguments[lead:], strict=True))
        if len(arguments) == lead:
            return Aggregate(name, arguments[0], parameters=numbers)
        if len(rest) == 2 and (not several or all(_is_step(*each) for each in rest)):
            first, last = (self.bound(*each) for each in rest)
            return Aggregate(name, arguments[0], first, last, parameters=numbers)
        if several and arguments:
            return Apply(name, tuple(arguments))
        if len(rest) == 1 and isinstance(rest[0][1], Name):
            return Aggregate(name, arguments[0], region=rest[0][1].name, parameters=numbers)
        alone = " and ".join(["a signal", *(f"a {each.name}" for each in entry.parameters)])
        longer = f"{'these' if entry.parameters else 'a signal'} and two steps"
        raise self.error(
            tree,
            f"{name} takes {alone}, or {longer}, not {len(arguments)} arguments",
            f"write {entry.signature}",
        )

    def plain(self, tree: Tree_, value: Term) -> float:
        """A parameter of an aggregate: a plain number."""
        if isinstance(value, Const):
            return value.value
        raise self.error(
            tree, f"{brief(value)} is not a plain number", "write a number such as 0.9"
        )

    # times

    def step(self, tree: Tree_ | Token, scope: frozenset[str]) -> Step:
        """A bound of a window."""
        return self.bound(tree, self.term(tree, scope))

    def bound(self, tree: Tree_ | Token, value: Term) -> Step:
        try:
            return step(value)
        except FormulaError as problem:
            raise problem.pointing(self.text, position(tree)) from None

    def offsets(self, tree: Tree_, scope: frozenset[str]) -> tuple[int, int | None]:
        """A window relative to now: whole numbers, or `end`."""
        first, last = (self.term(part, scope) for part in tree.children)
        for part, value in zip(tree.children, (first, last), strict=True):
            whole = isinstance(value, Const) and value.value.is_integer() and value.value <= 1e9
            if not whole and (value is first or value.key != Step(END).key):
                start = value is first
                legal = "a whole number" if start else "a whole number or `end`"
                raise self.error(
                    part,
                    f"the {'start' if start else 'end'} of a window is {legal}, not {brief(value)}",
                    "write a window such as [0,5] or [2,end], in steps from now",
                )
        assert isinstance(first, Const)
        a, b = int(first.value), int(last.value) if isinstance(last, Const) else None
        if a < 0:
            raise self.error(
                tree, f"{a} lies in the past", "historically, once and since look back"
            )
        if b is not None and b < a:
            raise self.error(tree, f"the window [{a},{b}] is reversed", f"write [{b},{a}]")
        return a, b

    def number(self, tokens: Sequence[Tree_ | Token]) -> float:
        """A number with its sign."""
        written = "".join(str(token) for token in tokens)
        value = float(written)
        if not math.isfinite(value):
            shown = written if len(written) < 30 else f"{written[:20]}..."
            raise self.error(tokens[0], f"{shown} is too large", "write a number up to 1.7e308")
        return value


def position(place: Tree_ | Token) -> int:
    """The position of the first token of a tree in the text."""
    while isinstance(place, Tree):
        place = place.children[0]
    return place.start_pos or 0


def brief(piece: Piece) -> str:
    """The text of a node for an error, shortened."""
    shown = str(piece)
    return shown if len(shown) <= MAX_SHOWN_LENGTH else f"{shown[: MAX_SHOWN_LENGTH - 3]}..."


def unquoted(token: Tree_ | Token) -> str:
    """A name without its quotation marks."""
    assert isinstance(token, Token)
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def _signed(tree: Tree_, signs: str = "+-") -> bool:
    return tree.data == "sign" and str(tree.children[0]) in signs


def _is_step(tree: Tree_, value: Term) -> bool:
    """Whether it can be a step; with a sign it is a number, as in max(x, +3, 5)."""
    whole = isinstance(value, Step) or (isinstance(value, Const) and value.value.is_integer())
    return whole and not _signed(tree)
