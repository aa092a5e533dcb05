"""Rate laws: text -> checked expression -> numbers, or source for a kernel.

An expression is a `Number`, a `Name` or an `Apply` of one of `RATE_OPERATORS`. Nothing else can be
written, so nothing a user types is ever run as Python: `evaluate` walks the tree with numpy, and
`source` writes kernel code in which every name has been chosen by the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from pathlib import Path
from typing import Any

import numpy as np
from lark import Lark, Token, Transformer, UnexpectedInput, v_args
from lark.exceptions import VisitError

from simulators.errors import ExpressionError, InputError, unknown

MAX_BRACKETS = 150  # nested; Python's parser takes 200
MAX_EXPRESSION_DEPTH = (
    300  # of nested operators; far beyond any rate law, far below Python's recursion limit
)
MAX_EXPRESSION_LENGTH = 20_000  # characters
RESERVED = frozenset({"time", "pi", "true", "false", "and", "or", "not"})


@dataclass(frozen=True, slots=True)
class Number:
    value: float

    def __str__(self) -> str:
        return _text(self)


@dataclass(frozen=True, slots=True)
class Name:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator of `RATE_OPERATORS` on its arguments; build it with `apply`, which checks."""

    operator: str
    arguments: tuple[Expression, ...]
    depth: int = field(compare=False, repr=False)
    brackets: int = field(default=1, compare=False, repr=False)  # how deep they nest in its source

    def __str__(self) -> str:
        return _text(self)


Expression = Number | Name | Apply


@dataclass(frozen=True, slots=True)
class Operator:
    """How one operator is computed (numpy), compiled (`code`), typed and printed.

    `takes`, `gives`: "real" or "bool". `infix`: (symbol, precedence) when it stands between its
    arguments. `vector`: LLVM can vectorise it, there is no library call.
    """

    compute: Callable[..., Any]
    code: str
    arity: int = 1
    takes: str = "real"
    gives: str = "real"
    infix: tuple[str, int] | None = None
    vector: bool = True


def _function(name: str) -> Operator:
    return Operator(getattr(np, name), f"np.{name}({{}})", vector=False)


def _compare(symbol: str, compute: Callable[..., Any]) -> Operator:
    code = f"({{}} {symbol} {{}})"
    return Operator(compute, code, 2, gives="bool", infix=(symbol, 4))


RATE_OPERATORS: dict[str, Operator] = {
    "or": Operator(np.logical_or, "({} or {})", 2, "bool", "bool", ("or", 1)),
    "and": Operator(np.logical_and, "({} and {})", 2, "bool", "bool", ("and", 2)),
    "not": Operator(np.logical_not, "(not {})", 1, "bool", "bool"),
    "true": Operator(lambda: True, "True", 0, gives="bool"),
    "false": Operator(lambda: False, "False", 0, gives="bool"),
    "<": _compare("<", np.less),
    "<=": _compare("<=", np.less_equal),
    ">": _compare(">", np.greater),
    ">=": _compare(">=", np.greater_equal),
    "==": _compare("==", np.equal),
    "!=": _compare("!=", np.not_equal),
    "+": Operator(np.add, "({} + {})", 2, infix=("+", 5)),
    "-": Operator(np.subtract, "({} - {})", 2, infix=("-", 5)),
    "*": Operator(np.multiply, "({} * {})", 2, infix=("*", 6)),
    "/": Operator(np.divide, "({} / {})", 2, infix=("/", 6)),
    "neg": Operator(np.negative, "(-{})", 1),
    "^": Operator(np.power, "({} ** {})", 2, infix=("^", 8), vector=False),
    "min": Operator(np.minimum, "min({}, {})", 2),
    "max": Operator(np.maximum, "max({}, {})", 2),
    "abs": Operator(np.abs, "abs({})"),
    "sqrt": Operator(np.sqrt, "np.sqrt({})"),
    "floor": Operator(np.floor, "np.floor({})"),
    "ceil": Operator(np.ceil, "np.ceil({})"),
    **{name: _function(name) for name in ("exp", "log", "log10", "sin", "cos", "tan")},
    **{name: _function(name) for name in ("arcsin", "arccos", "arctan", "sinh", "cosh", "tanh")},
    # the next float64: `time > c` is `time >= after(c)`; written by the compiler only
    "after": Operator(lambda x: np.nextafter(x, np.inf), "np.nextafter({}, np.inf)", vector=False),
    # piecewise(value, condition, otherwise); longer forms nest
    "piecewise": Operator(
        lambda value, condition, otherwise: np.where(condition, value, otherwise),
        "({} if {} else {})",
        3,
    ),
}
_INNER = ("not", "neg", "after")
FUNCTIONS = tuple(
    name
    for name, operator in RATE_OPERATORS.items()
    if operator.arity and not operator.infix and name not in _INNER
)
_ALIASES = {"ln": "log", "pow": "^", "power": "^", "ceiling": "ceil", "asin": "arcsin"}
_ALIASES |= {"acos": "arccos", "atan": "arctan"}


