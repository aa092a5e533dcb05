"""Aggregates: one entry of a table each, checked against numpy; a toy one added from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from constraints import FormulaError, Layout, LogProbabilistic, compiled, parse, signals
from constraints.ast.aggregates import Aggregation, aggregates, register, unregister
from constraints.gaussian.expectation import log_expectation

STEPS = 9
LAYOUT = Layout.series("I S", STEPS)


def data(samples: int = 40) -> dict[str, torch.Tensor]:
    noise = torch.Generator().manual_seed(3)
    return {
        name: 10 * torch.rand(samples, STEPS, generator=noise, dtype=torch.float64)
        for name in ("I", "S")
    }


ORDER_STATISTICS: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ("median(I)", lambda x: np.median(x, 1)),
    ("median(I, 2, 5)", lambda x: np.median(x[:, 2:6], 1)),
    ("median(I, 4, 4)", lambda x: x[:, 4]),
    ("quantile(I, 0.9)", lambda x: np.quantile(x, 0.9, 1)),
    ("quantile(I, 0)", lambda x: x.min(1)),
    ("quantile(I, 1)", lambda x: x.max(1)),
    ("quantile(I, 0.25, 3, end)", lambda x: np.quantile(x[:, 3:], 0.25, 1)),
    ("quantile(2 * I + 1, 0.5)", lambda x: np.median(2 * x + 1, 1)),
]


@pytest.mark.parametrize(("text", "numpy"), ORDER_STATISTICS)
def test_order_statistics_equal_those_of_numpy(
    text: str, numpy: Callable[[np.ndarray], np.ndarray]
) -> None:
    batch = data()
    expected = torch.from_numpy(numpy(batch["I"].numpy()))
    program = compiled(f"{text} >= 5", LAYOUT)
    torch.testing.assert_close(program.robustness(batch), expected - 5)
    assert torch.equal(program.verdict(batch), expected >= 5)


def test_a_moving_window_has_a_median_of_its_own() -> None:
    batch = data()
    x = batch["I"].numpy()
    windows = np.stack([np.median(x[:, t : t + 4], 1) for t in range(STEPS - 3)], 1)
    program = compiled("forall t in [0, end - 3]: median(I, t, t + 3) <= 6", LAYOUT)
    expected = torch.from_numpy(6 - windows.max(1))
    torch.testing.assert_close(program.robustness(batch), expected)
    clipped = compiled("exists t: quantile(I, 0.75, t - 2, t) >= 9", LAYOUT, end="clip")
    starts = [max(t - 2, 0) for t in range(STEPS)]
    reached = np.stack(
        [np.quantile(x[:, a : t + 1], 0.75, 1) for t, a in enumerate(starts)], 1
    ).max(1)
    torch.testing.assert_close(clipped.robustness(batch), torch.from_numpy(reached - 9))


def test_windows_that_grow_count_only_their_own_steps() -> None:
    batch = data()
    x = batch["I"].numpy()
    program = compiled("forall t: median(I, 0, t) <= 8", LAYOUT)
    highest = np.stack([np.median(x[:, : t + 1], 1) for t in range(STEPS)], 1).max(1)
    torch.testing.assert_close(program.robustness(batch), torch.from_numpy(8 - highest))


def test_pixels_have_a_median() -> None:
    images = torch.rand(5, 1, 4, 6, dtype=torch.float64)
    layout = Layout.image((1, 4, 6))
    whole = compiled("median(image) >= 0.5", layout).robustness({"image": images})
    upper = compiled("quantile(image, 0.9, upper) >= 0.5", layout).robustness({"image": images})
    expected = np.median(images.numpy().reshape(5, -1), 1)
    torch.testing.assert_close(whole, torch.from_numpy(expected - 0.5))
    expected = np.quantile(images.numpy()[:, :, :2].reshape(5, -1), 0.9, 1)
    torch.testing.assert_close(upper, torch.from_numpy(expected - 0.5))


@pytest.mark.parametrize(
    "text", ["median(I) <= 4", "forall t: quantile(I, 0.9, 0, t) <= 7", "median(I) = median(S)"]
)
def test_gradients_of_order_statistics_are_finite_and_not_zero(text: str) -> None:
    batch = {name: x.requires_grad_() for name, x in data().items()}
    compiled(text, LAYOUT)(batch, LogProbabilistic(k=1.0)).sum().backward()
    gradient = batch["I"].grad
    assert gradient is not None
    assert bool(torch.isfinite(gradient).all())
    assert bool((gradient != 0).any(1).all())


def test_equal_values_leave_gradients_finite() -> None:
    flat = torch.full((2, STEPS), 3.0, dtype=torch.float64, requires_grad=True)
    compiled("median(I, 0, 3) >= 3", LAYOUT)({"I": flat}).sum().backward()
    assert flat.grad is not None
    assert bool(torch.isfinite(flat.grad).all())


def test_a_gaussian_average_of_a_median_is_near_monte_carlo() -> None:
    mean = torch.linspace(0, 1, 2 * STEPS, dtype=torch.float64)[None]
    covariance = 0.01 * torch.eye(2 * STEPS, dtype=torch.float64)
    program = compiled("median(I) >= 0.2", LAYOUT)
    semantics = LogProbabilistic(k=20.0)
    noise = torch.randn(20_000, 2 * STEPS, dtype=torch.float64, generator=torch.manual_seed(0))
    exact = program(mean + 0.1 * noise, semantics).exp().mean().log()
    found = log_expectation(program, mean, covariance, semantics)
    assert float(found) == pytest.approx(float(exact), abs=0.15)


@pytest.mark.parametrize(
    "text",
    [
        "median(I) <= 3",
        "quantile(I, 0.9) <= 3",
        "quantile(I, 0.9, 0, 5) <= 3",
        "forall t: quantile(I - S, 0.1, t, t + 2) >= median(S)",
    ],
)
def test_order_statistics_print_as_text_that_parses_back(text: str) -> None:
    assert str(parse(text)) == text
    assert parse(str(parse(text))) == parse(text)


def test_order_statistics_are_built_in_python_too() -> None:
    I = signals("I")
    assert (I.median() <= 3) == parse("median(I) <= 3")
    assert (I.quantile(0.9, 0, 5) <= 3) == parse("quantile(I, 0.9, 0, 5) <= 3")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("quantile(I) <= 3", "takes a signal and a level, or these and two steps"),
        ("quantile(I, 1.5) <= 3", r"the level of quantile is 1.5; give a number in \[0, 1\]"),
        ("quantile(I, S) <= 3", "plain number"),
        ("median() <= 3", "takes a signal"),
        ("median(I, 0.5) <= 3", "median takes a signal, or a signal and two steps"),
        ("median(I, 0, 5, 6) <= 3", "not 4 arguments"),
    ],
)
def test_a_wrong_signature_is_refused_with_the_right_one(text: str, problem: str) -> None:
    with pytest.raises(FormulaError, match=problem):
        parse(text)


@pytest.fixture
def spread() -> Iterator[Aggregation]:
    def value(values: Any, inside: Any) -> Any:
        if inside is None:
            return values.amax(-1) - values.amin(-1)
        outside = ~inside
        top = values.masked_fill(outside, -torch.inf).amax(-1)
        return top - values.masked_fill(outside, torch.inf).amin(-1)

    yield register(Aggregation("spread", "greatest minus least value", value, integer="kept"))
    unregister("spread")


def test_one_registration_adds_an_aggregate_to_the_language(spread: Aggregation) -> None:
    batch = data()
    x = batch["I"].numpy()
    formula = parse("spread(I, 1, 6) <= 8")
    assert str(formula) == "spread(I, 1, 6) <= 8"
    found = compiled(formula, LAYOUT).robustness(batch)
    torch.testing.assert_close(found, torch.from_numpy(8 - np.ptp(x[:, 1:7], 1)))
    growing = compiled("forall t: spread(I, 0, t) <= 8", LAYOUT).robustness(batch)
    torch.testing.assert_close(growing, torch.from_numpy(8 - np.ptp(x, 1)))
    with pytest.raises(FormulaError, match="spread takes a signal"):
        parse("spread(I, S, I, S) <= 1")
    with pytest.raises(FormulaError, match="already"):
        register(spread)


def test_every_aggregate_is_documented_and_has_a_signature() -> None:
    for name, entry in aggregates().items():
        assert entry.meaning
        assert entry.signature.startswith(f"{name}(")
