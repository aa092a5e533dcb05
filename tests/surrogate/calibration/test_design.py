"""What is observed of truths, and what is ranked."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from constraints import FormulaError, Layout
from constraints.layout.signals import Signal
from surrogate.calibration.design import LOG_LIKELIHOOD, design
from surrogate.errors import ModelError
from surrogate.io.reading import ObservationOptions
from surrogate.kinds import kind_named
from surrogate.random import stream

SERIES = Layout(
    (
        Signal("I", "series", (11,), integer=True, low=0, high=100),
        Signal("beta", "column", low=0.5, high=3),
    ),
    times=tuple(float(t) for t in range(11)),
)
ROWS = Layout((Signal("a", "column"), Signal("b", "column"), Signal("c", "column")))
trajectories, rows = kind_named("time series"), kind_named("table")


def options(**given: object) -> ObservationOptions:
    return ObservationOptions(**given)  # type: ignore[arg-type]


def test_series_are_observed_exactly_at_four_steps_by_default() -> None:
    found = design(trajectories, SERIES, options())
    assert [str(each) for each in found.measurements.exact] == [f"I({t}) = 1" for t in (2, 4, 6, 8)]
    assert found.quantities == ("I(3)", "I(5)", "I(7)", "max(I)", "beta")


def test_noise_names_what_is_observed_and_the_likelihood_is_ranked() -> None:
    found = design(trajectories, SERIES, options(noise=("poisson(beta*I)",)), steps=(1, 3))
    assert [str(each) for each in found.measurements.noisy] == [
        "1 ~ poisson(beta * I(1))",
        "1 ~ poisson(beta * I(3))",
    ]
    assert found.ranked[-1] == LOG_LIKELIHOOD


def test_upto_and_every_choose_steps_as_in_sample() -> None:
    found = design(trajectories, SERIES, options(every=2, upto=6))
    assert len(found.measurements.exact) == 4


def test_every_other_column_of_a_table_is_given_by_default() -> None:
    found = design(rows, ROWS, options())
    assert [str(each) for each in found.measurements.exact] == ["a = 1", "c = 1"]
    assert found.quantities == ("b",)
    chosen = design(rows, ROWS, options(), given=["b"], quantities=["a + c"])
    assert [str(each) for each in chosen.measurements.exact] == ["b = 1"]
    assert chosen.ranked == ("a + c",)


def test_truths_are_observed_through_the_noise() -> None:
    """Means and variances of what is observed of one truth, over many replicates."""
    found = design(trajectories, SERIES, options(noise=("normal(2*I, 3)",)), steps=(4,))
    count = 2_000
    signals = {"I": torch.full((count, 11), 10.0), "beta": torch.ones(count)}
    at = found.measurements.parameters(signals)
    observed = [found.measurements.observed(at, i, stream(1, 2, i))["I"] for i in range(count)]
    y = np.array([each.value for each in observed])  # type: ignore[attr-defined]
    assert abs(y.mean() - 20) < 4 * 3 / np.sqrt(count)
    assert abs(y.std() - 3) < 4 * 3 / np.sqrt(2 * count)
    values = found.values({n: v[:1] for n, v in signals.items()}, {"I": observed[0]})
    expected = -0.5 * ((y[0] - 20) / 3) ** 2 - np.log(3) - 0.5 * np.log(2 * np.pi)
    assert values[0, -1] == pytest.approx(expected)


def test_exact_observations_take_the_values_of_the_truth() -> None:
    found = design(trajectories, SERIES, options(), steps=(0, 7), quantities=["max(I)"])
    path = torch.arange(22.0).reshape(2, 11)
    signals = {"I": path, "beta": torch.ones(2)}
    at = found.measurements.parameters(signals)
    observed = found.measurements.observed(at, 1, stream(0))
    assert str(observed["I"]) == "I(0) = 11 and I(7) = 18"
    assert found.values(signals, observed)[:, 0].tolist() == [10.0, 21.0]


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"quantities": ["max(Q)"]}, "quantity 'max\\(Q\\)': unknown signal"),
        ({"quantities": ["I >= 3"]}, "quantity|is no quantity"),
        ({"steps": [11]}, "there is no step 11"),
        ({"given": ["Q"]}, "no 'Q' to observe"),
        ({"like": {"I": 3}, "steps": [3]}, "say already what is observed"),
    ],
)
def test_mistakes_are_refused(given: dict[str, object], match: str) -> None:
    with pytest.raises((ModelError, FormulaError), match=match):
        design(trajectories, SERIES, options(), **given)  # type: ignore[arg-type]


def test_noise_that_names_what_the_model_has_not() -> None:
    with pytest.raises(ModelError, match="the model has no 'rho'"):
        design(trajectories, SERIES, options(noise=("poisson(rho*I)",)))


def test_nothing_is_left_to_rank() -> None:
    with pytest.raises(ModelError, match="nothing is left to rank"):
        design(rows, ROWS, options(), given=["a", "b", "c"])
