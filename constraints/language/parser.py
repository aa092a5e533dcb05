"""The parser of formulas: `parse(str(f)) == f` for every formula f without free variables.

lark (LALR, no recursion) turns the text into a parse tree by the grammar in formula.lark;
`_FormulaReader` turns the tree into a `Formula`. Its errors show the line with a caret.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from lark import Lark, Token, Tree, UnexpectedInput

from constraints.ast import formulas as f
from constraints.ast.build import always, eventually, historically, once, one_of
from constraints.ast.families import OBSERVATION_EXAMPLE, Observation, family_named
from constraints.ast.terms import Const, Name, Term
from constraints.ast.words import is_built_in
from constraints.errors import FormulaError, unknown
from constraints.language.syntax_errors import syntax_error
from constraints.language.term_reader import Piece, TermReader, Tree_, brief, position, unquoted

MAX_FORMULA_LENGTH = 20_000  # characters

_COMMENT = re.compile(r"#[^\n]*")
_RELATION_SYNONYMS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_FORMULA_EXAMPLE = 'write one such as "forall t: I(t) <= 20"'
_TEMPORAL_BUILDERS = {
    "always": always,
    "eventually": eventually,
    "historically": historically,
    "once": once,
}


def parse(text: str) -> f.Formula:
    """The formula that `text` states; a FormulaError with a caret if it states none."""
    if not isinstance(text, str):
        raise FormulaError(
            f"a formula is text, not {type(text).__name__}", value=text, remedy=_FORMULA_EXAMPLE
        )
    if len(text) > MAX_FORMULA_LENGTH:
        raise FormulaError(
            f"a formula has at most {MAX_FORMULA_LENGTH} characters, not {len(text)}",
            value=len(text),
            remedy="write it as several rules",
        )
    if not _COMMENT.sub("", text).strip():
        raise FormulaError("the formula is empty", value=text, remedy=_FORMULA_EXAMPLE)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as problem:
        raise syntax_error(text, problem) from None
    return _FormulaReader(text).factor(tree.children[0], frozenset())


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_name("formula.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="basic")


class _FormulaReader(TermReader):
    """Turns parse trees of formulas into nodes, one method for each rule of the grammar."""

    def _connective(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        build = {"i": f.Implies, "-": f.Implies, "=": f.Implies, "<": f.Iff, "x": f.Xor}
        remedy = "=> means implies, at least is written >=" if str(parts[1]) == "=>" else ""
        found = self.formula(parts[0], scope, remedy)
        for word, part in zip(parts[1::2], parts[2::2], strict=True):
            kind = f.Iff if str(word) == "iff" else build[str(word)[0]]
            found = kind(found, self.formula(part, scope))
        return found

    def _disjunction(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return f.Or(tuple(self.formula(part, scope) for part in parts[::2]))

    def _conjunction(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        return f.And(tuple(self.factor(part, scope) for part in parts[::2]))

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
        if str(word) in _TEMPORAL_BUILDERS:
            return _TEMPORAL_BUILDERS[str(word)](inner, first, last)
        if window:
            raise self.error(window[0], f"{word} takes no window", "use always[a,b] or once[a,b]")
        return eventually(inner, 1, 1) if str(word) == "next" else once(inner, 1, 1)

    def _quantifier(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        kind, variable, *domain, body = parts
        name = str(variable.children[0])
        if is_built_in(name):
            raise self.error(
                variable, f"{name} is a function", "choose another name for the variable"
            )
        first = last = region = None
        if domain and len(domain[0].children) == 2:
            first, last = (self.step(bound, scope) for bound in domain[0].children)
        elif domain:
            region = unquoted(domain[0].children[0])
        inner = self.formula(body, scope | {name})
        return f.Quantifier(str(kind), name, first, last, inner, region)

    def _comparison(self, tree: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        tolerance = None
        sign = parts[-2]
        if isinstance(sign, Token) and sign.type == "TOLERANCE":
            *parts, _, allowed = parts
            if len(parts) != 3 or str(parts[1]) not in ("=", "==", "!=", "≠"):
                raise self.error(
                    sign,
                    f"{sign} is a tolerance, which only a single = or != has",
                    "write x = 3 +- 0.5",
                )
            value = self.term(allowed, scope)
            if not isinstance(value, Const):
                raise self.error(
                    allowed, f"a tolerance is a number, not {brief(value)}", "write x = 3 +- 0.5"
                )
            tolerance = value.value
        terms = tuple(self.side(part, scope, "a chain is a < b < c") for part in parts[::2])
        relations = tuple(_RELATION_SYNONYMS.get(str(word), str(word)) for word in parts[1::2])
        return f.Compare(terms, relations, tolerance)

    def _observation(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        left, sign, right = parts
        value = self.term(left, scope)
        if not isinstance(value, Const):
            raise self.error(
                left,
                f"{brief(value)} stands where the observed number is expected",
                f"the distribution follows the number, as in {OBSERVATION_EXAMPLE}",
            )
        head = right.children[0] if right.data == "call" else None
        plain = isinstance(head, Tree) and head.data == "name" and len(head.children) == 1
        word = head.children[0] if plain and isinstance(head, Tree) else None
        if not isinstance(word, Token) or word.type != "NAME":
            raise self.error(
                right,
                f"a distribution is expected after {sign}",
                f"write one such as {OBSERVATION_EXAMPLE}",
            )
        try:
            family = family_named(str(word))
            family.check_count(len(right.children) - 1)
        except FormulaError as problem:
            raise problem.pointing(self.text, position(word)) from None
        parameters = [self.term(part, scope) for part in right.children[1:]]
        for known, part, each in zip(
            family.parameters, right.children[1:], parameters, strict=True
        ):
            try:
                known.check(family.name, each)
            except FormulaError as problem:
                raise problem.pointing(self.text, position(part)) from None
        return Observation(value.value, family(*parameters))

    def side(self, tree: Tree_, scope: frozenset[str], remedy: str = "") -> Term:
        """One side of a comparison, where `true` and `false` are values of a signal."""
        if isinstance(tree, Tree) and tree.data == "truth":
            return Name(str(tree.children[0]), quoted=True)
        return self.term(tree, scope, remedy)

    def _within(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        subject, *negated, low, high = parts
        inside = self.term(subject, scope).between(self.term(low, scope), self.term(high, scope))
        return f.Not(inside) if negated else inside

    def _member(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        subject, *rest = parts
        negated = isinstance(rest[0], Token)
        values = [self.side(part, scope) for part in rest[negated:]]
        inside = one_of(self.term(subject, scope), *values)
        return f.Not(inside) if negated else inside

    def _annotated(self, _: Tree_, parts: list[Tree_], scope: frozenset[str]) -> Piece:
        body, *settings = parts
        given: dict[str, float] = {}
        for setting in settings:
            name, sign, *value = setting.children
            if str(sign) != "=":
                raise self.error(sign, f"{sign} does not set {name}", f"write {name}= and a number")
            if str(name) not in ("k", "weight"):
                problem = unknown("setting", str(name), ("k", "weight"))
                raise problem.pointing(self.text, position(setting))
            if str(name) in given:
                raise self.error(setting, f"{name} is given twice", "keep one of them")
            given[str(name)] = self.number(value)
            if given[str(name)] <= 0:
                raise self.error(
                    setting,
                    f"{name} must be positive, not {given[str(name)]:g}",
                    f"write a number above 0, as in {name}=7",
                )
        return f.Annotated(self.formula(body, scope), given.get("k"), given.get("weight"))

    def _truth(self, _: Tree_, parts: list[Token], scope: frozenset[str]) -> Piece:
        return f.TRUE if parts[0] == "true" else f.FALSE