def kind(expression: Expression) -> str:
    """ "real" or "bool"."""
    return RATE_OPERATORS[expression.operator].gives if isinstance(expression, Apply) else "real"


def apply(operator: str, *arguments: Expression) -> Expression:
    """Checked application: known operator, right count and kinds, bounded depth."""
    rule = RATE_OPERATORS[operator]
    if len(arguments) != rule.arity:
        raise InputError(
            f"{operator} takes {rule.arity} argument(s), got {len(arguments)}",
            value=len(arguments),
            remedy=f"give {operator} {rule.arity} argument(s)",
        )
    wanted = ["real", "bool", "real"] if operator == "piecewise" else [rule.takes] * rule.arity
    for argument, want in zip(arguments, wanted, strict=True):
        if kind(argument) != want:
            noun = "a condition" if want == "bool" else "a number"
            raise InputError(
                f"{operator!r} needs {noun} but got {str(argument)!r}",
                value=str(argument),
                remedy="compare numbers with <, <=, = for a condition"
                if want == "bool"
                else "write piecewise(1, condition, 0) for a number",
            )
    if operator == "neg" and isinstance(arguments[0], Number):
        return Number(-arguments[0].value)
    depth = 1 + max((part.depth for part in arguments if isinstance(part, Apply)), default=0)
    if depth > MAX_EXPRESSION_DEPTH:
        raise InputError(
            f"expression nested deeper than {MAX_EXPRESSION_DEPTH} levels", value=depth
        )
    inner = [part.brackets if isinstance(part, Apply) else 0 for part in arguments]
    if arguments and _continues(operator, arguments[0]):
        inner[0] -= 1
    brackets = 1 + max(inner, default=0)
    if brackets > MAX_BRACKETS:
        raise InputError(f"expression nested deeper than {MAX_BRACKETS} brackets", value=brackets)
    return Apply(operator, arguments, depth, brackets)


def _continues(operator: str, first: Expression) -> bool:
    """Whether a sum or product goes on from its first argument without brackets: a - b + c."""
    if not isinstance(first, Apply):
        return False
    both = {operator, first.operator}
    return both <= {"+", "-"} or both <= {"*", "/"}


def piecewise(pieces: Sequence[Expression]) -> Expression:
    """piecewise(v1, c1, v2, c2, ..., otherwise) as nested three-argument applications."""
    if len(pieces) < 3 or len(pieces) % 2 == 0:
        raise InputError(
            "piecewise takes value, condition pairs and a last value",
            value=len(pieces),
            remedy="write piecewise(value, condition, otherwise)",
        )
    result = pieces[-1]
    for at in range(len(pieces) - 3, -1, -2):
        result = apply("piecewise", pieces[at], pieces[at + 1], result)
    return result


# --- text -> expression ---------------------------------------------------------------------------


@v_args(inline=True)
class _Build(Transformer[Token, Expression]):
    def number(self, token: Token) -> Expression:
        value = float(token)
        if not math.isfinite(value):
            raise InputError(
                f"number {token} is out of range", value=str(token), remedy="write a finite number"
            )
        return Number(value)

    def name(self, token: Token) -> Expression:
        if token in ("true", "false"):
            return apply(str(token))
        return Number(math.pi) if token == "pi" else Name(str(token))

    def call(self, token: Token, *arguments: Expression | None) -> Expression:
        name = _ALIASES.get(str(token), str(token))
        given = [argument for argument in arguments if argument is not None]
        if name == "piecewise":
            return piecewise(given)
        if name in ("min", "max") and len(given) > 2:
            return reduce(lambda left, right: apply(name, left, right), given)
        if name not in FUNCTIONS and name != "^":
            raise unknown("function", str(token), FUNCTIONS)
        return apply(name, *given)

    def chain(self, first: Expression, *rest: Any) -> Expression:
        for symbol, right in zip(rest[::2], rest[1::2], strict=True):
            first = apply(str(symbol), first, right)
        return first

    def power(self, base: Expression, *exponent: Expression) -> Expression:
        return apply("^", base, *exponent) if exponent else base

    def minus(self, value: Expression) -> Expression:
        return apply("neg", value)

    def plus(self, value: Expression) -> Expression:
        return value

    def comparison(self, first: Expression, *rest: Any) -> Expression:
        links = []
        for symbol, right in zip(rest[::2], rest[1::2], strict=True):
            links.append(apply("==" if symbol == "=" else str(symbol), first, right))
            first = right
        return reduce(lambda left, right: apply("and", left, right), links) if links else first

    def negation(self, value: Expression) -> Expression:
        return apply("not", value)

    def disjunction(self, *parts: Expression) -> Expression:
        return reduce(lambda left, right: apply("or", left, right), parts)

    def conjunction(self, *parts: Expression) -> Expression:
        return reduce(lambda left, right: apply("and", left, right), parts)


