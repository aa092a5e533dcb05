"""Explanations against counts by hand, whatever the chunks."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import DataError, FormulaError, Layout, compiled, explain, parse
from constraints.explanation import EXPLANATION_COLUMNS, chunk_size, percent

GRID = Layout.series("S I", [0.5 * i for i in range(8)], integer=True, low=0, high=20)


def batch(samples: int, seed: int = 0) -> dict[str, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return {
        name: torch.randint(0, 21, (samples, 8), generator=made, dtype=torch.int8) for name in "SI"
    }


DATA = batch(200)
S, I = DATA["S"].int(), DATA["I"].int()


def test_forall_names_its_worst_step() -> None:
    (row,) = explain(parse("forall t: I(t) <= 18"), GRID, DATA).rows
    holds = I <= 18
    shares = holds.double().mean(0)
    assert row.text == "forall t: I(t) <= 18"
    assert row.satisfied == holds.all(1).double().mean()
    assert row.margin_min == (18 - I.max(1).values).min()
    assert row.margin_median == (18 - I.max(1).values).float().quantile(0.5)
    assert (row.step, row.step_kind) == (int(shares.argmin()), "worst")
    assert row.step_share == shares.min()
    assert row.step_time == 0.5 * int(shares.argmin())


def test_eventually_names_its_best_step() -> None:
    (row,) = explain(parse("eventually[2,5](S >= 15 and I >= 10)"), GRID, DATA).rows
    shares = ((S >= 15) & (I >= 10)).double().mean(0)[2:6]
    assert (row.step, row.step_kind) == (2 + int(shares.argmax()), "best")
    assert row.step_share == shares.max()


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("max(I) <= 18", "forall t: I(t) <= 18"),
        ("not exists t: I(t) > 18", "forall t: I(t) <= 18"),
        ("(always(I <= 18)) {weight=3}", "forall t: I(t) <= 18"),
        ("(forall t: I(t) <= 18) and (forall u: S(u) >= 1)", "always(I <= 18 and S >= 1)"),
        ("not always(I <= 18)", "exists t: I(t) > 18"),
        ("min(I, 2, 5) <= 1", "exists t in [2, 5]: I(t) <= 1"),
    ],
)
def test_the_step_does_not_depend_on_the_way_of_writing(text: str, same: str) -> None:
    one, other = (explain(parse(each), GRID, DATA).rows[0] for each in (text, same))
    assert one.step is not None
    assert one.to_dict() | {"text": ""} == other.to_dict() | {"text": ""}


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ("S(3) = 4", 3),
        ("S(3) >= 4 or I(3) >= 4", 3),
        ("S@1.5 <= 4", 3),
        ("S(end) - I(7) <= 3", 7),
        ("S(3) <= S(4)", None),
        ("mean(S) <= 12", None),
        ("S >= 3 until I >= 18", None),
        ("S(3) <= 9 and always(I >= 1)", None),
        ("forall t: S(2) >= 1", None),
        ("true", None),
    ],
)
def test_a_formula_about_one_step_names_that_step(text: str, step: int | None) -> None:
    row = explain(parse(text), GRID, DATA).rows[0]
    assert row.step == step
    assert row.step_kind == (None if step is None else "at")
    assert row.step_share == (None if step is None else row.satisfied)


def test_ties_are_broken_by_the_margin_then_by_the_step() -> None:
    series = torch.tensor([[5.0, 2.0, 4.0, 2.0], [5.0, 3.0, 1.0, 3.0]])
    grid = Layout.series("x", 4)
    assert explain(parse("forall t: x(t) >= 0"), grid, {"x": series}).rows[0].step == 1
    assert explain(parse("exists t: x(t) >= 0"), grid, {"x": series}).rows[0].step == 0
    assert explain(parse("forall t: x(t) <= 9"), grid, {"x": series}).rows[0].step == 0


def test_rows_follow_the_connectives_down_to_closed_parts() -> None:
    text = "(S(0) > 5 and always(I <= 18)) implies not (eventually(S > 19) or S(7) in {1, 2})"
    found = explain(parse(text), GRID, DATA)
    assert [(row.depth, row.text) for row in found.rows] == [
        (0, str(parse(text))),
        (1, "S(0) > 5 and always(I <= 18)"),
        (2, "S(0) > 5"),
        (2, "always(I <= 18)"),
        (1, "not (eventually(S > 19) or S(7) = 1 or S(7) = 2)"),
        (2, "eventually(S > 19)"),
        (2, "S(7) = 1"),
        (2, "S(7) = 2"),
    ]
    for row in found.rows:  # each is a formula of its own
        alone = compiled(parse(row.text), GRID)
        assert row.satisfied == alone.verdict(DATA).double().mean()


def test_rules_hold_together_and_keep_their_own_rows() -> None:
    rules = [parse("S(0) >= 3 and I(0) >= 3"), parse("always(I <= 19)")]
    found = explain(rules, GRID, DATA)
    assert [row.depth for row in found.rows] == [0, 1, 2, 2, 1]
    both = compiled(rules[0] & rules[1], GRID)
    assert found.rows[0].text == "all 2 rules"
    assert found.rows[0].satisfied == both.verdict(DATA).double().mean()
    assert len(explain(rules[1:], GRID, DATA).rows) == 1
    with pytest.raises(FormulaError, match="no rule to evaluate; give at least one"):
        explain([], GRID, DATA)


FORMULAS = [
    "forall t: 0 <= S(t) + I(t) <= 30",
    "exists t in [1, 6]: I(t) > S(t - 1) + 12",
    "forall t in [0, 4]: exists u in [t, t + 3]: I(u) >= 15",
    "always(S >= 3) iff eventually(I >= 18)",
    "S(2) >= 10 xor count(I >= 10) >= 4",
]


@settings(max_examples=40)
@given(st.sampled_from(FORMULAS), st.integers(1, 40), st.integers(1, 50), st.integers(0, 5))
def test_chunks_change_nothing(text: str, samples: int, chunk: int, seed: int) -> None:
    data = batch(samples, seed)
    formula = parse(text)
    assert explain(formula, GRID, data, chunk=chunk) == explain(formula, GRID, data)


def test_windows_within_windows_are_laid_out_for_fewer_samples() -> None:
    long = Layout.series("x", 5_000)
    texts = "always(x >= 0)", "forall t: forall u in [t, end]: x(u) >= x(t)"
    plain, nested = (chunk_size([compiled(parse(text), long)]) for text in texts)
    assert plain == 400
    assert nested == 2


@settings(max_examples=20)
@given(st.sampled_from(FORMULAS), st.integers(0, 5))
def test_flat_samples_give_the_same_explanation(text: str, seed: int) -> None:
    data = batch(20, seed)
    assert explain(parse(text), GRID, GRID.flatten(data)) == explain(parse(text), GRID, data)


@pytest.mark.parametrize("end", ["clip", "weak", "strong"])
def test_windows_past_the_last_step_follow_the_end_rule(end: str) -> None:
    formula = parse("always[4,20](I <= 18)")
    row = explain(formula, GRID, DATA, end=end).rows[0]
    assert row.satisfied == compiled(formula, GRID, end).verdict(DATA).double().mean()
    shares = (I <= 18).double().mean(0)[4:]
    assert row.step == 4 + int(shares.argmin())  # of the steps that exist
    with pytest.raises(FormulaError, match="past the last step"):
        explain(formula, GRID, DATA)


def test_columns_and_categories_have_no_steps() -> None:
    from constraints import Signal

    table = Layout((Signal("x", "column"), Signal("c", "category", (2,), categories=("a", "b"))))
    data = {"x": torch.tensor([1.0, 2.0, 3.0]), "c": torch.tensor([0, 1, 1])}
    found = explain(parse("x >= 2 and c = b"), table, data)
    assert [row.satisfied for row in found.rows] == [2 / 3, 2 / 3, 2 / 3]
    assert all(row.step is None for row in found.rows)
    assert found.rows[1].margin_median == 0


@pytest.mark.parametrize(("values", "median"), [([3.0], 3), ([1, 2], 1.5), ([9, 1, 4], 4)])
def test_the_median_margin_is_the_mean_of_the_middle_two(
    values: list[float], median: float
) -> None:
    row = explain(parse("x >= 0"), Layout.columns("x"), {"x": torch.tensor(values)}).rows[0]
    assert row.margin_median == median


def test_an_explanation_renders_as_json_and_table() -> None:
    formula = parse("always(I <= 18) and S(1) >= 3 and true and not always(I >= 0)")
    found = explain(formula, GRID, DATA)
    described = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert described["samples"] == 200
    assert described["rows"][3]["margin_min"] is None  # true, by an infinite margin
    lines = found.table().splitlines()
    assert len(lines) == 1 + len(found.rows)
    assert all(name in lines[0] for name in EXPLANATION_COLUMNS)
    assert "worst" in lines[2]
    assert percent(found.rows[1].satisfied) in lines[2]
    assert lines[3].endswith("at 1 (time 0.5)")
    assert "best" not in lines[5]  # it holds at no step: none is telling
    assert str(found) == found.table()
    long = explain(parse(" and ".join(f"S({i % 8}) >= {i}" for i in range(30))), GRID, DATA)
    assert max(map(len, long.table().splitlines())) < 150


def test_invalid_data_are_rejected() -> None:
    formula = parse("always(I <= S)")
    with pytest.raises(DataError, match="no signal 'S'"):
        explain(formula, GRID, {"I": I})
    with pytest.raises(DataError, match="differ in their number"):
        explain(formula, GRID, {"S": S[:5], "I": I}, chunk=5)
    with pytest.raises(DataError, match="no samples"):
        explain(formula, GRID, {"S": S[:0], "I": I[:0]})
    with pytest.raises(FormulaError, match="chunk"):
        explain(formula, GRID, DATA, chunk=0)
    broken = I.double()
    broken[3, 4] = torch.nan
    with pytest.raises(DataError, match="NaN"):
        explain(formula, GRID, {"S": S, "I": broken})


def test_percent_never_rounds_to_none_or_all() -> None:
    assert [percent(x) for x in (0, 1, 0.713, 0.0004, 0.99996)] == [
        "0 %",
        "100 %",
        "71.3 %",
        "0.04 %",
        "99.996 %",
    ]
    assert percent(1e-9) == "<0.0001 %"
    assert percent(1 - 1e-9) == ">99.9999 %"


def test_observations_have_rows_of_their_own() -> None:
    layout = Layout.series("x", 3)
    batch = {"x": torch.tensor([[1.0, 2.0, 3.0], [2.0, 2.0, 5.0]], dtype=torch.float64)}
    found = explain(parse("x(0) <= 1 and 4 ~ normal(x(2), 1)"), layout, batch)
    assert [row.text for row in found.rows] == ["x(0) <= 1"]
    (row,) = found.observations
    level = -0.5 - 0.5 * math.log(2 * math.pi)
    for value in (row.mean, row.min, row.max, row.log_mean_likelihood):
        assert value == pytest.approx(level)
    assert "log mean likelihood" in found.table()
    assert found.to_dict()["observations"][0]["text"] == "4 ~ normal(x(2), 1)"
    alone = explain(parse("4 ~ uniform(x(2), 9)"), layout, batch)
    assert alone.rows == ()
    assert alone.observations[0].min == -math.inf
    assert alone.to_dict()["observations"][0]["min"] is None
    assert alone.observations[0].log_mean_likelihood == pytest.approx(math.log(0.5 / 6))
