"""Robustness at every step against RTAMT's discrete-time monitor, an independent implementation.

RTAMT clips windows to the trace, takes the minimum of nothing as +inf and the maximum of nothing
as -inf, and `<` as `<=`. Its `iff` and `xor` are distances of robustness, so that we spell them
out; its unary operators need parentheses.
"""

from __future__ import annotations

import math
import warnings
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor

from constraints import Boolean, Formula, Layout, Robustness, compiled
from constraints.ast import build
from constraints.ast import formulas as f
from constraints.ast.formulas import Quantifier
from constraints.ast.terms import Apply, Const, Name, Term
from constraints.ast.words import END, NOW
from tests.constraints.random_formulas import NAMES, random_formula

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    rtamt = pytest.importorskip("rtamt")

STEPS = 7
LAYOUT = Layout.series(NAMES, STEPS)
BLOCKS, BLOCK = 10, 100
UNTIL = {("exists", False): "until", ("exists", True): "since"}


def text(node: Formula) -> str:
    """The formula in RTAMT's language."""
    match node:
        case f.Compare((a, b), ("=" | "!=" as relation,), tolerance):
            return equality(a, relation, b, tolerance)
        case f.Compare(terms, relations):
            links = zip(terms[:-1], relations, terms[1:], strict=True)
            parts = [f"({term(a)} {relation} {term(b)})" for a, relation, b in links]
            return parts[0] if len(parts) == 1 else "(" + " and ".join(parts) + ")"
        case f.Not(body):
            return f"(not {text(body)})"
        case f.And(parts) | f.Or(parts):
            word = " and " if isinstance(node, f.And) else " or "
            return "(" + word.join(text(part) for part in parts) + ")"
        case f.Implies(left, right):
            return f"({text(left)} -> {text(right)})"
        case f.Iff(left, right) | f.Xor(left, right):
            a, b = text(left), text(right)
            if isinstance(node, f.Xor):
                return f"(({a} and (not {b})) or ((not {a}) and {b}))"
            return f"(({a} and {b}) or ((not {a}) and (not {b})))"
        case f.Quantifier():
            return f"({unary(node)} {text(node.body)})"
        case f.Until("forall", left, right, first, last, past):  # the dual
            swapped = f.Until("exists", f.Not(left), f.Not(right), first, last, past)
            return f"(not {text(swapped)})"
        case f.Until(kind, left, right, first, last, past):
            word = UNTIL[kind, past] + interval(first, last)
            return f"({text(left)} {word} {text(right)})"
    raise TypeError(node)


def equality(a: Term, relation: str, b: Term, tolerance: float | None) -> str:
    """RTAMT's own is exact; one with a tolerance is a bound on the distance."""
    if tolerance == 0.0:
        return f"({term(a)} {'==' if relation == '=' else '!=='} {term(b)})"
    if tolerance is None:  # as in the library: a millionth of the constant
        constant = b.arguments[-1] if isinstance(b, Apply) else b
        assert isinstance(constant, Const)
        tolerance = 1e-6 * abs(constant.value)
    return f"(abs({term(a)} - {term(b)}) {'<=' if relation == '=' else '>'} {tolerance})"


def unary(node: Quantifier) -> str:
    """always, eventually, historically or once, with its window."""
    every = node.kind == "forall"
    first, last = node.first, node.last
    if (first.base, last.base) == (NOW, NOW) and first.offset == last.offset in (1, -1):
        strong = "" if every else "s_"
        return strong + ("next" if first.offset == 1 else "prev")
    if last.base == END:
        return ("always" if every else "eventually") + interval(first.offset, None)
    if first.base is None:
        return ("historically" if every else "once") + interval(-last.offset, None)
    if last.offset > 0 or first.offset >= 0:
        return ("always" if every else "eventually") + interval(first.offset, last.offset)
    return ("historically" if every else "once") + interval(-last.offset, -first.offset)


