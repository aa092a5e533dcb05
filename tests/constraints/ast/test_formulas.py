from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from constraints import (
    Formula,
    FormulaError,
    always,
    conjunction,
    count,
    disjunction,
    end,
    eventually,
    exists,
    forall,
    historically,
    iff,
    implies,
    once,
    one_of,
    parse,
    signals,
    time,
)
from constraints.ast.formulas import FALSE, TRUE, And, Compare, Not, Or, Quantifier, Until
from constraints.ast.nodes import MAX_DEPTH
from constraints.ast.terms import Step
from constraints.ast.walk import names

S, I, R, N = signals("S I R N")
t, u = time("t"), time("u")
a, b, c = S[0] > 0, I[0] > 0, R[0] > 0


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (forall(t)(I[t] <= 20), "forall t: I(t) <= 20"),
        ((S[0] == 95) & (I[0] == 5) & (S[25] == 30), "S(0) = 95 and I(0) = 5 and S(25) = 30"),
        (
            forall(t, 0, 10)(exists(u, t, t + 5)(I[u] > 10)),
            "forall t in [0,10]: exists u in [t,t+5]: I(u) > 10",
        ),
        (
            always(I <= 20, 0, 29) & eventually(S <= 30, 5, 10),
            "always[0,29](I <= 20) and eventually[5,10](S <= 30)",
        ),
        ((I < 5).until(R > 10, 0, 20), "(I < 5) until[0,20] (R > 10)"),
        (
            (I.max() <= 40) & I.argmax().between(8, 12) & (I.sum(0, 10) <= 300),
            "max(I) <= 40 and argmax(I) in [8,12] and sum(I, 0, 10) <= 300",
        ),
        (forall(t)(abs(S.delta()[t]) <= 8), "forall t: abs(delta(S)(t)) <= 8"),
        (forall(t)((S[t] + I[t]).between(0, N)), "forall t: 0 <= S(t) + I(t) <= N"),
        (
            (S >= 40) & ((I != "White") | (R == "Masters")),
            'S >= 40 and (I != "White" or R = "Masters")',
        ),
        (S.of(1) > S.of(2) + 1, "S[1] > S[2] + 1"),
        ((S[25] == 30).given(k=7), "(S(25) = 30) {k=7}"),
        ((S[25] == 30).given(weight=2).given(7, 3), "((S(25) = 30) {weight=2}) {k=7, weight=3}"),
        (S.at_time(2.5).equals(3, 0.5), "S@2.5 = 3 +- 0.5"),
        (one_of(S, "White", "Black"), 'S in {"White", "Black"}'),
        (~one_of(S, 1, 2), "S not in {1, 2}"),
        (one_of(S, 1), "S = 1"),
        (count(I > 10, 0, 10) >= 3, "count(I > 10, 0, 10) >= 3"),
        (count(I > 10) >= 3, "count(I > 10) >= 3"),
        (a & b | c, "S(0) > 0 and I(0) > 0 or R(0) > 0"),
        (~(a | b), "not (S(0) > 0 or I(0) > 0)"),
        (a ^ b, "S(0) > 0 xor I(0) > 0"),
        (a.implies(b), "S(0) > 0 implies I(0) > 0"),
        (implies(a, iff(b, c)), "S(0) > 0 implies (I(0) > 0 iff R(0) > 0)"),
        (a.iff(b), "S(0) > 0 iff I(0) > 0"),
        ((S > 0).release(I > 0, 1, 4), "S > 0 release[1,4] I > 0"),
        ((S > 0).since(I > 0), "S > 0 since I > 0"),
        ((S > 0).weak_until(I > 0, 0, 5), "S > 0 weak until[0,5] I > 0"),
        (historically(S > 0), "historically(S > 0)"),
        (historically(S > 0, 2), "forall now in [0, now - 2]: S > 0"),
        (once(S > 0, 1, 3), "once[1,3](S > 0)"),
        (always(S > 0, 3), "always[3,end](S > 0)"),
        (forall(t, 3)(S[t] > 0), "forall t in [3, end]: S(t) > 0"),
        (forall(t, last=3)(S[t] > 0), "forall t in [0, 3]: S(t) > 0"),
        (exists(t, end - 3, end)(S[t] > 0), "exists t in [end - 3, end]: S(t) > 0"),
        (forall(t, region="lung")(S[t] > 0), "forall t in lung: S(t) > 0"),
        (conjunction(), "true"),
        (disjunction(), "false"),
        (conjunction(a), "S(0) > 0"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_python_and_text_make_the_same_formula(made: Formula, text: str) -> None:
    assert made == parse(text)
    assert hash(made) == hash(parse(text))
    assert parse(str(made)) == made


def test_equality_is_of_structure() -> None:
    assert a == (S[0] > 0)
    assert a != b
    assert (a & b) != (b & a)
    assert (a & b) & c == a & (b & c) == conjunction(a, b, c)
    assert (a | b) | c == a | (b | c) == disjunction(a, b, c)
    assert a != "S(0) > 0"
    assert a.given(k=1) != a
    assert (S == 3) != (S == 4)
    assert S[0].equals(3, 0) != S[0].equals(3)


def test_formulas_are_hashable() -> None:
    assert len({a, S[0] > 0, parse("S(0) > 0"), b}) == 2
    assert {a & b: "both"}[parse("S(0) > 0 and I(0) > 0")] == "both"


def test_formulas_are_frozen() -> None:
    conjoined = a & b
    with pytest.raises(FrozenInstanceError):
        conjoined.parts = ()  # type: ignore[attr-defined]
    with pytest.raises(FrozenInstanceError):
        a.tolerance = 3.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del a.terms  # type: ignore[misc]
    assert str(conjoined) == "S(0) > 0 and I(0) > 0"


def test_a_formula_shows_itself() -> None:
    assert repr(a & b) == "<And S(0) > 0 and I(0) > 0>"


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: 0 < S[0] < 5,
        lambda: bool(a),
        lambda: a and b,
        lambda: a or b,
        lambda: not a,
        lambda: S[0] in [I[0], R[0]],
        lambda: [each for each in (a, b) if each],
        lambda: 1 if a else 2,
        lambda: max(S[0], I[0]),
        lambda: sorted([S[0], I[0]]),
    ],
)
def test_python_cannot_decide_a_formula(misuse: Any) -> None:
    with pytest.raises(TypeError) as caught:
        misuse()
    for remedy in ("no truth value", "write &, |, ~", "x.between(a, b)", "compile it"):
        assert remedy in str(caught.value)


