"""SBML mathematics: libsbml's syntax trees -> `rates.Expression`, with functions written out.

SBML writes Booleans and numbers in each other's place (Level 3 Version 2: true is 1, and what is
not 0 is true); expressions keep them apart, so `real` and `truth` convert.
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Any

from simulators import rates
from simulators.errors import InputError, unknown
from simulators.rates import Expression, Name, Number, apply
from simulators.sbml.document import library

MAX_FORMULA_NODES = 20_000  # largest expression, with functions and rules written out
MAX_MODEL_NODES = 200_000  # the same for all expressions of a model together
MAX_FORMULA_DEPTH = (
    200  # of nested formulas and function calls: three frames each, of Python's 1000
)
_CHAIN = 100  # longest sum kept as a chain; longer ones are halved, which keeps them shallow

_NUMBER_NODES = ("integer", "real", "real_e", "rational")
_CONSTANTS: dict[str, Expression] = {
    "constant_e": Number(math.e),  # libsbml has eight digits of it
    "constant_pi": Number(math.pi),
    "constant_true": apply("true"),
    "constant_false": apply("false"),
    "name_avogadro": Number(6.02214179e23),  # the value SBML fixes
    "name_time": Name("time"),
}
_OPERATORS = {"divide": "/", "power": "^", "function_power": "^", "function_ln": "log"}
_OPERATORS |= {"function_ceiling": "ceil"}
_SAME_NAMES = ["exp", "floor", "abs", "sin", "cos", "tan", "sinh", "cosh", "tanh"]
_SAME_NAMES += ["arcsin", "arccos", "arctan"]
_OPERATORS |= {f"function_{name}": name for name in _SAME_NAMES}
_COMPARISONS = {"eq": "==", "neq": "!=", "lt": "<", "leq": "<=", "gt": ">", "geq": ">="}
_COMPARISONS = {f"relational_{name}": symbol for name, symbol in _COMPARISONS.items()}
# operator and its value without any argument
_CHAINS: dict[str, tuple[str, Expression | None]] = {
    "plus": ("+", Number(0.0)),
    "times": ("*", Number(1.0)),
    "logical_and": ("and", apply("true")),
    "logical_or": ("or", apply("false")),
    "function_min": ("min", None),
    "function_max": ("max", None),
}
_QUOTIENT = "piecewise(floor(x/y), x/y >= 0, ceil(x/y))"
_DERIVED = {
    "log": "log(y)/log(x)",
    "root": "y^(1/x)",
    "sec": "1/cos(x)",
    "csc": "1/sin(x)",
    "cot": "1/tan(x)",
    "sech": "1/cosh(x)",
    "csch": "1/sinh(x)",
    "coth": "1/tanh(x)",
    "arcsec": "arccos(1/x)",
    "arccsc": "arcsin(1/x)",
    "arccot": "arctan(1/x)",
    "arcsinh": "log(x + sqrt(x^2 + 1))",
    "arccosh": "log(x + sqrt(x^2 - 1))",
    "arctanh": "log((1 + x)/(1 - x))/2",
    "arcsech": "log(1/x + sqrt(1/x^2 - 1))",
    "arccsch": "log(1/x + sqrt(1/x^2 + 1))",
    "arccoth": "log((x + 1)/(x - 1))/2",
    "quotient": _QUOTIENT,
    "rem": f"x - y*{_QUOTIENT}",
}


def real(expression: Expression) -> Expression:
    """A condition as 1 or 0; a number as it is."""
    if rates.kind(expression) == "real":
        return expression
    return rates.piecewise([Number(1.0), expression, Number(0.0)])


def truth(expression: Expression) -> Expression:
    """A number as "is not 0"; a condition as it is."""
    if rates.kind(expression) == "bool":
        return expression
    return apply("!=", expression, Number(0.0))


class Translator:
    """Reads the formulas of one model.

    `symbols`: what an identifier stands for. `refused`: why others cannot be used.
    `functions`: the model's function definitions, libsbml objects by identifier.
    """

    def __init__(
        self,
        symbols: Mapping[str, Expression],
        refused: Mapping[str, str],
        functions: Mapping[str, Any],
    ) -> None:
        self.symbols = dict(symbols)
        self.refused = refused
        self.functions = functions
        self._left = MAX_FORMULA_NODES
        self._total = MAX_MODEL_NODES

    def read(
        self, node: Any, where: str, local: Mapping[str, Expression] | None = None
    ) -> Expression:
        """The expression of a formula; `local` shadows the model's identifiers."""
        if node is None:
            raise InputError(f"{where} has no formula", remedy="add a <math> element")
        self._left = MAX_FORMULA_NODES
        try:
            expression = self._read(node, ChainMap(dict(local or {}), self.symbols), (), 0)
            size(expression, {})
        except InputError as problem:
            raise problem.at(where) from None
        return expression

    def _read(
        self, node: Any, scope: Mapping[str, Expression], calls: tuple[str, ...], depth: int
    ) -> Expression:
        self._left -= 1
        self._total -= 1
        if self._left < 0 or self._total < 0:
            raise too_large()
        if depth > MAX_FORMULA_DEPTH:
            raise InputError(
                f"formulas and function calls nested deeper than {MAX_FORMULA_DEPTH} levels",
                value=depth,
                remedy="split the formula with parameters and assignment rules",
            )
        kind = _kinds().get(node.getType(), "unknown")
        if kind == "name":
            return self._name(node.getName() or "", scope)
        if kind in _CONSTANTS:
            return _CONSTANTS[kind]
        if kind in _NUMBER_NODES:
            return _number(node.getValue())
        parts = [self._read(part, scope, calls, depth + 1) for part in _arguments(node)]
        if kind == "function":
            return self._call(node.getName() or "", parts, calls, depth)
        return _combine(kind, parts)

    def _name(self, name: str, scope: Mapping[str, Expression]) -> Expression:
        if name in scope:
            return scope[name]
        if name in self.refused:
            raise InputError(self.refused[name], value=name, remedy="write the formula without it")
        raise unknown("symbol", name, scope)

    def _call(
        self, name: str, arguments: Sequence[Expression], calls: tuple[str, ...], depth: int
    ) -> Expression:
        if name not in self.functions:
            raise unknown("function", name, self.functions)
        if name in calls:
            raise InputError(
                f"function {name!r} calls itself", value=name, remedy="write it without recursion"
            )
        function = self.functions[name]
        bound = [function.getArgument(at) for at in range(function.getNumArguments())]
        names = [argument.getName() or "" for argument in bound]
        if len(names) != len(arguments):
            raise _wrong_arguments(name, str(len(names)), len(arguments))
        if function.getBody() is None:
            raise InputError(
                f"function {name!r} has no body", value=name, remedy="define it by a <lambda>"
            )
        scope = dict(zip(names, arguments, strict=True))
        return self._read(function.getBody(), scope, (*calls, name), depth + 1)


