"""Scores in the benchmark of systems: closed forms, and identical data."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import norm

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MODULES = (
    "forecast_scores",
    "forecast_baselines",
    "inference_forecasts",
    "timegan_scores",
    "systems_bench",
    "systems",
    "systems_series",
)


@pytest.fixture(scope="module")
def scripts() -> Iterator[dict[str, ModuleType]]:
    """The modules of the benchmark, which import each other by their bare names."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield {name: __import__(name) for name in MODULES}
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in {*sys.modules} - before:
            if (BENCHMARKS / f"{name}.py").exists():
                del sys.modules[name]


def test_crps_of_a_normal_forecast_is_the_closed_form(scripts: dict[str, ModuleType]) -> None:
    draws = np.random.default_rng(0).normal(1.0, 2.0, (40_000, 3))
    truth = np.array([1.0, 4.0, -6.0])
    z = (truth - 1.0) / 2.0
    exact = 2.0 * (z * (2 * norm.cdf(z) - 1) + 2 * norm.pdf(z) - 1 / math.sqrt(math.pi))
    found = scripts["forecast_scores"].crps(draws, truth)
    assert found == pytest.approx(exact, abs=0.05)


def test_bands_cover_as_many_values_as_they_say(scripts: dict[str, ModuleType]) -> None:
    random = np.random.default_rng(1)
    draws, truth = random.normal(size=(500, 4_000)), random.normal(size=4_000)
    share = scripts["forecast_scores"].covered(draws, truth).mean()
    assert share == pytest.approx(0.9, abs=0.02)


def test_a_random_walk_has_the_volatility_that_it_is_given(scripts: dict[str, ModuleType]) -> None:
    volatility = np.array([[4e-4, 1e-4], [1e-4, 9e-4]])
    found = scripts["forecast_scores"].random_walk(np.array([10.0, 20.0]), volatility, 4, 20_000, 0)
    assert found.shape == (20_000, 2, 4)
    logs = np.log(found / np.array([10.0, 20.0])[:, None])
    np.testing.assert_allclose(np.cov(logs[..., -1].T), 4 * volatility, rtol=0.06)


def test_simple_forecasts_see_what_came_before_the_origin(scripts: dict[str, ModuleType]) -> None:
    own = scripts["forecast_baselines"]
    known = np.arange(40.0) % 10 + 100 * (np.arange(40) // 10)  # seasons of 10: 0 to 9, 100 to 109
    past = own.climatology(np.tile(known, 2), 10, 12)
    assert past.shape == (6, 12)  # the last season has 10 of the 12 steps
    assert past[0].tolist() == [*range(200, 210), 300, 301]
    with pytest.raises(ValueError, match="3 seasons before the origin are too few"):
        own.climatology(known, 9.9, 2)
    naive = own.seasonal_naive(known, 10, 12, 50, 0, logs=False)
    np.testing.assert_array_equal(naive[0], [*range(400, 410), 400, 401])  # every error is 100
    factors = own.seasonal_naive(np.exp2(np.arange(40.0)) - 1, 10, 3, 50, 0, logs=True)
    np.testing.assert_allclose(factors[7], np.exp2([40.0, 41.0, 42.0]) - 1)


def test_forecasts_of_noise_are_scored_like_the_truth(scripts: dict[str, ModuleType]) -> None:
    """A model that draws from the truth's law covers what its bands say, and beats one twice as
    wide."""
    own, random = scripts["inference_forecasts"].Scores(), np.random.default_rng(0)
    for _ in range(200):
        truth = random.normal(size=12)
        own.add("model", random.normal(size=(200, 12)), truth)
        own.add("wide", 2 * random.normal(size=(200, 12)), truth)
    # E CRPS of N(0, s²) at N(0, 1): (sqrt(2 (1 + s²)) - s) / sqrt(π), by the closed form
    expected = [(math.sqrt(2 * (1 + s**2)) - s) / math.sqrt(math.pi) for s in (1.0, 2.0)]
    assert np.mean(own.crps["model"]) == pytest.approx(expected[0], abs=0.03)
    assert own.ratio("wide") == pytest.approx(expected[0] / expected[1], abs=0.04)


def test_timegan_scores_of_identical_laws_are_small_and_of_others_large(
    scripts: dict[str, ModuleType],
) -> None:
    scores, series = scripts["timegan_scores"], scripts["systems_series"]
    names = tuple(f"x{k}" for k in range(5))
    data, same = (series.array(series.sines(600, seed), names) for seed in (1, 2))
    assert scores.discriminative(data, same, steps=60) < 0.1
    assert scores.discriminative(data, 1 - same, steps=200) > 0.2
    good, bad = (scores.predictive(data, each, steps=60) for each in (same, 1 - same))
    assert good < bad


def test_scaling_maps_the_range_of_the_data_to_the_unit_interval(
    scripts: dict[str, ModuleType],
) -> None:
    data = np.random.default_rng(0).normal(3, 2, (50, 4, 2))
    real, made = scripts["timegan_scores"].scaled(data, data + 1)
    assert real.min() == 0
    assert real.max() == 1
    assert made.max() > 1


def test_rows_of_systems_survive_a_continued_run(
    scripts: dict[str, ModuleType], tmp_path: Path
) -> None:
    systems, bench_ = scripts["systems"], scripts["systems_bench"]
    chosen = systems.options(["--models", str(tmp_path / "models"), "--only", "sir"])
    bench = bench_.Bench(chosen)
    row = bench_.Row("sir", laws=0.5, median=1.2, largest=2.0, c2st=0.6).aim(1.0, 1.15, 1.5, 0.55)
    row.within("P", 0.9, 1.0, 0.2).after(bench_.Training(60.0, "quick, 5 steps"))
    bench.keep("sir", row)
    assert bench_.Bench(chosen).kept() == {"sir": row}
    found = systems.sections(bench.kept())
    cells = found["Systems"][1][0]
    assert cells[:4] == ["sir", "50.00 %", "1.20 / 2.00", "0.600"]
    assert cells[-2:] == ["60 (quick, 5 steps)", "2 of 6"]
    assert [line[-1] for line in found["Targets"][1]] == ["missed"] * 4 + ["met"] * 2


def test_an_unknown_row_is_refused(
    scripts: dict[str, ModuleType], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        scripts["systems"].options(["--only", "nothing"])
    assert "there is no row 'nothing'; have: esirs, sir" in capsys.readouterr().err


def test_a_forecast_pins_every_given_step(scripts: dict[str, ModuleType]) -> None:
    text = scripts["systems_series"].pinned(np.array([[1.0, 2.5], [3.0, 4.0]]), ("a", "b"))
    assert text == "a(0) = 1.0 and a(1) = 2.5 and b(0) = 3.0 and b(1) = 4.0"