@pytest.mark.parametrize("other", [True, 3, "x > 1", None, S, S[0]])
def test_only_formulas_are_joined(other: Any) -> None:
    joins = [
        lambda: a & other,
        lambda: a | other,
        lambda: a ^ other,
        lambda: a.implies(other),
        lambda: implies(other, a),
        lambda: iff(a, other),
        lambda: a.until(other),
        lambda: always(other),
        lambda: forall(t)(other),
        lambda: count(other),
        lambda: conjunction(other, a),
        lambda: disjunction(other),
    ]
    for join in joins:
        with pytest.raises(FormulaError, match="stands where a formula is wanted"):
            join()


@pytest.mark.parametrize("bad", [3, "t", end, t + 1, S, Step(None, 2)])
def test_a_quantifier_binds_a_variable(bad: Any) -> None:
    with pytest.raises(FormulaError, match=r'binds a time variable, not .*; t = time\("t"\)'):
        forall(bad)


def test_a_quantifier_has_a_window_or_a_region() -> None:
    with pytest.raises(FormulaError, match="a window of steps and a region; give one of them"):
        forall(t, 0, 5, region="lung")(S[t] > 0)
    with pytest.raises(FormulaError, match=r"step 2\.5 is not a whole number"):
        forall(t, 0, 2.5)
    with pytest.raises(FormulaError, match="only one end is given; give both ends, or neither"):
        Quantifier("forall", "t", Step(None, 0), None, a)
    with pytest.raises(FormulaError, match=r"unknown quantifier 'all' \(have: forall, exists\)"):
        Quantifier("all", "t", None, None, a)
    with pytest.raises(FormulaError, match=r"unknown quantifier 'all' \(have: forall, exists\)"):
        Until("all", a, b)


