"""Text to formulas. `parse(str(f)) == f` for every formula f.

lark reads the text into a tree without recursion; `_Reader` then walks the tree, with the bound
variables in scope, and says with a caret what cannot be meant.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from constraints import formula as f
from constraints.errors import FormulaError, caret, unknown
from constraints.printer import WORDS
from constraints.terms import (
    AGGREGATES,
    BUILT_IN,
    END,
    NOW,
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

LENGTH = 20_000  # characters in a formula
NESTING = 60  # brackets and operators inside one another

_SAME = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_WRITTEN = {
    "NAME": "a name",
    "QUOTED": "a name",
    "NUMBER": "a number",
    "COMPARE": "a comparison (<=, <, >=, >, =, !=)",
    "ADD": "+ or -",
    "MULTIPLY": "* or /",
    "POWER": "^",
    "TOLERANCE": "+-",
    "IFF": "iff",
    "IMPLIES": "implies",
    "BINARY": "until, since, release",
    "UNARY": "always, eventually, ...",
    "_IN": "in",
    "LPAR": "(",
    "RPAR": ")",
    "LSQB": "[",
    "RSQB": "]",
    "LBRACE": "{",
    "RBRACE": "}",
    "COMMA": ",",
    "COLON": ":",
    "AT": "@",
    "$END": "the end",
}
_STARTS = {"NOT", "FORALL", "EXISTS", "UNARY", "TRUE", "FALSE", "END", "NOW", "AT"}  # not listed
_OPERATORS = {"ADD", "MULTIPLY", "POWER", "COMPARE", "AND", "OR", "XOR", "NOT", "IFF", "IMPLIES"}
_OPERATORS |= {"BINARY", "_IN", "TOLERANCE", "AT", "LPAR", "LSQB"}
_MEANT = {"&": "and", "|": "or", "~": "not", "!": "not", "∧": "and", "∨": "or", "¬": "not"}
_MEANT |= {"∀": "forall", "∃": "exists", ";": "and", "%": "a number without %", "$": "a name"}

Tree_ = Tree[Token]
Piece = Term | f.Formula


def parse(text: str) -> f.Formula:
    """The formula that `text` states; FormulaError, with a caret, where it states none."""
    if not isinstance(text, str):
        raise FormulaError(f"a formula is text, not {text!r}")
    if len(text) > LENGTH:
        raise FormulaError(f"a formula has at most {LENGTH} characters, not {len(text)}")
    if not text.strip():
        raise FormulaError('the formula is empty; write one such as "forall t: I(t) <= 20"')
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as problem:
        raise _syntax(text, problem) from None
    return _Reader(text).formula(tree.children[0], frozenset())


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("formula.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic", propagate_positions=True)


def _syntax(text: str, problem: UnexpectedInput) -> FormulaError:
    if isinstance(problem, UnexpectedCharacters):
        position, found = problem.pos_in_stream or 0, text[problem.pos_in_stream or 0]
        if found in "\"'":
            return caret(text, position, "this quotation mark has no partner on its line")
        hint = f"; write {_MEANT[found]}" if found in _MEANT else ""
        return caret(text, position, f"{found!r} is not part of the language{hint}")
    assert isinstance(problem, UnexpectedToken)
    token = problem.token
    position = len(text.rstrip()) if token.type == "$END" else token.start_pos or 0
    found = "the formula stops here" if token.type == "$END" else f"{str(token)!r} is misplaced"
    if str(token) in WORDS and "NAME" in problem.expected:
        found += f' (a signal of that name is written "{token}")'
    if token.type == "TOLERANCE":
        found += " (+- states a tolerance after =; to subtract write a space: + -)"
    return caret(text, position, f"{found}; expected {_expected(problem.expected)}")


def _expected(terminals: set[str]) -> str:
    """What could have stood there, for people: the essential ones first, without repetition."""
    wanted = terminals - _STARTS if "NAME" in terminals else terminals
    if "AND" in terminals:  # after a complete operand
        wanted = terminals - _OPERATORS | {"an operator such as +, <=, and"}
    names = dict.fromkeys(_WRITTEN.get(name, name.lower()) for name in sorted(wanted))
    shown = [name for name in names if name not in ("the end", "@")] or list(names)
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " or " + shown[-1]


class _Reader:
    """Turns a parse tree into nodes; `scope` holds the variables bound around the place."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nesting = 0

    def formula(self, tree: Tree_ | Token, scope: frozenset[str]) -> f.Formula:
        piece = self.read(tree, scope)
        if isinstance(piece, f.Formula):
            return piece
        if isinstance(piece, Apply) and piece.function not in (*BUILT_IN, "+", "neg", "*", "/"):
            return f.Compare((piece, Const(0)), (">=",))  # a user's function: its sign decides
        raise self.error(tree, f"{piece} is a number; compare it with something: {piece} <= 1")

    def term(self, tree: Tree_ | Token, scope: frozenset[str]) -> Term:
        piece = self.read(tree, scope)
        if isinstance(piece, Term):
            return piece
        raise self.error(tree, f"a number is wanted here, and ({piece}) is a formula")

    def read(self, tree: Tree_ | Token, scope: frozenset[str]) -> Piece:
        assert isinstance(tree, Tree)
        self.nesting += 1
        if self.nesting > NESTING:
            raise self.error(
                tree, f"the formula nests more than {NESTING} levels deep; write several rules"
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
        position = place.start_pos if isinstance(place, Token) else place.meta.start_pos
        return caret(self.text, position or 0, message)

    # formulas

    def _connective(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        build = {"i": f.Implies, "-": f.Implies, "=": f.Implies, "<": f.Iff, "x": f.Xor}
        found = self.formula(parts[0], scope)
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
        match str(word):
            case "always":
                return f.always(inner, first, last)
            case "eventually":
                return f.eventually(inner, first, last)
            case "historically":
                return f.historically(inner, first, last)
            case "once":
                return f.once(inner, first, last)
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
        if any(isinstance(part, Token) and part.type == "TOLERANCE" for part in parts):
            *parts, _, allowed = parts
            value = self.term(allowed, scope)
            if not isinstance(value, Const):
                raise self.error(allowed, f"a tolerance is a number, not {value}")
            tolerance = value.value
        terms = tuple(self.term(part, scope) for part in parts[::2])
        relations = tuple(_SAME.get(str(word), str(word)) for word in parts[1::2])
        return f.Compare(terms, relations, tolerance)

    def _within(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        subject, *negated, low, high = parts
        inside = self.term(subject, scope).between(self.term(low, scope), self.term(high, scope))
        return f.Not(inside) if negated else inside

    def _member(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        subject, *rest = parts
        negated = isinstance(rest[0], Token)
        values = [self.term(part, scope) for part in rest[negated:]]
        inside = f.one_of(self.term(subject, scope), *values)
        return f.Not(inside) if negated else inside

    def _annotated(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        body, *settings = parts
        given: dict[str, float] = {}
        for setting in settings:
            name, sign, value = setting.children
            if str(sign) != "=":
                raise self.error(sign, f"write {name}=number, not {name} {sign}")
            if str(name) not in ("k", "weight"):
                raise self.error(setting, str(unknown("setting", str(name), ("k", "weight"))))
            if str(name) in given:
                raise self.error(setting, f"{name} is given twice")
            given[str(name)] = self.number(value)
        return f.Annotated(self.formula(body, scope), given.get("k"), given.get("weight"))

    def _truth(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return f.TRUE if parts[0] == "true" else f.FALSE

    # terms

    def _sum(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        terms = [self.term(parts[0], scope)]
        for sign, part in zip(parts[1::2], parts[2::2], strict=True):
            value = self.term(part, scope)
            terms.append(negative(value) if str(sign) == "-" else value)
        return add(*terms)

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
        return Const(float(parts[0]))

    def _name(self, tree: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        name = parts[0]
        if len(parts) == 2:
            if not parts[1].isdecimal() or len(parts[1]) > 6:
                raise self.error(parts[1], f"an instance is a whole number, not {parts[1]}")
            return Name(_unquoted(name), int(parts[1]), name.type == "QUOTED")
        if name.type == "NAME" and str(name) in scope:
            return Step(str(name))
        return Name(_unquoted(name), quoted=name.type == "QUOTED")

    def _step(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return Step(END if parts[0] == "end" else NOW)

    def _clock(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return Step(None, 0, self.number(parts[0]))

    def _at_time(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return At(self.term(parts[0], scope), Step(None, 0, self.number(parts[1])))

    def _call(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        head, *inside = parts
        word = head.children[0] if head.data == "name" and len(head.children) == 1 else None
        if isinstance(word, Token) and word.type == "NAME" and word in BUILT_IN:
            return self.built_in(tree, str(word), inside, scope)
        callee = self.term(head, scope)
        if isinstance(callee, Step):
            raise self.error(head, f"{callee} is a time variable; it has no value at a time")
        arguments = [self.term(part, scope) for part in inside]
        if len(arguments) == 1 and isinstance(arguments[0], (Step, Const)):
            return At(callee, step(arguments[0]))
        if isinstance(callee, Name) and callee.instance is None and arguments:
            return Apply(callee.name, tuple(arguments))
        raise self.error(tree, f"{callee} is read at one step, as in {callee}(0)")

    def built_in(self, tree: Tree_, name: str, inside: list[Tree_], scope: frozenset[str]) -> Piece:
        """A function of the language on its arguments."""
        if name == "count":
            if len(inside) not in (1, 3):
                raise self.error(tree, "write count(formula) or count(formula, first, last)")
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
        if len(arguments) == 3 and all(_is_step(bound) for bound in arguments[1:]):
            return Aggregate(name, arguments[0], step(arguments[1]), step(arguments[2]))
        if name in ("max", "min") and arguments:
            return Apply(name, tuple(arguments))
        if len(arguments) == 2 and isinstance(arguments[1], Name):
            return Aggregate(name, arguments[0], region=arguments[1].name)
        raise self.error(tree, f"write {name}(signal) or {name}(signal, first step, last step)")

    # times

    def step(self, tree: Tree_, scope: frozenset[str]) -> Step:
        """A bound of a window."""
        return step(self.term(tree, scope))

    def offsets(self, tree: Tree_, scope: frozenset[str]) -> tuple[int, int | None]:
        """A window relative to now: whole numbers, or `end`."""
        bounds = [self.term(part, scope) for part in tree.children]
        first, last = (step(b) if isinstance(b, (Const, Step)) else None for b in bounds)
        if first is None or first.base is not None or first.time is not None:
            raise self.error(
                tree, f"the window starts a whole number of steps away, not {bounds[0]}"
            )
        if last is not None and last.time is None and last.base in (None, END):
            if last.base is None:
                return first.offset, last.offset
            if last.offset == 0:
                return first.offset, None
        raise self.error(
            tree, f"the window ends a whole number of steps away or at `end`, not {bounds[1]}"
        )

    def number(self, tree: Tree_) -> float:
        """A number with its sign."""
        return float("".join(str(token) for token in tree.children))


def _unquoted(token: Tree_ | Token) -> str:
    assert isinstance(token, Token)
    return str(token)[1:-1] if token.type == "QUOTED" else str(token)


def _is_step(value: Term) -> bool:
    return isinstance(value, Step) or (isinstance(value, Const) and value.value.is_integer())
