from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Formula, FormulaError, Layout, compiled, parse
from constraints.ast.build import always, eventually, historically, once
from constraints.ast.formulas import (
    FALSE,
    TRUE,
    And,
    Annotated,
    Compare,
    Iff,
    Implies,
    Not,
    Or,
    Quantifier,
    Until,
    Xor,
)
from constraints.ast.nodes import MAX_DEPTH
from constraints.ast.terms import Aggregate, Apply, At, Const, Count, Name, Step, Term
from tests.constraints.random_formulas import formulas
from tests.constraints.random_syntax import random_syntax

S, I, x, y, z = (Name(name) for name in ("S", "I", "x", "y", "z"))
a, b, c, d = (Compare((Name(name), Const(0)), (">",)) for name in "abcd")
ZERO, TWO = Step(None, 0), Step(None, 2)


def at_most(left: Term, right: float = 1) -> Compare:
    return Compare((left, Const(right)), ("<=",))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        # comparisons
        ("x <= 1", at_most(x)),
        ("x < 1", Compare((x, Const(1)), ("<",))),
        ("x >= -1", Compare((x, Const(-1)), (">=",))),
        ("x = y", Compare((x, y), ("=",))),
        ("x != y", Compare((x, y), ("!=",))),
        ("0 <= x < y <= 1", Compare((Const(0), x, y, Const(1)), ("<=", "<", "<="))),
        ("x = 3 +- 0.5", Compare((x, Const(3)), ("=",), 0.5)),
        ("x != 3 +- 0.5", Compare((x, Const(3)), ("!=",), 0.5)),
        ('race = "White"', Compare((Name("race"), Name("White", quoted=True)), ("=",))),
        ('"residual sugar" <= 1', at_most(Name("residual sugar"))),
        ("x[2] <= 1", at_most(Name("x", 2))),
        # connectives
        ("true", TRUE),
        ("false", FALSE),
        ("not a > 0", Not(a)),
        ("a > 0 and b > 0 and c > 0", And((a, b, c))),
        ("a > 0 or b > 0 or c > 0", Or((a, b, c))),
        ("a > 0 xor b > 0", Xor(a, b)),
        ("a > 0 implies b > 0", Implies(a, b)),
        ("a > 0 iff b > 0", Iff(a, b)),
        # time
        ("forall t: x(t) <= 1", Quantifier("forall", "t", None, None, at_most(At(x, Step("t"))))),
        (
            "exists t in [2, end - 1]: x(t + 1) <= 1",
            Quantifier("exists", "t", TWO, Step("end", -1), at_most(At(x, Step("t", 1)))),
        ),
        (
            "forall t in [@0.5, @2]: x(t) <= 1",
            Quantifier(
                "forall", "t", Step(None, 0, 0.5), Step(None, 0, 2), at_most(At(x, Step("t")))
            ),
        ),
        (
            "forall p in lung: x(p) <= 1",
            Quantifier("forall", "p", None, None, at_most(At(x, Step("p"))), "lung"),
        ),
        ("always(a > 0)", Quantifier("forall", "now", Step("now"), Step("end"), a)),
        ("always[0,5](a > 0)", Quantifier("forall", "now", Step("now"), Step("now", 5), a)),
        ("eventually[2,end](a > 0)", eventually(a, 2)),
        ("historically(a > 0)", Quantifier("forall", "now", ZERO, Step("now"), a)),
        ("once[1,3](a > 0)", Quantifier("exists", "now", Step("now", -3), Step("now", -1), a)),
        (
            "forall now in [now - 2, now + 1]: a > 0",
            Quantifier("forall", "now", Step("now", -2), Step("now", 1), a),
        ),
        ("a > 0 until b > 0", Until("exists", a, b)),
        ("a > 0 until[2,end] b > 0", Until("exists", a, b, 2)),
        ("a > 0 release[0,4] b > 0", Until("forall", a, b, 0, 4)),
        ("a > 0 since[1,4] b > 0", Until("exists", a, b, 1, 4, past=True)),
        ("a > 0 trigger b > 0", Until("forall", a, b, past=True)),
        ("(a > 0) {k=7}", Annotated(a, 7)),
        ("((a > 0) {k=0.5}) {weight=2}", Annotated(Annotated(a, 0.5), None, 2)),
        ("(a > 0) {k=1e-09, weight=2}", Annotated(a, 1e-9, 2)),
        # terms
        ("x(2) <= 1", at_most(At(x, TWO))),
        ("x@2.5 <= 1", at_most(At(x, Step(None, 0, 2.5)))),
        ("x(end) <= 1", at_most(At(x, Step("end")))),
        ("x(now - 2) <= 1", at_most(At(x, Step("now", -2)))),
        ("(x + y)(2) <= 1", at_most(At(Apply("+", (x, y)), TWO))),
        ("delta(x)(2) <= 1", at_most(At(Apply("delta", (x,)), TWO))),
        ("x + y - 2 <= 1", at_most(Apply("+", (x, y, Const(-2))))),
        ("x - (y + z) <= 1", at_most(Apply("+", (x, Apply("neg", (Apply("+", (y, z)),)))))),
        ("x / y * z <= 1", at_most(Apply("*", (Apply("/", (x, y)), z)))),
        ("-x <= 1", at_most(Apply("neg", (x,)))),
        ("-x ^ 2 <= 1", at_most(Apply("neg", (Apply("pow", (x, Const(2))),)))),
        ("(-2) ^ x <= 1", at_most(Apply("pow", (Const(-2), x)))),
        ("x ^ y ^ -2 <= 1", at_most(Apply("pow", (x, Apply("pow", (y, Const(-2))))))),
        ("abs(x) <= 1", at_most(Apply("abs", (x,)))),
        ("max(x) <= 1", at_most(Aggregate("max", x))),
        ("max(x, y) <= 1", at_most(Apply("max", (x, y)))),
        ("max(x, 0, 2) <= 1", at_most(Aggregate("max", x, ZERO, TWO))),
        ("max(x, +0, 2) <= 1", at_most(Apply("max", (x, Const(0), Const(2))))),
        ("max(x, -3, 2) <= 1", at_most(Apply("max", (x, Const(-3), Const(2))))),
        ("mean(x, lung) <= 1", at_most(Aggregate("mean", x, region="lung"))),
        ("argmin(x, 0, end) <= 1", at_most(Aggregate("argmin", x, ZERO, Step("end")))),
        ("count(a > 0, 0, 2) <= 1", at_most(Count(a, ZERO, TWO))),
        ("f(x, y) <= 1", at_most(Apply("f", (x, y)))),
        ("f(+3) <= 1", at_most(Apply("f", (Const(3),)))),
        ('"max"(2) <= 1', at_most(At(Name("max"), TWO))),
        (
            'forall t: "t" <= t',
            Quantifier("forall", "t", None, None, Compare((Name("t"), Step("t")), ("<=",))),
        ),
    ],
)
def test_each_construct_parses_to_its_nodes(text: str, node: Formula) -> None:
    assert parse(text) == node
    assert str(node) == text


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("x == 1", "x = 1"),
        ("x ≤ 1 and x ≥ 0 and x ≠ 2", "x <= 1 and x >= 0 and x != 2"),
        ("x in [0, 1]", "0 <= x <= 1"),
        ("x not in [0, 1]", "not 0 <= x <= 1"),
        ("x in {1}", "x = 1"),
        ('x in {"White", b, 2}', 'x = "White" or x = b or x = 2'),
        ("x not in {1, 2}", "not (x = 1 or x = 2)"),
        ("a > 0 -> b > 0 => c > 0", "a > 0 implies b > 0 implies c > 0"),
        ("a > 0 <-> b > 0 <=> c > 0", "a > 0 iff b > 0 iff c > 0"),
        ("x = 3 ± 1", "x = 3 +- 1"),
        ("x = 3 +/- 1", "x = 3 +- 1"),
        ("x**2 <= 1", "x ^ 2 <= 1"),
        ("pow(x, 2) <= 1", "x ^ 2 <= 1"),
        ("next(a > 0)", "eventually[1,1](a > 0)"),
        ("previous a > 0", "once[1,1](a > 0)"),
        ("a > 0 weak  until[0,5] b > 0", "(a > 0) weak until[0,5] (b > 0)"),
        ("'residual sugar' <= 1", '"residual sugar" <= 1'),
        ("\n\tx<=1 # at most\n  and y<=1#", "x <= 1 and y <= 1"),
        (".5e1 <= x", "5 <= x"),
        ("1. <= x", "1 <= x"),
        ("+x - -3 <= 1", "x + 3 <= 1"),
        ("forall t: x(1 + t + 1) <= 1", "forall t: x(t + 2) <= 1"),
        ("forall t: t + 1 + x(t) <= 1", "forall t: (t + 1) + x(t) <= 1"),
        ("always[0, 2] (a > 0)", "always[0,2](a > 0)"),
        ("always a > 0 and b > 0", "always(a > 0) and b > 0"),
    ],
)
def test_synonyms_parse_to_the_same_formula(text: str, same: str) -> None:
    assert parse(text) == parse(same)
    assert str(parse(text)) == str(parse(same))