@pytest.mark.parametrize("window", [(-1, 3), (3, 2), (0, 2.5), (0.5, 2), ("a", 2)])
def test_windows_run_forward_in_whole_steps(window: tuple[Any, Any]) -> None:
    for operator in (always, eventually, historically, once):
        with pytest.raises(FormulaError, match="window"):
            operator(a, *window)
    for operator in (a.until, a.since, a.release, a.weak_until):
        with pytest.raises(FormulaError, match="window"):
            operator(b, *window)


def test_windows_take_numpy_integers() -> None:
    one, four = np.int64(1), np.int32(4)
    assert always(a, one, four) == always(a, 1, 4)
    assert once(a, one, four) == once(a, 1, 4)
    assert a.until(b, one, four) == a.until(b, 1, 4)
    assert forall(t, one, four)(a) == forall(t, 1, 4)(a)
    assert (count(a, one, four) > 1) == (count(a, 1, 4) > 1)


def test_count_takes_both_ends_or_neither() -> None:
    for window in ((3,), (None, 3)):
        with pytest.raises(
            FormulaError, match=r"count has a window .*; give both ends, or neither"
        ):
            count(a, *window)


def test_settings_are_positive_numbers() -> None:
    with pytest.raises(FormulaError, match="give k, weight or both"):
        a.given()
    for bad in (0, -1, float("nan"), float("inf"), "a"):
        with pytest.raises(FormulaError):
            a.given(k=bad)  # type: ignore[arg-type]
        with pytest.raises(FormulaError):
            a.given(weight=bad)  # type: ignore[arg-type]


def test_comparisons_are_chains() -> None:
    with pytest.raises(FormulaError, match="needs one relation less than terms, not"):
        Compare((S[0],), ())
    with pytest.raises(FormulaError, match="unknown relation '=<'"):
        Compare((S[0], I[0]), ("=<",))
    with pytest.raises(FormulaError, match="has no tolerance; only a single = or != has one"):
        Compare((S[0], I[0]), ("<=",), 0.5)


def test_depth_is_limited_without_recursion() -> None:
    deep = a
    while deep.depth < MAX_DEPTH:
        deep = ~deep
    with pytest.raises(FormulaError, match=f"nests more than {MAX_DEPTH} levels"):
        Not(deep)
    assert parse(str(deep)) == deep


@pytest.mark.parametrize(("join", "kind"), [(conjunction, And), (disjunction, Or)])
def test_long_joins_are_flat(join: Any, kind: Any) -> None:
    many = join(*(S[i] > 0 for i in range(10_000)))
    assert isinstance(many, kind)
    assert many.depth == a.depth + 1
    assert len(many.parts) == 10_000
    assert join(many, many).depth == many.depth
    chain = a
    for i in range(300):
        chain = chain & (S[i] > 0) if kind is And else chain | (S[i] > 0)
    assert chain.depth == many.depth


def test_true_and_false_are_kept() -> None:
    assert str(TRUE & a) == "true and S(0) > 0"
    assert parse("true and S(0) > 0") == TRUE & a
    assert parse("false or S(0) > 0") == FALSE | a


def test_names_returns_the_names_in_a_formula() -> None:
    formula = parse('forall t: x(t) + f(y, "a b") <= max(z) and (w[2] = N) {k=2}')
    assert names(formula) == {"x", "y", "a b", "z", "w", "N"}
    assert names(S[t] + 3) == {"S"}
    assert names(TRUE) == set()
