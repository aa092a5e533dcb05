"""Nodes as text that parses back to them, with no more parentheses than are needed."""

from __future__ import annotations

import re

from constraints.formula import (
    And,
    Annotated,
    Compare,
    Formula,
    Iff,
    Implies,
    Not,
    Or,
    Quantifier,
    Until,
    Xor,
)
from constraints.nodes import Node
from constraints.terms import END, NOW, Aggregate, Apply, At, Const, Count, Name, Step, Term

WORDS = frozenset(
    [
        "and",
        "or",
        "not",
        "xor",
        "implies",
        "iff",
        "forall",
        "exists",
        "always",
        "eventually",
        "historically",
        "once",
        "next",
        "previous",
        "until",
        "release",
        "since",
        "trigger",
        "weak",
        "in",
        "true",
        "false",
        "end",
        "now",
    ]
)
_IDENTIFIER = re.compile(r"[^\W\d]\w*")

# how tightly each thing binds, loosest first; an operand that binds less gets parentheses
OPEN, IFF, IMPLIES, OR, XOR, AND, UNTIL, PREFIX, COMPARE, SUM, PRODUCT, UNARY, POWER, ATOM = range(
    14
)
_BINARY: dict[type, tuple[str, int]] = {
    Iff: (" iff ", IFF),
    Implies: (" implies ", IMPLIES),
    Xor: (" xor ", XOR),
}
_UNTIL = {
    ("exists", False): "until",
    ("forall", False): "release",
    ("exists", True): "since",
    ("forall", True): "trigger",
}


def text(node: Node) -> str:
    """The node as text."""
    return _formula(node)[0] if isinstance(node, Formula) else _term(node)[0]


def number(value: float) -> str:
    """The shortest text that reads back as `value`."""
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def name(word: str, quoted: bool = False) -> str:
    """A name, in quotes where it would be misread without."""
    plain = _IDENTIFIER.fullmatch(word) and word not in WORDS and not quoted
    return word if plain else f'"{word}"'


def _operand(node: Node, level: int) -> str:
    shown, own = _formula(node) if isinstance(node, Formula) else _term(node)
    return shown if own >= level else f"({shown})"


def _formula(node: Formula) -> tuple[str, int]:
    match node:
        case And(()):
            return "true", ATOM
        case Or(()):
            return "false", ATOM
        case And(parts):
            return " and ".join(_operand(part, AND + 1) for part in parts), AND
        case Or(parts):
            return " or ".join(_operand(part, OR + 1) for part in parts), OR
        case Not(body):
            return f"not {_operand(body, PREFIX)}", PREFIX
        case Implies(left, right) | Iff(left, right) | Xor(left, right):
            word, level = _BINARY[type(node)]
            return _operand(left, level + 1) + word + _operand(right, level + 1), level
        case Compare(terms, relations, tolerance):
            shown = _operand(terms[0], SUM)
            for relation, right in zip(relations, terms[1:], strict=True):
                shown += f" {relation} {_operand(right, SUM)}"
            return shown + ("" if tolerance is None else f" +- {number(tolerance)}"), COMPARE
        case Quantifier():
            return _quantifier(node)
        case Until(kind, left, right, first, last, past):
            far = "" if (first, last) == (0, None) else f"[{first},{END if last is None else last}]"
            word = _UNTIL[kind, past] + far
            return f"{_operand(left, UNTIL + 1)} {word} {_operand(right, UNTIL + 1)}", UNTIL
        case Annotated(body, k, weight):
            pairs = [("k", k), ("weight", weight)]
            shown = ", ".join(f"{key}={number(value)}" for key, value in pairs if value is not None)
            return f"({text(body)}) {{{shown}}}", ATOM
    raise TypeError(f"{type(node).__name__} is not a formula that prints")


def _quantifier(node: Quantifier) -> tuple[str, int]:
    sugar = _sugar(node)
    if sugar is not None:
        return f"{sugar}({text(node.body)})", PREFIX
    where = ""
    if node.region is not None:
        where = f" in {name(node.region)}"
    elif node.first is not None and node.last is not None:
        where = f" in [{_step(node.first)[0]}, {_step(node.last)[0]}]"
    return f"{node.kind} {node.variable}{where}: {text(node.body)}", OPEN


def _sugar(node: Quantifier) -> str | None:
    """The temporal operator that a quantifier over `now` is, if it is one."""
    first, last = node.first, node.last
    if node.variable != NOW or first is None or last is None:
        return None
    ahead, behind = ("always", "historically") if node.kind == "forall" else ("eventually", "once")
    a, b = first.offset, last.offset
    match first.base, last.base:
        case "now", "end" if a >= 0 and b == 0:
            return f"{ahead}[{a},end]" if a else ahead
        case "now", "now" if 0 <= a <= b:
            return f"{ahead}[{a},{b}]"
        case "now", "now" if a <= b <= 0:
            return f"{behind}[{-b},{-a}]"
        case None, "now" if a == b == 0 and first.time is None:
            return behind
    return None


def _term(node: Node) -> tuple[str, int]:
    match node:
        case Const(value):
            return number(value), ATOM if value >= 0 else UNARY
        case Name(word, instance, quoted):
            return name(word, quoted) + ("" if instance is None else f"[{instance}]"), ATOM
        case Step():
            return _step(node)
        case At(series, Step(None, 0, float() as time)):
            return f"{_operand(series, ATOM)}@{number(time)}", ATOM
        case At(series, step):
            return f"{_operand(series, ATOM)}({_step(step)[0]})", ATOM
        case Aggregate(kind, body, first, last, region):
            window = [] if first is None else [first, last]
            inside = [text(body), *(text(bound) for bound in window if bound is not None)]
            return f"{kind}({', '.join([*inside, *([name(region)] if region else [])])})", ATOM
        case Count(body, first, last):
            window = [] if first is None else [first, last]
            inside = [text(body), *(text(bound) for bound in window if bound is not None)]
            return f"count({', '.join(inside)})", ATOM
        case Apply("+", arguments):
            return _sum(arguments), SUM
        case Apply("neg", (body,)):
            return f"-{_operand(body, UNARY)}", UNARY
        case Apply("*" | "/" as symbol, (left, right)):
            return f"{_operand(left, PRODUCT)} {symbol} {_operand(right, PRODUCT + 1)}", PRODUCT
        case Apply("pow", (left, right)):
            return f"{_operand(left, ATOM)} ^ {_operand(right, UNARY)}", POWER
        case Apply(function, arguments):
            return f"{function}({', '.join(text(argument) for argument in arguments)})", ATOM
    raise TypeError(f"{type(node).__name__} is not a term that prints")


def _step(node: Step) -> tuple[str, int]:
    if node.time is not None:
        return f"@{number(node.time)}", ATOM
    if node.base is None:
        return str(node.offset), ATOM if node.offset >= 0 else UNARY
    if node.offset:
        return f"{node.base} {'+' if node.offset > 0 else '-'} {abs(node.offset)}", SUM
    return node.base, ATOM


def _sum(parts: tuple[Term, ...]) -> str:
    shown = _operand(parts[0], PRODUCT)
    for part in parts[1:]:
        match part:
            case Const(value) if value < 0:
                shown += f" - {number(-value)}"
            case Apply("neg", (body,)):
                shown += f" - {_operand(body, PRODUCT)}"
            case _:
                shown += f" + {_operand(part, PRODUCT)}"
    return shown
