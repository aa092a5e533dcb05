"""Messages of syntax errors: the position, the unexpected token, and what to write instead.

Frequent mistakes have a remedy of their own, found by regular expressions on the formula before
and after the position; for any other, the remedy lists what the grammar expects there.
"""

from __future__ import annotations

import re

from lark import Token, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from constraints.ast.words import RESERVED_WORDS
from constraints.errors import FormulaError, Remedy, caret

_REPLACEMENTS = {  # characters of other languages, and what to write instead
    "&": "and",
    "∧": "and",
    ";": "and",
    "|": "or",
    "∨": "or",
    "!": "not (or != for unequal)",
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
# (regular expression before the position, regular expression after it, remedy), by context
_OPERAND_EXPECTED = [
    (r"[<>]\s*", r"=", "<= and >= are written without a space"),
    (r"=\s*", r"[<>]", "at most is written <=, at least >="),
    (r"<\s*", r">", "unequal is written !="),
    (r"~\s*", r"", "a distribution follows ~, as in 76 ~ poisson(0.9*I(3))"),
    (r"", r"~", "negation is written not; an observation begins with its number"),
]
_AFTER_VARIABLE = [(r"", r",", "bind one variable at a time: forall t: forall u: ...")]
_AFTER_SQUARE_BRACKET = [
    (
        r"",
        r"",
        "a name's [ ] holds the number of an instance; a step is written in ( ), as in S(0), and "
        "a window follows always, eventually, until, ...",
    )
]
_AFTER_OPERAND = [
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
_CLOSING_BRACKETS = {"LPAR": ")", "LSQB": "]", "LBRACE": "}"}


def syntax_error(text: str, problem: UnexpectedInput) -> FormulaError:
    """The error for a text that lark does not accept."""
    if isinstance(problem, UnexpectedCharacters):
        return _unexpected_character(text, problem.pos_in_stream or 0)
    assert isinstance(problem, UnexpectedToken)
    token = problem.token
    if token.type == "$END":
        return caret(text, token.end_pos or 0, "the formula stops here", _expected(problem))
    position, shown = token.start_pos or 0, str(token)
    remedy = _remedy(text, position, problem)
    return caret(text, position, f"{shown!r} is misplaced", remedy, value=shown)


def _unexpected_character(text: str, position: int) -> FormulaError:
    found = text[position]
    if found in "\"'":
        problem = "this quotation mark has no partner on its line"
        return caret(text, position, problem, "close the name", value=found)
    shown = repr(found) if found.isascii() else f"{found!a} (U+{ord(found):04X})"
    remedy: Remedy = "names that hold such characters are written in quotation marks"
    if found in _REPLACEMENTS:
        remedy = f"write {_REPLACEMENTS[found]}"
    return caret(text, position, f"{shown} is not part of the language", remedy, value=found)


def _remedy(text: str, position: int, problem: UnexpectedToken) -> str:
    """What to write in place of an unexpected token."""
    word, expected = str(problem.token), problem.expected
    variable = expected == {"NAME", "NOW"}
    if word.lower() in RESERVED_WORDS and word not in RESERVED_WORDS:
        return f"words are written in lower case: {word.lower()}"
    if word in RESERVED_WORDS and variable:
        return "it is a reserved word; give the variable another name, as in forall t: ..."
    if word in RESERVED_WORDS and "NAME" in expected:
        return f'{_expected(problem)}; a signal of that name is written "{word}"'
    if variable:
        return "expected a variable, as in forall t: I(t) <= 20"
    rules = _AFTER_OPERAND
    if "NUMBER" in expected:
        rules = _OPERAND_EXPECTED if "NAME" in expected else _AFTER_SQUARE_BRACKET
    elif "COLON" in expected:
        rules = _AFTER_VARIABLE
    elif expected == {"RSQB"}:
        rules = _AFTER_SQUARE_BRACKET
    before = text[max(0, position - 40) : position]
    for behind, ahead, remedy in rules:
        if re.search(f"(?:{behind})$", before) and re.compile(ahead).match(text, position):
            return remedy
    name = re.search(r"[^\W\d]\w*[ \t]+$", before)
    if rules is _AFTER_OPERAND and problem.token.type == "NAME" and name:
        return f'{_expected(problem)}; a name of several words is written "{name[0]}{word}"'
    return _expected(problem)


def _expected(problem: UnexpectedToken) -> str:
    """What the grammar expects at the position of an unexpected token."""
    expected = problem.expected
    if "NAME" in expected and "NUMBER" in expected:
        window = "a window such as [0,5], " if "LSQB" in expected else ""
        return f"expected {window}a name, a number or ("
    if "COLON" in expected:
        return "expected : and a formula, as in forall t: I(t) <= 20"
    if expected == {"LSQB", "LBRACE"}:
        return "expected a range such as [0, 5] or a set such as {1, 2}"
    if expected == {"LSQB", "NAME", "QUOTED"}:
        return "expected a window such as [0, 5] or the name of a region"
    if expected & {"NAME", "NOW"}:
        return "expected a variable, as in t" if "NOW" in expected else "expected k or weight"
    if expected & {"NUMBER", "COMPARE", "ADD"} and "AND" not in expected:
        return "expected = and a number" if "COMPARE" in expected else "expected a number"
    return _expected_after_operand(problem)


def _expected_after_operand(problem: UnexpectedToken) -> str:
    """What may follow a complete operand, given the bracket that is open there."""
    stack = problem.interactive_parser.parser_state.value_stack
    commas = closed = 0
    for depth, item in enumerate(reversed(stack), 1):
        if not isinstance(item, Token):
            continue
        commas += item.type == "COMMA" and not closed
        closed += item.type in ("RPAR", "RSQB", "RBRACE")
        if item.type not in _CLOSING_BRACKETS:
            continue
        if closed:
            closed -= 1
            continue
        close = f"{_CLOSING_BRACKETS[item.type]} to close the {item} of column {item.column}"
        if item.type == "LSQB" and not commas:
            return "expected a comma and the other end, as in [0, 5]"
        called = depth < len(stack) and not isinstance(stack[-depth - 1], Token)
        return f"expected {', or ' if called or item.type == 'LBRACE' else ''}{close}"
    if str(problem.token) in (")", "]", "}"):
        return "there is no bracket for it to close"
    return "expected an operator such as +, <= or and"
