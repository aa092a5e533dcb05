"""Rate laws: reading, printing, computing and compiling agree with each other and with Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators import rates
from simulators.errors import InputError
from simulators.rates import Apply, Expression, Name, Number, apply, parse

NAMES = ("S", "I", "beta", "lambda", "x_1", "β")


def _reals() -> st.SearchStrategy[Expression]:
    numbers = st.floats(-1e6, 1e6).map(lambda value: Number(float(value)))
    leaves = st.one_of(numbers, st.sampled_from(NAMES).map(Name))

    def grow(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        two = st.sampled_from(["+", "-", "*", "/", "^", "min", "max"])
        one = st.sampled_from(["neg", "abs", "sqrt", "exp", "floor"])
        compare = st.builds(
            apply, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), inner, inner
        )
        negated = st.builds(apply, st.just("not"), compare)
        joined = st.builds(
            apply, st.sampled_from(["and", "or"]), st.one_of(compare, negated), compare
        )
        conditions = st.one_of(compare, negated, joined)
        return st.one_of(
            st.builds(apply, two, inner, inner),
            st.builds(apply, one, inner),
            st.builds(lambda a, c, b: apply("piecewise", a, c, b), inner, conditions, inner),
        )

    return st.recursive(leaves, grow, max_leaves=12)


@given(_reals())
def test_print_then_parse_gives_the_same_expression(expression: Expression) -> None:
    assert parse(str(expression)) == expression


@given(st.text(alphabet="SIRt01.+-*/^()<>=!, andornotexpmin\n\t'\"\\_β$", max_size=40))
@settings(max_examples=500)
def test_any_text_is_an_expression_or_a_clear_error(text: str) -> None:
    try:
        read = parse(text)
    except InputError:
        return
    assert parse(str(read)) == read


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("beta*S*I/N", 2.0 * 30 * 5 / 100),
        ("-S^2", -900.0),
        ("2^3^2", 512.0),
        ("S - I - 1", 24.0),
        ("S/I/2", 3.0),
        ("piecewise(1, S < 10, 2, S < 40, 3)", 2.0),
        ("min(S, I, 7) + max(1, 2, 3)", 8.0),
        ("abs(-3) + sqrt(16) + floor(2.7) + ceil(2.1)", 12.0),
        ("ln(exp(2)) + pow(2, 3)", 10.0),
        ("cos(pi)", -1.0),
    ],
)
def test_expressions_have_the_values_of_python(text: str, value: float) -> None:
    have = {"beta": 2.0, "S": 30, "I": 5, "N": 100}
    assert rates.evaluate(parse(text), have) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("S = 30", True),
        ("10 <= S <= 20", False),
        ("10 <= S <= 30 and not I > 7", True),
        ("S < 10 or I == 5", True),
        ("true and false", False),
    ],
)
def test_conditions_have_the_values_of_python(text: str, holds: bool) -> None:
    assert bool(rates.evaluate(parse(text), {"S": 30, "I": 5})) is holds


def test_evaluation_broadcasts_over_arrays() -> None:
    values = rates.evaluate(parse("k*X*(X - 1)/2"), {"k": 2.0, "X": np.arange(4)})
    np.testing.assert_allclose(values, [0, 0, 2, 6])


def test_source_computes_what_evaluate_computes() -> None:
    expression = parse("piecewise(beta*S^2/(1 + I), S > 3, exp(-S)) + min(S, I)")
    rename = {"beta": "b", "S": "s", "I": "i"}
    code = compile(rates.source(expression, rename), "kernel", "eval")
    for s, i in [(1.0, 2.0), (5.0, 2.0), (10.0, 0.0)]:
        made = eval(
            code, {"np": np}, {"b": 0.3, "s": s, "i": i}
        )  # the source is generated, not typed
        assert made == pytest.approx(rates.evaluate(expression, {"beta": 0.3, "S": s, "I": i}))


def test_source_takes_no_name_that_the_caller_did_not_give() -> None:
    with pytest.raises(KeyError):
        rates.source(parse("__import__"), {})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "column 1"),
        ("a +", "column"),
        ("a b", "^"),
        ("a @ b", "column 3"),
        ("sine(x)", "did you mean 'sin'"),
        ("3 + (a < b)", "needs a number"),
        ("a and b", "needs a condition"),
        ("exp(a, b)", "takes 1 argument"),
        ("piecewise(a, b)", "piecewise takes"),
        ("1e999", "out of range"),
        ("(" * 400 + "-" * 400 + "a" + ")" * 400, "nested deeper"),
        ("__import__('os').system('x')", "column"),
        ("a" * 30_000, "limit"),
    ],
)
def test_errors_say_what_is_wrong_and_where(text: str, says: str) -> None:
    with pytest.raises(InputError, match=None) as caught:
        parse(text)
    assert says in str(caught.value)


def test_long_sums_are_fine() -> None:
    count = 250
    expression = parse(" + ".join(f"x{i}" for i in range(count)))
    assert rates.evaluate(expression, {f"x{i}": 1.0 for i in range(count)}) == count
    compile(rates.source(expression, {f"x{i}": f"w[{i}]" for i in range(count)}), "k", "eval")


@pytest.mark.parametrize("terms", [" - 0*x", "/x", " - x + y*z", "*x/y"])
def test_long_chains_compile(terms: str) -> None:
    expression = parse("x" + terms * 120)
    rename = {name: name for name in "xyz"}
    compile(rates.source(expression, rename), "k", "eval")


@pytest.mark.parametrize("text", ["abs(" * 250 + "x" + ")" * 250, "-(1 - " * 200 + "x" + ")" * 200])
def test_nesting_beyond_what_python_reads_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="nested deeper"):
        parse(text)


def test_names_and_substitution() -> None:
    expression = parse("beta*S + exp(time)")
    assert rates.names(expression) == {"beta", "S", "time"}
    replaced = rates.substitute(expression, {"S": parse("A + B")})
    assert str(replaced) == "beta*(A + B) + exp(time)"
    assert isinstance(replaced, Apply)


def test_impossible_arithmetic_is_nan_or_infinite_not_an_exception() -> None:
    assert math.isnan(rates.evaluate(parse("0/x"), {"x": 0.0}))
    assert math.isinf(rates.evaluate(parse("1/x"), {"x": 0.0}))
