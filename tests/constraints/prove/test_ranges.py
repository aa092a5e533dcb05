"""Interval arithmetic of terms, and parameters that are outside their domain for all data."""

from __future__ import annotations

import math

import pytest

from constraints import FormulaError, ImpossibleError, Layout, Signal, parse
from constraints.ast.families import Observation
from constraints.compile.resolve import resolve
from constraints.prove.contradictions import refuse_impossible
from constraints.prove.ranges import interval

LAYOUT = Layout(
    (
        Signal("I", "series", (4,), low=0.0, high=10.0, integer=True),
        Signal("p", "column", (), low=0.25, high=0.5),
        Signal("free", "column", ()),
    ),
    times=(0.0, 1.0, 2.0, 3.0),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I(2)", (0, 10)),
        ("2*I(2) - 3", (-3, 17)),
        ("I(2)*p", (0, 5)),
        ("-I(1)/p", (-40, 0)),
        ("I(1)/I(2)", (-math.inf, math.inf)),
        ("free*p", (-math.inf, math.inf)),
        ("max(I)", (0, 10)),
        ("max(p, 0.3)", (0.3, 0.5)),
        ("abs(I(1) - 3)", (0, 7)),
        ("sqrt(I(1))", (0, math.sqrt(10))),
        ("exp(p)", (math.exp(0.25), math.exp(0.5))),
        ("log(p)", (math.log(0.25), math.log(0.5))),
        ("count(I > 3)", (0, 4)),
        ("free", (-math.inf, math.inf)),
    ],
)
def test_ranges_follow_from_those_of_the_signals(text: str, expected: tuple[float, float]) -> None:
    node = resolve(parse(f"1 ~ normal({text}, 1)"), LAYOUT)
    assert isinstance(node, Observation)
    assert interval(node.distribution.parameters[0], LAYOUT) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 ~ normal(I(1), -p)", r"the sd of normal is -p, which lies in \[-0.5, -0.25\]"),
        ("1 ~ binomial(5, p + 1)", "the p of binomial"),
        ("I(0) <= 3 and 1 ~ poisson(-1 - I(2))", "the mean of poisson"),
        (
            "11 ~ binomial(I(1), 0.5)",
            r"11 ~ binomial\(I\(1\), 0.5\) cannot be observed: .* 10 for all",
        ),
        ("0.1 ~ uniform(p, 1)", "at least 0.25 for all data"),
        ("3 ~ uniform(0, 2*p)", "at most 1 for all data"),
    ],
)
def test_parameters_outside_their_domain_are_refused(text: str, message: str) -> None:
    with pytest.raises(ImpossibleError, match=message):
        refuse_impossible(parse(text), LAYOUT)


def test_parameters_that_may_lie_in_their_domain_are_not_refused() -> None:
    refuse_impossible(parse("10 ~ binomial(I(1), 0.5) and 0.3 ~ uniform(p, 1)"), LAYOUT)
    refuse_impossible(parse("1 ~ normal(I(1), free) and 1 ~ poisson(I(2) - 10)"), LAYOUT)
    with pytest.raises(ImpossibleError, match="no data can satisfy"):
        refuse_impossible(parse("I(1) >= 11 and 1 ~ normal(I(1), free)"), LAYOUT)


def test_drawn_parameters_lie_in_their_domain_throughout() -> None:
    """p is drawn from 0.25..0.5: three times as much may be above 1, twice as much is not."""
    with pytest.raises(FormulaError, match=r"is p \* 3.*, which is drawn from \[0.75, 1.5\]"):
        refuse_impossible(parse("3 ~ binomial(I(1), p*3)"), LAYOUT)
    refuse_impossible(parse("3 ~ binomial(I(1), p*2)"), LAYOUT)
    refuse_impossible(parse("3 ~ poisson(I(1) - I(2))"), LAYOUT)  # whose interval is not its range
    with pytest.raises(FormulaError, match=r"write uniform\(2, 5\)"):
        parse("3 ~ uniform(5, 2)")


def test_the_tolerance_of_an_equation_is_not_part_of_the_reason() -> None:
    layout = Layout((Signal("beta", "column", low=0.5, high=3.0, span=2.5),))
    with pytest.raises(ImpossibleError, match=r"beta is at most 3, and must be 9\b(?!\.)"):
        refuse_impossible(parse("beta = 9"), layout)
