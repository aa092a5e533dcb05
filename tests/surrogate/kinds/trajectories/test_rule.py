"""Formulas as rules for splitting: probabilities against the master equation and rejection."""

from __future__ import annotations

import numpy as np
import pytest

import surrogate as sg
from constraints import FormulaError
from simulators import MasterEquation, Reaction, ReactionNetwork, models, simulate, split
from surrogate.kinds.signals import layout_of, tensors_of

NETWORK = ReactionNetwork(
    name="birth-death",
    species={"X": 4, "Y": 0},
    parameters={"k": 4.0, "d": 1.0},
    reactions=[
        Reaction("birth", "0 -> X", "k"),
        Reaction("death", "X -> Y", "d*X"),
        Reaction("loss", "Y -> 0", "d*Y"),
    ],
    until=3,
    points=7,
)
DATA = simulate(NETWORK, 20_000, seed=1, latch=["X", "-Y"])
FORMULAS = [
    "X(6) >= 9",
    "exists t: X(t) >= 10",
    "forall t: X(t) <= 5",
    "X >= 2 until Y >= 6",
    "X <= 5 weak until Y >= 5",
    "argmax(X) <= 1 and X(6) <= 2",
    "argmax(Y) >= 5",
    "count(X > Y) >= 7",
    "count(X >= 7) >= 4",
    "sum(X) >= 45",
    "mean(X, 3, 6) <= 2",
    "integral(X) >= 20",
    "max(X) - min(X) >= 9",
    "quantile(Y, 0.5) >= 6",
    "max(delta(X)) >= 6",
    "cumsum(Y)(4) >= 24",
    "always[0,4] (X >= 7 implies next eventually[0,1] (X <= 4)) and max(X) >= 8",
    "X(2) = 6 and Y(5) = 2",
    "X(6) * Y(6) >= 40",
    "reaches(X >= 10) and not reaches(Y <= 0, 2, 6)",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_probabilities_are_those_of_rejection(text: str) -> None:
    rule = sg.rule(text, like=DATA)
    share = float(rule.verdict({k: v.values for k, v in DATA.data_vars.items()}).mean())
    found = split(NETWORK, rule, seed=1, copies=12, threads=1, replicates=6)
    error = np.hypot(np.sqrt(share / DATA.sizes["sample"]), share * found.relative_error)
    assert share > 0
    assert abs(found.probability - share) < 4 * error, (found.probability, share)
    assert found.data is not None
    layout = layout_of(found.data)
    if not rule.latches:
        assert rule.program.verdict(tensors_of(found.data, layout)).all()


def test_an_epidemic_from_a_uniform_start() -> None:
    network = models.esirs()
    exact = MasterEquation(network).probability({"all": "I <= 12"})
    rule = sg.rule("forall t: I(t) <= 12", like=simulate(network, 100))
    found = split(network, rule, seed=2, copies=160, threads=1, replicates=6)
    assert abs(found.probability / exact - 1) < 4 * found.relative_error < 1.5


def test_what_rules_read() -> None:
    rule = sg.rule(["reaches(X >= 10)", "Y(6) <= 3"], like=DATA.drop_vars(["max(X)", "max(-Y)"]))
    assert rule.names == {"X", "max(X)", "Y"}
    assert rule.latches == ("X",)
    assert rule.remembers is not None
    assert sg.rule("argmax(X) <= 2", like=DATA).remembers is None
    assert str(rule) == "reaches(X >= 10) and Y(6) <= 3"


def test_observations_are_no_rules() -> None:
    with pytest.raises(FormulaError, match="no trajectory meets or misses"):
        sg.rule("3 ~ poisson(X(2))", like=DATA)
