"""Train on samples, test on real rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from surrogate.errors import ModelError
from surrogate.kinds.tables.align import Rows, shared_columns
from surrogate.kinds.tables.train_on_synthetic import Usefulness, usefulness
from tests.surrogate.rows import few_rounds as few_rounds
from tests.surrogate.rows import shuffled, wines

pytestmark = pytest.mark.usefixtures("few_rounds")


def learned(x: pd.DataFrame, y: pd.DataFrame, target: str) -> Usefulness:
    sides = Rows(x, "x"), Rows(y, "y")
    return usefulness(shared_columns(*sides)[0], target, sides[0].weights, sides[1].weights)


@pytest.mark.parametrize(
    ("target", "scores"),
    [
        ("quality", ["R²"]),
        ("colour", ["accuracy", "ROC AUC"]),
        ("old", ["accuracy", "ROC AUC"]),
        ("density", ["R²"]),
    ],
)
def test_real_rows_score_like_real_rows(target: str, scores: list[str]) -> None:
    found = learned(wines(500, 1), wines(800, 2), target)
    assert [each.name for each in found.scores] == scores
    assert found.kind == ("numbers" if scores == ["R²"] else "classes")
    assert found.learned == (301 if target == "density" else 333)  # some are missing
    for each in found.scores:
        assert not each.worse
        assert abs(each.difference) < 4 * each.error + 1e-12
        assert each.error < 0.2
    if target != "old":  # which has nothing to do with the rest
        assert all(each.real > each.guess for each in found.scores)
    assert learned(wines(500, 1), wines(800, 2), target) == found


def test_independent_samples_score_worse() -> None:
    """The columns as they are, but the target from other rows."""
    x = wines(600, 1)
    x["quality"] = np.random.default_rng(0).permutation(x["quality"])
    (score,) = learned(x, wines(800, 2), "quality").scores
    assert score.worse
    assert score.real > 0.4
    assert score.samples < 0.1
    for each in learned(shuffled(wines(600, 1)), wines(800, 2), "colour").scores:
        assert each.worse


def test_classes_that_samples_lack_are_scored() -> None:
    def grade(table: pd.DataFrame) -> pd.DataFrame:
        cut = pd.cut(table.alcohol, [-99, 9.5, 10.5, 99], labels=["low", "middle", "high"])
        return table.assign(grade=cut.astype(str))

    found = learned(grade(wines(600, 1)), grade(wines(800, 2)), "grade")
    assert [each.name for each in found.scores] == ["accuracy", "balanced accuracy"]
    assert not any(each.worse for each in found.scores)
    assert found.scores[1].guess == pytest.approx(1 / 3)
    poor = grade(wines(600, 1)).assign(grade="low")
    only = learned(poor, grade(wines(800, 2)), "grade")
    assert all(each.worse for each in only.scores)
    single = learned(wines(600, 1).assign(colour="red"), wines(800, 2), "colour")
    assert single.scores[1].samples == 0.5


def test_a_number_with_two_values_is_a_class() -> None:
    x, y = (wines(n, n).assign(sold=lambda t: (t.sugar > 2).astype(int)) for n in (400, 500))
    assert learned(x, y, "sold").kind == "classes"


def test_a_constant_target_is_predicted() -> None:
    x = wines(300, 1).assign(same=3.0)
    found = learned(x[["same", "sugar"]], x[["same", "sugar"]], "same")
    assert [each.samples for each in found.scores] == [1.0]  # the only class is always right


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("qualty", "unknown column 'qualty' to predict (have: alcohol, sugar"),
        ("qualty", "did you mean 'quality'?"),
        ("zzz", "unknown column 'zzz' to predict (have: alcohol"),
    ],
)
def test_unknown_targets_are_refused(target: str, says: str) -> None:
    with pytest.raises(ModelError) as told:
        learned(wines(50), wines(50), target)
    assert says in str(told.value)


def test_too_few_rows_and_a_single_column_are_refused() -> None:
    with pytest.raises(ModelError, match=r"20 samples and 300 real rows .* give 30 and 100"):
        learned(wines(20), wines(300), "quality")
    with pytest.raises(ModelError, match="the only column in common"):
        learned(wines(200)[["sugar"]], wines(200)[["sugar"]], "sugar")