def interval(first: int, last: int | None) -> str:
    """Unbounded windows reach further than any trace."""
    if (first, last) == (0, None):
        return ""
    return f"[{first},{STEPS + 5 if last is None else last}]"


def term(node: Term) -> str:
    match node:
        case Name(name):
            return name
        case Const(value):
            return f"({value})" if value >= 0 else f"(0 - {-value})"
        case Apply("neg", (body,)):
            return f"(0 - {term(body)})"
        case Apply("abs" | "sqrt" as function, (body,)):
            return f"{function}({term(body)})"
        case Apply("pow", (left, right)):
            return f"pow({term(left)}, {term(right)})"
        case Apply("/", (left, Const(value))):
            return term(Apply("*", (Const(1 / value), left)))
        case Apply("max" | "min" as kind, (left, right)):  # RTAMT has neither
            a, b = term(left), term(right)
            return f"((({a} + {b}) {'+' if kind == 'max' else '-'} abs({a} - {b})) * 0.5)"
        case Apply("+" | "*" as symbol, arguments):
            shown = term(arguments[0])
            for each in arguments[1:]:
                shown = f"({shown} {symbol} {term(each)})"
            return shown
    raise TypeError(node)


def monitored(formula: Formula, data: dict[str, Tensor]) -> Tensor:
    """RTAMT's robustness at every step: (STEPS,)."""
    specification: Any = rtamt.StlDiscreteTimeOfflineSpecification()
    for name in (*NAMES, "out"):
        specification.declare_var(name, "float")
    specification.spec = f"out = {text(formula)}"
    specification.parse()
    series = {name: data[name][0].tolist() for name in NAMES}
    found = specification.evaluate({"time": list(range(STEPS)), **series})
    return torch.tensor([value for _, value in found], dtype=torch.float64)


def drawn(seed: int) -> Formula:
    options = {"explicit": False, "folds": False, "annotated": False, "constants": False}
    random = Random(seed)
    return random_formula(random, depth=3, trace=True, steps=STEPS, reach="clip", **options)


@pytest.mark.parametrize("block", range(BLOCKS))
def test_robustness_and_verdict_at_every_step(block: int) -> None:
    generator = torch.Generator().manual_seed(block)
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        formula = drawn(seed)
        values = torch.randn(len(NAMES), 1, STEPS, generator=generator, dtype=torch.float64)
        data = dict(zip(NAMES, values, strict=True))
        wanted = monitored(formula, data)
        program = compiled(formula, LAYOUT, trace=True)
        margin = program.trace(data, Robustness(), end="clip")[0]
        torch.testing.assert_close(margin, wanted, rtol=1e-9, atol=1e-9, msg=str(formula))
        verdict = program.trace(data, Boolean(), end="clip")[0]
        clear = wanted.abs() > 1e-9
        assert verdict[clear].equal(wanted[clear] > 0), formula


def test_the_formulas_cover_the_operators() -> None:
    shown = " ".join(text(drawn(seed)) for seed in range(BLOCKS * BLOCK))
    for word in ["always[", "eventually[", "historically[", "once[", "until", "since", "->"]:
        assert shown.count(word) > 20, word
    for word in ["always (", "once (", "==", "!==", "abs", "s_next", "s_prev", "(next", "(prev"]:
        assert word in shown, word


def test_windows_beyond_the_trace_are_empty() -> None:
    x = Name("x")
    data = {name: torch.ones(1, STEPS, dtype=torch.float64) for name in NAMES}
    for formula, last in [
        (build.always(x >= 0, 1, 3), math.inf),
        (build.eventually(x >= 0, 1, 3), -math.inf),
        ((x >= 0).until(x >= 0, 1, 3), -math.inf),
        ((x >= 0).release(x >= 0, 1, 3), math.inf),
    ]:
        margin = compiled(formula, LAYOUT, "clip").trace(data, Robustness(), end="clip")[0]
        assert margin[-1] == last
        torch.testing.assert_close(margin, monitored(formula, data))
