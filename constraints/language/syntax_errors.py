"""What a syntax error says: the place, what stands there, and what should.

Mistakes that people make have advice of their own, found by what stands before the place and at
it; any other is answered with what the grammar would take there.
"""

from __future__ import annotations

import re

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from constraints.ast.words import WORDS
from constraints.errors import FormulaError, caret

_MEANT = {
    "&": "and",
    "∧": "and",
    ";": "and",
    "|": "or",
    "∨": "or",
    "!": "not (or != for unequal)",
    "~": "not",
    "¬": "not",
    "→": "implies",
    "⇒": "implies",
    "↔": "iff",
    "⇔": "iff",
    "∀": "forall",
    "∃": "exists",
    "∈": "in",
    "≈": "= with a tolerance, as in x = 3 +- 0.5",
    "−": "-",
    "–": "-",
    "×": "*",
    "·": "*",
    "÷": "/",
    "“": '"',
    "”": '"',
    "„": '"',
    "’": "'",
    "%": "the number without %",
    "$": "the name without $",
}
# what stands before the place, what stands there, and what to do about it; first where a value or a
# formula is wanted, then after the variable of a quantifier, after "S[", and after a whole operand
_WANTED = [
    (r"[<>]\s*", r"=", "<= and >= are written without a space"),
    (r"=\s*", r"[<>]", "at most is written <=, at least >="),
    (r"<\s*", r">", "unequal is written !="),
]
_BOUND = [(r"", r",", "bind one variable at a time: forall t: forall u: ...")]
_INSTANCE = [
    (
        r"",
        r"",
        "a name's [ ] holds the number of an instance; a step is written in ( ), as in S(0), and "
        "a window follows always, eventually, until, ...",
    )
]
_AFTER = [
    (r"\bif\s+", r"", "if a then b is written a implies b"),
    (r"\b(all|every|each|any|some)\s+", r"", "write forall t: ... or exists t: ..."),
    (r"", r"(for|all|every|each|where|forall|exists)\b", "write forall t: ... at the start"),
    (r"", r"(is|equals)\b", "equality is written ="),
    (r"", r",", "formulas are joined with and; a number has no commas inside"),
    (r"", r"\{", "settings follow a formula in parentheses, as in (I <= 20) {k=7}"),
    (r"", r"(until|weak|release|since|trigger)\b", "put one of the two into parentheses"),
    (
        r"",
        r"\+-|\+/-|±",
        "a tolerance follows an equality, as in S(0) = 3 +- 0.5; to add a negative number write "
        "a space: + -",
    ),
    (r"\n\s*", r"[^\W\d]|[(\"']", "lines are joined with and"),
    (r"\d\.?", r"[^\W\d]", "a product is written with *"),
]
_CLOSING = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}


def syntax(text: str, problem: UnexpectedInput) -> FormulaError:
    """The error for a text that lark did not accept."""
    if isinstance(problem, UnexpectedCharacters):
        return _character(text, problem.pos_in_stream or 0)
    assert isinstance(problem, UnexpectedToken)
    token = problem.token
    if token.type == "$END":
        return caret(text, token.end_pos or 0, f"the formula stops here{_expected(problem)}")
    position = token.start_pos or 0
    return caret(text, position, f"{str(token)!r} is misplaced{_remedy(text, position, problem)}")


def _character(text: str, position: int) -> FormulaError:
    found = text[position]
    if found in "\"'":
        return caret(text, position, "this quotation mark has no partner on its line")
    shown = repr(found) if found.isascii() else f"{found!a} (U+{ord(found):04X})"
    if found in _MEANT:
        remedy = f"; write {_MEANT[found]}"
    else:
        remedy = "; names that hold such characters are written in quotation marks"
    return caret(text, position, f"{shown} is not part of the language{remedy}")


def _remedy(text: str, position: int, problem: UnexpectedToken) -> str:
    word, wanted = str(problem.token), problem.expected
    variable = wanted == {"NAME", "NOW"}
    if word.lower() in WORDS and word not in WORDS:
        return f"; words are written small: {word.lower()}"
    if word in WORDS and variable:
        return "; it is a word of the language; name the variable otherwise, as in forall t: ..."
    if word in WORDS and "NAME" in wanted:
        return f'{_expected(problem)}; a signal of that name is written "{word}"'
    if variable:
        return "; expected a variable, as in forall t: I(t) <= 20"
    rules = _AFTER
    if "NUMBER" in wanted:
        rules = _WANTED if "NAME" in wanted else _INSTANCE
    elif "COLON" in wanted:
        rules = _BOUND
    elif wanted == {"RSQB"}:
        rules = _INSTANCE
    before = text[max(0, position - 40) : position]
    for behind, ahead, advice in rules:
        if re.search(f"(?:{behind})$", before) and re.compile(ahead).match(text, position):
            return f"; {advice}"
    name = re.search(r"[^\W\d]\w*[ \t]+$", before)
    if rules is _AFTER and problem.token.type == "NAME" and name:
        return f'{_expected(problem)}; a name of several words is written "{name[0]}{word}"'
    return _expected(problem)


def _expected(problem: UnexpectedToken) -> str:
    """What could have stood there."""
    wanted = problem.expected
    if "NAME" in wanted and "NUMBER" in wanted:
        window = "a window such as [0,5], " if "LSQB" in wanted else ""
        return f"; expected {window}a name, a number or ("
    if "COLON" in wanted:
        return "; expected : before what is to hold, as in forall t: I(t) <= 20"
    if wanted == {"LSQB", "LBRACE"}:
        return "; expected a range such as [0, 5] or a set such as {1, 2}"
    if wanted == {"LSQB", "NAME", "QUOTED"}:
        return "; expected a window such as [0, 5] or the name of a region"
    if wanted & {"NAME", "NOW"}:
        return "; expected a variable, as in t" if "NOW" in wanted else "; expected k or weight"
    if wanted & {"NUMBER", "COMPARE", "ADD"} and "AND" not in wanted:
        return "; expected = and a number" if "COMPARE" in wanted else "; expected a number"
    return _continued(problem)


def _continued(problem: UnexpectedToken) -> str:
    """What may follow a complete operand: that depends on the bracket that is open there."""
    stack = problem.interactive_parser.parser_state.value_stack
    commas = closed = 0
    for depth, item in enumerate(reversed(stack), 1):
        if not isinstance(item, Token):
            continue
        commas += item.type == "COMMA" and not closed
        closed += item.type in ("RPAR", "RSQB", "RBRACE")
        if item.type not in _CLOSING:
            continue
        if closed:
            closed -= 1
            continue
        close = f"{_CLOSING[item.type]} to close the {item} of column {item.column}"
        if item.type == "LSQB" and not commas:
            return "; expected a comma and the other end, as in [0, 5]"
        called = depth < len(stack) and not isinstance(stack[-depth - 1], Token)
        return f"; expected {', or ' if called or item.type == 'LBRACE' else ''}{close}"
    if str(problem.token) in (")", "]", "}"):
        return "; there is no bracket for it to close"
    return "; expected an operator such as +, <= or and"
