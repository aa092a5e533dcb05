from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import DataError, FormulaError, Function, Layout, Signal

RACES = ("White", "Black", "Asian")


def mixed(instances: int = 1) -> Layout:
    """One signal of each kind on a grid of 4 steps."""
    return Layout(
        (
            Signal("S", "series", (4,)),
            Signal("age", "column"),
            Signal("race", "category", (3,), categories=RACES),
            Signal("scan", "image", (2, 3, 5)),
        ),
        (0.0, 1.0, 2.0, 3.0),
        instances=instances,
    )


def test_series_on_a_number_of_steps_or_on_times() -> None:
    counted = Layout.series("S I, R", 3, integer=True, low=0, high=9)
    assert counted.names == ["S", "I", "R"]
    assert counted.times == (0.0, 1.0, 2.0)
    assert counted.steps == 3
    assert counted.size == 9
    assert counted.signals[1] == Signal("I", "series", (3,), True, 0, 9)
    for times in ([0, 0.5, 2], np.array([0, 0.5, 2]), torch.tensor([0, 0.5, 2])):
        assert Layout.series(["a b"], times).times == (0.0, 0.5, 2.0)
    assert Layout.series("S", np.int64(3)).steps == 3


def test_layouts_of_columns_and_images() -> None:
    assert Layout.columns("age, income").size == 2
    assert Layout.columns(["residual sugar"]).names == ["residual sugar"]
    assert Layout.image((3, 4, 5)).size == 60
    assert Layout.image((3, 4, 5), "scan").names == ["scan"]


def test_find_returns_the_signal_or_none() -> None:
    layout = mixed()
    assert layout.find("age") == Signal("age", "column")
    assert layout.find("Age") is None
    assert layout.size == 4 + 1 + 3 + 30
    assert mixed(3).size == 3 * layout.size


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Layout.series("S I S", 3), "signals have the same name: S; give"),
        (lambda: Layout.series("S", [0, 1, 1]), "finite and increase: .* at step"),
        (lambda: Layout.series("S", [0, math.nan, 1]), "finite and increase: .* at step"),
        (lambda: Layout.series("S", [0, math.inf]), "finite and increase: .* at step"),
        (lambda: Layout.series("S", 0), "step"),
        (lambda: Layout.series("S", -3), "step"),
        (lambda: Layout.series("S", 3, low=2, high=1), r"S: the bounds \[2, 1\] are empty"),
        (lambda: Layout.series("S", 3, low=math.nan), "S: the bounds .* are empty"),
        (lambda: Layout.series("S", 3, instances=0), "instances is a whole number >= 1, not 0"),
        (lambda: Layout.series("S", 3, parameters={"S": 1.0}), "S"),
        (lambda: Layout.series("S", 3, parameters={"N": math.nan}), "N"),
        (lambda: Layout.series([""], 3), "name"),
        (lambda: Layout.series(['a"b'], 3), "name"),
        (
            lambda: Layout((Signal("S", "series", (3,)),)),
            r"S has shape \(3,\) on a grid of 0 times",
        ),
        (lambda: Signal("S", "sereis"), "unknown kind of signal 'sereis'; did you mean 'series'?"),
        (lambda: Signal("race", "category", (3,), categories=("a", "b")), "race"),
        (lambda: Signal("race", "category", (2,), categories=("a", "a")), "race"),
        (lambda: Signal("age", "column", (3,)), "age"),
        (lambda: Layout.image((4, 4)), "image"),  # type: ignore[arg-type]
        (lambda: Layout.image((1, 4, 4), regions={"lung": torch.ones(3, 3)}), "lung"),
        (
            lambda: Layout.series("S", 3, functions={"max": Function(torch.add, 2)}),
            "max.* built-in",
        ),
        (lambda: Layout.series("S", 3, functions={"S": Function(torch.add, 2)}), "S is a signal"),
        (lambda: Function(torch.add, 2, returns="foo"), "foo"),
    ],
)
def test_invalid_layouts_are_rejected(make: Any, says: str) -> None:
    with pytest.raises(FormulaError, match=says):
        make()


def test_the_functions_of_a_layout_are_a_read_only_copy() -> None:
    given = {"risk": Function(torch.add, 2)}
    layout = Layout.series("S", 3, functions=given)
    given.clear()
    assert "risk" in layout.functions
    with pytest.raises(TypeError):
        layout.functions["risk"] = None  # type: ignore[index]


@given(st.integers(0, 4), st.integers(1, 3), st.integers(0, 2**31))
@settings(max_examples=50)
def test_split_and_flatten_are_inverse(batch: int, instances: int, seed: int) -> None:
    layout = mixed(instances)
    flat = torch.rand(batch, layout.size, generator=torch.Generator().manual_seed(seed))
    parts = layout.split(flat)
    lead = (batch, instances) if instances > 1 else (batch,)
    assert {name: tuple(part.shape) for name, part in parts.items()} == {
        "S": (*lead, 4),
        "age": lead,
        "race": (*lead, 3),
        "scan": (*lead, 2, 3, 5),
    }
    assert torch.equal(layout.flatten(parts), flat)


