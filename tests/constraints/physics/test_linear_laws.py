"""Linear rows of a rule bind exactly where the rule does."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from constraints import Layout, Signal, compiled, parse
from constraints.physics.linear_laws import LinearLaw, equalities, every_step, linear_laws
from constraints.physics.rules import from_network, max_step, monotone
from simulators import models, simulate

STEPS = 4
LAYOUT = Layout.series("A B C", STEPS, integer=True, parameters={"N": 9.0})
REAL = Layout.series("A B C", STEPS)


def obeyed(laws: tuple[LinearLaw, ...], data: dict[str, np.ndarray]) -> np.ndarray:
    """Whether each sample obeys all rows: series (N, T), statics (N,)."""
    first = next(iter(data.values()))
    verdict = np.ones(len(first), bool)
    for law in laws:
        later = bool(law.before) or law.when_zero is not None
        value = np.full(1, law.constant)
        for name, weight in law.now.items():
            values = data[name][:, None] if data[name].ndim == 1 else data[name][:, later:]
            value = value + weight * values
        for name, weight in law.before.items():
            value = value + weight * data[name][:, :-1]
        fine = value >= -1e-9
        if law.when_zero is not None:
            fine = fine | (data[law.when_zero][:, :-1] != 0)
        if law.given is not None:
            left = sum(weight * data[name] for name, weight in law.given.now.items())
            fine = fine | (left + law.given.constant < 0)
        verdict &= fine.all(1)
    return verdict


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("forall t: A(t) <= B(t)", [LinearLaw({"A": -1.0, "B": 1.0})]),
        ("A <= B", [LinearLaw({"A": -1.0, "B": 1.0})]),
        ("always(A <= B)", [LinearLaw({"A": -1.0, "B": 1.0})]),
        ("A < B", [LinearLaw({"A": -1.0, "B": 1.0}, constant=-1.0)]),
        ("max(A) <= 7", [LinearLaw({"A": -1.0}, constant=7.0)]),
        ("forall t: 2 * A(t) + 1 >= 4 - B(t)", [LinearLaw({"A": 2.0, "B": 1.0}, constant=-3.0)]),
        ("A + B <= N", [LinearLaw({"A": -1.0, "B": -1.0}, constant=9.0)]),
        ("forall t in [1, end]: A(t) <= A(t-1)", [LinearLaw({"A": -1.0}, {"A": 1.0})]),
        ("forall t in [0, end - 1]: A(t+1) <= A(t)", [LinearLaw({"A": -1.0}, {"A": 1.0})]),
        ("delta(A) >= 0", [LinearLaw({"A": 1.0}, {"A": -1.0})]),
        (
            "forall t in [1, end]: B(t-1) = 0 implies A(t) >= A(t-1)",
            [LinearLaw({"A": 1.0}, {"A": -1.0}, 0.0, "B")],
        ),
        (
            "A > 3 implies B <= 2",
            [LinearLaw({"B": -1.0}, constant=2.0, given=LinearLaw({"A": 1.0}, constant=-4.0))],
        ),
        (
            "A = B + C",
            [
                LinearLaw({"A": 1.0, "B": -1.0, "C": -1.0}),
                LinearLaw({"A": -1.0, "B": 1.0, "C": 1.0}),
            ],
        ),
        (
            "forall t: A(t) + B(t) = A(0) + B(0)",
            [
                LinearLaw({"A": 1.0, "B": 1.0}, {"A": -1.0, "B": -1.0}),
                LinearLaw({"A": -1.0, "B": -1.0}, {"A": 1.0, "B": 1.0}),
            ],
        ),
    ],
)
def test_rows_of_a_rule(text: str, rows: list[LinearLaw]) -> None:
    found = linear_laws(parse(text), LAYOUT)
    assert found is not None
    assert list(found) == rows


def test_real_strict_inequalities_are_closed() -> None:
    assert linear_laws(parse("A < B"), REAL) == linear_laws(parse("A <= B"), REAL)


@pytest.mark.parametrize(
    "text",
    [
        "A(0) = 3",
        "forall t in [1, end]: A(t) >= 2",  # step 0 is free
        "forall t in [0, 2]: A(t) >= 2",
        "forall t in [2, end]: A(t) <= A(t - 1)",
        "forall t in [2, end]: A(t) <= A(t - 2)",
        "forall t: A(t) <= A(0)",
        "exists t: A(t) >= 2",
        "A >= 2 or B >= 3",
        "A * B >= 2",
        "mean(A) >= 2",
        "delta(A) > 0",  # which nothing meets at step 0
        "forall t: A(t) <= 3 implies B(t) <= B(t - 1)",
        "forall t: A(t) = 0 implies B(t) = 0",  # the condition is not at the step before
        "forall t in [1, end]: A(t-1) = 1 implies B(t) = 0",
        "forall t in [1, end]: A(t-1) = 0 implies (B(t) = 0 or C(t) = 0)",
        "A <= Q",
    ],
)
def test_other_rules_have_no_rows(text: str) -> None:
    assert linear_laws(parse(text), LAYOUT) is None


def test_statics_stand_beside_series() -> None:
    signals = Signal("A", "series", (STEPS,)), Signal("top", "column"), Signal("low", "column")
    layout = Layout(signals, tuple(float(t) for t in range(STEPS)))
    assert linear_laws(parse("A <= top"), layout) == (LinearLaw({"A": -1.0, "top": 1.0}),)
    assert linear_laws(parse("low <= top"), layout) == (LinearLaw({"low": -1.0, "top": 1.0}),)
    assert linear_laws(parse("low = 2 * top"), layout) == (
        LinearLaw({"low": 1.0, "top": -2.0}),
        LinearLaw({"low": -1.0, "top": 2.0}),
    )


def test_columns_of_a_table_have_rows_too() -> None:
    layout = Layout.columns("a b")
    assert linear_laws(parse("a <= b and b <= 3"), layout) == (
        LinearLaw({"a": -1.0, "b": 1.0}),
        LinearLaw({"b": -1.0}, constant=3.0),
    )


def test_a_bare_rule_is_meant_at_every_step() -> None:
    assert str(every_step(parse("A <= B"), LAYOUT)) == "always(A <= B)"
    for text in ("forall t: A(t) <= 2", "max(A) <= 3", "A(0) = 2", "eventually(A >= 3)"):
        assert every_step(parse(text), LAYOUT) == parse(text)
    columns = Layout.columns("A B")
    assert every_step(parse("A <= B"), columns) == parse("A <= B")


def test_equalities_are_pairs_of_rows() -> None:
    both = linear_laws(parse("A = B + C and A <= 7"), LAYOUT)
    assert both is not None
    assert equalities(both) == [LinearLaw({"A": 1.0, "B": -1.0, "C": -1.0})]


weights = st.sampled_from([-2, -1, 0, 1, 2])
relations = st.sampled_from(["<=", ">=", "<", ">", "="])


@settings(max_examples=150)
@given(
    st.tuples(weights, weights, weights),
    st.tuples(weights, weights, weights),
    relations,
    st.integers(-3, 3),
    st.booleans(),
    st.integers(0, 2**31),
)
def test_rows_agree_with_the_verdict_of_the_rule(
    now: Any, before: Any, relation: str, bound: int, conditional: bool, seed: int
) -> None:
    names = "ABC"
    parts = [f"{w} * {n}(t)" for n, w in zip(names, now, strict=True)]
    parts += [f"{w} * {n}(t - 1)" for n, w in zip(names, before, strict=True)]
    condition = "B(t - 1) = 0 implies " if conditional else ""
    rule = parse(f"forall t in [1, end]: {condition}{' + '.join(parts)} {relation} {bound}")
    found = linear_laws(rule, LAYOUT)
    if not any(now) or not (any(before) or conditional):
        return  # not a law at every step
    assert found is not None
    data = {
        name: np.random.default_rng([seed, i]).integers(-2, 3, (200, STEPS)).astype(float)
        for i, name in enumerate(names)
    }
    verdict = compiled(rule, LAYOUT).verdict({k: torch.from_numpy(v) for k, v in data.items()})
    if found:
        np.testing.assert_array_equal(obeyed(found, data), verdict.numpy())


@pytest.mark.parametrize("name", models.MODELS)
def test_rules_of_networks_have_rows_that_simulations_obey(name: str) -> None:
    data = simulate(models.get(name), 200, seed=3, threads=1)
    config = json.loads(data.attrs["surrogate_config"])
    species = list(config["network"]["species"])
    layout = Layout.series(species, data.sizes["time"], integer=True, low=0)
    values = {each: data[each].values.astype(float) for each in species}
    noise = np.random.default_rng(0)
    noisy = {k: np.abs(v + noise.integers(-1, 2, v.shape)) for k, v in values.items()}
    for rule in from_network(config).values():
        rows = linear_laws(rule, layout)
        assert rows, rule
        assert obeyed(rows, values).all(), rule
        tensors = {k: torch.from_numpy(v) for k, v in noisy.items()}
        verdict = compiled(rule, layout).verdict(tensors).numpy()
        np.testing.assert_array_equal(obeyed(rows, noisy), verdict)


def test_rules_by_name_have_rows() -> None:
    assert linear_laws(max_step("A", 3), LAYOUT) is not None
    assert linear_laws(monotone("A", "increasing"), LAYOUT) == (LinearLaw({"A": 1.0}, {"A": -1.0}),)
