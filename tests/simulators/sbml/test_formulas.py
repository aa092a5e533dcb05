"""Formulas of SBML files: values, function definitions, and bounds on what they grow to."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import pytest

pytest.importorskip("libsbml", reason="python-libsbml is optional")

from simulators import InputError, ReactionNetwork, rates
from simulators.sbml import formulas
from tests.simulators.sbml import texts as text
from tests.simulators.sbml.texts import document, parameter, reaction

Read = Callable[[str], ReactionNetwork]


def law(network: ReactionNetwork) -> rates.Expression:
    return network.propensities[0]


FORMULAS = {
    "plus()": 0.0,
    "times()": 1.0,
    "plus(a)": 3.0,
    "a + a + a - 1": 8.0,
    "a*a*a/2": 13.5,
    "-a": -3.0,
    "a^3": 27.0,
    "sqrt(a + 1)": 2.0,
    "root(3, a + 5)": 2.0,
    "log10(1000)": 3.0,
    "log(2, 8)": 3.0,
    "ln(exponentiale)": 1.0,
    "exp(1)": math.e,
    "pi": math.pi,
    "avogadro": 6.02214179e23,
    "floor(a/2) + ceil(a/2)": 3.0,
    "abs(-a)": 3.0,
    "sin(a) + cos(a) + tan(a)": sum(getattr(math, f)(3) for f in ("sin", "cos", "tan")),
    "sec(a)*cos(a) + csc(a)*sin(a) + cot(a)*tan(a)": 3.0,
    "sech(a)*cosh(a) + csch(a)*sinh(a) + coth(a)*tanh(a)": 3.0,
    "arcsin(0.5)": math.asin(0.5),
    "arcsec(2) + arccsc(2)": math.pi / 2,
    "arccot(a)": math.atan(1 / 3),
    "sinh(arcsinh(a)) + cosh(arccosh(a)) + tanh(arctanh(0.5))": 6.5,
    "csch(arccsch(a)) + sech(arcsech(0.5)) + coth(arccoth(a))": 6.5,
    "piecewise(1, a > 5, 2, a > 2, 3)": 2.0,
    "piecewise(a)": 3.0,
    "piecewise(1, a < 4 && a > 2 || false, 0)": 1.0,
    "piecewise(1, !(a >= 3), 0)": 0.0,
    "piecewise(1, lt(1, a, 2), 0)": 0.0,
    "piecewise(1, lt(1, a, 4), 0)": 1.0,
    "piecewise(1, eq(a > 2, a < 4), 0)": 1.0,
    "piecewise(1, xor(true, true, true), 0)": 1.0,
    "piecewise(1, xor(a > 1, a > 2), 0)": 0.0,
    "piecewise(1, implies(a > 1, a > 5), 0)": 0.0,
    "piecewise(1, implies(a > 5, false), 0)": 1.0,
    "piecewise(1, a, 0)": 1.0,
    "(a > 1) + (a > 2) + (a > 3)": 2.0,
    "min(a, 5, 2) + max(a, 1, 4)": 6.0,
    "quotient(-7, 2)": -3.0,
    "rem(-7, 2)": -1.0,
    "factorial(4)": 24.0,
    "time + a": 3.0,
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_mathml_has_the_value_of_its_expression(read: Read, formula: str) -> None:
    network = read(document(parameters=parameter("a", 3), reactions=reaction(formula)))
    value = rates.evaluate(law(network), {"a": 3.0, "X": 10.0, "time": 0.0})
    assert value == pytest.approx(FORMULAS[formula], rel=1e-12)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        ('<cn type="integer"> -12 </cn>', -12.0),
        ('<cn type="rational"> 1 <sep/> 4 </cn>', 0.25),
        ('<cn type="e-notation"> 2.5 <sep/> -3 </cn>', 0.0025),
        ("<cn> 1.5e3 </cn>", 1500.0),
        ("<cn> .5 </cn>", 0.5),
    ],
)
def test_numbers_are_read_in_every_notation(read: Read, number: str, value: float) -> None:
    network = read(document(reactions=reaction(number)))
    assert rates.evaluate(law(network), {}) == pytest.approx(value, rel=1e-15)


def test_long_sums_stay_shallow(read: Read) -> None:
    network = read(document(reactions=reaction(" + ".join(["X"] * 3000))))
    assert rates.evaluate(law(network), {"X": 2.0}) == 6000.0


def test_functions_are_written_out(read: Read) -> None:
    network = read(
        document(
            functions=text.function("twice", "lambda(X, add(X, X))")
            + text.function("add", "lambda(a, b, a + b)")
            + text.function("choose", "lambda(c, v, piecewise(v, c, 0))")
            + text.function("one", "lambda(1)"),
            parameters=parameter("a", 3),
            reactions=reaction("twice(a*X) + choose(X > 2, a) + one()"),
        )
    )
    assert str(law(network)) == "a*X + a*X + piecewise(a, X > 2, 0) + 1"


# --- growth ---------------------------------------------------------------------------------------


def doubling_functions(count: int, step: str) -> str:
    first = text.function("f0", "lambda(x, x + x)")
    return first + "".join(
        text.function(f"f{at}", f"lambda(x, {step.format(f'f{at - 1}')})") for at in range(1, count)
    )


@pytest.mark.parametrize("step", ["{0}({0}(x))", "{0}(x)*{0}(x)", "{0}(x + x)"])
def test_functions_that_double_are_bounded(read: Read, step: str) -> None:
    content = document(functions=doubling_functions(40, step), reactions=reaction("f39(X)"))
    with pytest.raises(InputError, match=r"too large|nested deeper"):
        read(content)


def test_chains_of_functions_are_bounded(read: Read) -> None:
    functions = doubling_functions(1000, "{}(x)")
    assert read(document(functions=functions, reactions=reaction("f90(X)")))
    with pytest.raises(InputError, match="nested deeper than 200"):
        read(document(functions=functions, reactions=reaction("f999(X)")))


def test_large_functions_in_many_reactions_are_bounded(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(formulas, "MAX_MODEL_NODES", 20_000)
    functions = text.function("f", f"lambda(x, {' + '.join(['x'] * 3000)})")
    reactions = "".join(reaction("f(X)", name=f"R{at}") for at in range(100))
    with pytest.raises(InputError, match="too large"):
        read(document(functions=functions, reactions=reactions))


def rules(count: int, step: str) -> str:
    names = [f"r{at}" for at in range(count)]
    return document(
        parameters="".join(parameter(name, None, False) for name in names),
        rules=text.rule("r0", "X")
        + "".join(text.rule(b, step.format(a)) for a, b in pairwise(names)),
    )


def test_rules_that_double_are_bounded(read: Read) -> None:
    assert read(rules(10, "{0} + {0}"))
    with pytest.raises(InputError, match="too large"):
        read(rules(60, "{0} + {0}"))


def test_chains_of_rules_are_bounded(read: Read) -> None:
    assert read(rules(200, "{}"))
    with pytest.raises(InputError, match="over more than 300 levels"):
        read(rules(400, "{}"))


def test_nested_comparisons_are_bounded(read: Read) -> None:
    formula = "1"
    for _ in range(30):  # the middle of a chained comparison is written twice
        formula = f"piecewise(1, lt(0, {formula}, 2), 0)"
    with pytest.raises(InputError, match="too large"):
        read(document(reactions=reaction(formula)))


@pytest.mark.parametrize(
    ("formula", "reason"),
    [
        ("<apply><sin/></apply>", "sin takes 1 argument"),
        ("<apply><root/></apply>", "root takes 2 argument"),
        ("<apply><minus/></apply>", "- takes 2 argument"),
        ("<apply><divide/><cn>1</cn></apply>", "/ takes 2 argument"),
        ("<apply><eq/><cn>1</cn></apply>", "'==' takes at least 2 argument.*got 1"),
        ("<apply><neq/><cn>1</cn><cn>2</cn><cn>3</cn></apply>", "'!=' takes 2 argument.*got 3"),
        ("<apply><max/></apply>", "max takes at least 1 argument.*got 0"),
        ("<apply><not/></apply>", "not takes 1 argument"),
        ("<apply><implies/><true/></apply>", "implies takes 2 argument"),
        ("<apply/>", "'unknown' is not supported"),
        ("<piecewise/>", "piecewise without"),
        ("<lambda><bvar><ci>x</ci></bvar><ci>x</ci></lambda>", "."),
        ("<notanumber/>", "the number nan"),
        ("<apply><frobnicate/><cn>1</cn></apply>", "line 3"),
    ],
)
def test_malformed_formulas_are_refused(read: Read, formula: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        read(document(reactions=reaction(formula)))
