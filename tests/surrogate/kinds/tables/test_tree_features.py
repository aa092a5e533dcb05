"""Trees that tell tables apart, and rows that they cannot."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from surrogate.errors import ModelError
from surrogate.evaluation import boosting
from surrogate.evaluation.boosting import accuracy, two_sample_test
from surrogate.kinds.tables.align import Rows, shared_columns
from surrogate.kinds.tables.tree_features import tree_features
from tests.surrogate.rows import few_rounds as few_rounds
from tests.surrogate.rows import shuffled, wines

pytestmark = pytest.mark.usefixtures("few_rounds")


def classified(x: pd.DataFrame, y: pd.DataFrame, seed: int = 0) -> tuple[float, float]:
    sides = Rows(x, "x"), Rows(y, "y")
    return two_sample_test(
        tree_features(shared_columns(*sides)[0]), sides[0].weights, sides[1].weights, seed=seed
    )


@pytest.mark.parametrize("seed", range(3))
def test_samples_of_one_distribution_are_classified_at_chance(seed: int) -> None:
    share, error = classified(wines(500, seed), wines(800, seed + 10), seed)
    assert abs(share - 0.5) < 4 * error
    assert 0.01 < error < 0.03
    assert classified(wines(500, seed), wines(800, seed + 10), seed) == (share, error)


def test_samples_of_another_distribution_are_classified_above_chance() -> None:
    share, error = classified(shuffled(wines(500, 1)), wines(500, 2))
    assert share > 0.5 + 8 * error
    gone = wines(500, 1).assign(density=0.9)  # without the gaps
    assert classified(gone, wines(500, 2))[0] > 0.6
    word = wines(500, 1).assign(place="valley")
    assert classified(word, wines(500, 2))[0] > 0.95


def test_rows_of_negligible_weight_do_not_count() -> None:
    y = wines(800, 2)
    x = pd.concat([wines(300, 1), wines(300, 3).assign(alcohol=30.0)])
    x["log_weight"] = np.repeat([0.0, -20.0], 300)
    share, error = classified(x, y)
    assert abs(share - 0.5) < 4 * error
    assert classified(x.drop(columns="log_weight"), y)[0] > 0.6


def test_many_words_and_empty_columns_are_accepted() -> None:
    random = np.random.default_rng(0)
    x, y = (
        pd.DataFrame(
            {
                "word": [f"w{k}" for k in random.integers(0, 1000, 400)],
                "none": np.nan,
                "same": 1.0,
                "huge": 1e300 * random.normal(size=400),
            }
        )
        for _ in range(2)
    )
    share, error = classified(x, y)
    assert abs(share - 0.5) < 4 * error
    assert classified(x[["none"]], y[["none"]])[0] == 0.5
    assert classified(x[["same"]], y[["same"]])[0] == 0.5
    codes = tree_features(shared_columns(Rows(x, "x"), Rows(y, "y"))[0]).sides[0][:, 0]
    assert codes.max() == boosting.MAX_TREE_WORDS


def test_accuracy_is_balanced() -> None:
    right, label = np.array([1.0, 1, 1, 1, 0, 0]), np.array([1, 1, 1, 1, 0, 0])
    assert accuracy(right, np.ones(6), label)[0] == 0.5


def test_missing_scikit_learn_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "find_spec", lambda name: None)
    assert not boosting.installed()
    with pytest.raises(ModelError, match=r"predicting x needs scikit-learn.*pip install"):
        boosting.require("predicting x")
