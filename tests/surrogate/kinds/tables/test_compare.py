"""Tables against tables: planted mistakes are seen by the measure made for them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from surrogate.data import evaluate
from surrogate.errors import ModelError
from surrogate.evaluation import boosting
from surrogate.evaluation.result import Distance, Evaluation
from surrogate.kinds.tables import compare as quality
from tests.surrogate.rows import few_rounds as few_rounds
from tests.surrogate.rows import shuffled, wines

pytestmark = pytest.mark.usefixtures("few_rounds")
PAIRS = ("correlation", "correlation_ratio", "cramers_v", "contingency")


def within(measured: Distance | None, deviations: float = 5) -> bool:
    assert measured is not None
    return measured.value - measured.floor <= deviations * measured.floor_sd + 1e-12


def column(found: Evaluation, name: str) -> Distance:
    return next(each.max for each in found.variables if each.name == name)


@pytest.mark.parametrize(("n", "m"), [(500, 500), (300, 1500), (1500, 300)])
def test_rows_of_one_distribution_are_at_the_noise_floor(n: int, m: int) -> None:
    found = evaluate(wines(n, 1), wines(m, 2))
    assert [each.name for each in found.variables] == list(wines(2))
    assert all(within(each.max) for each in (*found.variables, found.overall))
    assert within(found.overall.median)
    assert all(within(getattr(found, name)) for name in PAIRS)
    assert within(found.energy)
    assert abs(found.classifier[0] - 0.5) < 4 * found.classifier[1]
    assert found.judge == "gradient boosting"
    assert found.privacy is not None
    assert not found.privacy.memorised
    assert (found.samples, found.reference, found.lone) == (n, m, ())


def test_a_shifted_column_is_detected_and_named() -> None:
    found = evaluate(wines(600, 1).assign(sugar=lambda t: t.sugar + 1), wines(900, 2))
    assert found.overall.worst == 1
    assert column(found, "sugar").ratio > 3
    assert within(found.overall.median)
    assert within(column(found, "alcohol"))
    assert found.classifier[0] > 0.6
    assert "sugar" in next(row for row in found.rows() if row[0] == "D, max")


def test_shuffled_columns_are_detected_by_pairs_only() -> None:
    found = evaluate(shuffled(wines(600, 1)), wines(900, 2), target="quality")
    assert all(within(each.max) for each in found.variables)
    for name in PAIRS:
        assert getattr(found, name).ratio > 2
    assert found.classifier[0] > 0.7
    assert found.usefulness is not None
    assert found.usefulness.scores[0].worse
    assert found.privacy is not None
    assert not found.privacy.memorised


def test_memorised_rows_are_detected_by_the_nearest_row_only() -> None:
    train = wines(800, 1)
    found = evaluate(train[:500], wines(800, 2), train=train)
    assert all(within(each.max) for each in found.variables)
    assert abs(found.classifier[0] - 0.5) < 4 * found.classifier[1]
    assert found.privacy is not None
    assert found.privacy.memorised
    assert "MEMORISED" in found.table()
    assert evaluate(train[:500], train).privacy.memorised  # type: ignore[union-attr]


def test_another_share_of_missing_values_is_detected() -> None:
    full = wines(600, 1).assign(density=lambda t: 1 - t.alcohol / 100)
    found = evaluate(full, wines(900, 2))
    assert column(found, "density").ratio > 1.5
    blank = wines(600, 1).assign(colour=lambda t: t.colour.where(t.index % 5 > 0))
    assert not within(column(evaluate(blank, wines(900, 2)), "colour"))
    assert evaluate(full.assign(density=np.nan), wines(900, 2)).overall.max.value > 0.8


def test_distances_equal_those_by_hand() -> None:
    x = pd.DataFrame({"w": list("aaab") * 10, "n": [0, 0, 1, 2] * 10})
    y = pd.DataFrame({"w": list("abbc") * 10, "n": [0, 1, 1, 1] * 10})
    found = evaluate(x, y)
    assert column(found, "w").value == pytest.approx(0.5)
    assert column(found, "n").value == pytest.approx(0.5)
    y["w"] = y.w.where(y.w != "c")
    assert column(evaluate(x, y), "w").value == pytest.approx(0.5)


def test_rare_words_alone_make_no_distance() -> None:
    random = np.random.default_rng(0)
    x, y = (
        pd.DataFrame({"id": [f"w{k}" for k in random.integers(0, 9999, 400)]}) for _ in range(2)
    )
    assert evaluate(x, y).variables[0].max.value < 0.05
    new = pd.DataFrame({"id": ["the same"] * 400})
    assert evaluate(new, y).variables[0].max.value == 1


def test_datasets_and_dataframes_give_the_same_result() -> None:
    x, y = wines(200, 1), wines(300, 2)
    data = xr.Dataset({name: ("sample", x[name].to_numpy()) for name in x})
    assert evaluate(data, y) == evaluate(x, y)
    assert evaluate(x, y, seed=3) == evaluate(x, y, seed=3)


def test_columns_of_one_table_only_are_left_out_and_listed() -> None:
    found = evaluate(wines(100, 1).assign(extra=1), wines(100, 2).drop(columns="place"))
    assert set(found.lone) == {"extra", "place"}
    assert [each.name for each in found.variables] == [n for n in wines(2) if n != "place"]
    assert found.rows()[-1][0] == "only on one side"


def test_weights_turn_one_distribution_into_another() -> None:
    y = wines(900, 2)
    x = pd.concat([wines(700, 1), wines(700, 3).query("colour == 'red'")], ignore_index=True)
    red = (x.colour == "red").to_numpy()
    x["log_weight"] = np.log(np.where(red, 0.4 / red.mean(), 0.6 / (1 - red.mean())))
    found = evaluate(x, y)
    assert found.effective < len(x)
    assert all(within(each.max) for each in found.variables)
    assert within(found.energy)
    assert abs(found.classifier[0] - 0.5) < 4 * found.classifier[1]
    assert not within(column(evaluate(x.drop(columns="log_weight"), y), "colour"))
    assert "effective samples" in found.table()


ODD: dict[str, Any] = {
    "constant": np.full(60, 3.5),
    "missing": np.full(60, np.nan),
    "tiny": 5e-324 * (np.arange(60) % 3),
    "huge": 1.7e308 * np.where(np.arange(60) % 2, 1, -1),
    "word": ["same"] * 60,
    "truth": [True] * 60,
    "day": pd.date_range("2020-01-01", periods=60),
}


@pytest.mark.parametrize("names", [*([name] for name in ODD), list(ODD)])
def test_constant_empty_and_mixed_columns_are_compared(names: list[str]) -> None:
    x = pd.DataFrame({name: ODD[name] for name in names})
    found = evaluate(x, x)
    assert all(each.max.value == 0 for each in found.variables)
    assert found.energy.value == pytest.approx(0, abs=1e-9)
    json.loads(json.dumps(found.to_dict(), allow_nan=False))
    other = x.assign(**{names[0]: np.roll(np.arange(60.0), 3)})
    if names[0] not in ("word", "truth", "day"):
        assert evaluate(other, x).overall.max.value > 0


def test_without_scikit_learn_a_simple_classifier_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosting, "find_spec", lambda name: None)
    found = evaluate(shuffled(wines(300, 1)), wines(300, 2))
    assert found.judge.startswith("logistic regression; for a better one: pip install")
    assert found.classifier[0] > 0.55
    assert found.privacy is not None
    with pytest.raises(ModelError, match="needs scikit-learn"):
        evaluate(wines(300, 1), wines(300, 2), target="quality")


def test_a_wrong_target_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(quality, "binned", None)
    with pytest.raises(ModelError, match="did you mean 'quality'"):
        evaluate(wines(300, 1), wines(300, 2), target="qualit")


def test_the_result_as_json_and_text() -> None:
    found = evaluate(wines(200, 1), wines(300, 2), target="colour")
    told = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert told["usefulness"]["target"] == "colour"
    assert told["usefulness"]["scores"][0]["difference"] == pytest.approx(
        found.usefulness.scores[0].difference  # type: ignore[union-attr]
    )
    assert told["privacy"]["memorised"] is False
    assert told["contingency"]["ratio"] == pytest.approx(found.contingency.ratio)  # type: ignore[union-attr]
    text = found.table()
    for part in ("D(alcohol)", "Cramér's V", "gradient boosting", "nearest training row, median"):
        assert part in text
    assert "colour predicted, ROC AUC" in text


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"target": "x"}, "target is for rows, and these are trajectories"),
        ({"train": wines(9)}, "train is for rows"),
    ],
)
def test_trajectories_have_no_target(words: dict[str, Any], says: str) -> None:
    data = xr.Dataset({"S": (("sample", "time"), np.zeros((5, 3)))})
    with pytest.raises(ModelError, match=says):
        evaluate(data, data, **words)
