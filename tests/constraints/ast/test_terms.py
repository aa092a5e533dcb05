from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
import torch

from constraints import FormulaError, call, end, maximum, minimum, parse, signals, time
from constraints.ast.build import now
from constraints.ast.nodes import MAX_DEPTH
from constraints.ast.terms import Aggregate, Apply, At, Const, Name, Step, Term, step, term

S, I = signals("S I")
t, u = time("t"), time("u")


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (S[25], "S(25)"),
        (S(25), "S(25)"),
        (S[end], "S(end)"),
        (S[end - 2], "S(end - 2)"),
        (S[now + 1], "S(now + 1)"),
        (S.at_time(2.5), "S@2.5"),
        (S[0] + I[0] - 3, "S(0) + I(0) - 3"),
        (3 + S[0], "3 + S(0)"),
        (3 - S[0], "3 - S(0)"),
        (2 * S[0] * I[0], "2 * S(0) * I(0)"),
        (S[0] / I[0] / 2, "S(0) / I(0) / 2"),
        (1 / S[0], "1 / S(0)"),
        (S[0] ** 2, "S(0) ^ 2"),
        (2 ** S[0], "2 ^ S(0)"),
        (-S[0], "-S(0)"),
        (abs(S[0]), "abs(S(0))"),
        (S[0].exp() + S[0].log() + S[0].sqrt(), "exp(S(0)) + log(S(0)) + sqrt(S(0))"),
        (S.max(), "max(S)"),
        (S.min(0, 5), "min(S, 0, 5)"),
        (S.mean(0, end), "mean(S, 0, end)"),
        (S.sum(), "sum(S)"),
        (S.integral(), "integral(S)"),
        (S.argmax(2, 4), "argmax(S, 2, 4)"),
        (S.argmin(), "argmin(S)"),
        (S.delta()[3], "delta(S)(3)"),
        (S.cumsum()[3], "cumsum(S)(3)"),
        ((S + I)[3], "(S + I)(3)"),
        (maximum(S[0], I[0]), "max(S(0), I(0))"),
        (maximum(S[0], 0, 5), "max(S(0), +0, 5)"),
        (minimum(S[0], 1, I[0]), "min(S(0), 1, I(0))"),
        (call("risk", S, 3), "risk(S, 3)"),
        (call("risk", 3), "risk(+3)"),
        (S.of(2), "S[2]"),
        (S.of(2)[3], "S[2](3)"),
        (signals(["residual sugar"]), '"residual sugar"'),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_python_and_text_make_the_same_term(made: Term, text: str) -> None:
    assert str(made) == text
    assert parse(f"{text} <= 1") == (made <= 1)


def test_steps_move_by_whole_numbers_only() -> None:
    assert (t + 1 - 3).key == Step("t", -2).key
    assert (2 + t).key == Step("t", 2).key
    assert isinstance(t + 0.5, Apply)
    assert isinstance(t + u, Apply)
    assert isinstance(t - u, Apply)
    assert str(t + 1 + S[0]) == "(t + 1) + S(0)"
    with pytest.raises(FormulaError, match="not on any grid"):
        t + 10**12
    with pytest.raises(FormulaError, match="not on any grid"):
        t - 1e308 - 1e308


@pytest.mark.parametrize(
    "three", [3, 3.0, np.int64(3), np.uint8(3), np.float64(3), np.array(3), torch.tensor(3)]
)
def test_numbers_of_other_libraries_are_steps(three: Any) -> None:
    assert S[three].key == At(S, Step(None, 3)).key
    assert (S[three] <= three) == (S[3] <= 3)
    assert (three * S[0]).key == (3 * S[0]).key
    assert (three <= S[0]) == (S[0] >= 3)


@pytest.mark.parametrize("bad", [2.5, math.nan, math.inf])
def test_a_step_is_whole(bad: float) -> None:
    with pytest.raises(FormulaError, match=f"step {bad:g} is not a whole number"):
        S[bad]


@pytest.mark.parametrize("bad", ["a", None, slice(1, 3), S, t + 0.5, S[0] <= 3])
def test_invalid_steps_are_rejected(bad: Any) -> None:
    with pytest.raises(FormulaError, match="is not a step"):
        S[bad]
    with pytest.raises(FormulaError, match="is not a step"):
        step(bad)


