"""The scripts that fit constants find those in use."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def script(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_logistic_mixture_is_the_fit_to_its_digits() -> None:
    fitting = script("fit_logistic_mixture")
    assert fitting.fit() == fitting.shipped()
    assert fitting.largest_error(*fitting.shipped()) == pytest.approx(1.624e-4, rel=1e-3)


def test_another_mixture_is_worse() -> None:
    fitting = script("fit_logistic_mixture")
    tau, rate, weight = fitting.shipped()
    own = fitting.largest_error(tau, rate, weight)
    assert own < fitting.largest_error(tau + 0.001, rate, weight)
    assert own < fitting.largest_error(tau, rate - 0.001, weight)
    assert own < fitting.largest_error(tau, rate, weight + 0.0001)


def test_polynomial_of_erfcx_is_the_minimax_fit() -> None:
    fitting = script("fit_erfcx")
    q, size = fitting.fit()
    assert size == pytest.approx(1.4218e-7, rel=1e-4)
    assert q(1.0) == pytest.approx(1.0, abs=1e-14)
    assert fitting.distance_from_shipped(q) < fitting.CLOSE