@pytest.mark.parametrize(
    ("text", "node"),
    [
        ("a > 0 iff b > 0 implies c > 0", Iff(a, Implies(b, c))),
        ("a > 0 iff b > 0 iff c > 0", Iff(Iff(a, b), c)),
        ("a > 0 implies b > 0 implies c > 0", Implies(a, Implies(b, c))),
        ("(a > 0 implies b > 0) implies c > 0", Implies(Implies(a, b), c)),
        ("a > 0 or b > 0 implies c > 0", Implies(Or((a, b)), c)),
        ("a > 0 or b > 0 xor c > 0", Or((a, Xor(b, c)))),
        ("a > 0 xor b > 0 and c > 0", Xor(a, And((b, c)))),
        ("a > 0 xor b > 0 xor c > 0", Xor(Xor(a, b), c)),
        ("a > 0 and b > 0 until c > 0", And((a, Until("exists", b, c)))),
        ("not a > 0 until b > 0", Until("exists", Not(a), b)),
        ("not (a > 0 until b > 0)", Not(Until("exists", a, b))),
        ("not always(a > 0) and b > 0", And((Not(always(a)), b))),
        ("once(not historically(a > 0))", once(Not(historically(a)))),
        ("(forall t: a > 0) and b > 0", And((Quantifier("forall", "t", None, None, a), b))),
        ("forall t: a > 0 and b > 0", Quantifier("forall", "t", None, None, And((a, b)))),
        ("a > 0 and (b > 0 or c > 0) and d > 0", And((a, Or((b, c)), d))),
        ("x + y * z <= 1", at_most(Apply("+", (x, Apply("*", (y, z)))))),
        ("(x + y) * z <= 1", at_most(Apply("*", (Apply("+", (x, y)), z)))),
        ("-x * y <= 1", at_most(Apply("*", (Apply("neg", (x,)), y)))),
        ("-(x * y) <= 1", at_most(Apply("neg", (Apply("*", (x, y)),)))),
        ("x / (y / z) <= 1", at_most(Apply("/", (x, Apply("/", (y, z)))))),
        ("(x ^ y) ^ z <= 1", at_most(Apply("pow", (Apply("pow", (x, y)), z)))),
        ("-x(2) ^ y <= 1", at_most(Apply("neg", (Apply("pow", (At(x, TWO), y)),)))),
    ],
)
def test_precedence_with_no_needless_parentheses(text: str, node: Formula) -> None:
    assert parse(text) == node
    assert str(node) == text


