"""Parse trees of terms into nodes, with the bound variables in scope.

`TermReader` walks a tree of lark by the name of its rule; `parser` adds the rules of formulas. What
cannot be meant is refused with a caret at the place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lark import Token, Tree

from constraints.ast import formulas as f
from constraints.ast.aggregates import Aggregation, aggregates
from constraints.ast.nodes import MAX_DEPTH
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
from constraints.ast.words import END, NOW, PIXEL, POINTWISE, SERIES, is_built_in
from constraints.errors import FormulaError, caret

MAX_NESTING = MAX_DEPTH + 2  # trees inside one another; a signed number is two, and one node

Tree_ = Tree[Token]
Piece = Term | f.Formula


class TermReader:
    """Turns a parse tree into nodes; `scope` holds the variables bound around the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nesting = 0

    def formula(self, tree: Tree_ | Token, scope: frozenset[str], advice: str = "") -> f.Formula:
        piece = self.read(tree, scope)
        if isinstance(piece, f.Formula):
            return piece
        shown = brief(piece)
        advice = advice or f"; compare it with something, as in {shown} <= 1"
        try:
            return piece.as_formula()
        except FormulaError:
            message = f"{shown} is a number where a formula is wanted{advice}"
            raise self.error(tree, message) from None

    def term(self, tree: Tree_ | Token, scope: frozenset[str], advice: str = "") -> Term:
        piece = self.read(tree, scope)
        if isinstance(piece, Term):
            return piece
        advice = advice if isinstance(piece, f.Compare) else ""
        raise self.error(tree, f"{brief(piece)} is a formula where a number is wanted{advice}")

    def read(self, tree: Tree_ | Token, scope: frozenset[str]) -> Piece:
        assert isinstance(tree, Tree)
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise self.error(
                tree, f"the formula nests more than {MAX_DEPTH} levels deep; write several rules"
            )
        try:
            piece: Piece = getattr(self, f"_{tree.data}")(tree, tree.children, scope)
        except FormulaError as problem:
            raise problem.pointing(self.text, position(tree)) from None
        self.nesting -= 1
        return piece

    def error(self, place: Tree_ | Token, message: str) -> FormulaError:
        return caret(self.text, position(place), message)

    # terms

    def _sum(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        """From the left, as Python adds: a step takes in the whole numbers that follow it."""
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
                    f"an instance is a whole number from 1 on, not {parts[1]}; for a step write "
                    f"{name}({parts[1]})",
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

    def _call(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        head, *inside = parts
        word = head.children[0] if head.data == "name" and len(head.children) == 1 else None
        if isinstance(word, Token) and word.type == "NAME" and is_built_in(word):
            return self.built_in(tree, str(word), inside, scope)
        callee = self.term(head, scope)
        if isinstance(callee, Step):
            raise self.error(head, f"{callee} is a step, not a signal that is read at one")
        arguments = [self.term(part, scope) for part in inside]
        read = len(arguments) == 1 and isinstance(arguments[0], (Step, Const))
        if read and not (isinstance(callee, Name) and _signed(inside[0], "+")):
            return At(callee, self.bound(inside[0], arguments[0]))
        if isinstance(callee, Name) and callee.instance is None and arguments:
            return Apply(callee.name, tuple(arguments))
        if len(arguments) == 2 and not isinstance(callee, Const):
            return Apply(PIXEL, (callee, *arguments))
        shown = brief(callee)
        raise self.error(tree, f"{shown} is read at one step, as in {shown}(0)")

    def built_in(self, tree: Tree_, name: str, inside: list[Tree_], scope: frozenset[str]) -> Piece:
        """A function of the language on its arguments."""
        if name in aggregates():
            return self.aggregate(tree, aggregates()[name], inside, scope)
        arguments = [self.term(part, scope) for part in inside]
        wanted = 1 if name in SERIES else POINTWISE[name]
        if len(arguments) != wanted:
            raise self.error(tree, f"{name} takes {wanted} argument(s), not {len(arguments)}")
        return Apply(name, tuple(arguments))

    def aggregate(
        self, tree: Tree_, entry: Aggregation, inside: list[Tree_], scope: frozenset[str]
    ) -> Piece:
        """An aggregate of a term or a formula: its parameters, then a window or a region."""
        name, lead = entry.name, 1 + len(entry.parameters)
        if entry.of_formula:
            if len(inside) not in (1, 3):
                raise self.error(
                    tree,
                    f"{name} takes a formula, or a formula and two steps, as in "
                    f"{entry.signature}; not {len(inside)} arguments",
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
        also = "".join(f", its {each.name}" for each in entry.parameters)
        raise self.error(
            tree,
            f"{name} takes a signal{also}, or these and two steps, as in {entry.signature}; "
            f"not {len(arguments)} arguments"
            if also
            else f"{name} takes a signal, or a signal and two steps, as in {entry.signature}; "
            f"not {len(arguments)} arguments",
        )

    def plain(self, tree: Tree_, value: Term) -> float:
        """A parameter of an aggregate: a plain number."""
        if isinstance(value, Const):
            return value.value
        raise self.error(tree, f"{brief(value)} stands where a plain number is wanted")

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
                ends = "starts" if value is first else "ends"
                raise self.error(
                    part,
                    f"the window {ends} a whole number of steps away"
                    f"{'' if value is first else ' or at `end`'}, not at {brief(value)}",
                )
        assert isinstance(first, Const)
        a, b = int(first.value), int(last.value) if isinstance(last, Const) else None
        if a < 0:
            raise self.error(tree, f"{a} lies in the past; historically, once and since look back")
        if b is not None and b < a:
            raise self.error(tree, f"the window [{a},{b}] is reversed; write [{b},{a}]")
        return a, b

    def number(self, tokens: Sequence[Tree_ | Token]) -> float:
        """A number with its sign."""
        written = "".join(str(token) for token in tokens)
        value = float(written)
        if not math.isfinite(value):
            shown = written if len(written) < 30 else f"{written[:20]}..."
            raise self.error(tokens[0], f"{shown} is too large: numbers go up to 1.7e308")
        return value


def position(place: Tree_ | Token) -> int:
    """Where the first word of a tree stands in the text."""
    while isinstance(place, Tree):
        place = place.children[0]
    return place.start_pos or 0


def brief(piece: Piece) -> str:
    shown = str(piece)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def unquoted(token: Tree_ | Token) -> str:
    assert isinstance(token, Token)
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def _signed(tree: Tree_, signs: str = "+-") -> bool:
    return tree.data == "sign" and str(tree.children[0]) in signs


def _is_step(tree: Tree_, value: Term) -> bool:
    """Whether it can be a step; with a sign it is a number, as in max(x, +3, 5)."""
    whole = isinstance(value, Step) or (isinstance(value, Const) and value.value.is_integer())
    return whole and not _signed(tree)