@cache
def _parser() -> Lark:
    grammar = Path(__file__).with_suffix(".lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", transformer=_Build(), maybe_placeholders=True)


def parse(text: str) -> Expression:
    """Expression from text such as `beta*S*I/N`; errors point at the place."""
    if not isinstance(text, str):
        raise InputError(f"a rate law or condition is text, got {text!r}", value=text)
    if len(text) > MAX_EXPRESSION_LENGTH:
        raise InputError(
            f"expression of {len(text)} characters; the limit is {MAX_EXPRESSION_LENGTH}",
            value=len(text),
        )
    try:
        return _parser().parse(text)  # type: ignore[return-value]
    except VisitError as problem:
        if isinstance(problem.orig_exc, InputError):
            raise problem.orig_exc.at(f"in {text!r}") from None
        raise InputError(
            f"in {text!r}: {problem.orig_exc}", value=text, remedy="check the expression"
        ) from None
    except InputError as problem:
        raise problem.at(f"in {text!r}") from None
    except UnexpectedInput as problem:
        column = getattr(problem, "column", None)
        at = column - 1 if isinstance(column, int) and column > 0 else len(text)
        raise ExpressionError(
            f"cannot read this expression at column {at + 1}",
            value=text,
            remedy="write it with operators, functions and brackets, as in beta*S*I/N",
        ).pointing(text, at) from None


# --- walking --------------------------------------------------------------------------------------


def names(expression: Expression) -> frozenset[str]:
    """All names that occur."""
    return frozenset(node.name for node in walk(expression) if isinstance(node, Name))


def walk(expression: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, outermost first."""
    yield expression
    if isinstance(expression, Apply):
        for argument in expression.arguments:
            yield from walk(argument)


def substitute(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with names replaced."""
    if isinstance(expression, Name):
        return values.get(expression.name, expression)
    if isinstance(expression, Apply):
        return apply(
            expression.operator, *(substitute(part, values) for part in expression.arguments)
        )
    return expression


def evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    """Value with numpy broadcasting; impossible operations give NaN or infinity, no warning."""
    with np.errstate(all="ignore"):
        return _evaluate(expression, values)


def _evaluate(expression: Expression, values: Mapping[str, Any]) -> Any:
    if isinstance(expression, Number):
        return np.float64(expression.value)
    if isinstance(expression, Name):
        return np.asarray(values[expression.name])
    compute = RATE_OPERATORS[expression.operator].compute
    arguments = (_evaluate(argument, values) for argument in expression.arguments)
    if expression.operator == "^":  # numpy refuses negative powers of integers
        return compute(*(np.asarray(argument, dtype=np.float64) for argument in arguments))
    return compute(*arguments)


def source(expression: Expression, rename: Mapping[str, str]) -> str:
    """Kernel source; every name must be in `rename`, so only the caller's names reach the code."""
    if isinstance(expression, Number):
        return repr(float(expression.value))
    if isinstance(expression, Name):
        return rename[expression.name]
    parts = [source(argument, rename) for argument in expression.arguments]
    if parts and _continues(expression.operator, expression.arguments[0]):
        parts[0] = parts[0][1:-1]  # a long sum must not nest deeper than Python's parser takes
    return RATE_OPERATORS[expression.operator].code.format(*parts)


def _text(expression: Expression, outer: int = 0, right: bool = False) -> str:
    if isinstance(expression, Name):
        return expression.name
    if isinstance(expression, Number):
        value = expression.value
        digits = str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)
        return f"({digits})" if math.copysign(1, value) < 0 and outer > 6 else digits
    operator, parts = expression.operator, expression.arguments
    if operator == "neg":
        shown = f"-{_text(parts[0], 7)}"
        return f"({shown})" if outer > 6 or right else shown
    if operator == "not":
        shown = f"not {_text(parts[0], 3)}"
        return f"({shown})" if outer > 3 else shown
    infix = RATE_OPERATORS[operator].infix
    if infix is None:
        if not parts:
            return operator
        return f"{operator}({', '.join(_text(part) for part in parts)})"
    symbol, level = infix
    if operator == "^":
        shown = f"{_text(parts[0], level + 1)}^{_text(parts[1], level + 1)}"
    else:
        # comparisons do not nest bare: a chain would read as a conjunction
        left = _text(parts[0], level + 1 if level == 4 else level)
        gap = "" if symbol in "*/" else " "
        shown = f"{left}{gap}{symbol}{gap}{_text(parts[1], level + 1, right=True)}"
    return f"({shown})" if level < outer else shown