@cache
def _kinds() -> dict[int, str]:
    """libsbml's node types by their names: AST_FUNCTION_EXP is "function_exp"."""
    libsbml = library()
    found = [name for name in dir(libsbml) if name.startswith("AST_")]
    return {getattr(libsbml, name): name.removeprefix("AST_").lower() for name in found}


def _arguments(node: Any) -> list[Any]:
    """Arguments of a node; a sum that libsbml has folded to the left is laid out flat again."""
    kind, rest = node.getType(), []
    if _kinds().get(kind) in ("plus", "times"):
        while node.getNumChildren() == 2 and node.getChild(0).getType() == kind:
            rest.append(node.getChild(1))
            node = node.getChild(0)
    return [node.getChild(at) for at in range(node.getNumChildren())] + rest[::-1]


def _number(value: float) -> Expression:
    if not math.isfinite(value):
        raise InputError(
            f"the number {value} is not finite", value=value, remedy="write a finite number"
        )
    return Number(value)


def _combine(kind: str, parts: list[Expression]) -> Expression:
    if kind in _CHAINS:
        return _chain(*_CHAINS[kind], parts)
    if kind in _COMPARISONS:
        return _comparison(_COMPARISONS[kind], [real(part) for part in parts])
    if kind == "minus":
        return apply("neg" if len(parts) == 1 else "-", *map(real, parts))
    if kind in _OPERATORS:
        return apply(_OPERATORS[kind], *map(real, parts))
    if kind == "function_piecewise":
        return _piecewise(parts)
    if kind in ("logical_not", "logical_implies", "logical_xor"):
        return _logical(kind, [truth(part) for part in parts])
    if kind == "function_factorial":
        return _factorial(parts)
    return _derived(kind.removeprefix("function_"), [real(part) for part in parts])


