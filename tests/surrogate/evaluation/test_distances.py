"""Distances against direct formulas, and their noise floors against simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from surrogate.evaluation import distances as d
from surrogate.evaluation.distances import Histogram, Measure
from surrogate.evaluation.weights import Array, effective_sample_size

Draw = Callable[[np.random.Generator, tuple[int, int]], Array]


def column(*values: float) -> Array:
    return np.array(values, np.float64)[:, None]


def ones(x: Array) -> Array:
    return np.ones(len(x))


def normal(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.normal(size=shape)


def counts(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.poisson(20, shape).astype(np.float64)


def walk(random: np.random.Generator, shape: tuple[int, int]) -> Array:
    return random.normal(size=shape).cumsum(1)


# --- histograms -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "whole", "expected"),
    [
        ((0, 0, 1, 1), (0, 1, 1, 1), True, 0.25),
        ((0, 0, 1, 1), (5, 5, 6, 7), True, 1.0),
        ((3, 3, 3), (3, 3), True, 0.0),
        ((-0.4, 0.4, 0.6, 1.4), (0, 0, 1, 1), True, 0.0),  # rounded
        ((0, 0.4, 0.6, 1), (0, 0.1, 0.2, 1), False, 0.25),  # two bins, the last one closed
        ((2.5, 2.5), (2.5, 2.5), False, 0.0),  # no range at all
    ],
)
def test_exact_cases(
    x: tuple[float, ...], y: tuple[float, ...], whole: bool, expected: float
) -> None:
    found = d.histogram_distance(column(*x), column(*y), whole=whole)
    assert found.shape == (1,)
    assert found[0] == pytest.approx(expected)


def test_real_data_have_root_n_bins_over_the_range_of_the_reference() -> None:
    """And a bin on either side for all that lies beyond."""
    random = np.random.default_rng(0)
    scale = np.array([1.0, 10.0, 0.1])
    x, y = random.normal(size=(100, 3)) * scale, random.normal(1, 1, (150, 3)) * scale
    found = d.histogram_distance(x, y, whole=False)
    for t in range(3):
        inner = np.linspace(y[:, t].min(), y[:, t].max(), 11)
        edges = np.concatenate([[-np.inf], inner[:-1], [inner[-1] + 1e-9, np.inf]])
        p, q = np.histogram(x[:, t], edges)[0] / 100, np.histogram(y[:, t], edges)[0] / 150
        assert found[t] == pytest.approx(0.5 * np.abs(p - q).sum())


def test_whole_numbers_that_range_too_far_have_root_n_bins() -> None:
    x = np.arange(100.0)[:, None]
    assert Histogram.of(x, 2 * x, whole=True).bins == 199
    wide = Histogram.of(x, 10 * x, whole=True)
    assert (wide.bins, wide.width.tolist()) == (10, [100.0])


@pytest.mark.parametrize("whole", [True, False])
def test_wild_samples_do_not_flatter(whole: bool) -> None:
    """One sample far away changes D by its own share only."""
    random = np.random.default_rng(0)
    x, y = random.poisson(30, (400, 1)) + 5.0, random.poisson(30, (400, 1)) + 0.0
    wild = np.concatenate([x, [[1e9]]])
    near, far = (d.histogram_distance(each, y, whole=whole)[0] for each in (x, wild))
    assert far >= near - 1 / len(x)


def test_a_constant_of_the_reference() -> None:
    y = np.full((50, 1), 0.1)
    assert d.histogram_distance(y, y, whole=False)[0] == 0
    assert d.histogram_distance(y + 1e-6, y, whole=False)[0] == 1


@given(st.lists(st.integers(0, 5), min_size=2, max_size=30), st.integers(0, 99))
@settings(max_examples=40)
def test_a_distance(values: list[int], seed: int) -> None:
    x = column(*values)
    y = np.random.default_rng(seed).integers(0, 6, (20, 1)).astype(np.float64)
    there, back = (d.histogram_distance(*pair, whole=True)[0] for pair in ((x, y), (y, x)))
    assert there == pytest.approx(back)
    assert 0 <= there <= 1
    assert d.histogram_distance(x, np.repeat(x, 3, 0), whole=True)[0] == pytest.approx(0)
    p, q = (np.bincount(v[:, 0].astype(int), minlength=6) / len(v) for v in (x, y))
    assert there == pytest.approx(0.5 * np.abs(p - q).sum())


# --- correlations ---------------------------------------------------------------------------------


def test_correlations_are_those_of_numpy() -> None:
    random = np.random.default_rng(1)
    x, y = random.normal(size=(50, 4)), walk(random, (60, 4))
    above = np.triu_indices(4, 1)
    expected = np.abs(np.corrcoef(x.T) - np.corrcoef(y.T))[above].mean()
    assert d.Correlation()(x, y, ones(x), ones(y)) == pytest.approx(expected)


def test_a_constant_column_correlates_with_nothing() -> None:
    x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]])
    y = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0]])
    assert d.Correlation()(x, y, ones(x), ones(y)) == pytest.approx(1)


def test_autocorrelations_are_those_of_a_loop() -> None:
    random = np.random.default_rng(2)
    x, y = random.normal(size=(7, 1, 9)), random.normal(size=(5, 1, 9)).cumsum(-1)
    measure = d.Autocorrelation.of(9)
    assert measure.lags == (1, 2, 4)
    assert d.Autocorrelation.of(3).lags == (1,)

    def lagged(series: Array, lag: int) -> float:
        centred = [each[0] - each[0].mean() for each in series]
        above = sum(c[t] * c[t + lag] for c in centred for t in range(9 - lag))
        return float(above / sum((c**2).sum() for c in centred))

    expected = np.mean([abs(lagged(x, lag) - lagged(y, lag)) for lag in (1, 2, 4)])
    found = measure(measure.products(x), measure.products(y), ones(x), ones(y))
    assert found == pytest.approx(np.array([expected]))
    still = measure.products(np.ones((4, 1, 9)))
    assert measure(still, still, np.ones(4), np.ones(4)).tolist() == [0.0]


# --- weights --------------------------------------------------------------------------------------


def test_effective_number() -> None:
    assert effective_sample_size(np.ones(7)) == 7
    assert effective_sample_size(np.array([3.0, 3.0, 0.0])) == 2


@pytest.mark.parametrize("measure", [Histogram(np.zeros(3), np.ones(3), 40), d.Correlation()])
def test_a_weight_of_three_is_a_sample_thrice(measure: Measure) -> None:
    random = np.random.default_rng(3)
    x, y = counts(random, (30, 3)), counts(random, (40, 3))
    times = random.integers(1, 4, 30)
    repeated = np.repeat(x, times, 0)
    expected = measure(repeated, y, ones(repeated), ones(y))
    assert measure(x, y, 0.1 * times, ones(y)) == pytest.approx(expected)


def test_weights_in_energy_and_classifier() -> None:
    random = np.random.default_rng(4)
    x, y = random.normal(0, 1.5, (1_500, 1)), random.normal(size=(1_500, 1))
    weights = np.exp(-0.5 * x[:, 0] ** 2 * (1 - 1 / 2.25))  # to the law of y
    for given_, near in ((weights, True), (np.ones(1_500), False)):
        energy, null = d.energy_distance(x, y, given_, ones(y))
        accuracy, error = d.classifier_test(x, y, given_, ones(y))
        assert (energy < null.mean() + 4 * null.std()) == near
        assert (accuracy < 0.5 + 4 * error) == near


# --- floors ---------------------------------------------------------------------------------------


def pairs(draw: Draw, n: int, m: int, repeats: int = 50) -> list[tuple[Array, Array]]:
    random = np.random.default_rng(5)
    return [(draw(random, (n, 3)), draw(random, (m, 3))) for _ in range(repeats)]


def close(true: list[Array], floors: list[Array], systematic: float) -> None:
    """Means agree within four standard errors of the simulation and what scaling may cost."""
    noise = np.std(true) / math.sqrt(len(true))  # steps of a sample may depend on one another
    gap = float(np.mean(floors) - np.mean(true))
    assert abs(gap) < 4 * noise + systematic * np.mean(true), (np.mean(true), np.mean(floors))


@pytest.mark.parametrize(("n", "m"), [(400, 400), (150, 1500), (20_000, 150), (400, 900)])
@pytest.mark.parametrize(("draw", "whole"), [(normal, False), (counts, True)])
def test_floor_of_histograms(draw: Draw, whole: bool, n: int, m: int) -> None:
    true, floors, spread = [], [], []
    for k, (x, y) in enumerate(pairs(draw, n, m)):
        measure = Histogram.of(x, y, whole=whole)
        true.append(measure(x, y, ones(x), ones(y)))
        found = d.floor(measure, y, ones(y), n, seed=k)
        floors.append(found)
        spread.append(found.std(0))
    close(true, floors, 0.02 if m > 150 else 0.08)  # bins with few draws
    # 150 distances know their deviation within 6 %, four of which are 0.24
    assert np.mean(spread) == pytest.approx(np.std(true), rel=0.25)


def test_floors_of_correlations_and_of_lags() -> None:
    correlation, lagged = d.Correlation(), d.Autocorrelation((1,))
    true: list[list[Array]] = [[], []]
    floors: list[list[Array]] = [[], []]
    for k, (x, y) in enumerate(pairs(walk, 200, 500)):
        series = [lagged.products(each[:, None]) for each in (x, y)]
        for i, (measure, left, right) in enumerate(((correlation, x, y), (lagged, *series))):
            true[i].append(measure(left, right, ones(x), ones(y)))
            floors[i].append(d.floor(measure, right, ones(y), 200, seed=k))
    for i in range(2):
        close(true[i], floors[i], 0.03)


def test_floor_of_weighted_samples_is_that_of_their_effective_number() -> None:
    random = np.random.default_rng(6)
    true, floors = [], []
    for k, (x, y) in enumerate(pairs(normal, 600, 600)):
        measure = Histogram.of(x, y, whole=False)
        weights, others = random.exponential(size=600), random.exponential(size=600)
        true.append(measure(x, y, weights, others))
        floors.append(d.floor(measure, y, others, effective_sample_size(weights), seed=k))
    close(true, floors, 0.04)


def test_bad_samples_do_not_raise_the_floor() -> None:
    random = np.random.default_rng(7)
    y = counts(random, (2_000, 2))
    good, bad = counts(random, (2_000, 2)), random.integers(0, 60, (2_000, 2)).astype(np.float64)
    one, other = (
        d.floor(Histogram.of(x, y, whole=True), y, ones(y), 2_000).mean() for x in (good, bad)
    )
    assert one == pytest.approx(other)


def test_floors_repeat_with_their_seed() -> None:
    y = normal(np.random.default_rng(8), (100, 2))
    measure = Histogram.of(y, y, whole=False)
    first, again, other = (d.floor(measure, y, ones(y), 50, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.shape == (d.SPLITS, 2)
    assert np.isfinite(d.floor(measure, y[:2], np.ones(2), 1e6)).all()


# --- what they detect -----------------------------------------------------------------------------


def shifted(x: Array) -> Array:
    return x + 0.3


def narrowed(x: Array) -> Array:
    return x * 0.8


def rough(x: Array) -> Array:
    """The same marginals, neighbours less alike."""
    return x[:, ::2].repeat(2, 1)[:, [1, 2, 3, 4, 5, 0]]


@pytest.mark.parametrize("change", [shifted, narrowed, rough, None])
def test_differences_are_found_and_none_is_not(change: Callable[[Array], Array] | None) -> None:
    random = np.random.default_rng(9)

    def draw() -> Array:
        base = random.normal(size=(1_000, 3)).repeat(2, 1)
        return (base + 0.3 * random.normal(size=(1_000, 6))) / math.sqrt(1.09)

    x, y = draw(), draw()
    x = x if change is None else change(x)
    weights = np.ones(1_000)
    measures = {"histogram": Histogram.of(x, y, whole=False), "correlation": d.Correlation()}
    far = {}
    for name, measure in measures.items():
        floors = d.floor(measure, y, weights, 1_000).reshape(d.SPLITS, -1).mean(1)
        value = measure(x, y, weights, weights).mean()
        far[name] = value > floors.mean() + 5 * floors.std()
    left, right = d.standardise(x, y)
    energy, null = d.energy_distance(left, right, weights, weights)
    far["energy"] = energy > null.mean() + 5 * null.std()
    accuracy, error = d.classifier_test(left, right, weights, weights)
    far["classifier"] = accuracy > 0.5 + 4 * error
    marginal = change in (shifted, narrowed)
    assert far["histogram"] == marginal
    assert far["correlation"] == (change is rough)
    assert far["energy"] == (change is not None)
    assert far["classifier"] == (change is not None)


def test_energy_is_that_of_scipy_in_one_dimension() -> None:
    random = np.random.default_rng(10)
    x, y = random.normal(size=(80, 1)), random.normal(0.5, 1, (120, 1))
    weights = random.uniform(size=80)
    found, null = d.energy_distance(x, y, weights, ones(y))
    expected = stats.energy_distance(x[:, 0], y[:, 0], weights) ** 2
    assert found == pytest.approx(expected)
    assert null.shape == (d.PERMUTATIONS,)


def test_the_energy_of_one_law_is_among_its_permutations() -> None:
    random = np.random.default_rng(11)
    ranks = []
    for k in range(60):
        x, y = random.normal(size=(60, 2)), random.normal(size=(90, 2))
        found, null = d.energy_distance(x, y, ones(x), ones(y), seed=k)
        ranks.append((null < found).mean())
    # uniform on [0, 1]: the mean of 60 is within four of 0.289 / sqrt(60)
    assert abs(np.mean(ranks) - 0.5) < 0.15


def test_the_classifier_is_at_chance_for_one_law_and_its_error_is_honest() -> None:
    random = np.random.default_rng(12)
    scores = []
    for k in range(40):
        x, y = random.normal(size=(200, 3)), random.normal(size=(300, 3))
        accuracy, error = d.classifier_test(x, y, ones(x), ones(y), seed=k)
        scores.append((accuracy - 0.5) / error)
    assert abs(np.mean(scores)) < 4 * np.std(scores) / math.sqrt(40)
    assert 0.6 < np.std(scores) < 1.6


def test_samples_that_lie_apart_and_samples_that_say_nothing() -> None:
    x, y = column(*range(30)), column(*range(100, 130))
    accuracy, error = d.classifier_test(*d.standardise(x, y), ones(x), ones(y))
    assert accuracy == 1
    assert 0 < error < 0.05
    left, right = d.standardise(np.ones((30, 2)), np.ones((20, 2)))
    assert left.shape == (30, 0)
    assert d.energy_distance(left, right, ones(left), ones(right))[0] == 0
    assert d.classifier_test(left, right, ones(left), ones(right))[0] == 0.5


def test_standardising_pools_both_sides_and_drops_what_is_constant() -> None:
    x, y = np.array([[0.0, 7.0], [2.0, 7.0]]), np.array([[4.0, 7.0], [6.0, 7.0]])
    left, right = d.standardise(x, y)
    both = np.concatenate([left, right])
    assert both.shape == (4, 1)
    assert both.mean() == pytest.approx(0)
    assert both.std() == pytest.approx(1)


@pytest.mark.parametrize("whole", [True, False])
def test_long_tails_have_bins_of_equal_shares(whole: bool) -> None:
    """Most of the law is where equal bins have a single one."""
    random = np.random.default_rng(0)
    x, y = (np.exp(random.normal(3, 2.5, (500, 2))) for _ in range(2))
    x, y = (np.rint(each) if whole else each for each in (x, y))
    assert d.histogram_distance(x, y, whole=whole).max() < 0.2
    shifted = np.where(x < np.median(x), 3.0, x)
    assert d.histogram_distance(shifted, y, whole=whole).min() > 0.35