def reads_back(formula: Formula) -> None:
    again = parse(str(formula))
    assert again == formula
    assert hash(again) == hash(formula)
    assert str(again) == str(formula)


@given(formulas())
@settings(max_examples=300)
def test_printed_formulas_parse_back(formula: Formula) -> None:
    reads_back(formula)


@given(st.integers(0, 2**32))
@settings(max_examples=1000)
def test_formulas_with_unusual_names_numbers_and_steps_parse_back(seed: int) -> None:
    reads_back(random_syntax(Random(seed)))


def test_the_deepest_formula_parses_back() -> None:
    formula: Formula = at_most(Const(-1))
    while formula.depth < MAX_DEPTH:
        formula = Not(formula)
    reads_back(formula)
    with pytest.raises(FormulaError, match=f"more than {MAX_DEPTH} levels"):
        parse(f"not {formula}")


@pytest.mark.parametrize("thing", [None, b"x <= 1", 3, 2.5, ["x <= 1"], at_most(x)])
def test_only_text_is_parsed(thing: object) -> None:
    with pytest.raises(FormulaError, match=r"a formula is text, not .*; write one such as"):
        parse(thing)  # type: ignore[arg-type]


def test_weak_until_compiles_to_until_or_always() -> None:
    layout = Layout.series("a b", 8)
    weak = compiled("a > 0 weak until[1,5] b > 0", layout)
    spelt = compiled("a > 0 until[1,5] b > 0 or always[0,5](a > 0)", layout)
    assert weak.lowered == spelt.lowered