def _chain(operator: str, empty: Expression | None, parts: list[Expression]) -> Expression:
    convert = truth if operator in ("and", "or") else real
    if not parts:
        if empty is None:
            raise _wrong_arguments(operator, "at least 1", 0)
        return empty
    if len(parts) > _CHAIN:
        middle = len(parts) // 2
        parts = [_chain(operator, empty, parts[:middle]), _chain(operator, empty, parts[middle:])]
    return reduce(lambda left, right: apply(operator, left, right), map(convert, parts))


def _comparison(symbol: str, parts: list[Expression]) -> Expression:
    if len(parts) < 2 or (symbol == "!=" and len(parts) > 2):
        raise _wrong_arguments(repr(symbol), "2" if symbol == "!=" else "at least 2", len(parts))
    links = [apply(symbol, left, right) for left, right in pairwise(parts)]
    return _chain("and", None, links)


def _piecewise(parts: list[Expression]) -> Expression:
    if len(parts) % 2 == 0:
        raise InputError(
            "piecewise without <otherwise> has no value where no condition holds",
            remedy="add <otherwise>",
        )
    if len(parts) == 1:
        return parts[0]
    convert = (real, truth)
    return rates.piecewise(
        [convert[at % 2](part) for at, part in enumerate(parts[:-1])] + [real(parts[-1])]
    )


def _logical(kind: str, parts: list[Expression]) -> Expression:
    if kind == "logical_not":
        return apply("not", *parts)
    if kind == "logical_implies":
        if len(parts) != 2:
            raise _wrong_arguments("implies", "2", len(parts))
        return apply("or", apply("not", parts[0]), parts[1])
    return reduce(  # as numbers: a formula in and/or would double with every argument
        lambda left, right: apply("!=", real(left), real(right)), parts, apply("false")
    )


def _factorial(parts: list[Expression]) -> Expression:
    if len(parts) != 1 or not isinstance(parts[0], Number) or parts[0].value not in range(171):
        raise InputError(
            "factorial is supported only of a whole number up to 170",
            remedy="write its argument as a number",
        )
    return Number(float(math.factorial(int(parts[0].value))))


def _derived(name: str, parts: list[Expression]) -> Expression:
    if name not in _DERIVED:
        raise InputError(
            f"{name.replace('_', ' ')!r} is not supported in formulas",
            value=name,
            remedy="write the formula without it",
        )
    pattern = rates.parse(_DERIVED[name])
    wanted = sorted(rates.names(pattern))
    if len(parts) != len(wanted):
        raise _wrong_arguments(name, str(len(wanted)), len(parts))
    if name == "root" and parts[0] == Number(2.0):
        return apply("sqrt", parts[1])
    if name == "log" and parts[0] == Number(10.0):
        return apply("log10", parts[1])
    return rates.substitute(pattern, dict(zip(wanted, parts, strict=True)))


# --- bounds ---------------------------------------------------------------------------------------


def size(expression: Expression, rules: Mapping[str, int]) -> int:
    """Nodes of the tree when the names in `rules` have the sizes given there.

    Parts may be shared, so that a small formula can stand for a huge tree: each part is visited
    once, and more than `MAX_FORMULA_NODES` are refused.
    """
    seen: dict[int, int] = {}

    def count(part: Expression) -> int:
        if isinstance(part, Name):
            return rules.get(part.name, 1)
        if isinstance(part, Number):
            return 1
        if id(part) not in seen:
            seen[id(part)] = 1 + sum([count(inner) for inner in part.arguments])
        return seen[id(part)]

    nodes = count(expression)
    if nodes > MAX_FORMULA_NODES:
        raise too_large()
    return nodes


def too_large() -> InputError:
    """Error for formulas that are too large once written out."""
    return InputError(
        "too large with functions and rules written out: over "
        f"{MAX_FORMULA_NODES:,} terms in a formula or {MAX_MODEL_NODES:,} in the model",
        remedy="simplify the formulas",
    )


def _wrong_arguments(name: str, wanted: str, got: int) -> InputError:
    """Error for an operator or function with too few or too many arguments."""
    return InputError(
        f"{name} takes {wanted} argument(s), got {got}",
        value=got,
        remedy=f"give {name} {wanted} argument(s)",
    )


def in_order(needs: Mapping[str, Iterable[str]], what: str) -> list[str]:
    """Names such that each comes after those it needs."""
    try:
        return list(TopologicalSorter(needs).static_order())
    except CycleError as problem:
        circle = ", ".join(dict.fromkeys(problem.args[1][:20]))
        raise InputError(
            f"{what} depend on each other in a circle: {circle}",
            value=circle,
            remedy="compute one of them without the others",
        ) from None
