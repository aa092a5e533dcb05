"""What goes together: against other people's formulas, and at its floor for one law."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats.contingency import association

from surrogate.evaluation import distances
from surrogate.kinds.tables.align import Column, Rows, shared_columns
from surrogate.kinds.tables.association import (
    ASSOCIATION_NAMES,
    affordable_rows,
    features,
    numbers_first,
)
from tests.surrogate.rows import shuffled, wines


def columns(x: pd.DataFrame, y: pd.DataFrame) -> list[Column]:
    return numbers_first(shared_columns(Rows(x, "x"), Rows(y, "y"))[0])


def coefficients(x: pd.DataFrame) -> pd.DataFrame:
    found = columns(x, x)
    measure, sides = features(found)
    names = [each.name for each in found]
    made = measure.coefficients(measure.sums(sides[0], np.ones(len(x))))
    return pd.DataFrame(made, names, names)


def test_correlations_equal_those_of_pandas() -> None:
    x = wines(300).drop(columns="density")
    found, expected = coefficients(x), x.corr(numeric_only=True)
    for a in ("alcohol", "sugar", "quality"):
        for b in ("alcohol", "sugar", "quality"):
            assert found.loc[a, b] == pytest.approx(expected.loc[a, b])


def test_cramers_v_equals_that_of_scipy() -> None:
    x = wines(300)
    for a, b in (("colour", "place"), ("colour", "old"), ("place", "old")):
        expected = association(pd.crosstab(x[a], x[b]).to_numpy(), method="cramer")
        assert coefficients(x).loc[a, b] == pytest.approx(expected)
        assert coefficients(x).loc[b, a] == pytest.approx(expected)


def test_the_correlation_ratio_equals_its_definition() -> None:
    x = wines(300)
    means = x.groupby("colour").alcohol.transform("mean")
    expected = np.sqrt(means.var(ddof=0) / x.alcohol.var(ddof=0))
    assert coefficients(x).loc["alcohol", "colour"] == pytest.approx(expected)
    assert coefficients(x).loc["colour", "alcohol"] == pytest.approx(expected)


def test_a_constant_column_has_no_association() -> None:
    x = pd.DataFrame({"a": [1.0, 1, 1, 1], "b": [1.0, 2, 3, 4], "c": ["x"] * 4, "d": list("aabb")})
    found = coefficients(x)
    assert (found.loc["a", ["b", "c", "d"]] == 0).all()
    assert (found.loc["c", ["a", "b", "d"]] == 0).all()


def test_tables_of_one_distribution_are_at_the_noise_floor_and_shuffled_ones_are_not() -> None:
    ratios = []
    for seed in range(8):
        found = columns(wines(500, seed + 1), wines(800, seed + 100))
        measure, (left, right) = features(found)
        ones = np.ones(len(left)), np.ones(len(right))
        value = measure(left, right, *ones)
        floor = distances.floor(measure, right, ones[1], 500, seed=seed).mean(0)
        ratios.append(value / floor)
    assert np.mean(ratios, 0) == pytest.approx(np.ones(4), abs=0.25)
    measure, (left, right) = features(columns(shuffled(wines(500)), wines(800, 3)))
    value = measure(left, right, np.ones(500), np.ones(800))
    floor = distances.floor(measure, right, np.ones(800), 500).mean(0)
    assert (value > 2 * floor).all()
    assert len(value) == len(ASSOCIATION_NAMES)


def test_absent_kinds_of_pairs_give_nan() -> None:
    x = wines(100)[["alcohol", "sugar"]]
    measure, (left, right) = features(columns(x, x))
    found = measure(left, right, np.ones(100), np.ones(100))
    np.testing.assert_array_equal(np.isnan(found), [False, True, True, False])


def test_swapped_words_are_detected_though_cramers_v_is_the_same() -> None:
    x, y = wines(500), wines(500)
    x["colour"] = x.colour.map({"red": "white", "white": "red"})
    measure, (left, right) = features(columns(x[["colour", "place"]], y[["colour", "place"]]))
    found = dict(
        zip(ASSOCIATION_NAMES, measure(left, right, np.ones(500), np.ones(500)), strict=True)
    )
    assert found["cramers_v"] == pytest.approx(0, abs=1e-12)
    assert found["contingency"] > 0.3


def test_fewer_rows_are_used_where_columns_are_many() -> None:
    one = shared_columns(Rows(wines(5), "x"))[0]
    assert affordable_rows(one) == 20_000
    assert 1_000 <= affordable_rows(one * 40) < 5_000