@pytest.mark.parametrize("bad", [None, [1, 2], object(), math.nan, math.inf, 10**400, S[0] <= 3])
def test_invalid_terms_are_rejected(bad: Any) -> None:
    with pytest.raises(FormulaError):
        S[0] + bad
    with pytest.raises(FormulaError):
        S[0] == bad  # noqa: B015
    with pytest.raises(FormulaError):
        term(bad)


def test_text_in_place_of_a_term_is_a_name() -> None:
    assert (S == "White") == parse('S = "White"')
    assert str(S == "White") == 'S = "White"'


@pytest.mark.parametrize("bad", [math.nan, math.inf, "x", None])
def test_a_model_time_is_a_finite_number(bad: Any) -> None:
    with pytest.raises(FormulaError):
        S.at_time(bad)


def test_comparisons_build_formulas() -> None:
    assert (S[25] == 30) == parse("S(25) = 30")
    assert (S[25] != 30) == parse("S(25) != 30")
    assert (S[25] < 30) == parse("S(25) < 30")
    assert (30 < S[25]) == parse("S(25) > 30")  # noqa: SIM300
    assert S[0].between(1, I[0]) == parse("1 <= S(0) <= I(0)")
    assert S[0].equals(3, 0.5) == parse("S(0) = 3 +- 0.5")
    assert S[0].equals(3) == parse("S(0) = 3")
    with pytest.raises(FormulaError, match="a tolerance is a number >= 0, not -1"):
        S[0].equals(3, -1)


def test_terms_are_frozen_and_hashable() -> None:
    with pytest.raises(FrozenInstanceError):
        S.name = "R"
    with pytest.raises(FrozenInstanceError):
        t.offset = 3  # type: ignore[misc]
    assert hash(S[t + 1]) == hash(Name("S")[Step("t", 1)])
    assert {S: "kept"}[S] == "kept"
    assert S[3].key != S[4].key
    assert Name("S", quoted=True).key == S.key


def test_a_term_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match="S has no truth value; compare it: S > 0"):
        bool(S)
    with pytest.raises(TypeError, match="no truth value"):
        not S  # noqa: B018
    with pytest.raises(TypeError, match="no truth value"):
        S and I  # noqa: B018


def test_a_term_is_no_sequence() -> None:
    with pytest.raises(TypeError, match=r"S is not a sequence; read it at a step: S\[0\]"):
        list(S)
    with pytest.raises(TypeError, match="not a sequence"):
        _, _ = S
    with pytest.raises(TypeError):
        3 in S  # noqa: B015
    with pytest.raises(TypeError):
        len(S)


def test_signals_makes_names_from_text_or_a_list() -> None:
    assert [name.name for name in signals("S I, R")] == ["S", "I", "R"]
    assert signals("S").key == Name("S").key
    with pytest.raises(FormulaError, match=r'no signal is named; write signals\("S I"\)'):
        signals(" ")


@pytest.mark.parametrize("bad", ["", "1t", "a b", "and", "end", "max", "a·", "℘", 3])
def test_a_time_variable_is_a_plain_word(bad: Any) -> None:
    with pytest.raises(FormulaError, match="cannot name a time variable; use a word such as t"):
        time(bad)


@pytest.mark.parametrize("bad", ["", 'a"b', "a\nb", "\ud800", 3])
def test_a_name_can_be_printed_and_quoted(bad: Any) -> None:
    with pytest.raises(FormulaError):
        Name(bad)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "a"])
def test_instances_are_numbered_from_one(bad: Any) -> None:
    with pytest.raises(FormulaError, match="an instance is a whole number >= 1"):
        S.of(bad)


def test_aggregates_take_both_ends_or_neither() -> None:
    with pytest.raises(FormulaError, match=r"max has a window .*; give both ends, or neither"):
        S.max(3)
    assert S.max(3, t).key == Aggregate("max", S, Step(None, 3), t).key


def test_a_function_is_called_by_a_plain_name_on_something() -> None:
    for bad in ("", "max", "and", "a b"):
        with pytest.raises(FormulaError):
            call(bad, S)
    with pytest.raises(FormulaError):
        call("risk")


def test_depth_is_limited_without_recursion() -> None:
    deep: Term = S[0]
    while deep.depth < MAX_DEPTH:
        deep = abs(deep)
    assert str(deep).count("abs") == MAX_DEPTH - S[0].depth
    with pytest.raises(FormulaError, match=f"nests more than {MAX_DEPTH} levels"):
        abs(deep)


def test_sums_are_flat() -> None:
    total = Apply("+", tuple(Const(i) for i in range(10_000)))
    assert (total + 1).depth == 2
    assert len(str(total)) > 10_000
