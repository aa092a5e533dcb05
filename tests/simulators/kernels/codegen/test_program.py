"""Lowering: constants leave the loop, powers become products, time becomes switching times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulators import InputError, Reaction, ReactionNetwork, models, rates
from simulators.kernels.codegen.program import Program, lower
from simulators.kernels.codegen.proofs import proved

AFTER_3 = float(np.nextafter(3.0, np.inf))


def program(rate: str, equation: str = "X -> 0", **parameters: float) -> Program:
    have = {"k": 2.0, "n": 2.0, "K": 10.0, **parameters}
    network = ReactionNetwork("n", {"X": 5, "Y": 3}, have, [Reaction("r", equation, rate)])
    return lower(network, network.propensities, have)


def value(made: Program, state: dict[str, float], parameters: dict[str, float]) -> float:
    constants = made.constant_values(parameters, 1)[0]
    have = state | {f"#{c}": constants[c] for c in range(len(constants))}
    return float(rates.evaluate(made.rates[0], have))


def test_esirs_needs_one_constant_a_reaction() -> None:
    network = models.esirs()
    made = lower(network, network.propensities, dict(network.parameters))
    assert [str(rate) for rate in made.rates] == ["#0*S*I", "#1*I", "#2*R", "#3*S"]
    assert [str(constant) for constant in made.constants] == ["beta/N", "gamma", "omega", "epsilon"]
    assert made.vectorises


@pytest.mark.parametrize(
    "text",
    ["k*X*(X - 1)/2", "k*X/(K + Y)", "k*X^n/(K^n + X^n)", "-(-k)*X", "k*X*Y/K*3", "k/K*X^3/Y",
     "k*(X + Y)*X - k*X*X", "X*exp(-k*Y/K)", "k*X/2/3*Y", "min(k*X, K)", "X^0.5*k", "(k + K)*X"],
)  # fmt: skip
@given(x=st.integers(1, 50), y=st.integers(1, 50))
def test_lowering_keeps_the_value(text: str, x: int, y: int) -> None:
    parameters = {"k": 2.0, "n": 2.0, "K": 10.0}
    state = {"X": float(x), "Y": float(y)}
    direct = float(rates.evaluate(rates.parse(text), {**parameters, **state}))
    assert value(program(text), state, parameters) == pytest.approx(direct, rel=1e-12)


def test_whole_exponents_are_unrolled_and_others_are_not() -> None:
    assert program("k*X/(1 + Y^n)").vectorises
    assert not program("k*X/(1 + Y^n)", n=2.5).vectorises
    assert not program("k*X*exp(-Y)").vectorises


def test_constants_that_are_not_finite_are_refused() -> None:
    made = program("k*X/K")
    with pytest.raises(InputError, match="k/K"):
        made.constant_values({"k": 1.0, "n": 1.0, "K": 0.0}, 1)


def test_varying_parameters_give_a_row_each() -> None:
    made = program("k*X/K")
    table = made.constant_values({"k": np.array([1.0, 2.0]), "K": 4.0, "n": 1.0}, 2)
    np.testing.assert_allclose(table, [[0.25], [0.5]])


@pytest.mark.parametrize(
    ("condition", "stop", "before", "after"),
    [
        ("time < 3", 3.0, True, False),
        ("time <= 3", AFTER_3, True, False),
        ("time >= 3", 3.0, False, True),
        ("3 < time", AFTER_3, False, True),
        ("2*time - 6 > 0", AFTER_3, False, True),
        ("5 - time/2 >= 3.5", AFTER_3, True, False),
        ("5 - time/2 > 3.5", 3.0, True, False),
        ("-time <= -k - 1", 3.0, False, True),
    ],
)
def test_comparisons_with_time_become_switching_times(
    condition: str, stop: float, before: bool, after: bool
) -> None:
    made = program(f"piecewise(1, {condition}, 0)*X")
    constants = made.constant_values({"k": 2.0, "n": 2.0, "K": 10.0}, 1)[0]
    have = {"X": 1.0, "Y": 1.0} | {f"#{c}": constants[c] for c in range(len(constants))}
    assert [float(rates.evaluate(at, have)) for at in made.stops] == [stop]
    for time, holds in ((np.nextafter(stop, 0), before), (stop, after), (stop + 1, after)):
        assert float(rates.evaluate(made.rates[0], have | {"time": time})) == float(holds)


@pytest.mark.parametrize(
    "text",
    ["X*sin(time)", "X*time", "piecewise(1, time^2 > 4, 2)*X", "piecewise(1, time == 2, 2)*X"],
)
def test_rates_that_flow_with_time_are_refused_except_for_the_ode(text: str) -> None:
    with pytest.raises(InputError, match="changes continuously with time"):
        program(text)
    network = ReactionNetwork("n", {"X": 5}, {}, [Reaction("r", "X -> 0", text)])
    assert lower(network, network.mean_field, {}, smooth_time=True).rates


@pytest.mark.parametrize(
    ("text", "equation", "is_proved"),
    [
        ("k*X", "X -> 0", True),
        ("k*X*(X - 1)/2", "2 X -> 0", True),
        ("k*X*(X - 1)*(X - 2)", "3 X -> 0", True),
        ("k*X/(K + Y)", "X -> 0", True),
        ("k*X + k*X*Y", "X -> 0", True),
        ("k*(Y - 3)", "0 -> X", False),
        ("k*X/Y", "X -> 0", False),
        ("k*Y", "X -> 0", False),
        ("k*X", "2 X -> 0", False),
        ("k - X", "0 -> X", False),
        ("k*X*(Y - 1)", "X -> 0", False),
        ("k*X*max(1/(Y - 5), 0)", "X -> 0", False),
        ("k*X*max(Y/Y, 1)", "X -> 0", False),
        ("X*k/(Y + K*Y*(Y - 1))", "X -> 0", False),
        ("X*k/(1 + K*Y*(Y - 1))", "X -> 0", True),
        ("k*X*max(Y - 5, 0)", "X -> 0", True),
        ("k*X^8*Y^8", "X -> 0", False),
        ("1e30*X", "X -> 0", False),
    ],
)
def test_only_rates_that_are_finite_non_negative_and_vanish_in_time_are_proved(
    text: str, equation: str, is_proved: bool
) -> None:
    made = program(text, equation)
    constants = made.constant_values({"k": 2.0, "n": 2.0, "K": 10.0}, 1)
    assert proved(made, constants) is is_proved
    if is_proved:
        assert not proved(made, -constants)


def test_constants_that_may_overflow_are_not_trusted() -> None:
    made = program("k*X")
    for value in (1e307, 1e-300):
        assert not proved(made, made.constant_values({"k": value, "n": 2.0, "K": 10.0}, 1))


def test_every_model_is_proved_safe() -> None:
    for name in models.MODELS:
        network = models.get(name)
        made = lower(network, network.propensities, dict(network.parameters))
        assert proved(made, made.constant_values(network.parameters, 1)), name
