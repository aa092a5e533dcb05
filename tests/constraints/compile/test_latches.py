"""`reaches`: what happens between the times of the grid, by latches."""

from __future__ import annotations

import pytest
import torch

from constraints import FormulaError, Layout, Signal, compiled, latches, parse, reaches, signals
from constraints.compile.latches import with_latches
from simulators.rates import parse as rate

STEPS = 4
LAYOUT = Layout.series("X Y", STEPS, integer=True, low=0.0)


def layout_for(text: str) -> Layout:
    return with_latches(parse(text), LAYOUT)


def margins(text: str, **series: list[float]) -> list[float]:
    layout = layout_for(text)
    data = {name: torch.tensor([values]).double() for name, values in series.items()}
    data |= {name: torch.zeros(1, STEPS) for name in layout.names if name not in data}
    found: list[float] = compiled(text, layout).robustness(data).tolist()
    return found


X = [3.0, 1.0, 2.0, 2.0]
TOP = [3.0, 4.0, 2.0, 9.0]  # at step 3: since step 2


@pytest.mark.parametrize(
    ("window", "margin"),
    [("", 4.0), (", 0, 3", 4.0), (", 0, 2", -1.0), (", 0, 0", -2.0), (", 1, 2", -3.0),
     (", 2, 3", 4.0), (", 2, end", 4.0), (", @1, @2", -3.0)],
)  # fmt: skip
def test_windows_begin_with_the_state_and_go_on_with_the_latch(window: str, margin: float) -> None:
    assert margins(f"reaches(X >= 5{window})", X=X, **{"max(X)": TOP}) == [margin]
    assert margins(f"not reaches(X >= 5{window})", X=X, **{"max(X)": TOP}) == [-margin]


@pytest.mark.parametrize(
    ("condition", "terms"),
    [
        ("X >= 80", ["X"]),
        ("80 <= X", ["X"]),
        ("X <= 25", ["-X"]),
        ("not X <= 25", ["X"]),
        ("Y + X > 3", ["X + Y"]),
        ("2 * X - Y / 2 >= 3", ["2*X - 0.5*Y"]),
        ("X >= 7 or Y <= 2", ["X", "-Y"]),
        ("X >= 7 and Y <= 2", ["min(X - 7, -Y + 2)"]),
        ("X > 7 and Y < 2", ["min(X - 8, -Y + 1)"]),
        ("3 <= X <= 5", ["min(X - 3, -X + 5)"]),
        ("X = 5", ["min(X - 5, -X + 5)"]),
        ("not (X >= 7 and Y <= 2)", ["-X", "Y"]),
    ],
)
def test_conditions_as_a_simulator_reads_them(condition: str, terms: list[str]) -> None:
    formula = parse(f"reaches({condition})")
    assert latches(formula, LAYOUT) == tuple(terms)
    assert [str(rate(term)) for term in terms] == terms
    assert parse(str(formula)) == formula
    compiled(formula, with_latches(formula, LAYOUT))


def test_in_python_and_inside_quantifiers() -> None:
    (x,) = (signals("X"),)
    assert reaches(x >= 5, 0, 3) == parse("reaches(X >= 5, 0, 3)")
    text = "forall t in [0, 2]: reaches(X >= 2, t, t + 1)"
    assert margins(text, X=X, **{"max(X)": TOP}) == [0.0]


def test_data_that_cannot_tell_are_refused() -> None:
    with pytest.raises(FormulaError, match=r"do not say what X was between .*latch=\['X'\]"):
        compiled("reaches(X >= 5)", LAYOUT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reaches(X(3) >= 5)", "is not a signal at that moment"),
        ("reaches(max(X) >= 5)", "is not a signal at that moment"),
        ("reaches(X * Y >= 5)", "is not a signal at that moment"),
        ("reaches(eventually (X >= 5))", "no condition on the state at one moment"),
        ("reaches(X >= 5, 3)", "takes a condition, or a condition and two steps"),
        ("reaches(3 >= 5)", "nothing in it changes"),
        ("reaches(X)", "a number where a formula is wanted"),
    ],
)
def test_what_is_no_condition_at_one_moment(text: str, message: str) -> None:
    with pytest.raises(FormulaError, match=message):
        latches(parse(text), LAYOUT)


def test_strict_comparisons_of_real_numbers() -> None:
    layout = Layout((Signal("X", "series", (2,)), Signal("Y", "series", (2,))), (0.0, 1.0))
    assert latches(parse("reaches(X > 5)"), layout) == ("X",)
    with pytest.raises(FormulaError, match="strict comparisons of real numbers"):
        latches(parse("reaches(X > 5 and Y > 3)"), layout)
