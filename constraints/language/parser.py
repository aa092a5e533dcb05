"""Text to formulas: `parse(str(f)) == f` for every formula f whose variables are bound.

lark reads the text into a tree without recursion; `_Reader` then walks the tree, with the bound
variables in scope, and says with a caret what cannot be meant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedInput

from constraints.ast import formulas as f
from constraints.ast.nodes import DEEPEST
from constraints.ast.terms import (
    AGGREGATES,
    BUILT_IN,
    END,
    NOW,
    PIXEL,
    POINTWISE,
    SERIES,
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
from constraints.errors import FormulaError, caret, unknown
from constraints.language.syntax_errors import syntax

LENGTH = 20_000  # characters in a formula
NESTING = DEEPEST + 2  # trees inside one another; a signed number is two, and one node

_COMMENT = re.compile(r"#[^\n]*")
_SAME = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}

_TEMPORAL = {
    "always": f.always,
    "eventually": f.eventually,
    "historically": f.historically,
    "once": f.once,
}

Tree_ = Tree[Token]
Piece = Term | f.Formula


def parse(text: str) -> f.Formula:
    """The formula that `text` states; FormulaError, with a caret, where it states none."""
    if not isinstance(text, str):
        raise FormulaError(
            f"a formula is text such as 'forall t: I(t) <= 20', not {type(text).__name__}"
        )
    if len(text) > LENGTH:
        raise FormulaError(
            f"a formula has at most {LENGTH} characters, not {len(text)}; write it as several rules"
        )
    if not _COMMENT.sub("", text).strip():
        raise FormulaError('the formula is empty; write one such as "forall t: I(t) <= 20"')
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as problem:
        raise syntax(text, problem) from None
    return _Reader(text).formula(tree.children[0], frozenset())


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("formula.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic")


class _Reader:
    """Turns a parse tree into nodes; `scope` holds the variables bound around the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nesting = 0

    def formula(self, tree: Tree_ | Token, scope: frozenset[str], advice: str = "") -> f.Formula:
        piece = self.read(tree, scope)
        if isinstance(piece, f.Formula):
            return piece
        if isinstance(piece, Apply) and f.stands_alone(piece):
            return f.Holds(piece)
        shown = _brief(piece)
        advice = advice or f"; compare it with something, as in {shown} <= 1"
        raise self.error(tree, f"{shown} is a number where a formula is wanted{advice}")

    def term(self, tree: Tree_ | Token, scope: frozenset[str], advice: str = "") -> Term:
        piece = self.read(tree, scope)
        if isinstance(piece, Term):
            return piece
        advice = advice if isinstance(piece, f.Compare) else ""
        raise self.error(tree, f"{_brief(piece)} is a formula where a number is wanted{advice}")

    def read(self, tree: Tree_ | Token, scope: frozenset[str]) -> Piece:
        assert isinstance(tree, Tree)
        self.nesting += 1
        if self.nesting > NESTING:
            raise self.error(
                tree, f"the formula nests more than {DEEPEST} levels deep; write several rules"
            )
        try:
            piece: Piece = getattr(self, f"_{tree.data}")(tree, tree.children, scope)
        except FormulaError as problem:
            if "\n" in str(problem):  # it has its caret
                raise
            raise self.error(tree, str(problem)) from None
        self.nesting -= 1
        return piece

    def error(self, place: Tree_ | Token, message: str) -> FormulaError:
        while isinstance(place, Tree):  # where its first word stands
            place = place.children[0]
        return caret(self.text, place.start_pos or 0, message)

    # formulas

    def _connective(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        build = {"i": f.Implies, "-": f.Implies, "=": f.Implies, "<": f.Iff, "x": f.Xor}
        advice = "; => means implies, at least is written >=" if str(parts[1]) == "=>" else ""
        found = self.formula(parts[0], scope, advice)
        for word, part in zip(parts[1::2], parts[2::2], strict=True):
            kind = f.Iff if str(word) == "iff" else build[str(word)[0]]
            found = kind(found, self.formula(part, scope))
        return found

    def _disjunction(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return f.Or(tuple(self.formula(part, scope) for part in parts[::2]))

    def _conjunction(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return f.And(tuple(self.formula(part, scope) for part in parts[::2]))

    def _until(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        left, word, *window, right = parts
        first, last = self.offsets(window[0], scope) if window else (0, None)
        before, after = self.formula(left, scope), self.formula(right, scope)
        match str(word).split()[0]:
            case "weak":
                return before.weak_until(after, first, last)
            case "release":
                return before.release(after, first, last)
            case "until":
                return before.until(after, first, last)
            case "since":
                return before.since(after, first, last)
        return f.Until("forall", before, after, first, last, past=True)

    def _negation(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return f.Not(self.formula(parts[1], scope))

    def _temporal(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        word, *window, body = parts
        first, last = self.offsets(window[0], scope) if window else (0, None)
        inner = self.formula(body, scope)
        if str(word) in _TEMPORAL:
            return _TEMPORAL[str(word)](inner, first, last)
        if window:
            raise self.error(window[0], f"{word} takes no window; use always[a,b] or once[a,b]")
        return f.eventually(inner, 1, 1) if str(word) == "next" else f.once(inner, 1, 1)

    def _quantifier(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        kind, variable, *domain, body = parts
        name = str(variable.children[0])
        if name in BUILT_IN:
            raise self.error(variable, f"{name} is a function; choose another variable name")
        first = last = region = None
        if domain and len(domain[0].children) == 2:
            first, last = (self.step(bound, scope) for bound in domain[0].children)
        elif domain:
            region = _unquoted(domain[0].children[0])
        inner = self.formula(body, scope | {name})
        return f.Quantifier(str(kind), name, first, last, inner, region)

    def _comparison(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        tolerance = None
        sign = parts[-2]
        if isinstance(sign, Token) and sign.type == "TOLERANCE":
            *parts, _, allowed = parts
            if len(parts) != 3 or str(parts[1]) not in ("=", "==", "!=", "≠"):
                raise self.error(sign, f"{sign} says how far a single = or != may be off")
            value = self.term(allowed, scope)
            if not isinstance(value, Const):
                raise self.error(allowed, f"a tolerance is a number, not {_brief(value)}")
            tolerance = value.value
        terms = tuple(self.side(part, scope, "; a chain is a < b < c") for part in parts[::2])
        relations = tuple(_SAME.get(str(word), str(word)) for word in parts[1::2])
        return f.Compare(terms, relations, tolerance)

    def side(self, tree: Tree_, scope: frozenset[str], hint: str = "") -> Term:
        """One side of a comparison, where `true` and `false` are what a signal may be."""
        if isinstance(tree, Tree) and tree.data == "truth":
            return Name(str(tree.children[0]), quoted=True)
        return self.term(tree, scope, hint)

    def _within(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        subject, *negated, low, high = parts
        inside = self.term(subject, scope).between(self.term(low, scope), self.term(high, scope))
        return f.Not(inside) if negated else inside

    def _member(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        subject, *rest = parts
        negated = isinstance(rest[0], Token)
        values = [self.side(part, scope) for part in rest[negated:]]
        inside = f.one_of(self.term(subject, scope), *values)
        return f.Not(inside) if negated else inside

    def _annotated(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        body, *settings = parts
        given: dict[str, float] = {}
        for setting in settings:
            name, sign, *value = setting.children
            if str(sign) != "=":
                raise self.error(sign, f"write {name}=number, not {name} {sign}")
            if str(name) not in ("k", "weight"):
                raise self.error(setting, str(unknown("setting", str(name), ("k", "weight"))))
            if str(name) in given:
                raise self.error(setting, f"{name} is given twice")
            given[str(name)] = self.number(value)
            if given[str(name)] <= 0:
                raise self.error(setting, f"{name} must be positive, not {given[str(name)]:g}")
        return f.Annotated(self.formula(body, scope), given.get("k"), given.get("weight"))

    def _truth(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return f.TRUE if parts[0] == "true" else f.FALSE

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
            return Name(_unquoted(name), int(number), name.type == "QUOTED")
        if name.type == "NAME" and str(name) in scope:
            return Step(str(name))
        return Name(_unquoted(name), quoted=name.type == "QUOTED")

    def _step(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return Step(END if parts[0] == "end" else NOW)

    def _clock(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return Step(None, 0, self.number(parts[0].children))

    def _at_time(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return At(self.term(parts[0], scope), Step(None, 0, self.number(parts[1].children)))

    def _call(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        head, *inside = parts
        word = head.children[0] if head.data == "name" and len(head.children) == 1 else None
        if isinstance(word, Token) and word.type == "NAME" and word in BUILT_IN:
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
        shown = _brief(callee)
        raise self.error(tree, f"{shown} is read at one step, as in {shown}(0)")

    def built_in(self, tree: Tree_, name: str, inside: list[Tree_], scope: frozenset[str]) -> Piece:
        """A function of the language on its arguments."""
        if name == "count":
            if len(inside) not in (1, 3):
                raise self.error(
                    tree,
                    "count takes a formula, or a formula and two steps, as in "
                    f"count(I > 10, 0, 5); not {len(inside)} arguments",
                )
            window = [self.step(part, scope) for part in inside[1:]]
            return Count(self.formula(inside[0], scope), *window)
        arguments = [self.term(part, scope) for part in inside]
        if name in POINTWISE or name in SERIES:
            wanted = POINTWISE.get(name, 1)
            if len(arguments) != wanted:
                raise self.error(tree, f"{name} takes {wanted} argument(s), not {len(arguments)}")
            return Apply(name, tuple(arguments))
        assert name in AGGREGATES
        if len(arguments) == 1:
            return Aggregate(name, arguments[0])
        several = name in ("max", "min")
        if len(arguments) == 3 and (not several or all(map(_is_step, inside[1:], arguments[1:]))):
            first, last = map(self.bound, inside[1:], arguments[1:])
            return Aggregate(name, arguments[0], first, last)
        if several and arguments:
            return Apply(name, tuple(arguments))
        if len(arguments) == 2 and isinstance(arguments[1], Name):
            return Aggregate(name, arguments[0], region=arguments[1].name)
        raise self.error(
            tree,
            f"{name} takes a signal, or a signal and two steps, as in {name}(I, 0, 5); "
            f"not {len(arguments)} arguments",
        )

    # times

    def step(self, tree: Tree_ | Token, scope: frozenset[str]) -> Step:
        """A bound of a window."""
        return self.bound(tree, self.term(tree, scope))

    def bound(self, tree: Tree_ | Token, value: Term) -> Step:
        try:
            return step(value)
        except FormulaError as problem:
            raise self.error(tree, str(problem)) from None

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
                    f"{'' if value is first else ' or at `end`'}, not at {_brief(value)}",
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


def _brief(piece: Piece) -> str:
    shown = str(piece)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _unquoted(token: Tree_ | Token) -> str:
    assert isinstance(token, Token)
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def _signed(tree: Tree_, signs: str = "+-") -> bool:
    return tree.data == "sign" and str(tree.children[0]) in signs


def _is_step(tree: Tree_, value: Term) -> bool:
    """Whether it can be a step; with a sign it is a number, as in max(x, +3, 5)."""
    whole = isinstance(value, Step) or (isinstance(value, Const) and value.value.is_integer())
    return whole and not _signed(tree)