def test_split_gives_views_in_the_order_of_the_signals() -> None:
    layout = Layout.series("S I", 3)
    flat = torch.arange(6.0).reshape(1, 6)
    parts = layout.split(flat)
    assert parts["S"].tolist() == [[0, 1, 2]]
    assert parts["I"].tolist() == [[3, 4, 5]]
    flat[0, 4] = 9
    assert parts["I"].tolist() == [[3, 9, 5]]


def test_instances_lie_one_after_the_other() -> None:
    layout = Layout.columns("a b", instances=2)
    parts = layout.split(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    assert parts["a"].tolist() == [[1, 3]]
    assert parts["b"].tolist() == [[2, 4]]
    with pytest.raises(DataError, match=r"a has shape \(5,\) where \(B, 2\) is expected"):
        layout.check({"a": torch.zeros(5), "b": torch.zeros(5, 2)})


@pytest.mark.parametrize("shape", [(3,), (2, 4), (2, 3, 1)])
def test_flat_samples_have_one_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=r"flat samples have shape \(B, 3\), not"):
        Layout.series("S", 3).split(torch.zeros(shape))


@pytest.mark.parametrize("times", [[0, 0.5, 1, 2], [-3, 7], [1e6, 1e6 + 0.5, 1e6 + 1], [5]])
def test_step_at_finds_every_time(times: list[float]) -> None:
    layout = Layout.series("S", times)
    assert [layout.step_at(when) for when in times] == list(range(len(times)))
    assert [layout.step_at(when + 1e-9) for when in times] == list(range(len(times)))


def test_step_at_shows_the_neighbours() -> None:
    layout = Layout.series("S", [0, 0.5, 1, 2])
    with pytest.raises(FormulaError) as caught:
        layout.step_at(0.7)
    for part in ("the time 0.7 is not on the grid", "0.5 (step 1)", "1 (step 2)"):
        assert part in str(caught.value)
    with pytest.raises(FormulaError, match=r"2 \(step 3\)"):
        layout.step_at(1e300)
    with pytest.raises(FormulaError, match="no time grid"):
        Layout.columns("age").step_at(0)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (torch.float16, torch.float16),
        (torch.float32, torch.float32),
        (torch.float64, torch.float64),
        (torch.bool, torch.float64),
        (torch.uint8, torch.float64),
        (torch.int16, torch.float64),
        (torch.int32, torch.float64),
        (torch.int64, torch.float64),
    ],
)
def test_every_real_type_is_read(given: torch.dtype, kept: torch.dtype) -> None:
    found = Layout.series("S", 3).check({"S": torch.ones(2, 3, dtype=given)})["S"]
    assert found.dtype == kept
    assert found.tolist() == [[1, 1, 1]] * 2


def test_integers_stay_exact() -> None:
    large = torch.tensor([[2**53 - 1, 2**40 + 1, -(2**31) - 1]])
    found = Layout.series("S", 3).check({"S": large})["S"]
    assert torch.equal(found.long(), large)


def test_arrays_and_lists_are_read() -> None:
    layout = Layout.series("S", 3)
    for data in (np.arange(6.0).reshape(2, 3), [[0, 1, 2], [3, 4, 5]]):
        assert layout.check({"S": data})["S"].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_only_what_is_needed_is_checked() -> None:
    layout = Layout.series("S I", 3)
    assert list(layout.check({"S": torch.zeros(2, 3)}, {"S"})) == ["S"]
    with pytest.raises(DataError, match="no signal 'I'"):
        layout.check({"S": torch.zeros(2, 3)})


def test_gradients_pass_through_validation() -> None:
    values = torch.zeros(2, 3, requires_grad=True)
    assert Layout.series("S", 3).check({"S": values})["S"] is values


def test_category_codes_become_one_hot_weights() -> None:
    layout = Layout((Signal("race", "category", (3,), categories=RACES),))
    found = layout.check({"race": torch.tensor([2, 0])})["race"]
    assert found.tolist() == [[0, 0, 1], [1, 0, 0]]
    weights = torch.tensor([[0.2, 0.8, 0.0]])
    assert torch.equal(layout.check({"race": weights})["race"], weights)
    pairs = Layout((Signal("race", "category", (3,), categories=RACES),), instances=2)
    assert pairs.check({"race": torch.tensor([[2, 0]])})["race"].tolist() == [
        [[0, 0, 1], [1, 0, 0]]
    ]


@pytest.mark.parametrize("bad", [[0, 3], [-1, 0], [0.0, 1.5], [0.0, math.nan]])
def test_invalid_category_codes_are_rejected(bad: list[float]) -> None:
    layout = Layout((Signal("race", "category", (3,), categories=RACES),))
    with pytest.raises(DataError, match="race"):
        layout.check({"race": torch.tensor(bad)})


@pytest.mark.parametrize("bad", ["abc", None, [[1, 2], [3]], [["a", "b", "c"]], object()])
def test_invalid_data_are_rejected(bad: Any) -> None:
    with pytest.raises(DataError, match="S"):
        Layout.series("S", 3).check({"S": bad})


def test_large_values_are_not_taken_for_infinite_ones() -> None:
    large = torch.full((1, 3), 3e38)  # their sum overflows
    assert torch.equal(Layout.series("S", 3).check({"S": large})["S"], large)
