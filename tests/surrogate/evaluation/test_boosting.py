"""Trees that tell trajectories apart by their levels and increments."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from surrogate.data import evaluate
from surrogate.evaluation import boosting
from surrogate.evaluation.boosting import Features, two_sample_test
from surrogate.io.attributes import OVERLAP
from surrogate.kinds import kind_named
from surrogate.kinds.trajectories.compare import MAX_TREE_FEATURES, Pair, tree_features
from tests.surrogate.evaluation.test_evaluate import epidemic


def series(values: np.ndarray, **attrs: int) -> xr.Dataset:
    return xr.Dataset(
        {"x": (("sample", "time"), values)}, {"time": np.arange(float(values.shape[1]))}, attrs
    )


@pytest.mark.parametrize("seed", range(3))
def test_trajectories_of_one_law_are_classified_at_chance(seed: int) -> None:
    found = evaluate(epidemic(500, seed=10 + seed), epidemic(700, seed=20 + seed), seed=seed).trees
    assert abs(found.accuracy - 0.5) < 4 * found.error
    assert found.floor == 0.5
    assert 0.01 < found.error < 0.02


def test_trees_see_increments_that_levels_do_not_show() -> None:
    random = np.random.default_rng(0)
    walk = np.cumsum(random.normal(size=(1_500, 12)), 1)
    other = np.cumsum(random.normal(size=(1_500, 12)), 1)
    other += 0.5 * random.normal(size=other.shape)  # a little noise on every level
    found = evaluate(series(other), series(walk))
    assert found.overall.median.ratio < 1.3
    assert found.trees.accuracy > 0.6


def test_features_are_levels_and_increments_of_all_series_and_columns() -> None:
    x, y = epidemic(40, seed=1), epidemic(50, seed=2)
    for k, data in enumerate((x, y)):
        random = np.random.default_rng(k)
        data["beta"] = "sample", random.uniform(2, 3, data.sizes["sample"])
        data["place"] = "sample", random.choice(["hill", "plain"], data.sizes["sample"])
    found = tree_features(Pair(x, y, 0))
    assert [side.shape for side in found.sides] == [(40, 3 * (8 + 7) + 2), (50, 3 * (8 + 7) + 2)]
    assert found.words == (False,) * 46 + (True,)
    np.testing.assert_array_equal(found.sides[0][:, 8:15], np.diff(x.S.values.astype(float)))


def test_long_series_are_thinned_and_keep_increments_of_one_step() -> None:
    values = np.cumsum(np.random.default_rng(0).normal(size=(30, 3_000)), 1)
    found = tree_features(Pair(series(values), series(values), 0)).sides[0]
    assert found.shape[1] <= MAX_TREE_FEATURES
    steps = found.shape[1] // 2 + 1
    assert np.abs(found[:, steps:]).max() < 6  # not sums of many steps


def test_windows_that_share_steps_are_in_one_fold() -> None:
    """Windows of two parts of one series: their neighbours would give them away."""
    noise = np.random.default_rng(1).normal(size=6_600)
    slow = np.convolve(noise, np.hanning(600), "valid")  # the same law everywhere
    windows = np.lib.stride_tricks.sliding_window_view(slow, 10)
    left, right = windows[:2_900], windows[3_000:5_900]
    ones = np.ones(2_900)
    features = Features((left, right), (False,) * 10)
    share, error = two_sample_test(features, ones, ones)
    groups = np.arange(2_900) // 500
    apart, _ = two_sample_test(features, ones, ones, groups=(groups, groups))
    assert share > 0.5 + 20 * error
    assert apart < share - 0.1
    found = evaluate(series(left, **{OVERLAP: 99}), series(right, **{OVERLAP: 99}))
    assert found.trees.accuracy < share - 0.1


def test_without_scikit_learn_there_is_no_tree_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "find_spec", lambda name: None)
    found = evaluate(epidemic(300, seed=1), epidemic(300, seed=2))
    assert found.trees is None
    assert "trees" not in found.table()
    assert found.verdict.level == "good"


def test_a_card_shows_the_accuracy_of_trees() -> None:
    found = evaluate(epidemic(100, seed=1), epidemic(100, seed=2)).to_dict()
    rows = {row[0]: row for row in kind_named("time series").card_rows(found)}
    accuracy, floor = rows["accuracy of trees on values and changes"][1:3]
    assert accuracy == f"{found['trees']['accuracy']:.4f}"
    assert floor.startswith("0.5000 ± ")
    earlier = {name: value for name, value in found.items() if name not in ("trees", "verdict")}
    names = [row[0] for row in kind_named("time series").card_rows(earlier)]
    assert not any("trees" in name for name in names)
